# SPDX-License-Identifier: GPL-2.0
# title: 200 times the device or the modules go while connections are made, held and ended
# timeout: 900

. /vm/lib.sh

# Nothing answers there; the neighbour is known, so that requests are sent.
ABSENT=10.0.0.99

# The ways in which a device goes.
remove_device() {
	if [ $((round % 3)) = 2 ]; then
		ip link delete v0
	else
		rdma link delete rxe0
	fi
}

device_back() {
	setup_rxe
	ip neigh replace $ABSENT lladdr 02:00:00:00:00:99 dev v0
}

# state_round STATE: identifiers in one state, and a listener on any address beside them that
# must serve the next device too.
state_round() {
	local command="rdma link delete rxe0" to=$SELF
	[ $((round % 3)) != 2 ] || command="ip link delete v0"
	[ $1 != sent ] || to=$ABSENT
	background any /vm/tools/cmtool serve 0.0.0.0 7300 1
	wait_for 10 listening 7300 || return 1
	/vm/tools/removal $1 10 $SELF 7200 $to "$command" || return 1
	wait_for 20 device_gone || return 1
	device_back
	timeout 20 /vm/tools/cmtool cycle $SELF 7300 1 || return 1
	finish any 20
}

# storm_round: the device goes while clients connect and disconnect without pause.
storm_round() {
	local i
	mark_counters
	background server /vm/tools/cmtool serve $SELF 7300 1000000
	wait_for 10 listening 7300 || return 1
	for i in 1 2 3 4; do
		background client$i /vm/tools/cmtool cycle $SELF 7300 1000000
	done
	wait_for 20 eval '[ "$(unique rep tx)" -ge 20 ]' || return 1
	remove_device
	wait_for 20 device_gone || return 1
	for i in 1 2 3 4; do
		# They end, with an error.
		finish client$i 20
		[ $? = 1 ] || return 1
	done
	finish server 20
	[ $? = 1 ] || return 1
	device_back
}

# unload_round: processes with connections are killed, and what modprobe allows is unloaded at
# once, in an order that differs from round to round, beside their TIMEWAIT.
unload_round() {
	background server /vm/tools/cmtool serve $SELF 7300 20
	wait_for 10 listening 7300 || return 1
	rm -f $RUN/client.log
	background client /vm/tools/cmtool hold $SELF 7300 20 $RUN/never
	wait_for 20 grep -q held $RUN/client.log || return 1
	kill -KILL $(cat $RUN/client.pid) $(cat $RUN/server.pid)
	RANDOM=$round
	wait_for 30 unload_any || return 1
	echo "unloaded:$order"
	rm -f $RUN/client.pid $RUN/server.pid
	load_stack >/dev/null
	device_back
	background server /vm/tools/cmtool serve $SELF 7300 1
	wait_for 10 listening 7300 || return 1
	timeout 20 /vm/tools/cmtool cycle $SELF 7300 1 || return 1
	finish server 20
}

# What an earlier scenario in this guest has left must not pass for this one's.
rm -f $RUN/*.log $RUN/enough
load_stack
device_back
before=$(resources)
idle=$(live_objects)
references=$(cat /sys/module/ib_cm/refcnt)

# A third of the rounds removes the network device, which is no divisor of this list's length: so
# each kind meets both. Unloading has a scenario of its own, unload-orders.
kinds=(request storm reply established timewait sent)
kinds+=(request storm reply established timewait sent)
kinds+=(request storm reply established timewait sent unload timewait)
declare -A good
for ((round = 0; round < 200; round++)); do
	kind=${kinds[round % ${#kinds[@]}]}
	order=
	case $kind in
	storm | unload) ${kind}_round ;;
	*) state_round $kind ;;
	esac >$RUN/round.log 2>&1 || {
		cat $RUN/round.log $RUN/*.log
		resources
		lsmod
		bail "round $round ($kind) fails"
	}
	grep unloaded: $RUN/round.log
	good[$kind]=$((${good[$kind]:-0} + 1))
done
for kind in "${!good[@]}"; do
	ok "removal, $kind: ${good[$kind]} rounds"
done

wait_for 10 eval '[ "$(resources)" = "$before" ]'
assert_eq "resources on rxe0 afterwards" "$(resources)" "$before"
wait_for 20 eval '[ "$(live_objects)" = "$idle" ]'
assert_eq "live objects of the module, as before" "$(live_objects)" "$idle"
assert_eq "references on the module, as before" "$(cat /sys/module/ib_cm/refcnt)" "$references"
check "everything unloads" unload_stack
