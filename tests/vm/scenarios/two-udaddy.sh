# SPDX-License-Identifier: GPL-2.0
# title: udaddy (SIDR) between this module and the C one, both directions
# guests: 2
# modules: test c
# timeout: 120

. /vm/lib.sh

load_stack
setup_rxe

server() {
	if [ "$1" = start ]; then
		background server udaddy -b $SELF -c 5
		wait_for 10 listening 7174 || bail "udaddy does not listen"
		return
	fi
	finish server 60
	assert_eq "server ends well, status" $? 0
	assert_eq "sidr_req received, without repetitions" "$(unique sidr_req rx)" 5
	assert_ge "sidr_rep sent" "$(counter_delta tx_msgs sidr_rep)" 5
}

client() {
	check "client ends well" udaddy -s $PEER -c 5
	assert_eq "sidr_req sent, without repetitions" "$(unique sidr_req tx)" 5
}

two_way server client
