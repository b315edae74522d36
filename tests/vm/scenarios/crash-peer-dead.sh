# SPDX-License-Identifier: GPL-2.0
# title: SIGKILL when the peer has lost its power and answers no DREQ
# guests: 2
# modules: test c
# cpus: 1
# fresh: yes
# timeout: 120

. /vm/lib.sh
. /vm/crash.sh

load_stack
setup_rxe
wait_for 20 ping -c 1 -W 1 $PEER || bail "the other guest ($PEER) does not answer"

if [ $ROLE = b ]; then
	background server /vm/tools/hold_peer serve $SELF 7300 answer
	wait_for 30 listening 7300 || bail "hold_peer does not listen"
	ok "listens"
	put listens yes
	# The other guest switches this one off now.
	sleep 1000
fi

take listens >/dev/null
oracle_on
victim client /vm/tools/hold_peer client $PEER 7300 stay 3
# TimeWaits of 0.5 and of 2.1 s.
victim slow /vm/tools/hold_peer client $PEER 7300 stay 1 18
vmctl kill b
kill_victim client 30
judge
if [ $MODULE_KIND = c ]; then
	expect_kept "3 QPs" 3
else
	assert_eq "given up and counted" "expired $expired kept $kept broken $broken" \
		"expired 3 kept 0 broken 0"
	check "after max(2 x TimeWait, 1 s) = 1.07 s: $longest ms" \
		[ "$longest" -ge 1000 -a "$longest" -lt $((2000 * SLOW)) ]
fi
oracle_on
kill_victim slow 30
judge
if [ $MODULE_KIND = rust ]; then
	# It became ready before this trace began.
	assert_eq "the one with a longer TimeWait too" "expired $expired" "expired 1"
	check "after 2 x 1.07 s: $longest ms" [ "$longest" -ge 2000 -a "$longest" -lt $((3000 * SLOW)) ]
	assert_eq "holds taken, released, expired" \
		"$(stat holds_taken) $(stat holds_released) $(stat holds_expired)" "4 0 4"
fi
