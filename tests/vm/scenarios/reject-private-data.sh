# SPDX-License-Identifier: GPL-2.0
# title: a server that rejects with private data
# timeout: 60

. /vm/lib.sh

load_stack
setup_rxe
before=$(resources)
mark_counters

background server /vm/tools/cmtool serve $SELF 7300 10 "not-today"
wait_for 10 listening 7300 || bail "cmtool does not listen"
/vm/tools/cmtool reject $SELF 7300 10 >$RUN/client.log
assert_eq "client ends well, status" $? 0
show client
# 28 is "consumer defined", the reason for every rejection by a consumer.
assert_eq "rejected with reason 28 and the server's text" \
	"$(grep -ac '^rejected 28 not-today' $RUN/client.log)" 10
finish server 10
assert_eq "server ends well, status" $? 0
assert_eq "req received" "$(unique req rx)" 10
assert_eq "rej sent" "$(unique rej tx)" 10
assert_eq "rej received" "$(unique rej rx)" 10
assert_eq "rep sent" "$(counter_delta tx_msgs rep)" 0
wait_for 10 eval '[ "$(resources)" = "$before" ]'
assert_eq "resources on rxe0 afterwards" "$(resources)" "$before"
