# SPDX-License-Identifier: GPL-2.0
# title: rdma_cm between InfiniBand ports, by IPoIB addresses: rping, ucmatose, udaddy, perftest
# timeout: 120
# debug: yes

. /vm/lib.sh
. /vm/hca/ib.sh

dreps_came() {
	local delta
	of_port 1 unique_of drep rx
	[ $delta = 0 ] || return 0
	of_port 2 unique_of drep rx
	[ $delta != 0 ]
}

# One side sends what the other one receives, and the adapter loses nothing.
ports_agree() {
	local sent
	wait_for 15 dreps_came
	wait_for 10 of_port 1 quiet
	sent=$(of_port 1 sent_messages)
	of_port 2 received_as_sent "$sent"
	sent=$(of_port 2 sent_messages)
	of_port 1 received_as_sent "$sent"
}

writes=$((200 / SLOW))

ib_load
sm_start 1
ipoib_start

mark_both
background server ip netns exec two rping -s -a $SECOND_ADDRESS -p 7174 -C 50
wait_for 10 listening 7174 || bail "rping does not listen"
check "rping, 50 iterations" one rping -c -a $SECOND_ADDRESS -p 7174 -C 50
finish server 20
assert_eq "its server, status" $? 0
assert_eq "REQs of port 1, REPs of port 2" \
	"$(of_port 1 unique req tx) $(of_port 2 unique rep tx)" "1 1"
ports_agree

mark_both
background server ip netns exec two ucmatose -b $SECOND_ADDRESS -c 10
wait_for 10 listening 7471 || bail "ucmatose does not listen"
check "ucmatose, 10 connections" one ucmatose -s $SECOND_ADDRESS -c 10
finish server 20
assert_eq "REQs of port 1" "$(of_port 1 unique req tx)" 10
ports_agree

mark_both
background server ip netns exec two udaddy -b $SECOND_ADDRESS
wait_for 10 listening 7174 || wait_for 5 listening 7471
check "udaddy: SIDR and datagrams" one udaddy -s $SECOND_ADDRESS
finish server 20
assert_eq "SIDR requests of port 1, answers of port 2" \
	"$(of_port 1 unique sidr_req tx) $(of_port 2 unique sidr_rep tx)" "1 1"

mark_both
one rping -c -a $SECOND_ADDRESS -p 7999 -C 1 >$RUN/none.log 2>&1
assert_eq "a connection to nobody is rejected, REJs of port 2" "$(of_port 2 unique rej tx)" 1

mark_both
background server ip netns exec two ib_write_bw -R -n $writes -s 65536
wait_for 10 listening 18515 || bail "ib_write_bw does not listen"
check "ib_write_bw over rdma_cm" one ib_write_bw -R -n $writes -s 65536 $SECOND_ADDRESS
finish server 20
assert_eq "its server, status" $? 0

check "everything unloads" ib_unload
check "the connection manager unloads" unload_stack
