# SPDX-License-Identifier: GPL-2.0
# title: the module's KUnit suites
# only: rust
# kernel: debug
# debug: yes
# timeout: 120

. /vm/lib.sh

# The kernel runs the suites of a module when it is loaded.
SUITES="ib_cm_count ib_cm_gate ib_cm_hash ib_cm_history ib_cm_index ib_cm_replay ib_cm_timers"

dmesg -C
load_stack
all_reported() {
	[ "$(dmesg | grep -cE "\] (not )?ok [0-9]+ ib_cm_")" -ge "$(wc -w <<<"$SUITES")" ]
}
wait_for 30 all_reported
dmesg | sed -n 's/^\[[^]]*\] \( *\(not ok\|ok\|#\) .*\)/\1/p' | tee $RUN/kunit
for suite in $SUITES; do
	check "suite $suite" grep -qE "^ok [0-9]+ $suite" $RUN/kunit
done
assert_eq "cases that fail" "$(grep -c "^ *not ok" $RUN/kunit)" 0
note "cases that pass: $(grep -c "^    ok" $RUN/kunit)"
