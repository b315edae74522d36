# SPDX-License-Identifier: GPL-2.0
# title: a guest that lost its power comes back with the same address and connects again
# guests: 2
# modules: test c
# fresh: yes
# timeout: 240

. /vm/lib.sh

load_stack
setup_rxe

if [ $ROLE = b ]; then
	wait_for 20 ping -c 1 -W 1 $PEER || bail "the other guest ($PEER) does not answer"
	cat $PORT/gids/0 | sed 's/^/# gid /'
	put "gid$BOOT" "$(cat $PORT/gids/0)"
	take "listens" >/dev/null
	check "boot $BOOT: rping" rping -c -a $PEER -p 7174 -C 10
	put "done$BOOT" yes
	[ $BOOT = 1 ] || exit 0
	# The other guest switches this one off now.
	sleep 1000
fi

background server rping -s -P -a $SELF -p 7174
wait_for 10 listening 7174 || bail "rping does not listen"
put listens yes
take done1 >/dev/null
vmctl reset b
take done2 >/dev/null
assert_eq "the same GID after the reboot" "$(take gid2)" "$(take gid1)"
assert_ge "rep sent, without repetitions" "$(counter tx_msgs rep)" 2
stop server
