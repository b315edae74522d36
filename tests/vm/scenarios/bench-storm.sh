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

CLIENTS=${CLIENTS:-512}
EACH=32
ROUNDS=${ROUNDS:-1}
FIRST_PORT=10000

all_listen() {
	[ "$(rdma resource show cm_id state LISTEN 2>/dev/null | grep -c .)" -ge $CLIENTS ]
}

# storm: prints how long it took, in milliseconds.
storm() {
	local pid pids=() servers=() failed=0 i start=

	for i in $(seq $CLIENTS); do
		ucmatose -b $SELF -p $((FIRST_PORT + i)) -c $EACH -C 0 >$RUN/server.$i.log 2>&1 &
		servers+=($!)
	done
	wait_for 120 all_listen || bail "$MODULE_KIND: not all servers listen"
	start=${EPOCHREALTIME/./}
	for i in $(seq $CLIENTS); do
		ucmatose -s $SELF -p $((FIRST_PORT + i)) -c $EACH -C 0 >$RUN/client.$i.log 2>&1 &
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

ulimit -n 65536
for round in $(seq $ROUNDS); do
	order="c rust"
	[ $((round % 2)) = 1 ] || order="rust c"
	for MODULE_KIND in $order; do
		load_stack >/dev/null
		setup_rxe
		storm
		unload_stack || bail "the $MODULE_KIND module does not unload"
	done
done
