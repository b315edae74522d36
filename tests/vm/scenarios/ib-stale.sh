# SPDX-License-Identifier: GPL-2.0
# title: IPoIB: a peer vanishes without a word and comes back with the same QPN: traffic in 5 s
# timeout: 120
# debug: yes

. /vm/lib.sh
. /vm/hca/ib.sh

DREQ=15

# sending_qpn: of the two connected QPs of ib1 that by which it sends. Nothing is received on it, so
# that it still expects the packet number 0.
sending_qpn() {
	rdma resource show qp link ibloop0/2 | grep ' type RC ' | grep ' rq-psn 0 ' |
		sed -n 's/.* lqpn \([0-9]*\) .*/\1/p' | tail -n 1
}

# reboot_second QPN: the second host loses power and starts again. None of its DREQs gets out, and
# its next QP gets the number that an earlier one had. That it knows the address of the first
# keeps the first from using the number for a connection of its own.
reboot_second() {
	fault drop $DREQ 2 1000
	ip -n two link set ib1 down
	ip -n two link set ib1 up
	ip -n two neigh replace $FIRST_ADDRESS lladdr "$first_lladdr" dev ib1 nud permanent
	wait_for 10 two_running
	next_qpn "$1"
}

two_running() {
	[[ $(ip -n two link show ib1) == *LOWER_UP* ]]
}

milliseconds() {
	echo $((${EPOCHREALTIME/./} / 1000))
}

second_reaches() {
	two ping -q -c 1 -W 1 -s 30000 $FIRST_ADDRESS
}

ib_load
sm_start 1
ipoib_start
first_lladdr=$(one cat /sys/class/net/ib0/address)
check "connected mode" ipoib_mode connected
ipoib_up
check "ping from the second" wait_for 10 second_reaches

# One is enough for a kernel that checks itself; the last case below is a second one.
[ $SLOW = 1 ] && rounds="1 2 3" || rounds=1
for round in $rounds; do
	qpn=$(sending_qpn)
	[ -n "$qpn" ] || bail "no QP of ib1 is in RTS: $(rdma resource show qp link ibloop0)"
	mark_both
	reboot_second "$qpn"
	start=$(milliseconds)
	back=no
	wait_for 10 second_reaches && back=yes
	took=$(($(milliseconds) - start))
	assert_eq "round $round: the second host is heard again" $back yes
	[ $took -le $((5000 * SLOW)) ] && ok "within 5 s: $took ms" || fail "not within 5 s: $took ms"
	# That it was really the same QPN: the first one called it stale, once for each try with it.
	assert_ge "REJs of port 1, at least" "$(of_port 1 unique rej tx)" 1
	note "port 1: REJs $(of_port 1 unique rej tx), DREQs $(of_port 1 unique dreq tx)"
	check "and the first one is heard" wait_for 5 reaches -s 30000
	fault clear
done

# The same, but nothing comes from the second host until the first one wants something.
qpn=$(sending_qpn)
mark_both
reboot_second "$qpn"
ipoib_up
start=$(milliseconds)
check "the first reaches the second again" wait_for 10 reaches -s 30000
took=$(($(milliseconds) - start))
[ $took -le $((5000 * SLOW)) ] && ok "within 5 s: $took ms" || fail "not within 5 s: $took ms"
fault clear

check "the interfaces go with their connections" ib_unload
check "the connection manager unloads" unload_stack
