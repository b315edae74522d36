# SPDX-License-Identifier: GPL-2.0
# title: an id is destroyed, and the adapter owes the send completion of its DREQ
# cpus: 1
# timeout: 90

. /vm/lib.sh
. /vm/crash.sh

OWED=/sys/module/withhold/parameters

load_stack
setup_rxe
before=$(resources)
idle=$(live_objects)
[ -e $VM/hca/withhold.ko ] || bail "withhold was not built: see the runner's messages"
insmod $VM/hca/withhold.ko netdev=v0 || bail "withhold does not load: $(dmesg | tail -n 1)"

returned() {
	grep -q '^destroyed in' $RUN/client.log
}

owed() {
	[ "$(cat $OWED/withheld)" = 1 ]
}

# begin STATE MODE: a client connects, and gives up its id in that state. It and its QP live on.
begin() {
	state=$1
	background server /vm/tools/hold_peer serve $SELF 7300 answer
	wait_for 30 listening 7300 || bail "hold_peer does not listen"
	echo 1 >$OWED/left
	background client /vm/tools/hold_peer client $SELF 7300 "$2" 1
	wait_for 30 owed || { show client; bail "$state: no DREQ is sent"; }
	client=$(cat $RUN/client.pid)
}

destroy_returns() {
	local took
	check "$state: destroying the id returns" wait_for 5 returned
	took=$(sed -n 's/^destroyed in //p' $RUN/client.log)
	check "$state: at once, in $took ms" [ "$took" -lt $((1000 * SLOW)) ]
	check "$state: the completion is still owed" owed
	check "$state: the peer is told" wait_for 10 grep -q DISCONNECTED $RUN/server.log
	kill_victim client
	check "$state: the process can be killed" [ ! -e $RUN/client.pid ]
	check "$state: the completion is owed to a process that is gone" owed
	echo 1 >$OWED/release
	stop server
}

destroy_hangs() {
	# Longer than anything that destroying an id may wait for.
	check "$state: as expected, on the C module destroying the id does not return" \
		eval '! wait_for 5 returned'
	assert_eq "$state: the process sleeps in the kernel" \
		"$(sed 's/.*) //; s/ .*//' "/proc/$client/stat")" D
	kill -KILL "$client"
	check "$state: and cannot be killed" eval '! wait_for 3 gone "$client"'
	echo 1 >$OWED/release
	check "$state: until the completion comes" wait_for 10 gone "$client"
	finish client 5
	stop server
}

begin ESTABLISHED orphan
destroy_returns
# The user has disconnected; the C module's id waits for the completion of what that sent.
begin DREQ_SENT abandon
if [ $MODULE_KIND = c ]; then destroy_hangs; else destroy_returns; fi

rmmod withhold || bail "withhold does not unload"
wait_for 20 eval '[ "$(resources)" = "$before" ]'
assert_eq "resources on rxe0 afterwards" "$(resources)" "$before"
wait_for 20 eval '[ "$(live_objects)" = "$idle" ]'
assert_eq "live objects of the module, as before" "$(live_objects)" "$idle"
