# SPDX-License-Identifier: GPL-2.0
# Rounds of scenarios that go on for long; sourced after lib.sh and crash.sh. A round returns when
# what it has made is gone, or fails.
#
#	kill_round COUNT	COUNT processes with a connection each are killed at once
#
#	killed			how many processes kill_round has killed
#	settle			waits until all is as $before and $idle say

# The parent and its children are one session.
nobody_of() {
	! pgrep -s "$1"
}

bystander_connects() {
	background bystander /vm/tools/cmtool serve $SELF 7301 1
	wait_for 20 listening 7301 && timeout 60 /vm/tools/cmtool cycle $SELF 7301 1 &&
		finish bystander 20
}

answering_server() {
	background server /vm/tools/hold_peer serve $SELF 7300 answer
	wait_for 30 listening 7300
}

killed=0
kill_round() {
	local session
	answering_server || return 1
	rm -f $RUN/client.log
	victim client /vm/tools/hold_peer client $SELF 7300 many $1
	session=$(cat $RUN/client.pid)
	killed=$((killed + $(pgrep -c -P "$session")))
	pkill -KILL -s "$session"
	# In the middle of it somebody connects.
	bystander_connects || return 1
	finish client 60
	wait_for 60 nobody_of "$session" || return 1
	stop server
}

settle() {
	wait_for 120 eval '[ "$(resources)" = "$before" ]' ||
		bail "resources on rxe0 are $(resources) and were $before"
	wait_for 60 eval '[ "$(live_objects)" = "$idle" ]' ||
		bail "live objects of the module are $(live_objects) and were $idle"
}
