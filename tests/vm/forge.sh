# SPDX-License-Identifier: GPL-2.0
# For scenarios in which the second guest forges messages; sourced after lib.sh.
#
#	forge COUNT SEED...	both guests call it: for each seed COUNT MADs are forged, while
#				connections of rping run and others are made. A short round comes
#				first, after which memory is measured.

SAFE_PORT=7174 BAIT_PORT=7300 HONEST_PORT=7301 GUIDE_PORT=7302
BAIT=24
RPINGS=2
MESSAGES="req mra rej rep rtu dreq drep sidr_req sidr_rep lap apr"

# What this guest's connection manager has counted: NAME SENT-AT-LEAST SENT-AT-MOST RECEIVED.
counted() {
	local message
	for message in $MESSAGES; do
		echo "$message $(unique $message tx) $(counter_delta tx_msgs $message)" \
			"$(counter_delta rx_msgs $message)"
	done | tr '\n' ' '
}

# As a message ends where it was sent to, and nowhere else: what both have received is what both,
# and the forger, have sent. Those that follow the path of a REQ that has named a wrong one may be
# lost.
all_accounted_for() {
	local ours theirs forged=$3 wrong="" message least most got sent at all=0 astray
	astray=$(sed -n 's/.*astray \([0-9]*\).*/\1/p' <<<"$forged")
	read -ra ours <<<"$1"
	read -ra theirs <<<"$2"
	for ((at = 0; at < ${#ours[@]}; at += 4)); do
		message=${ours[at]}
		sent=$(sed -n "s/.*sent $message \([0-9]*\).*/\1/p" <<<"$forged")
		least=$((sent + ours[at + 1] + theirs[at + 1]))
		most=$((sent + ours[at + 2] + theirs[at + 2]))
		got=$((ours[at + 3] + theirs[at + 3]))
		all=$((all + sent))
		[[ $message = *req && $message != dreq ]] || least=$((least - astray))
		[ $got -ge $least ] && [ $got -le $most ] ||
			wrong+=" $message: $least to $most sent, $sent of them forged, $got received;"
	done
	if [ -z "$wrong" ]; then
		ok "each message is counted where it was received: $all forged ones, $astray with a wrong path"
	else
		fail "messages are missing:$wrong"
	fi
}

gid_index() {
	local gid
	printf -v gid 'ffff:%02x%02x:%02x%02x' ${SELF//./ }
	grep -l "$gid" $PORT/gids/* 2>/dev/null | sed 's/.*\///' | head -n 1
}

# forge_round COUNT SEED NUMBER: the forger's side of a round.
forge_round() {
	mark_counters
	barrier "marked$3"
	take "ready$3" >/dev/null
	say "forging $1 messages with seed $2"
	/vm/tools/forge_mads $SELF $PEER "$(gid_index)" $GUIDE_PORT $SAFE_PORT $BAIT_PORT \
		$HONEST_PORT $1 $2 >$RUN/forged ||
		fail "the forger ends early"
	cat $RUN/forged
	put "forged$3" "$(tr '\n' ' ' <$RUN/forged)"
	barrier "over$3"
	wait_for 30 quiet
	put "counted$3" "$(counted)"
	barrier "end$3"
}

# Established connections of rping, by rdma_cm's and the device's numbers.
safe_ids() {
	rdma resource show cm_id | grep "state CONNECT .*:$SAFE_PORT " |
		sed 's/.*cm-idn \([0-9]*\) lqpn \([0-9]*\).*/\1:\2/' | sort | xargs
}

rpings_up() {
	[ "$(safe_ids | wc -w)" = $((2 * RPINGS)) ]
}

ping_lines() {
	cat $RUN/rping*.log | wc -l
}

more_pings() {
	[ "$(ping_lines)" -gt $((pings + 2 * RPINGS)) ]
}

forger_gone() {
	grep -q gone $RUN/guide.log
}

# at_rest: no identifier lives, and for some seconds none comes to life. What the forger has sent last
# may still wait for its turn, behind requests whose path cannot be found.
at_rest() {
	local i
	for ((i = 0; i < 5; i++)); do
		[ "$(live_objects)" = "$idle" ] || return 1
		sleep 1
	done
}

# attacked_round COUNT NUMBER: the side that is attacked.
attacked_round() {
	local count=$1 number=$2 i ids pings cycles=0 bad=0 forged
	mark_counters
	barrier "marked$number"
	background server rping -s -P -a $SELF -p $SAFE_PORT
	background bait /vm/tools/forge_bait $SELF $BAIT_PORT $BAIT
	background honest /vm/tools/cmtool serve $SELF $HONEST_PORT 1000000
	background guide /vm/tools/forge_guide $GUIDE_PORT
	wait_for 20 listening $SAFE_PORT && wait_for 20 listening $HONEST_PORT ||
		bail "the servers do not listen"
	for ((i = 0; i < RPINGS; i++)); do
		background rping$i rping -c -v -S 32 -a $SELF -p $SAFE_PORT -C 100000000
	done
	wait_for 30 rpings_up || bail "rping does not connect"
	wait_for 30 grep -q ready $RUN/bait.log || { show bait; bail "the bait does not connect"; }
	ids=$(safe_ids)
	put "ready$number" yes
	until forger_gone; do
		/vm/tools/cmtool cycle $SELF $HONEST_PORT 2 >$RUN/cycle.log 2>&1 || {
			bad=$((bad + 1))
			note "after $cycles honest connections: $(cat $RUN/cycle.log $RUN/honest.log)"
		}
		cycles=$((cycles + 2))
	done
	forged=$(take "forged$number")
	assert_eq "of $cycles honest connections fail" $bad 0
	assert_eq "rping's connections are those of before" "$(safe_ids)" "$ids"
	pings=$(ping_lines)
	check "rping goes on after $pings lines" wait_for 20 more_pings
	assert_ge "identifiers that the forger has made or ended" \
		"$(($(cat $PORT/cm_rx_msgs/req) - $(sed -n 's/^req://p' $RUN/counters.rx_msgs)))" \
		$((count / 20))
	for ((i = 0; i < RPINGS; i++)); do
		stop rping$i
	done
	for i in server honest bait guide; do
		stop $i
	done
	barrier "over$number"
	wait_for 60 at_rest
	assert_eq "live objects of the module, as before" "$(live_objects)" "$idle"
	wait_for 60 eval '[ "$(resources)" = "$before" ]'
	assert_eq "resources on rxe0, as before" "$(resources)" "$before"
	wait_for 30 quiet
	all_accounted_for "$(counted)" "$(take "counted$number")" "$forged"
	barrier "end$number"
}

forge() {
	local count=$1 memory before idle grown seed number=0
	shift
	if [ $ROLE = b ]; then
		modprobe ib_umad && wait_for 10 [ -e /dev/infiniband/umad0 ] || bail "no umad0"
		forge_round $((count / 10)) 1 0
		for seed in "$@"; do
			forge_round $count $seed $((++number))
		done
		return
	fi
	before=$(resources)
	idle=$(live_objects)
	attacked_round $((count / 10)) 0
	# What the first ones make grow stays: caches, tables. Others of them grow later.
	memory=$(kernel_kb)
	for seed in "$@"; do
		attacked_round $count $((++number))
	done
	grown=$(($(kernel_kb) - memory))
	check "memory of the kernel is back: $memory KiB, since then $grown" [ $grown -lt 4096 ]
}
