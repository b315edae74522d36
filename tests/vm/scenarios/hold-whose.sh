# SPDX-License-Identifier: GPL-2.0
# title: files in two processes, QPs without a connection, and QPNs that others claim
# cpus: 1
# timeout: 90

. /vm/lib.sh
. /vm/crash.sh

load_stack
setup_rxe
background server /vm/tools/hold_peer serve $SELF 7300 answer
wait_for 30 listening 7300 || bail "hold_peer does not listen"

# While another process has the device's file nothing is torn down.
for mode in fork pass; do
	oracle_on
	victim client /vm/tools/hold_peer client $SELF 7300 $mode
	child=$(sed -n 's/^child //p' $RUN/client.log)
	kill_victim client
	assert_eq "$mode: no QP is destroyed while the child has the file" \
		"$(trace_lines | grep -c qp_destroy)" 0
	kill -KILL "$child"
	wait_for 15 gone "$child"
	wait_for 15 seen qp_destroy
	judge
	if [ $mode = fork ]; then
		expect_kept "$mode: after the last process is gone" 1
	else
		# The connection ended with the first process; its TimeWait may be over on both modules.
		assert_eq "$mode: one QP" $((kept + broken + expired)) 1
		[ $MODULE_KIND = c ] || assert_eq "$mode: kept for its TimeWait" "$kept" 1
	fi
done

# Without a connection there is nothing to wait for.
taken=$(stat holds_taken)
oracle_on
victim bare /vm/tools/hold_peer bare $SELF
kill_victim bare
judge
assert_eq "QP without a connection" "free $free broken $broken" "free 1 broken 0"
check "it goes without a wait: $longest ms" [ "$longest" -lt $((300 * SLOW)) ]

# A process that names this QPN as its own in a REQ gains nothing, and loses nothing.
victim bare /vm/tools/hold_peer bare $SELF
qpn=$(sed -n 's/^qpn //p' $RUN/bare.log)
background claim /vm/tools/hold_peer claim $SELF 7300 "$qpn"
wait_for 20 grep -q ready $RUN/claim.log || bail "no connection with a claimed QPN"
oracle_on
kill_victim bare
judge
check "QP $qpn, which another process claims, goes without a wait: $longest ms" \
	[ "$longest" -lt $((300 * SLOW)) ]
assert_eq "holds taken" "$(stat holds_taken)" "$taken"
check "the claimant's connection is untouched" eval '! grep -q DISCONNECTED $RUN/claim.log'
stop claim
stop server
