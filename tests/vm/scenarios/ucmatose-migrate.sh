# SPDX-License-Identifier: GPL-2.0
# title: ucmatose, ids that migrate to another event channel
# timeout: 60

. /vm/lib.sh

load_stack
setup_rxe
mark_counters

background server ucmatose -b $SELF -c 10 -m
wait_for 10 listening 7471 || bail "ucmatose does not listen"
check "client ends well" ucmatose -s $SELF -c 10 -m
finish server 30
assert_eq "server ends well, status" $? 0
counters_agree 10
