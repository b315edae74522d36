# SPDX-License-Identifier: GPL-2.0
# title: SIGKILL of an rping client, then of a server, in the middle of traffic
# cpus: 1
# timeout: 90
# debug: yes

. /vm/lib.sh
. /vm/crash.sh

load_stack
setup_rxe

# Kills the one that is named, while the two exchange data.
round() {
	background server rping -s -a $SELF -p 7174
	wait_for 30 listening 7174 || { show server; bail "rping does not listen"; }
	oracle_on
	background client rping -c -a $SELF -p 7174 -C 1000000
	wait_for 20 seen icm_send_rtu || bail "no connection"
	wait_for 20 busy || bail "no traffic"
	kill_victim "$1"
	check "the peer of the $1 notices" wait_for 20 seen icm_send_drep
	judge
	stop server
	stop client
	expect_kept "QP of the $1" 1
	[ $MODULE_KIND = c ] || assert_eq "icm_hold, icm_timewait_exit, icm_release of that QP" \
		"$(events_of "$(sed -n 's/.* icm_hold: .* qpn=\([0-9]*\) .*/\1/p' $RUN/trace)")" \
		"icm_hold icm_timewait_exit icm_release "
}

# events_of QPN: those of the hold, in their order.
events_of() {
	grep " qpn=$1 state" $RUN/trace | grep -Eo 'icm_[a-z_]*' | tr '\n' ' '
}

busy() {
	[ "$(cat $PORT/hw_counters/sent_pkts)" -gt $((sent + 100)) ]
}

for who in client server; do
	sent=$(cat $PORT/hw_counters/sent_pkts)
	round $who
done
