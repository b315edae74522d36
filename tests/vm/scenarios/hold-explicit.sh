# SPDX-License-Identifier: GPL-2.0
# title: hold_explicit=1: a QP in TimeWait that a live process destroys
# cpus: 1
# only: rust
# timeout: 60

. /vm/lib.sh
. /vm/crash.sh

# The TimeWait of rdma_cm's default path, and what emulation adds.
TIMEWAIT_MS=500

cycle() {
	local start
	background server /vm/tools/cmtool serve $SELF 7300 1
	wait_for 30 listening 7300 || bail "cmtool does not listen"
	trace_on ib_cma || bail "no trace events"
	start=${EPOCHREALTIME/./}
	/vm/tools/cmtool cycle $SELF 7300 1 || bail "cmtool ends with $?"
	took=$(((${EPOCHREALTIME/./} - start) / 1000))
	finish server 20
	assert_eq "server ends well, status" $? 0
}

load_stack
setup_rxe
cycle
assert_eq "by default a live process may destroy its QPs, holds taken" "$(stat holds_taken)" 0
trace_off
check "everything unloads" unload_stack

load_stack hold_explicit=1
setup_rxe
cycle
assert_eq "with hold_explicit both ends are held: taken, released, expired" \
	"$(stat holds_taken) $(stat holds_released) $(stat holds_expired)" "2 2 0"
check "destroying the QP takes a TimeWait: $took ms" [ $took -ge $TIMEWAIT_MS ]
check "each was let go at the end of its TimeWait" \
	[ "$(trace_lines | grep -c icm_release)" = "$(trace_lines | grep -c icm_timewait_exit)" ]
trace_off
