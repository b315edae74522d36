# SPDX-License-Identifier: GPL-2.0
# title: ucmatose, 50 connections with data
# timeout: 90

. /vm/lib.sh

load_stack
setup_rxe
mark_counters

background server ucmatose -b $SELF -c 50
wait_for 10 listening 7471 || bail "ucmatose does not listen"
check "client ends well" ucmatose -s $SELF -c 50
finish server 30
assert_eq "server ends well, status" $? 0
show server
counters_agree 50
