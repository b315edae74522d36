# SPDX-License-Identifier: GPL-2.0
# title: packets that are late, and a QPN that is in use again before they arrive
# guests: 2
# modules: c test
# cpus: 1
# timeout: 120

. /vm/lib.sh
. /vm/crash.sh

load_stack
setup_rxe
wait_for 20 ping -c 1 -W 1 $PEER || bail "the other guest ($PEER) does not answer"

# The TimeWait of the exponent 20 is 4.3 s, and longer than a packet can be on its way. In less
# time than that delay the QPN is used again below, even under emulation.
ACK_TIMEOUT=20
DELAY_MS=3000

if [ $ROLE = a ]; then
	modprobe sch_netem || bail "no netem"
	take listens >/dev/null
	tc qdisc add dev eth0 root netem delay ${DELAY_MS}ms limit 10000 || bail "no netem"
	background client /vm/tools/hold_peer client $PEER 7300 flood 1 $ACK_TIMEOUT
	wait_for 30 grep -q ready $RUN/client.log || { show client; bail "nothing flows"; }
	barrier flows
	barrier measured
	show client
	tc -s qdisc show dev eth0
	barrier counted
	tc qdisc del dev eth0 root
	check "the flood has been stopped by a DREQ or the Error state" \
		wait_for 30 grep -q 'flood has ended' $RUN/client.log
	show client
	stop client
	exit 0
fi

# What the adapter refuses, of packets to a QP that does not expect them.
strays() {
	echo $(($(cat $PORT/hw_counters/duplicate_request) +
		$(cat $PORT/hw_counters/out_of_seq_request) + $(cat $PORT/hw_counters/rcvd_seq_err)))
}

received() {
	[ "$(cat $PORT/hw_counters/rcvd_pkts)" -gt $((before + 50)) ]
}

oracle_on
background server /vm/tools/hold_peer serve $SELF 7300 mute
wait_for 30 listening 7300 || bail "hold_peer does not listen"
put listens yes
barrier flows
before=$(cat $PORT/hw_counters/rcvd_pkts)
wait_for 20 received
flows=$?
barrier measured
[ $flows = 0 ] ||
	bail "nothing flows: $(grep . $PORT/hw_counters/* | sed 's/.*hw_counters.//' | tr '\n' ' ')"
old=$(sed -n 's/^qpn //p' $RUN/server.log)
assert_eq "strays before" "$(strays)" 0
kill_victim server
start=${EPOCHREALTIME/./}
rdma link delete rxe0
setup_rxe
background bare /vm/tools/hold_peer bare $SELF ::ffff:$PEER
wait_for 30 grep -q ready $RUN/bare.log || { show bare; bail "no QP"; }
assert_eq "the new QP has the old QPN" "$(sed -n 's/^qpn //p' $RUN/bare.log)" "$old"
note "ready again $(((${EPOCHREALTIME/./} - start) / 1000)) ms after the process is gone"
# All that was on its way has arrived then.
until=$(($(date +%s%3N) + 2 * DELAY_MS))
wait_for 10 eval '[ $(date +%s%3N) -gt '$until' ]'
count=$(strays)
for name in duplicate_request out_of_seq_request rcvd_seq_err; do
	note "$name $(cat $PORT/hw_counters/$name)"
done
if [ $MODULE_KIND = c ]; then
	# Those before the PSN that the new QP expects are counted one by one; of those after it the
	# first one stands for all.
	assert_ge "as expected, on the C module packets of the old connection reach the new QP" \
		"$count" 1
else
	assert_eq "packets of the old connection that reach the new QP" "$count" 0
fi
barrier counted
judge
expect_kept "QP of the server" 1
stop bare
