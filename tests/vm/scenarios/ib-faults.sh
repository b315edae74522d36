# SPDX-License-Identifier: GPL-2.0
# title: IPoIB: lost, repeated and late messages; the cable, the subnet manager
# timeout: 240
# foreign: WARNING: .*(ipoib_transport_dev_cleanup|rdma_restrack_clean)

. /vm/lib.sh
. /vm/hca/ib.sh

REQ=10 REP=13 RTU=14
FLAPS=20

# connect_again: both directions are connected anew, by a change of the mode and back.
connect_again() {
	ipoib_mode datagram
	ipoib_up
	wait_for 20 quiet_ports
	mark_both
}

quiet_ports() {
	of_port 1 quiet
}

connected_ping() {
	reaches -s 30000
}

fault_met() {
	[ "$(faults_left $1)" = 0 ]
}

# with_fault TEXT FAULT...: a connection that meets it comes to be all the same.
with_fault() {
	local text=$1
	shift
	connect_again
	fault "$@"
	ipoib_mode connected
	check "$text: connected" wait_for 25 connected_ping
	wait_for 5 fault_met $1
	assert_eq "$text: faults not met" "$(faults_left $1)" 0
	fault clear
}

ib_load
sm_start 1
ipoib_start

with_fault "a REQ is lost" drop $REQ 1 1
assert_ge "REQs that port 1 repeated, at least" "$(of_port 1 counter_delta tx_retries req)" 1
with_fault "a REP is lost" drop $REP 2 1
assert_ge "REPs that port 2 repeated, at least" "$(of_port 2 counter_delta tx_retries rep)" 1
with_fault "an RTU is lost" drop $RTU 1 1
with_fault "a REQ arrives twice" repeat $REQ 1 1
wait_for 5 eval '[ "$(of_port 2 counter_delta rx_duplicates req)" -ge 1 ]'
assert_ge "duplicate REQs that port 2 counted, at least" \
	"$(of_port 2 counter_delta rx_duplicates req)" 1
with_fault "a REP arrives twice" repeat $REP 2 1
with_fault "an RTU is late, after data" delay $RTU 1 1 700

# --- the cable -------------------------------------------------------------------------------

background server ip netns exec two iperf3 -s
wait_for 10 eval 'two ss -ltn | grep -q :5201'
background client ip netns exec one iperf3 -c $SECOND_ADDRESS -t 300
for flap in $(seq $FLAPS); do
	link down
	link up
	wait_for 15 ports_active || bail "flap $flap: the ports stay down"
done
ok "$FLAPS times the cable was pulled under a TCP stream"
check "ping of 30,000 bytes" wait_for 15 connected_ping
stop client
stop server

# --- the subnet manager ----------------------------------------------------------------------

sm_stop
check "without a subnet manager, ping" wait_for 5 connected_ping
sm_start 2
ok "a subnet manager on the other port"
check "ping" wait_for 15 connected_ping
link down
link up
check "and after it brought the ports up" wait_for 15 ports_active
check "ping again" wait_for 15 connected_ping

check "the adapter is unplugged under connections" rmmod ib_loop
adapter_plug
check "and plugged in again" test -d $HCA
check "everything unloads" ib_unload
check "the connection manager unloads" unload_stack
