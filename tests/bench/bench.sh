# SPDX-License-Identifier: GPL-2.0
# For scenarios that use ib_cm_bench. Sourced after lib.sh.

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
