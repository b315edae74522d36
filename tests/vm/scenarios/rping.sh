# SPDX-License-Identifier: GPL-2.0
# title: rping, 100 iterations on one connection
# timeout: 60

. /vm/lib.sh

load_stack
setup_rxe
mark_counters

background server rping -s -a $SELF -p 7174 -C 100 -v
wait_for 10 listening 7174 || bail "rping does not listen"
check "client ends well" rping -c -a $SELF -p 7174 -C 100
finish server 20
assert_eq "server ends well, status" $? 0
assert_eq "iterations seen by the server" "$(grep -c 'server ping data' $RUN/server.log)" 100
counters_agree 1
