# SPDX-License-Identifier: GPL-2.0
# title: connection rate and memory of both modules, alternating in one boot
# timeout: 3000
# manual: yes

. /vm/lib.sh

RUNS=15
CONNECTIONS=1000
HELD=500

# One cmtime on a freshly loaded module; appends "rate KIND PHASE MICROSECONDS" to the results.
rate() {
	local log=$RUN/cmtime.log
	background server cmtime -b $SELF -c $CONNECTIONS -q 350000
	wait_for 20 listening 7471 || bail "cmtime does not listen"
	timeout 200 cmtime -s $SELF -c $CONNECTIONS -q 340000 >$log || bail "cmtime ends with $?"
	finish server 60 || bail "the server of cmtime ends with $?"
	awk -v kind=$MODULE_KIND '
		$1 == "qp_conn" || $1 == "cm_conn" { phase = $1 }
		/^full connect/ { print "rate", kind, phase, $4 }' $log >>$RUN/results
}

slab_bytes() {
	awk 'NR > 2 { sum += $2 * $4 } END { printf "%d", sum }' /proc/slabinfo
}

# Slab memory of HELD connections, both ends of each in this guest.
memory() {
	local before after
	rm -f $RUN/go
	background server /vm/tools/cmtool serve $SELF 7300 $HELD
	wait_for 10 listening 7300 || bail "cmtool does not listen"
	before=$(slab_bytes)
	background client /vm/tools/cmtool hold $SELF 7300 $HELD $RUN/go
	wait_for 120 grep -q held $RUN/client.log || bail "the connections do not come up"
	after=$(slab_bytes)
	echo "memory $MODULE_KIND bytes $(((after - before) / HELD / 2))" >>$RUN/results
	touch $RUN/go
	finish client 60
	finish server 60
}

: >$RUN/results
say "cmtime with $CONNECTIONS connections, $RUNS runs of each module in turn, one boot"
for run in $(seq $RUNS); do
	# Which one goes first alternates too: the second finds warmer caches.
	order="c rust"
	[ $((run % 2)) = 0 ] || order="rust c"
	for MODULE_KIND in $order; do
		load_stack
		setup_rxe
		rate
		[ $run -gt 3 ] || memory
		unload_stack || bail "the $MODULE_KIND module does not unload"
	done
	say "  run $run of $RUNS, ms: $(tail -n 6 $RUN/results | awk '$1 == "rate" { printf "%s %s %d  ", $2, $3, $4 / 1000 }')"
done
python3 /vm/tools/bench_stats.py <$RUN/results >$RUN/summary
check "statistics" [ $? = 0 ]
while read -r line; do say "$line"; done <$RUN/summary
cat $RUN/results
