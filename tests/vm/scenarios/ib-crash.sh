# SPDX-License-Identifier: GPL-2.0
# title: SIGKILL of both ends of an rping between InfiniBand ports: QPs outlive TimeWait
# cpus: 1
# timeout: 120
# debug: yes

. /vm/lib.sh
. /vm/crash.sh
. /vm/hca/ib.sh

delivered() {
	sed -n 's/.* delivered \([0-9]*\) .*/\1/p' $LOOP/stats | head -n 1
}

busy() {
	[ "$(delivered)" -gt $((before + 100)) ]
}

# seen_times EVENT N
seen_times() {
	[ "$(grep -c "$1" $TRACING/trace)" -ge $2 ]
}

# round N WHO: kills the client or the server, while the two exchange data.
round() {
	background server ip netns exec two rping -s -a $SECOND_ADDRESS -p 7174
	wait_for 10 listening 7174 || bail "rping does not listen"
	before=$(delivered)
	background client ip netns exec one rping -c -a $SECOND_ADDRESS -p 7174 -C 1000000
	wait_for 15 seen_times icm_send_rtu $1 || bail "no connection"
	wait_for 10 busy || bail "no traffic"
	kill_victim $2
	check "the peer of the $2 notices" wait_for 10 seen_times icm_send_drep $1
	stop server
	stop client
}

ib_load
sm_start 1
ipoib_start
echo "[$SECONDS s] ready"
# Once for both: to set up probes takes long on a kernel that checks itself.
oracle_on
echo "[$SECONDS s] the oracle is on"
round 1 client
round 2 server
judge
expect_kept "QPs of client and server" 2
check "everything unloads" ib_unload
check "the connection manager unloads" unload_stack
