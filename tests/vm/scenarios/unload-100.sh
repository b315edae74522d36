# SPDX-License-Identifier: GPL-2.0
# title: 100 times, clients that connect without pause are killed and all modules go at once
# timeout: 1500
# long: yes

. /vm/lib.sh
. /vm/crash.sh
. /vm/storm.sh

ROUNDS=100

load_stack
setup_rxe
before=$(resources)
idle=$(live_objects)
references=$(cat /sys/module/ib_cm/refcnt)
for ((round = 0; round < ROUNDS; round++)); do
	unload_round $round || { cat $RUN/*.log; resources; bail "round $round fails"; }
done
ok "rounds: $round"
settle
assert_eq "resources on rxe0, as before" "$(resources)" "$before"
assert_eq "live objects of the module, as before" "$(live_objects)" "$idle"
assert_eq "references on the module, as before" "$(cat /sys/module/ib_cm/refcnt)" "$references"
check "everything unloads" unload_stack
