# SPDX-License-Identifier: GPL-2.0
# title: connections, adapter, subnet manager and modules go in every order
# timeout: 150
# debug: yes

. /vm/lib.sh
. /vm/hca/ib.sh

# The capability bit by which others learn that there is a connection manager (IBA 14.2.5.6).
CM_SUPPORTED=0x10000

cm_bits() {
	local port
	for port in 1 2; do
		[ $(($(cat $HCA/ports/$port/cap_mask) & CM_SUPPORTED)) = 0 ] && echo no || echo yes
	done | tr '\n' ' '
}

connected_ping() {
	reaches -s 30000
}

# connections: IPoIB is up and connected, both ways.
connections() {
	ipoib_start
	ipoib_mode connected
	ipoib_up
	wait_for 15 connected_ping || bail "no connection"
}

# remove MODULE...: in that order.
remove() {
	local module
	for module in "$@"; do
		wait_for 15 rmmod $module || { echo "$module stays"; return 1; }
	done
}

ABOVE="ib_ipoib rdma_ucm rdma_cm iw_cm"

ib_load
sm_start 1
connections
check "IPoIB under connections, then the connection manager, the adapter stays" \
	remove $ABOVE ib_cm
assert_eq "ports that say they have a connection manager" "$(cm_bits)" "no no "
ipoib_stop
load_ib_cm || bail "ib_cm does not load again"
assert_eq "with the module again" "$(cm_bits)" "yes yes "
modprobe -a rdma_cm rdma_ucm

connections
check "the adapter under connections, then the others" remove ib_loop $ABOVE ib_cm
sm_stop
ipoib_stop

load_ib_cm || bail "ib_cm does not load again"
modprobe -a rdma_cm rdma_ucm
adapter_plug
sm_start 2
connections
sm_stop
link down
check "no subnet manager, no cable, then IPoIB, the connection manager, the adapter" \
	remove $ABOVE ib_cm ib_loop
ipoib_stop

load_ib_cm || bail "ib_cm does not load again"
modprobe -a rdma_cm rdma_ucm
adapter_plug
sm_start 1
connections
# Nobody is told anything: all messages from now on are lost.
fault drop 0 0 1000000
check "all messages are lost, IPoIB under connections, then the adapter, the others" \
	remove ib_ipoib ib_loop rdma_ucm rdma_cm iw_cm ib_cm
sm_stop
ipoib_stop
check "the rest unloads" remove rdmavt
check "nothing of the stack is left" unload_stack
