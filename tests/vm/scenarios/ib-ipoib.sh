# SPDX-License-Identifier: GPL-2.0
# title: IPoIB between two namespaces: datagrams, connections with 64 KiB packets, both ways
# timeout: 120
# debug: yes

. /vm/lib.sh
. /vm/hca/ib.sh

# IPoIB makes a connection for each direction: each port sends one REQ and answers one.
one_each_way() {
	[ "$(both unique rtu rx)" = "1 1" ]
}

ib_load
sm_start 1
ipoib_start
mark_both
check "datagrams: ping" one ping -q -c 3 -i 0.2 $SECOND_ADDRESS
check "datagrams: ping of 4,000 bytes" one ping -q -c 3 -i 0.2 -s 4000 $SECOND_ADDRESS
assert_eq "no connection for datagrams, REQs" "$(both unique req tx)" "0 0"

check "connected mode, MTU 65,520" ipoib_mode connected
assert_eq "mode" "$(one cat /sys/class/net/ib0/mode) $(two cat /sys/class/net/ib1/mode)" \
	"connected connected"
ipoib_up
wait_for 10 one_each_way
for message in req rep rtu; do
	assert_eq "$message sent by port 1 and port 2" "$(both unique $message tx)" "1 1"
	assert_eq "$message received by port 1 and port 2" "$(both unique $message rx)" "1 1"
done
check "ping of 60,000 bytes, not fragmented" \
	one ping -q -c 4 -i 0.2 -M do -s 60000 $SECOND_ADDRESS
check "the same from the other side" two ping -q -c 4 -i 0.2 -M do -s 60000 $FIRST_ADDRESS
[ $SLOW = 1 ] && size=8 || size=2
check "a copy of $size MiB over TCP, the same at the other end" tcp_copy $size
assert_eq "no more connections for it, REQs" "$(both unique req tx)" "1 1"

mark_both
check "the second interface goes down" ip -n two link set ib1 down
wait_for 10 eval '[ "$(of_port 2 unique dreq tx)" -ge 1 ]'
assert_ge "DREQs of its end, at least" "$(of_port 2 unique dreq tx)" 1
check "and up" ipoib_up
check "ping of 60,000 bytes" wait_for 10 reaches -s 60000
assert_ge "new REQs of port 1, at least" "$(of_port 1 unique req tx)" 1

check "back to datagrams" ipoib_mode datagram
ipoib_up
check "connected again" ipoib_mode connected
ipoib_up
check "ping of 60,000 bytes again" wait_for 10 reaches -s 60000

check "the interfaces go with their connections" ib_unload
check "the connection manager unloads" unload_stack
