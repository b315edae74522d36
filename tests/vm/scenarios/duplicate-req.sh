# SPDX-License-Identifier: GPL-2.0
# title: the frame of a REQ arrives again after its connection has ended
# guests: 2
# modules: test c
# cpus: 1
# timeout: 90

. /vm/lib.sh
. /vm/crash.sh

load_stack
setup_rxe
wait_for 20 ping -c 1 -W 1 $PEER || bail "the other guest ($PEER) does not answer"

REQ=16
REJ=18
DREP=22
# The frame comes again that long after the DREP, when nothing holds it up.
DELAY_MS=200
# Behind the MAD's header and the two communication IDs: the reason of a REJ, in bytes from the
# beginning of the frame.
REASON_AT=96

if [ $ROLE = b ]; then
	background frame /vm/tools/frame_again keep eth0 $REQ $RUN/req
	background again /vm/tools/frame_again send eth0 $RUN/req $DREP $DELAY_MS
	wait_for 30 grep -q ready $RUN/frame.log && wait_for 30 grep -q ready $RUN/again.log ||
		bail "no packet socket"
	take listens >/dev/null
	# A TimeWait of a second: the peer is in it when the frame comes again.
	victim client /vm/tools/hold_peer client $PEER 7300 leave 1 18
	finish frame 10
	assert_eq "the frame of the REQ is kept, status" $? 0
	finish again 10
	assert_eq "it is sent again, status" $? 0
	after=$(sed -n 's/^sent after //p' $RUN/again.log)
	check "0.1 to 0.4 s after the DREP: $after ms" [ "$after" -ge 100 -a "$after" -le $((400 * SLOW)) ]
	barrier sent
	barrier judged
	if [ "$(take kind)" = c ]; then
		wait_for 5 eval '[ "$(counter rx_msgs rep)" -ge 2 ]'
		assert_ge "as expected, a REP comes for a connection nobody asked for: rep received" \
			"$(counter rx_msgs rep)" 2
	else
		assert_eq "rep received" "$(counter rx_msgs rep)" 1
	fi
	stop client
	check "a new connection afterwards" /vm/tools/cmtool cycle $PEER 7300 1
	barrier end
	exit 0
fi

background server /vm/tools/hold_peer serve $SELF 7300 answer
wait_for 30 listening 7300 || bail "hold_peer does not listen"
mark_counters
background rej /vm/tools/frame_again keep eth0 $REJ $RUN/rej
wait_for 30 grep -q ready $RUN/rej.log || bail "no packet socket"
put listens yes
barrier sent
if [ $MODULE_KIND = rust ]; then
	wait_for 5 eval '[ "$(counter_delta tx_msgs rej)" -ge 1 ]'
	# An answer to a duplicate counts as a repetition too, as on the C module.
	assert_eq "rej sent" "$(unique rej tx)" 1
	finish rej 5
	assert_eq "its reason, stale connection" \
		"$(od -An -tu1 -j $REASON_AT -N 2 $RUN/rej | tr -s ' ')" " 0 10"
	assert_eq "the REQ is counted as a duplicate" "$(counter_delta rx_duplicates req)" 1
	assert_eq "calls of the listener" "$(grep -c CONNECT_REQUEST $RUN/server.log)" 1
else
	wait_for 5 eval '[ "$(grep -c CONNECT_REQUEST $RUN/server.log)" -ge 2 ]'
	assert_ge "as expected, the C module calls the listener again" \
		"$(grep -c CONNECT_REQUEST $RUN/server.log)" 2
	assert_eq "rej sent" "$(counter_delta tx_msgs rej)" 0
	stop rej
fi
barrier judged
put kind $MODULE_KIND
barrier end
stop server
