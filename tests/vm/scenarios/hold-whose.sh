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

# destroyed: the client's QP was; that of the server is its own affair.
destroyed() {
	trace_lines | grep -q "qp_destroy: .* qpn=$qpn\$"
}

# While another process has the device's file nothing is torn down. A file that is handed over does
# not keep the connection, which ends with the first process; the other one dies in its TimeWait of
# 4.3 s, or of 17 s on a slow kernel.
[ $MODULE_KIND = c ] || echo 20000 >/sys/module/ib_cm/parameters/hold_max_ms
for mode in fork pass; do
	timewait=
	[ $mode = fork ] || timewait="1 $((SLOW > 1 ? 22 : 20))"
	oracle_on
	victim client /vm/tools/hold_peer client $SELF 7300 $mode $timewait
	wait_for 10 grep -q '^child' $RUN/client.log || bail "no child has the file"
	qpn=$(sed -n 's/^qpn //p' $RUN/client.log)
	child=$(sed -n 's/^child //p' $RUN/client.log)
	kill_victim client
	[ $mode = fork ] || wait_for 10 seen icm_send_drep || bail "the connection does not end"
	check "$mode: QP $qpn is not destroyed while the child has the file" eval '! destroyed'
	kill -KILL "$child"
	wait_for 15 gone "$child"
	wait_for 15 destroyed
	judge
	expect_kept "$mode: after the last process is gone" 1
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
