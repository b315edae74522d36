# SPDX-License-Identifier: GPL-2.0
# title: connections per second of both modules by ib_cm_bench, alternating in one boot
# timeout: 600
# manual: yes

. /vm/lib.sh
. /vm/bench/bench.sh

ROUNDS=3

repeated() {
	cat $PORT/cm_tx_retries/* | awk '{ sum += $1 } END { print sum }'
}

for round in $(seq $ROUNDS); do
	order="c rust"
	[ $((round % 2)) = 1 ] || order="rust c"
	for MODULE_KIND in $order; do
		load_bench
		for in_flight in 1 16 256; do
			load cycle in_flight=$in_flight count=$((in_flight == 1 ? 1000 : 2000))
			rate=$(($(figure connections) * 1000000000 / $(figure elapsed)))
			say "$MODULE_KIND, $in_flight in flight: $rate/s, $(us connect)," \
				"$(us disconnect), $(us destroy), $(repeated) repeated"
		done
		unload_bench
	done
done
ok "all connections were made"
