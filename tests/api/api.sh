# SPDX-License-Identifier: GPL-2.0
# For scenarios that use ib_cm_api_test. Sourced after lib.sh.

API=/sys/kernel/debug/ib_cm_api_test

# load_api: the stack, a device, and the test module; the marks to compare with afterwards.
load_api() {
	load_stack
	setup_rxe
	[ -e $VM/api/ib_cm_api_test.ko ] || bail "ib_cm_api_test was not built: see the runner's messages"
	insmod $VM/api/ib_cm_api_test.ko netdev=v0 under_test=$MODULE_KIND slow=$SLOW "$@" ||
		bail "ib_cm_api_test does not load: $(dmesg | tail -n 3 | tr '\n' ' ')"
	api_live=$(live_objects)
	api_resources=$(resources)
}

# run_api SUITE...: its cases become checks of the scenario.
run_api() {
	local suite line
	for suite in "$@"; do
		if ! echo "$suite" >$API/run; then
			fail "the suite $suite runs"
			continue
		fi
		while read -r line; do
			case $line in
			"ok "*) ok "${line#ok }" ;;
			"not ok "*) fail "${line#not ok }" ;;
			*) note "${line#"# "}" ;;
			esac
		done <$API/results
	done
}

nothing_left() {
	[ "$(live_objects)" = "$api_live" ] && [ "$(resources)" = "$api_resources" ]
}

# unload_api: the module goes, and everything it made is gone, of TimeWait after its time.
unload_api() {
	check "ib_cm_api_test unloads" rmmod ib_cm_api_test
	wait_for 30 nothing_left
	assert_eq "resources afterwards" "$(resources)" "$api_resources"
	[ -z "$api_live" ] || assert_eq "live objects afterwards" "$(live_objects)" "$api_live"
}
