# SPDX-License-Identifier: GPL-2.0
# title: 1,000 processes with a connection each are killed, 50 at a time
# only: rust
# timeout: 900
# long: yes

. /vm/lib.sh
. /vm/crash.sh
. /vm/storm.sh

ROUNDS=20
COUNT=50

load_stack
setup_rxe
before=$(resources)
idle=$(live_objects)
for ((round = 0; round < ROUNDS; round++)); do
	kill_round $COUNT || { cat $RUN/*.log; resources; bail "round $round fails"; }
done
assert_eq "processes killed" $killed $((ROUNDS * COUNT))
if [ $MODULE_KIND = rust ]; then
	assert_eq "holds taken" "$(stat holds_taken)" $killed
	wait_for 20 eval '[ $(($(stat holds_released) + $(stat holds_expired))) = $killed ]'
	note "holds that were given up: $(stat holds_expired)"
	assert_eq "holds released and expired" \
		$(($(stat holds_released) + $(stat holds_expired))) $killed
fi
settle
assert_eq "resources on rxe0, as before" "$(resources)" "$before"
assert_eq "live objects of the module, as before" "$(live_objects)" "$idle"
