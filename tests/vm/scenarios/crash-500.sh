# SPDX-License-Identifier: GPL-2.0
# title: a process with 500 connections is killed; another one ends without a disconnect
# cpus: 1
# timeout: 240

. /vm/lib.sh
. /vm/crash.sh

load_stack
setup_rxe
before=$(resources)
idle=$(live_objects)

background server /vm/tools/hold_peer serve $SELF 7300 answer
wait_for 30 listening 7300 || bail "hold_peer does not listen"
# All events of 500 connections.
echo 20000 >$TRACING/buffer_size_kb
oracle_on
victim client /vm/tools/hold_peer client $SELF 7300 stay 500
taken=$(stat holds_taken)
kill_victim client 60
judge
expect_kept "500 QPs of one process" 500
if [ $MODULE_KIND = rust ]; then
	# One TimeWait of 0.5 s, and the time to send and answer 500 DREQs under emulation.
	check "one wait for all of them, not 500: $longest ms" [ "$longest" -lt $((15000 * SLOW)) ]
	assert_eq "holds taken" $(($(stat holds_taken) - taken)) 500
	wait_for 5 eval '[ "$(stat holds_taken)" = $(($(stat holds_released) + $(stat holds_expired))) ]'
	assert_eq "holds released and expired" \
		"$(stat holds_released) $(stat holds_expired)" "$(stat holds_taken) 0"
fi

oracle_on
background leaver /vm/tools/hold_peer client $SELF 7300 exit 3
finish leaver 20
assert_eq "a process ends without a disconnect, status" $? 0
judge
expect_kept "3 QPs of a process that ended" 3

stop server
wait_for 20 eval '[ "$(resources)" = "$before" ]'
assert_eq "resources on rxe0 afterwards" "$(resources)" "$before"
wait_for 20 eval '[ "$(live_objects)" = "$idle" ]'
assert_eq "live objects of the module, as before" "$(live_objects)" "$idle"
