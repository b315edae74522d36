# SPDX-License-Identifier: GPL-2.0
# title: udaddy, ten datagram endpoints resolved by SIDR, and one without a listener
# timeout: 60

. /vm/lib.sh

load_stack
setup_rxe
mark_counters

background server udaddy -b $SELF -c 10
wait_for 10 listening 7174 || bail "udaddy does not listen"
check "client ends well" udaddy -s $SELF -c 10
finish server 20
assert_eq "server ends well, status" $? 0
show server
for message in sidr_req sidr_rep; do
	assert_eq "$message sent" "$(unique $message tx)" 10
	assert_eq "$message received" "$(unique $message rx)" 10
done
for message in req rep rej dreq; do
	assert_eq "$message sent" "$(counter_delta tx_msgs $message)" 0
done

# Nobody listens any more: SIDR status 1, which rdma_cm reports as unreachable.
udaddy -s $SELF -c 1 >$RUN/refused.log 2>&1
show refused
check "without a listener: UNREACHABLE, status 1" \
	grep -q 'RDMA_CM_EVENT_UNREACHABLE, error: 1' $RUN/refused.log
assert_eq "sidr_rep sent in all" "$(unique sidr_rep tx)" 11
