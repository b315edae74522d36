# SPDX-License-Identifier: GPL-2.0
# title: SIGKILL while a connection is being made or ended, in each state
# cpus: 1
# timeout: 120

. /vm/lib.sh
. /vm/crash.sh

load_stack
setup_rxe
# An address that answers to nobody.
ip neigh replace 10.0.0.99 lladdr 02:00:00:00:00:99 dev v0 nud permanent

# round STATE SERVER-MODE CLIENT-MODE VICTIM LEFT: kills VICTIM when the client is ready. LEFT is
# what becomes of its QP: kept for a TimeWait, expired because the peer does not answer, or free
# when it was never ready to receive.
round() {
	local to=$SELF
	[ "$1" != REQ_SENT ] || to=10.0.0.99
	background server /vm/tools/hold_peer serve $SELF 7300 "$2"
	wait_for 30 listening 7300 || bail "hold_peer does not listen"
	oracle_on
	victim client /vm/tools/hold_peer client $to 7300 "$3"
	[ "$3" != leave ] || wait_for 30 grep -q DISCONNECTED $RUN/server.log
	kill_victim "$4"
	# Of the one that was killed, not of the one that is stopped.
	judge
	stop client
	stop server
	if [ "$5" = free ]; then
		assert_eq "$1: the QP never received, and goes at once" \
			"kept $kept broken $broken expired $expired" "kept 0 broken 0 expired 0"
		check "$1: without a wait, $longest ms" [ "$longest" -lt $((300 * SLOW)) ]
	elif [ "$5" = expired ] && [ $MODULE_KIND = rust ]; then
		assert_eq "$1: the peer does not answer, the hold is given up" \
			"kept $kept broken $broken expired $expired" "kept 0 broken 0 expired 1"
		check "$1: after about a second: $longest ms" [ "$longest" -ge 900 -a "$longest" -lt $((2000 * SLOW)) ]
	else
		expect_kept "$1: QP of the $4" 1
	fi
}

round REQ_SENT ignore request client free
round "REQ_SENT, the REQ was received" ignore request client free
round REP_RCVD answer half client kept
round REP_SENT answer half server kept
round DREQ_SENT mute leave client expired
round DREQ_RCVD mute leave server kept
