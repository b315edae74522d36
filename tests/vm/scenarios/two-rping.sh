# SPDX-License-Identifier: GPL-2.0
# title: rping between this module and the C one, both directions
# guests: 2
# modules: test c
# timeout: 120

. /vm/lib.sh

load_stack
setup_rxe

server() {
	if [ "$1" = start ]; then
		background server rping -s -P -a $SELF -p 7174
		wait_for 10 listening 7174 || bail "rping does not listen"
		return
	fi
	barrier clients-done-$ROLE
	stop server
	# A client whose REQ met rping's full backlog has sent it again.
	assert_ge "req received" "$(unique req rx)" 11
	assert_eq "rep sent, without repetitions" "$(unique rep tx)" 11
}

client() {
	local i good=0
	check "100 iterations" rping -c -a $PEER -p 7174 -C 100
	for i in $(seq 10); do
		background client$i rping -c -a $PEER -p 7174 -C 5
	done
	for i in $(seq 10); do
		if finish client$i 60; then good=$((good + 1)); else show client$i; fi
	done
	assert_eq "clients at once that end well" $good 10
	assert_eq "req sent, without repetitions" "$(unique req tx)" 11
	assert_eq "rej received" "$(counter_delta rx_msgs rej)" 0
	if [ $ROLE = a ]; then barrier clients-done-b; else barrier clients-done-a; fi
}

two_way server client
