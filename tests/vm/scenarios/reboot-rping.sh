# SPDX-License-Identifier: GPL-2.0
# title: a client that lost its power comes back with the same GID and QPN, and connects again
# guests: 2
# modules: test c
# cpus: 1
# fresh: yes
# timeout: 240

. /vm/lib.sh
. /vm/crash.sh

load_stack
setup_rxe

LIMIT_MS=5000

if [ $ROLE = b ]; then
	wait_for 20 ping -c 1 -W 1 $PEER || bail "the other guest ($PEER) does not answer"
	put "gid$BOOT" "$(cat $PORT/gids/0)"
	take "listens" >/dev/null
	if [ $BOOT = 1 ]; then
		# To a server that waits for TIMEWAIT_EXIT, which that of rping does not.
		victim client /vm/tools/hold_peer client $PEER 7300 stay
		put qpn1 "$(sed -n 's/^qpn //p' $RUN/client.log)"
		put done1 yes
		# The other guest switches this one off now.
		sleep 1000
	fi
	start=${EPOCHREALTIME/./}
	for attempt in 1 2 3; do
		! timeout 60 rping -c -a $PEER -p 7174 -C 1 -v || break
	done
	took=$(((${EPOCHREALTIME/./} - start) / 1000))
	check "boot 2: connected at attempt $attempt" [ $attempt -le 2 ]
	check "within $LIMIT_MS ms: $took" [ $took -lt $((LIMIT_MS * SLOW)) ]
	assert_eq "rej received" "$(counter rx_msgs rej)" $((attempt - 1))
	put done2 yes
	barrier end
	exit 0
fi

background server rping -s -P -a $SELF -p 7174
background old /vm/tools/hold_peer serve $SELF 7300 answer
wait_for 30 listening 7174 && wait_for 30 listening 7300 || bail "the servers do not listen"
put listens yes
take done1 >/dev/null
# What the old connection's user is told, from here on.
oracle_on rdma_cma:cm_event_handler
vmctl reset b
take done2 >/dev/null
assert_eq "the same GID after the reboot" "$(take gid2)" "$(take gid1)"
note "old QPN: $(take qpn1), the first one of a device"
wait_for 20 seen TIMEWAIT_EXIT
oracle_off >/dev/null
timeline
barrier end
stop server
stop old
