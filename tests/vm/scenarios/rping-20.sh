# SPDX-License-Identifier: GPL-2.0
# title: 20 rping clients at once on one server
# timeout: 90

. /vm/lib.sh

load_stack
setup_rxe
before=$(resources)
mark_counters

background server rping -s -P -a $SELF -p 7174
wait_for 10 listening 7174 || bail "rping does not listen"
for i in $(seq 20); do
	background client$i rping -c -a $SELF -p 7174 -C 10
done
good=0
for i in $(seq 20); do
	if finish client$i 60; then good=$((good + 1)); else show client$i; fi
done
assert_eq "clients that end well" $good 20
counters_agree 20
stop server
wait_for 10 eval '[ "$(resources)" = "$before" ]'
assert_eq "resources on rxe0 afterwards" "$(resources)" "$before"
