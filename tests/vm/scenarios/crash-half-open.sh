# SPDX-License-Identifier: GPL-2.0
# title: SIGKILL while a connection is being made or ended, in each state
# cpus: 1
# timeout: 150

. /vm/lib.sh
. /vm/crash.sh

load_stack
setup_rxe
# An address that answers to nobody.
ip neigh replace 10.0.0.99 lladdr 02:00:00:00:00:99 dev v0 nud permanent

# A TimeWait of 4.3 s, for what has to be done in it.
LONG=20

# round STATE SERVER-MODE CLIENT-MODE VICTIM LEFT [MESSAGE]: kills VICTIM when the client is ready,
# and MESSAGE has come in. LEFT is what becomes of its QP: kept for a TimeWait, expired because the
# peer does not answer, or free when it was never ready to receive. STATE is that of the connection
# of that QP; the module's own event says so.
round() {
	local state=$1 to=$SELF timeout=0 seen_state
	[ "$state" != REQ_SENT ] || to=10.0.0.99
	[ "$state" != TIMEWAIT ] || timeout=$LONG
	background server /vm/tools/hold_peer serve $SELF 7300 "$2"
	wait_for 30 listening 7300 || bail "hold_peer does not listen"
	mark_counters
	oracle_on
	victim client /vm/tools/hold_peer client $to 7300 "$3" 1 $timeout
	[[ $state != DREQ_* ]] || wait_for 30 grep -q DISCONNECTED $RUN/server.log
	# The first repetition of a message comes after 4.6 s, and is what an MRA answers.
	[ -z "${6:-}" ] || wait_for 15 eval '[ "$(counter_delta rx_msgs '"$6"')" -ge 1 ]' ||
		bail "$state: no $6"
	kill_victim "$4"
	# Of the one that was killed, not of the one that is stopped.
	judge
	stop client
	stop server
	if [ $MODULE_KIND = rust ]; then
		seen_state=$(sed -n 's/.* icm_hold: .*state=\([A-Z_]*\).*/\1/p' $RUN/trace | sort -u)
		# A QP that no message has named yet is not known to the connection manager.
		[ "$state" != MRA_REQ_SENT ] || state=
		assert_eq "$1: state of the $4's connection when it was killed" "$seen_state" "$state"
	fi
	if [ "$5" = free ]; then
		assert_eq "$1: the QP never received, and goes at once" \
			"kept $kept broken $broken expired $expired" "kept 0 broken 0 expired 0"
		check "$1: without a wait, $longest ms" [ "$longest" -lt $((300 * SLOW)) ]
	elif [ "$5" = expired ] && [ $MODULE_KIND = rust ]; then
		assert_eq "$1: the peer does not answer, the hold is given up" \
			"kept $kept broken $broken expired $expired" "kept 0 broken 0 expired 1"
		check "$1: after about a second: $longest ms" \
			[ "$longest" -ge 900 -a "$longest" -lt $((2000 * SLOW)) ]
	else
		expect_kept "$1: QP of the $4" 1
	fi
}

# rdma_cm asks for time by itself as soon as its user is told of a REQ or a REP: so these are the
# states MRA_REQ_SENT and MRA_REP_SENT from the beginning.
round REQ_SENT ignore request client free
round MRA_REQ_RCVD ignore request client free mra
round MRA_REQ_SENT prepare request server free
round MRA_REP_SENT answer half client kept
round REP_SENT answer half server kept
round MRA_REP_RCVD answer half server kept mra
round DREQ_SENT mute leave client expired
round DREQ_RCVD mute leave server kept
round TIMEWAIT answer leave client kept drep
