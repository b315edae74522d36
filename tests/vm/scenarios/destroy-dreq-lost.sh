# SPDX-License-Identifier: GPL-2.0
# title: an established id is destroyed, and the first three DREQs are lost
# guests: 2
# modules: test c
# cpus: 1
# timeout: 120

. /vm/lib.sh
. /vm/crash.sh

load_stack
setup_rxe
wait_for 20 ping -c 1 -W 1 $PEER || bail "the other guest ($PEER) does not answer"

# In UDP, behind transport headers of 12 and 8 bytes: class and attribute of the MAD.
CM_CLASS="@th,232,8 0x07"
DREQ="@th,352,16 0x0015"
LOST=3

lost() {
	nft list table ip lossy | sed -n 's/.*counter packets \([0-9]*\) .*/\1/p'
}

if [ $ROLE = b ]; then
	modprobe nf_tables
	nft add table ip lossy
	nft add chain ip lossy in "{ type filter hook input priority 0; }"
	nft add rule ip lossy in udp dport 4791 $CM_CLASS $DREQ counter drop ||
		bail "nft does not take the rule"
	background server /vm/tools/hold_peer serve $SELF 7300 answer
	wait_for 30 listening 7300 || bail "hold_peer does not listen"
	put listens yes
	take destroyed >/dev/null
	if [ "$(take kind)" = c ]; then
		# Two intervals in which the next one would come.
		check "as expected, the C module sends its DREQ once, and the peer never learns" \
			eval '! wait_for 11 grep -q DISCONNECTED $RUN/server.log'
		assert_eq "dreq lost" "$(lost)" 1
	else
		wait_for 40 eval '[ "$(lost)" -ge $LOST ]'
		# The next one is 4.6 s away.
		nft delete table ip lossy
		check "the peer learns by the next one" wait_for 30 grep -q DISCONNECTED $RUN/server.log
	fi
	barrier learnt
	nft delete table ip lossy 2>/dev/null
	barrier end
	stop server
	exit 0
fi

put kind $MODULE_KIND
take listens >/dev/null
mark_counters
# Gives up its id while the connection is established; the process and its QP live on.
victim client /vm/tools/hold_peer client $PEER 7300 orphan 1
took=$(sed -n 's/^destroyed in //p' $RUN/client.log)
check "destroying the id does not wait for an answer: $took ms" [ "$took" -lt $((1000 * SLOW)) ]
put destroyed yes
barrier learnt
if [ $MODULE_KIND = rust ]; then
	assert_eq "dreq sent, and those of them that were repetitions" \
		"$(counter_delta tx_msgs dreq) $(counter_delta tx_retries dreq)" "$((LOST + 1)) $LOST"
	wait_for 5 eval '[ "$(counter_delta rx_msgs drep)" = 1 ]'
	assert_eq "drep received" "$(counter_delta rx_msgs drep)" 1
else
	assert_eq "dreq sent" "$(counter_delta tx_msgs dreq)" 1
fi
stop client
barrier end
