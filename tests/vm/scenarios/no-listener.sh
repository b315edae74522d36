# SPDX-License-Identifier: GPL-2.0
# title: a connect to no listener is rejected with 8
# timeout: 60

. /vm/lib.sh

load_stack
setup_rxe
mark_counters

rping -c -a $SELF -p 7199 -C 1 >$RUN/rping.log 2>&1
assert_eq "rping fails, status" $(($? != 0)) 1
show rping
check "rping says REJECTED, 8" grep -q 'RDMA_CM_EVENT_REJECTED, error 8' $RUN/rping.log
/vm/tools/cmtool reject $SELF 7199 5 >$RUN/client.log
assert_eq "cmtool ends well, status" $? 0
# 8 is "invalid service ID".
assert_eq "rejected with reason 8" "$(grep -ac '^rejected 8' $RUN/client.log)" 5
assert_eq "req received" "$(unique req rx)" 6
assert_eq "rej received" "$(unique rej rx)" 6
assert_eq "rep sent" "$(counter_delta tx_msgs rep)" 0
