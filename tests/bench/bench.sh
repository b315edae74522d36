# SPDX-License-Identifier: GPL-2.0
# For scenarios that measure. Sourced after lib.sh.

BENCH=/sys/kernel/debug/ib_cm_bench

# load_bench: the stack with the module MODULE_KIND, a device, and the load generator.
load_bench() {
	load_stack >/dev/null
	setup_rxe
	[ -e $VM/bench/ib_cm_bench.ko ] || bail "ib_cm_bench was not built: see the runner's messages"
	insmod $VM/bench/ib_cm_bench.ko netdev=v0 ||
		bail "ib_cm_bench does not load: $(dmesg | tail -n 3 | tr '\n' ' ')"
}

unload_bench() {
	rmmod ib_cm_bench || bail "ib_cm_bench does not unload"
	unload_stack || bail "the $MODULE_KIND module does not unload"
}

# load COMMAND NAME=NUMBER...: runs the load generator; its figures are in $BENCH/results.
load() {
	if ! echo "$*" >$BENCH/run; then
		cat $BENCH/results
		bail "$MODULE_KIND: a connection failed, of '$*': $(head -n 3 $BENCH/results | tr '\n' ' ')"
	fi
}

# figure NAME: one of them.
figure() {
	sed -n "s/^$1 //p" $BENCH/results
}

# us NAME: the quantiles of these times, in microseconds.
us() {
	local part line="$1 us"
	for part in p50 p99 p999; do
		line+=" $(($(figure $1_$part) / 1000))"
	done
	echo "$line"
}

# listeners N: so many programs listen.
listeners() {
	[ "$(rdma resource show cm_id state LISTEN 2>/dev/null | grep -c .)" -ge $1 ]
}

# storm CLIENTS EACH: so many clients with EACH connections at once. Prints how long it took, in
# milliseconds.
storm() {
	local pid pids=() servers=() failed=0 first_port=10000 i start

	for i in $(seq $1); do
		ucmatose -b $SELF -p $((first_port + i)) -c $2 -C 0 >$RUN/server.$i.log 2>&1 &
		servers+=($!)
	done
	wait_for 120 listeners $1 || bail "$MODULE_KIND: not all servers listen"
	start=${EPOCHREALTIME/./}
	for i in $(seq $1); do
		ucmatose -s $SELF -p $((first_port + i)) -c $2 -C 0 >$RUN/client.$i.log 2>&1 &
		pids+=($!)
	done
	for pid in ${pids[@]}; do
		wait $pid || : $((failed += 1))
	done
	say "STORM $MODULE_KIND: $(((${EPOCHREALTIME/./} - start) / 1000)) ms," \
		"$(cat $PORT/cm_tx_retries/* | awk '{ sum += $1 } END { print sum }') messages repeated"
	for pid in ${servers[@]}; do
		wait $pid || : $((failed += 1))
	done
	assert_eq "$MODULE_KIND: clients and servers that failed" $failed 0
}
