# SPDX-License-Identifier: GPL-2.0
# title: speed and memory of both modules, alternating in one boot
# timeout: 3000
# memory: 3072
# manual: yes
#
# Each round loads both modules in turn. The figures go into the log as "figure ROUND MODULE CASE
# NAME NUMBER NAME NUMBER ...", times in nanoseconds.

. /vm/lib.sh
. /vm/bench/bench.sh

# Connections of each case.
ROUNDS=7
COUNT1=200
COUNT16=1000
COUNT256=1500
COUNT4096=6000
COUNT_SLEEPER=500
COUNT_OWN=1500
COUNT_FLOOD=10000
COUNT_CMTIME=1000
CMTIME_ROUNDS=15
LISTENERS=10000
FEW=1000
MANY=10000
MANY_ROUNDS=2
if [ "${QUICK:-}" = 1 ]; then
	ROUNDS=3
	COUNT16=500
	COUNT256=1000
	COUNT4096=4096
	COUNT_OWN=500
	COUNT_FLOOD=5000
	CMTIME_ROUNDS=0
	MANY_ROUNDS=0
fi
# To look at one hundred thousand takes some minutes more.
if [ "${SCALE:-}" = 1 ]; then
	ROUNDS=1
	CMTIME_ROUNDS=0
	MANY="10000 100000"
	MANY_ROUNDS=1
fi
# Packet life time, 4.096 us * 2^LONG_LIFE, of connections whose TimeWait is looked at: TimeWait
# is twice as long, so it ends when the device goes.
LONG_LIFE=24

# take CASE: what the load generator has measured becomes figures of that case.
take_figures() {
	echo "figure $round $MODULE_KIND $1 $(grep '^[a-z]' $BENCH/results | tr '\n' ' ')"
}

# measure CASE COMMAND NAME=NUMBER...
measure() {
	local case=$1
	shift
	load "$@"
	take_figures $case
}

put_figure() {
	echo "figure $round $MODULE_KIND $1 $2 $3"
}

slab_bytes() {
	awk 'NR > 2 { sum += $2 * $4 } END { printf "%d", sum }' /proc/slabinfo
}

# What is freed in batches is gone when the sum falls no more.
slab_rests() {
	local before
	before=$(slab_bytes)
	sleep 0.3
	[ $(($(slab_bytes) + 65536)) -ge $before ]
}

resting_slab() {
	wait_for 10 slab_rests
	slab_bytes
}

# kept N: N connections are made and kept, are disconnected, and their TimeWaits remain.
kept() {
	local empty full
	empty=$(resting_slab)
	measure keep$1 keep count=$1 in_flight=64 life=$LONG_LIFE
	full=$(resting_slab)
	put_figure keep$1 slab $((full - empty))
	put_figure keep$1 ends $(($1 * 2))
	[ $1 = $FEW ] || measure beside$1 cycle count=$COUNT16 in_flight=16
	measure timewait$1 disconnect in_flight=64
	# Not when it rests: TimeWaits end one day.
	put_figure timewait$1 slab $(($(slab_bytes) - empty))
	put_figure timewait$1 ends $(($1 * 2))
}

# Whether a count has stopped to rise.
duplicates_rest() {
	local before
	before=$(counter rx_duplicates req)
	sleep 0.2
	[ "$(counter rx_duplicates req)" = "$before" ]
}

# One REQ again and again. What the adapter drops is not counted, and is no failure.
flood() {
	local before
	before=$(counter rx_duplicates req)
	measure flood flood count=$COUNT_FLOOD in_flight=64
	wait_for 20 duplicates_rest
	put_figure flood duplicates $(($(counter rx_duplicates req) - before))
}

# CPU time of each module while connections are made and ended.
own_cost() {
	local kind=$RUN/shares
	/vm/tools/cpu_share 1000 bash -c "echo cycle count=$COUNT_OWN in_flight=16 >$BENCH/run" \
		>$kind || bail "$MODULE_KIND: a connection failed under cpu_share"
	awk -v prefix="figure $round $MODULE_KIND own" -v count=$COUNT_OWN '
		$1 == "share" { print prefix, "cpu_" $2, $3 / count; if ($2 != "(user)") sum += $3 }
		END { print prefix, "cpu_all", sum / count }' $kind
	# For people who look for where the time goes.
	[ $round -gt 2 ] || grep -E '^(function|leaf) ib_cm ' $kind | sort -k4 -rn | head -n 40 |
		sed "s/^/sampled $MODULE_KIND /"
}

# cmtime N: N connections of rdma_cm's own benchmark, which spins in sched_yield while it waits.
cmtime_phases() {
	background server cmtime -b $SELF -c $1 -q 350000
	wait_for 20 listening 7471 || bail "cmtime does not listen"
	timeout 200 cmtime -s $SELF -c $1 -q 340000 >$RUN/cmtime.log ||
		bail "$MODULE_KIND: cmtime ends with $?"
	finish server 60 || bail "$MODULE_KIND: the server of cmtime ends with $?"
	awk -v prefix="figure $round $MODULE_KIND cmtime" -v count=$1 '
		$1 == "qp_conn" || $1 == "cm_conn" { phase = $1 }
		/^full connect/ { print prefix, phase, $4 * 1000 / count }' $RUN/cmtime.log
}

one_module() {
	load_bench
	measure flight1 cycle count=$COUNT1 in_flight=1
	measure flight16 cycle count=$COUNT16 in_flight=16
	measure flight256 cycle count=$COUNT256 in_flight=256
	measure flight4096 cycle count=$COUNT4096 in_flight=4096 timeout=22
	measure sleeper cycle count=$COUNT_SLEEPER in_flight=64 sleepers=1 sleep_ms=100
	measure listeners cycle count=$COUNT16 in_flight=16 listeners=$LISTENERS
	flood
	own_cost
	kept $FEW
	measure keep_drop$FEW keep count=$FEW in_flight=64
	measure drop$FEW drop
	for many in $MANY; do
		[ $round -gt $MANY_ROUNDS ] || kept $many
	done
	unload_bench
}

cmtime_alone() {
	load_bench
	cmtime_phases $COUNT_CMTIME
	unload_bench
}

# rounds N COMMAND: both modules in turn, N times. Which one goes first alternates too: the second
# finds warmer caches.
rounds() {
	local order started
	for round in $(seq $1); do
		order="c rust"
		[ $((round % 2)) = 1 ] || order="rust c"
		for MODULE_KIND in $order; do
			started=$SECONDS
			$2
			say "  round $round of $1, $MODULE_KIND: $((SECONDS - started)) s"
		done
	done
}

echo 0 >/proc/sys/kernel/kptr_restrict
if [ $CMTIME_ROUNDS != 0 ]; then
	say "cmtime with $COUNT_CMTIME connections, $CMTIME_ROUNDS rounds of both modules"
	rounds $CMTIME_ROUNDS cmtime_alone
fi
say "all else, $ROUNDS rounds of both modules"
rounds $ROUNDS one_module
ok "all connections were made"
