# SPDX-License-Identifier: GPL-2.0
# What scenarios are made of. Sourced by bash in the guest; needs MODULE_KIND (rust or c).
#
# Checks (each prints one KTAP line):	ok, fail, check, assert_eq
# The stack under test:			load_stack, setup_rxe, device_gone, unload_any, unload_stack
# Observation:				counter, counter_sum, mark_counters, counter_delta, trace_on
# Time:					wait_for (polls a condition; there are no blind sleeps); time
#					limits are those of the stock kernel, a slower one stretches them
# Processes:				background, finish, cleanup_processes
# Two guests:				barrier, put, take, vmctl

set -u
VM=/vm
PORT=/sys/class/infiniband/rxe0/ports/1
# The address of this guest, and in two guests that of the other.
case ${ROLE:=a} in
b) SELF=10.0.0.2 PEER=10.0.0.1 ;;
*) SELF=10.0.0.1 PEER=10.0.0.2 ;;
esac
TRACING=/sys/kernel/tracing
# How much slower this kernel is than the stock one.
: "${SLOW:=1}"
RUN=/run/scenario
mkdir -p $RUN

# --- results -------------------------------------------------------------------------------

tests=0
failures=0

tell() {
	printf '%s\n' "$*" >&3
}

note() {
	tell "ktap # $*"
	echo "# $*"
}

# say TEXT: for people, on the terminal at once.
say() {
	tell "say $*"
	echo "$*"
}

ok() {
	tests=$((tests + 1))
	tell "ktap ok $tests $*"
	echo "ok $tests $* [$SECONDS s]"
}

fail() {
	tests=$((tests + 1))
	failures=$((failures + 1))
	tell "ktap not ok $tests $*"
	echo "not ok $tests $* [$SECONDS s]"
}

# bail TEXT: nothing after this would make sense.
bail() {
	fail "$*"
	exit 1
}

# check TEXT CMD...: passes when the command does.
check() {
	local text=$1
	shift
	if "$@"; then ok "$text"; else fail "$text (exit status $?: $*)"; fi
}

# assert_eq TEXT GOT WANT
assert_eq() {
	if [ "$2" = "$3" ]; then ok "$1: $3"; else fail "$1: got '$2', expected '$3'"; fi
}

# assert_ge TEXT GOT AT-LEAST
assert_ge() {
	if [ "$2" -ge "$3" ]; then ok "$1: $2"; else fail "$1: got '$2', expected at least '$3'"; fi
}

PROVE_LOCKING=/proc/sys/kernel/prove_locking

# no_lock_orders WHOSE: until the scenario ends the debug kernel does not look at the order of locks:
# its first report on it is its last, and one on other code, which the C module gets too, would hide
# what comes after it. All other checks go on.
no_lock_orders() {
	[ -e $PROVE_LOCKING ] || return 0
	echo 0 >$PROVE_LOCKING
	note "the order of locks is not looked at here, for that of $1"
}

end_of_scenario() {
	local status=$?
	cleanup_processes
	cleanup_network
	[ ! -e $PROVE_LOCKING ] || echo 1 >$PROVE_LOCKING
	tell "ktap 1..$tests"
	# A shell error (set -u) must not pass for success, nor a scenario that checked nothing.
	[ $status = 0 ] && [ $failures = 0 ] && [ $tests -gt 0 ]
	exit $?
}
trap end_of_scenario EXIT

# nap: a twentieth of a second, without a process for it, as the loops below do it often. Nothing is
# ever written into this pipe, and it has no end because it is open for writing.
exec {nothing}<> <(:)
nap() {
	read -r -t 0.05 -u $nothing || :
}

# wait_for SECONDS CMD...: polls until the command succeeds; fails when the time is over.
wait_for() {
	local deadline=$((${EPOCHREALTIME/./} + $1 * SLOW * 1000000))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "${EPOCHREALTIME/./}" -lt $deadline ] || return 1
		nap
	done
}

# timeout [-k SECONDS] SECONDS CMD...: the program, with time limits as above.
timeout() {
	local options=()
	if [ "$1" = -k ]; then
		options=(-k $(($2 * SLOW)))
		shift 2
	fi
	command timeout "${options[@]}" $(($1 * SLOW)) "${@:2}"
}

# --- processes -----------------------------------------------------------------------------

# background NAME CMD...: its output is in $RUN/NAME.log, its process in $RUN/NAME.pid.
background() {
	local name=$1
	shift
	# In a session of its own, so that children that it forks can be ended with it.
	setsid "$@" >"$RUN/$name.log" 2>&1 3>&- </dev/null &
	echo $! >"$RUN/$name.pid"
}

# finish NAME SECONDS: waits for its end and returns its status; 124 when it does not end.
finish() {
	local pid
	read -r pid <"$RUN/$1.pid"
	wait_for "$2" gone "$pid" || return 124
	rm -f "$RUN/$1.pid"
	wait "$pid"
}

gone() {
	local stat
	# The state follows the name, which is in parentheses.
	! read -r stat 2>/dev/null <"/proc/$1/stat" || [[ $stat == *") Z "* ]]
}

# stop NAME: TERM and not KILL, which would leave children that hold the modules.
stop() {
	local pid
	[ -e "$RUN/$1.pid" ] || return 0
	pid=$(cat "$RUN/$1.pid")
	rm -f "$RUN/$1.pid"
	kill -TERM -- "-$pid" 2>/dev/null
	wait_for 5 gone "$pid" || kill -KILL -- "-$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	return 0
}

cleanup_processes() {
	local file name
	for file in "$RUN"/*.pid; do
		[ -e "$file" ] || continue
		name=${file##*/}
		stop "${name%.pid}"
	done
}

# What a scenario does to packets ends with it: the next one may have the same guest.
cleanup_network() {
	[ ! -d /sys/module/nf_tables ] || nft flush ruleset
	[ ! -d /sys/module/sch_netem ] || tc qdisc del dev eth0 root 2>/dev/null
	return 0
}

# show NAME: what a background process printed, into the scenario's log.
show() {
	echo "--- output of $1"
	cat "$RUN/$1.log"
}

# --- the stack -----------------------------------------------------------------------------

module_file() {
	echo "$VM/modules/$MODULE_KIND/ib_cm.ko"
}

loaded_build_id() {
	# The note: three words of sizes and type, "GNU\0", then the id.
	od -An -tx1 -v -j16 /sys/module/ib_cm/notes/.note.gnu.build-id | tr -d ' \n'
}

# What is loaded must be the file that was built for this run, not one from a package.
check_build_id() {
	local want
	want=$(cat "$VM/modules/$MODULE_KIND/build-id")
	assert_eq "the loaded ib_cm is the $MODULE_KIND one, build id" "$(loaded_build_id)" "$want"
}

# load_ib_cm: the module under test and what it needs. It also stands where modprobe looks,
# or modprobe would pull the packaged one.
load_ib_cm() {
	local file needs
	file=$(module_file)
	cp "$file" "/usr/lib/modules/$(uname -r)/kernel/drivers/infiniband/core/ib_cm.ko"
	needs=$(modinfo -F depends "$file" | tr ',' ' ')
	[ -z "$needs" ] || modprobe -a $needs || return 1
	insmod "$file" "$@"
}

load_stack() {
	load_ib_cm "$@" || bail "ib_cm ($MODULE_KIND) does not load: $(dmesg | tail -n 3 | tr '\n' ' ')"
	check_build_id
	modprobe -a rdma_cm rdma_ucm ib_uverbs rdma_rxe || bail "the modules above ib_cm do not load"
}

# setup_rxe: a soft-RoCE device rxe0 on $SELF; over a veth pair, or with two guests eth0.
setup_rxe() {
	local dev=v0
	if [ "${GUESTS:-1}" = 2 ] || [ -e /sys/class/net/eth0 ]; then
		dev=eth0
	elif [ ! -e /sys/class/net/v0 ]; then
		ip link add v0 type veth peer name v1 && ip link set v1 up
	fi
	ip -batch - <<-END
		link set $dev up
		addr replace $SELF/24 dev $dev
		addr replace fd00::${SELF##*.}/64 dev $dev nodad
	END
	rdma link add rxe0 type rxe netdev $dev || bail "rxe0 cannot be made on $dev"
	wait_for 10 port_active || bail "rxe0 does not become active"
	wait_for 10 gid_of_address || bail "rxe0 has no GID for $SELF"
}

port_active() {
	local state
	read -r state <$PORT/state
	[[ $state == *ACTIVE* ]]
}

# The GID table follows the addresses from a work queue.
gid_of_address() {
	local gid
	printf -v gid 'ffff:%02x%02x:%02x%02x' ${SELF//./ }
	grep -qi "$gid" $PORT/gids/*
}

# driver_stays: on the debug kernel rdma_rxe is in use as long as it has a device, whichever ib_cm
# is loaded; on Debian's it goes with its device.
driver_stays() {
	[[ $(</proc/sys/kernel/osrelease) = *-debug ]]
}

device_gone() {
	[ ! -e /sys/class/infiniband/rxe0 ]
}

# unload_any: unloads what nothing uses, in an order that RANDOM draws and $order then says; succeeds
# when none is left.
unload_any() {
	local module free=()
	while :; do
		free=()
		for module in rdma_ucm rdma_cm iw_cm ib_cm rdma_rxe ib_uverbs ib_uverbs_support; do
			[ "$(cat /sys/module/$module/refcnt 2>/dev/null)" != 0 ] || free+=($module)
		done
		if [ ${#free[@]} = 0 ]; then
			driver_stays && rdma link delete rxe0 2>/dev/null || break
			continue
		fi
		module=${free[RANDOM % ${#free[@]}]}
		rmmod $module || break
		order+=" $module"
	done
	[ ! -d /sys/module/ib_cm ] && [ ! -d /sys/module/rdma_rxe ] && [ ! -d /sys/module/rdma_ucm ]
}

unload_stack() {
	local module
	echo 0 >$TRACING/tracing_on 2>/dev/null
	rdma link delete rxe0 2>/dev/null
	ip link delete v0 2>/dev/null
	[ ! -d /sys/module/ib_cm_api_test ] || rmmod ib_cm_api_test
	[ ! -d /sys/module/ib_cm_bench ] || rmmod ib_cm_bench
	# What stands on ib_cm first. An unanswered DREQ holds a module for about 6 s.
	for module in nvme_rdma nvmet_rdma rpcrdma rds_rdma ib_isert ib_iser ib_srpt ib_srp ib_ipoib \
		rdma_ucm rdma_cm iw_cm ib_cm ib_umad rdma_rxe ib_uverbs ib_uverbs_support \
		ib_core; do
		[ ! -d /sys/module/$module ] || wait_for 15 modprobe -r "$module" ||
			rmmod "$module" || echo "$module does not unload"
	done
	[ ! -d /sys/module/ib_cm ]
}

# listening PORT: a listener is bound to rxe0 on that service port.
listening() {
	local line
	while IFS= read -r line; do
		[[ $line != *LISTEN* || $line != *":$1 "* ]] || return 0
	done <<<"$(rdma resource show cm_id)"
	return 1
}

# Numbers of what consumers hold on rxe0, of which an unused device has only ib_core's own.
resources() {
	rdma resource show | sed -n 's/^.*rxe0: *//p'
}

# live_objects: the module's own count of what it holds; nothing for a module without it.
live_objects() {
	local file
	for file in /sys/kernel/debug/ib_cm/live/* /sys/kernel/debug/ib_cm/live; do
		[ -f "$file" ] && printf '%s=%s ' "${file##*/}" "$(cat "$file")"
	done
	return 0
}

# What the kernel has allocated for itself, in KiB, without the empty slabs that it keeps. Says 0 on
# the debug kernel: KASAN keeps there what was freed, and kmemleak looks for what is lost.
kernel_kb() {
	local cache
	[ ! -e /sys/kernel/debug/kmemleak ] || { echo 0; return; }
	for cache in /sys/kernel/slab/*/shrink; do
		echo 1 >$cache
	done
	awk '/^SUnreclaim|^Percpu|^KernelStack|^VmallocUsed/ { sum += $2 } END { print sum }' /proc/meminfo
}

# --- counters and trace events ----------------------------------------------------------------

# counter GROUP NAME: e.g. counter tx_msgs req
counter() {
	cat "$PORT/cm_$1/$2"
}

# Each process that a scenario starts takes long on a kernel that checks itself, and these are called
# often: they start none. What they find is in $delta.

mark_counters() {
	local group file value
	for group in tx_msgs tx_retries rx_msgs rx_duplicates; do
		for file in $PORT/cm_$group/*; do
			read -r value <$file
			echo "${file##*/}:$value"
		done >$RUN/counters.$group
	done
}

# delta_of GROUP NAME: since mark_counters
delta_of() {
	local name value before=0
	while IFS=: read -r name value; do
		[ "$name" != "$2" ] || before=$value
	done <"$RUN/counters.$1"
	read -r value <"$PORT/cm_$1/$2"
	delta=$((value - before))
}

# unique_of MESSAGE tx|rx: messages without repetitions, which timing adds under load.
unique_of() {
	local all less=tx_retries
	[ "$2" = tx ] || less=rx_duplicates
	delta_of "$2_msgs" "$1"
	all=$delta
	delta_of $less "$1"
	delta=$((all - delta))
}

# counter_delta GROUP NAME and unique MESSAGE tx|rx: the same, printed
counter_delta() {
	local delta
	delta_of "$@"
	echo $delta
}

unique() {
	local delta
	unique_of "$@"
	echo $delta
}

# ended N: at least N connections of one device were ended.
ended() {
	local delta
	unique_of drep rx
	[ $delta -ge "$1" ]
}

# sent_messages: what was sent since mark_counters, as "NAME AT-LEAST AT-MOST" of each message.
# A repetition by the MAD layer is one more message of each counter. An answer that is sent
# again by hand is one message and counts as two, one of them a repetition: so the number that
# really went out lies between the two.
sent_messages() {
	local message delta all=
	for message in req mra rej rep rtu dreq drep sidr_req sidr_rep; do
		unique_of $message tx
		all+="$message $delta "
		delta_of tx_msgs $message
		all+="$delta "
	done
	echo "$all"
}

# received_as_sent LIST: compares what was received with the other side's sent_messages.
received_as_sent() {
	local delta all="" wrong=""
	set -- $1
	while [ $# -ge 3 ]; do
		delta_of rx_msgs "$1"
		[ $delta -ge "$2" ] && [ $delta -le "$3" ] || wrong+=" $1: $2 to $3 sent, $delta received;"
		[ $delta = 0 ] || all+=" $1 $delta"
		shift 3
	done
	if [ -z "$wrong" ]; then ok "received, as sent:$all"; else fail "messages differ:$wrong"; fi
}

# counters_agree N: on one device, N connections were made and ended, and nothing else happened.
# Each message was sent N times, beside counted repetitions (a server with a full backlog makes
# the client repeat its REQ), and all that was sent was received: one device loses nothing.
# When both sides disconnect at the same time there are more DREQs and DREPs than connections.
counters_agree() {
	local message sent=""
	wait_for 20 ended "$1"
	# A send is counted when it completes, which may be after its arrival.
	wait_for 10 quiet
	for message in req rep rtu; do
		sent+="$(unique $message tx) "
	done
	assert_eq "req, rep, rtu sent, without repetitions" "$sent" "$1 $1 $1 "
	assert_ge "dreq sent, without repetitions" "$(unique dreq tx)" "$1"
	assert_ge "drep sent, without repetitions" "$(unique drep tx)" "$1"
	assert_eq "rej sent" "$(counter_delta tx_msgs rej)" 0
	received_as_sent "$(sent_messages)"
}

# counters_agree_with_peer TAG: what this guest received since mark_counters is what the other
# one sent. Both call it. TAG is of this one call.
counters_agree_with_peer() {
	local other=b
	[ $ROLE = a ] || other=a
	put "$1.$ROLE.sent" "$(sent_messages)"
	received_as_sent "$(take "$1.$other.sent")"
}

# trace_on EVENT...: e.g. trace_on ib_cma:icm_send_req; with one CPU only (cpus: 1), because
# patching code on two trips TCG.
trace_on() {
	local event
	echo 0 >$TRACING/tracing_on
	: >$TRACING/trace
	for event in "$@"; do
		echo 1 >"$TRACING/events/${event/://}/enable" || return 1
	done
	echo 1 >$TRACING/tracing_on
}

trace_off() {
	echo 0 >$TRACING/tracing_on
	echo 0 >$TRACING/events/enable
}

trace_lines() {
	grep -v '^#' $TRACING/trace
}

# --- two guests ------------------------------------------------------------------------------

# One question to the runner, one line back.
ask() {
	local answer
	tell "$*"
	read -r -u 3 answer || exit 1
	case $answer in
	value*) echo "${answer#value }" ;;
	alone)
		echo "the other guest has failed" >&2
		# Also from within $(take ...), which is a process of its own.
		kill -TERM $$
		exit 1
		;;
	esac
}

# barrier NAME: returns when both guests have called it.
barrier() {
	ask "barrier $1" >/dev/null
}

# put KEY VALUE and take KEY: take waits until the other guest has put it.
put() {
	ask "put $*" >/dev/null
}

take() {
	ask "take $1"
}

# two_way SERVER CLIENT: runs the function SERVER in one guest and CLIENT in the other, then the
# other way round. SERVER is called twice: "SERVER start" must return when it listens, "SERVER
# end" when it is done.
two_way() {
	local server
	wait_for 20 ping -c 1 -W 1 $PEER || bail "the other guest ($PEER) does not answer"
	for server in a b; do
		mark_counters
		barrier "$server.marked"
		if [ $ROLE = $server ]; then
			"$1" start
			barrier "$server.listens"
			"$1" end
		else
			barrier "$server.listens"
			"$2"
		fi
		barrier "$server.ended"
		# A last message may be on its way: both wait until nothing more is counted.
		wait_for 10 quiet
		barrier "$server.quiet"
		counters_agree_with_peer "$server"
		barrier "$server.compared"
	done
}

# quiet: no message was counted for a second.
quiet() {
	local now
	now=$(cat $PORT/cm_*/*)
	sleep 1
	[ "$now" = "$(cat $PORT/cm_*/*)" ]
}

# vmctl kill|boot|reset ROLE: ends the other guest as a power failure would, starts it (same
# addresses), or both. After a boot it runs the scenario again from the top, with BOOT=2.
vmctl() {
	ask "vmctl $*"
}
