# SPDX-License-Identifier: GPL-2.0
# title: SIGKILL of both ends of an rping between InfiniBand ports: QPs outlive TimeWait
# cpus: 1
# timeout: 120
# foreign: WARNING: .*(ipoib_transport_dev_cleanup|rdma_restrack_clean)

. /vm/lib.sh
. /vm/crash.sh
. /vm/hca/ib.sh

delivered() {
	sed -n 's/.* delivered \([0-9]*\) .*/\1/p' $LOOP/stats | head -n 1
}

busy() {
	[ "$(delivered)" -gt $((before + 100)) ]
}

# round WHO: kills the client or the server, while the two exchange data.
round() {
	background server ip netns exec two rping -s -a $SECOND_ADDRESS -p 7174
	wait_for 10 listening 7174 || bail "rping does not listen"
	oracle_on
	before=$(delivered)
	background client ip netns exec one rping -c -a $SECOND_ADDRESS -p 7174 -C 1000000
	wait_for 15 seen icm_send_rtu || bail "no connection"
	wait_for 10 busy || bail "no traffic"
	kill_victim "$1"
	check "the peer of the $1 notices" wait_for 10 seen icm_send_drep
	judge
	stop server
	stop client
	expect_kept "QP of the $1" 1
}

ib_load
sm_start 1
ipoib_start
for who in client server; do
	round $who
done
check "everything unloads" ib_unload
check "the connection manager unloads" unload_stack
