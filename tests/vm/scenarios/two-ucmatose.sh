# SPDX-License-Identifier: GPL-2.0
# title: ucmatose between this module and the C one, both directions
# guests: 2
# modules: test c
# timeout: 120

. /vm/lib.sh

load_stack
setup_rxe

server() {
	if [ "$1" = start ]; then
		background server ucmatose -b $SELF -c 20
		wait_for 10 listening 7471 || bail "ucmatose does not listen"
		return
	fi
	finish server 60
	assert_eq "server ends well, status" $? 0
	assert_eq "req received, without repetitions" "$(unique req rx)" 20
}

client() {
	check "client ends well" ucmatose -s $PEER -c 20
	assert_eq "req sent, without repetitions" "$(unique req tx)" 20
	assert_eq "rej received" "$(counter_delta rx_msgs rej)" 0
}

two_way server client
