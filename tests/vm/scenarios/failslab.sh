# SPDX-License-Identifier: GPL-2.0
# title: each memory allocation of ib_cm fails once: in calls, on reception, at a crash
# kernel: debug
# timeout: 800

. /vm/lib.sh

FAIL=/sys/kernel/debug/failslab

# Only allocations that have a function of ib_cm among their callers count.
only_below_ib_cm() {
	local file start end
	read -r start end < <(grep '\[ib_cm\]' /proc/kallsyms | awk '$2 ~ /[tT]/ { print $1 }' |
		sort | sed -n '1p;$p' | tr '\n' ' ')
	# Text of a module has pages of its own.
	end=$(printf '%x' $((((16#$end >> 12) + 1) << 12)))
	for file in $FAIL /sys/kernel/debug/fail_page_alloc; do
		echo 32 >$file/stacktrace-depth
		echo 0x$start >$file/require-start
		echo 0x$end >$file/require-end
		echo 0 >$file/verbose
		echo N >$file/ignore-gfp-wait
	done
	note "functions of ib_cm: $start to $end"
}

# Nor those that consumers make when they are told of an event, below the function that tells them.
# How they bear a lack of memory is not what is to be tested, and it does not depend on the module:
#
#   - rdma_ucm drops an event, and its process waits for it for ever. If it is that of a request,
#     the work item takes a mutex that it has already, and never comes back.
#   - A request whose path finds no memory makes rdma_cm destroy an id while it holds the mutex of
#     the listener, another of the same class: lockdep takes that for a recursion.
but_not_in_handlers() {
	local start end
	read -r start end < <(grep '\[ib_cm\]' /proc/kallsyms | awk '$2 ~ /[tT]/ { print $1, $3 }' |
		sort | awk 'start { print start, $1; exit } /deliver4tell$|^cm_process_work$/ { start = $1 }')
	[ -n "$end" ] || bail "ib_cm has no function that tells consumers"
	echo 0x$start >$FAIL/reject-start
	echo 0x$end >$FAIL/reject-end
	note "but not those of consumers, below $start to $end"
}

# choose N: of the allocations while armed the Nth fails, and no other. The kernel counts them from
# its start, and one fails whose number is a multiple of the interval: $counted have been, or less
# when the last choice was beyond the end.
counted=1
choose() {
	echo $((counted + $1)) >$FAIL/interval
	echo 1 >$FAIL/times
	counted=$((counted + $1))
}

arm() {
	echo 100 >$FAIL/probability
}

disarm() {
	echo 0 >$FAIL/probability
}

# sweep TEXT CMD...: runs the command, one more allocation comes through each time before one fails,
# until none does. The first choice may have come to be a later one: it is made twice.
sweep() {
	local text=$1 at left=0 bad=0
	shift
	for ((at = 0; at < 500; at++)); do
		choose $((at == 0 ? 1 : at))
		arm
		"$@" >$RUN/sweep.log 2>&1 ||
			{ bad=$((bad + 1)); say "$text: $at allocations: $(tr '\n' ' ' <$RUN/sweep.log)"; }
		left=$(cat $FAIL/times)
		disarm
		nothing_left || { fail "$text, allocation $at: left is $(live_objects)"; return; }
		[ "$left" = 0 ] || [ $at = 0 ] || break
		[ $((at % 20)) != 19 ] || say "$text: $at allocations, after $SECONDS s"
	done
	say "$text: $((at - 1)) allocations fail, $bad runs end badly, after $SECONDS s"
	assert_eq "$text, $((at - 1)) allocations fail: runs that end badly" $bad 0
	assert_eq "$text: it comes through in the end" "$left" 1
}

nothing_left() {
	wait_for 30 eval '[ "$(live_objects)" = "$idle" ] && [ "$(resources)" = "$before" ]'
}

connection() {
	timeout 100 /vm/tools/failslab $SELF 7300 $1 none
}

# A process dies in the middle of a connection. Its memory is short from then on.
crash() {
	disarm
	background server rping -s -a $SELF -p 7174
	wait_for 10 listening 7174 || return 1
	background client rping -c -a $SELF -p 7174 -C 1000000
	wait_for 20 eval 'rdma resource show cm_id | grep -q "state CONNECT "' || return 1
	arm
	kill -KILL "$(cat $RUN/client.pid)"
	finish client 20
	[ $? != 124 ] || return 1
	stop server
}

device() {
	rdma link delete rxe0
	rdma link add rxe0 type rxe netdev v0 ||
		{ disarm; rdma link add rxe0 type rxe netdev v0; } || return 1
	wait_for 10 port_active && wait_for 10 gid_of_address
}

load_stack
setup_rxe
[ -e $FAIL ] || bail "this kernel has no failslab"
# Before the first connection, which is in TimeWait for a while.
idle=$(live_objects)
before=$(resources)
check "a connection without failures" connection rc
check "nothing left after it" nothing_left
only_below_ib_cm

for kind in rc ud; do
	calls="listen connect accept reject destroy-listener destroy-connecting destroy-requested"
	[ $kind = ud ] || calls+=" disconnect destroy-connected"
	timeout 300 /vm/tools/failslab $SELF 7300 $kind $calls >$RUN/calls.log 2>$RUN/calls.err
	status=$?
	say "$kind: calls, status $status, after $SECONDS s"
	while read -r line; do ok "$line"; done <$RUN/calls.log
	[ ! -s $RUN/calls.err ] || say "$(tr '\n' ' ' <$RUN/calls.err)"
	assert_eq "$kind, each allocation in calls$(sed 's/^/: /' $RUN/calls.err), status" $status 0
	check "$kind: nothing left after the calls" nothing_left
done
but_not_in_handlers
sweep "a connection" connection rc
sweep "a SIDR exchange" connection ud
sweep "SIGKILL" crash
sweep "a device comes" device
