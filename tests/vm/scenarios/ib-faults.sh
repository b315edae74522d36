# SPDX-License-Identifier: GPL-2.0
# title: IPoIB: lost, repeated and late messages; the cable, the subnet manager
# timeout: 240
# debug: yes

. /vm/lib.sh
. /vm/hca/ib.sh

REQ=10 REP=13 RTU=14
# More of them tell nothing more to a kernel that checks itself.
[ $SLOW = 1 ] && FLAPS=20 || FLAPS=5

# connect_again: both directions are connected anew, by a change of the mode and back.
connect_again() {
	ipoib_mode datagram && ipoib_up && mark_both
}

connected_ping() {
	reaches -s 30000
}

faults_met() {
	local line
	while read -r line; do
		[[ $line == *" left 0 "* ]] || return 1
	done <$LOOP/faults
}

# with_faults TEXT FAULT...: of connections that meet them each comes to be all the same. IPoIB
# makes one from port 1 to port 2 and one back, so that two faults can be met at a time.
with_faults() {
	local text=$1 fault
	shift
	connect_again
	for fault in "$@"; do fault $fault; done
	ipoib_mode connected
	check "$text: connected" wait_for 25 connected_ping
	check "$text: met" wait_for 5 faults_met
	fault clear
}

# counted GROUP MESSAGE PORT: at least one, on that port
counted() {
	local delta
	of_port $3 delta_of $1 $2
	[ $delta -ge 1 ]
}

ib_load
sm_start 1
ipoib_start

with_faults "a REQ is lost, and a REP" "drop $REQ 1 1" "drop $REP 1 1"
check "port 1 repeated its REQ" counted tx_retries req 1
check "port 1 repeated its REP" counted tx_retries rep 1
with_faults "an RTU is lost, a REQ arrives twice" "drop $RTU 1 1" "repeat $REQ 2 1"
check "port 1 counted a duplicate REQ" wait_for 5 counted rx_duplicates req 1
with_faults "an RTU is late, after data, a REP arrives twice" "delay $RTU 1 1 700" "repeat $REP 1 1"

# --- the cable -------------------------------------------------------------------------------

background server ip netns exec two iperf3 -s
wait_for 10 tcp_listening 5201
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

# restarted HOW: the manager of port 2 brings the ports up.
restarted() {
	sm_start 2
	check "a subnet manager $1: ping" wait_for 15 connected_ping
	link down
	link up
	check "it brings the ports up" wait_for 15 ports_active
	check "ping again" wait_for 15 connected_ping
}

sm_stop
check "without a subnet manager, ping" wait_for 5 connected_ping
restarted "on the other port"
kill -KILL $(cat $RUN/opensm.pid)
sm_stop
restarted "after SIGKILL of the last one"

check "the adapter is unplugged under connections" rmmod ib_loop
adapter_plug
check "and plugged in again" test -d $HCA
check "everything unloads" ib_unload
check "the connection manager unloads" unload_stack
