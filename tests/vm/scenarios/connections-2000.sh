# SPDX-License-Identifier: GPL-2.0
# title: 2,000 connections at once, ended by their process's death
# only: rust
# timeout: 900
# memory: 4096
# long: yes

. /vm/lib.sh
. /vm/crash.sh

COUNT=2000

load_stack
setup_rxe
before=$(resources)
idle=$(live_objects)
mark_counters
background server /vm/tools/hold_peer serve $SELF 7300 answer
wait_for 30 listening 7300 || bail "hold_peer does not listen"
background client /vm/tools/hold_peer client $SELF 7300 stay $COUNT
wait_for 600 grep -q '^ready' $RUN/client.log || bail "$(grep -c '^qpn' $RUN/client.log) connect"
assert_eq "connections of the process" "$(grep -c ESTABLISHED $RUN/client.log)" $COUNT
assert_eq "REQs, without repetitions" "$(unique req tx)" $COUNT
[ $MODULE_KIND = c ] || assert_ge "live objects of the module" \
	"$(live_objects | grep -o '[0-9]*' | head -n 1)" $((2 * COUNT))
kill -KILL "$(cat $RUN/client.pid)"
finish client 120
check "the process is gone" [ ! -e $RUN/client.pid ]
if [ $MODULE_KIND = rust ]; then
	assert_eq "holds taken" "$(stat holds_taken)" $COUNT
fi
wait_for 60 ended $COUNT
assert_ge "ends, without repetitions" "$(unique drep rx)" $COUNT
stop server
wait_for 120 eval '[ "$(resources)" = "$before" ]'
assert_eq "resources on rxe0, as before" "$(resources)" "$before"
wait_for 60 eval '[ "$(live_objects)" = "$idle" ]'
assert_eq "live objects of the module, as before" "$(live_objects)" "$idle"
