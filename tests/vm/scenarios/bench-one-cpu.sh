# SPDX-License-Identifier: GPL-2.0
# title: one connection at a time on one processor, both modules, alternating in one boot
# timeout: 600
# cpus: 1
# memory: 3072
# manual: yes
#
# Nothing runs beside, and no processor has to be woken up: of all figures these vary least.

. /vm/lib.sh
. /vm/bench/bench.sh

ROUNDS=7

for round in $(seq $ROUNDS); do
	order="c rust"
	[ $((round % 2)) = 1 ] || order="rust c"
	for MODULE_KIND in $order; do
		load_bench
		load cycle in_flight=1 count=1000
		say "$MODULE_KIND: $(($(figure elapsed) / $(figure connections) / 1000)) us," \
			"$(us connect), $(us disconnect), $(us destroy)"
		unload_bench
	done
done
ok "all connections were made"
