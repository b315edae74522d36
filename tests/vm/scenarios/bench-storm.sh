# SPDX-License-Identifier: GPL-2.0
# title: 512 clients with 32 connections each at once, both modules, alternating in one boot
# timeout: 3600
# memory: 8192
# manual: yes
#
# Reports the time from the first client's start to the last one's end; fails when a connection
# fails. No data is sent: soft-RoCE gives up a packet that it repeats for long, and then ucmatose
# waits for ever.

. /vm/lib.sh
. /vm/bench/bench.sh

CLIENTS=${CLIENTS:-512}
EACH=32
ROUNDS=${ROUNDS:-1}

ulimit -n 65536
for round in $(seq $ROUNDS); do
	order="c rust"
	[ $((round % 2)) = 1 ] || order="rust c"
	for MODULE_KIND in $order; do
		load_stack >/dev/null
		setup_rxe
		storm $CLIENTS $EACH
		unload_stack || bail "the $MODULE_KIND module does not unload"
	done
done
