# SPDX-License-Identifier: GPL-2.0
# For scenarios in which processes die; sourced after lib.sh. The oracle is the trace:
#
#	oracle_on, oracle_off		traces queue pairs, connections and closes of files
#	judge				sets kept, broken, expired, over, free (queue pairs), longest (ms)
#	expect_kept TEXT N		N queue pairs outlived TimeWait; on the C module none does
#	victim NAME CMD...		a hold_peer that gets ready
#	kill_victim NAME		SIGKILL, and returns when it is gone
#	stat NAME			a number of the module's own, 0 on the C module
#	timeline [no-exit]		prints what the trace says of a peer that came back, and that
#					the old user is told of the end (and of that of TimeWait)

# TIMEWAIT_EXIT of enum ib_cm_event_type.
TIMEWAIT_EXIT=9

# kprobe NAME SYMBOL ARGUMENT...
#
# Arguments by name, which the kernel's type information has for a symbol without its module's name:
# Linux 7.2 knows no type casts here.
kprobe() {
	local name=$1
	shift
	echo "p:hold/$name $*" >>$TRACING/kprobe_events ||
		{ cat $TRACING/error_log; dmesg | tail -n 3; bail "no probe $name on $1"; }
}

oracle_on() {
	echo 0 >$TRACING/tracing_on
	echo 0 >$TRACING/events/enable
	: >$TRACING/kprobe_events
	kprobe qp_modify ib_modify_qp qpn='qp->qp_num' state='qp_attr->qp_state' mask=%dx:x32
	kprobe qp_modify_user ib_modify_qp_with_udata \
		qpn='ib_qp->qp_num' state='attr->qp_state' mask=%dx:x32
	kprobe qp_destroy ib_destroy_qp_user qpn='qp->qp_num'
	kprobe uverbs_close ib_uverbs:ib_uverbs_close
	kprobe ucma_close rdma_ucm:ucma_close
	# Which queue pairs carry connections; asked above the module, whose own functions take no
	# probe when they are Rust.
	kprobe cma_connect rdma_connect_locked qpn='conn_param->qp_num'
	kprobe cma_accept rdma_accept qpn='conn_param->qp_num'
	if [ $MODULE_KIND = c ]; then
		kprobe cm_req ib_send_cm_req id='cm_id->local_id' qpn='param->qp_num'
		kprobe cm_rep ib_send_cm_rep id='cm_id->local_id' qpn='param->qp_num'
		# The end of TimeWait is a work item, and has no event.
		kprobe cm_work ib_cm:cm_work_handler \
			id='(cm_work)%di->local_id' event='(cm_work)%di->cm_event.event'
		echo "event == $TIMEWAIT_EXIT" >$TRACING/events/hold/cm_work/filter
	fi
	echo 'sig == 9' >$TRACING/events/signal/signal_generate/filter
	trace_on ib_cma hold signal:signal_generate "$@" || bail "no trace events"
}

oracle_off() {
	echo 0 >$TRACING/tracing_on
	cat $TRACING/trace >$RUN/trace
	echo 0 >$TRACING/events/enable
	: >$TRACING/kprobe_events
	grep -v '^#' $RUN/trace
}

judge() {
	oracle_off
	python3 /vm/tools/hold_oracle.py judge $RUN/trace >$RUN/judged || bail "the trace says nothing"
	cat $RUN/judged
	eval "$(tail -n 1 $RUN/judged)"
}

# expect_kept TEXT N: call judge before it.
expect_kept() {
	if [ $MODULE_KIND = c ]; then
		assert_eq "as expected, the C module destroys at once: $1" \
			"kept $kept, broken $broken" "kept 0, broken $2"
	else
		assert_eq "$1: destroyed after TimeWait, in Error before" \
			"kept $kept, broken $broken, expired $expired" "kept $2, broken 0, expired 0"
	fi
}

victim() {
	local name=$1
	background "$@"
	wait_for 60 grep -q '^ready' $RUN/$name.log || { show $name; bail "$name does not get ready"; }
}

kill_victim() {
	kill -KILL "$(cat $RUN/$1.pid)"
	finish $1 "${2:-15}"
}

# stat NAME: of the module's own counts.
stat() {
	sed -n "s/^$1 //p" /sys/kernel/debug/ib_cm/stats 2>/dev/null | grep . || echo 0
}

seen() {
	grep -q "$1" $TRACING/trace
}

# timeline: needs rdma_cma:cm_event_handler. The first id that hears of its end is the stale one.
timeline() {
	local line old
	grep -E 'icm_|cm_event_handler' $RUN/trace | sed 's/^.*\] [^ ]* *//' | awk '
		!zero { zero = $1 + 0 }
		{ $1 = sprintf("%8.0f ms", ($1 - zero) * 1000); print }' >$RUN/timeline
	head -n 25 $RUN/timeline >$RUN/timeline.head
	while read -r line; do note "$line"; done <$RUN/timeline.head
	old=$(grep -m 1 DISCONNECTED $RUN/timeline | grep -o 'cm.id=[0-9]*')
	check "the old connection's user is told DISCONNECTED (${old:-none})" [ -n "$old" ]
	[ "${1:-}" = no-exit ] ||
		check "and TIMEWAIT_EXIT" grep -q "$old .*TIMEWAIT_EXIT" $RUN/timeline
}
