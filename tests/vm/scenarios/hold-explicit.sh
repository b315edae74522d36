# SPDX-License-Identifier: GPL-2.0
# title: hold_explicit=1: a QP in TimeWait that a live process destroys
# cpus: 1
# only: rust
# timeout: 60

. /vm/lib.sh
. /vm/crash.sh

# The TimeWait of rdma_cm's default path, and what emulation adds.
TIMEWAIT_MS=500

watch() {
	echo 0 >$TRACING/tracing_on
	echo 0 >$TRACING/events/enable
	: >$TRACING/kprobe_events
	kprobe qp_modify ib_modify_qp qpn='qp->qp_num' state='qp_attr->qp_state'
	kprobe qp_modify_user ib_modify_qp_with_udata qpn='ib_qp->qp_num' state='attr->qp_state'
	kprobe qp_gone rxe_destroy_qp qpn='ibqp->qp_num'
	trace_on ib_cma hold || bail "no trace events"
}

cycle() {
	local start
	background server /vm/tools/cmtool serve $SELF 7300 1
	wait_for 30 listening 7300 || bail "cmtool does not listen"
	watch
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
: >$TRACING/kprobe_events
check "everything unloads" unload_stack

load_stack hold_explicit=1
setup_rxe
cycle
assert_eq "with hold_explicit both ends are held: taken, released, expired" \
	"$(stat holds_taken) $(stat holds_released) $(stat holds_expired)" "2 2 0"
check "destroying the QP takes a TimeWait: $took ms" [ $took -ge $TIMEWAIT_MS ]
trace_lines >$RUN/trace
trace_off
: >$TRACING/kprobe_events
# rxe_destroy_qp is what uverbs called before this module did.
order=$(awk '
	match($0, /qpn=[0-9a-fx]+/) { qpn = substr($0, RSTART, RLENGTH) }
	/qp_modify/ && /state=6/ && !(qpn in done) { done[qpn] = "error" }
	/icm_timewait_exit/ { done[qpn] = done[qpn] " exit" }
	/qp_gone/ { print done[qpn] " gone"; delete done[qpn] }' $RUN/trace | sort | uniq -c | tr -s ' ')
grep -E 'qp_|icm_' $RUN/trace
assert_eq "each QP was in Error, left TimeWait, and went then" "$order" " 2 error exit gone"
