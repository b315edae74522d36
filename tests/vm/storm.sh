# SPDX-License-Identifier: GPL-2.0
# Rounds of scenarios that go on for long; sourced after lib.sh and crash.sh. A round returns when
# what it has made is gone, or fails.
#
#	cycles_round		three clients connect and disconnect
#	kill_round COUNT	COUNT processes with a connection each are killed at once
#	death_round COUNT	a process with COUNT connections is killed
#	removal_round N		the device goes, every other time the network device, under clients that
#				connect and disconnect without pause
#	unload_round N		these clients are killed, and the modules unloaded in an order drawn by N
#
#	killed			how many processes kill_round has killed
#	settle			waits until all is as $before and $idle say

CLIENTS=3

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

cycles_round() {
	local i
	background server /vm/tools/cmtool serve $SELF 7300 $((20 * CLIENTS))
	wait_for 20 listening 7300 || return 1
	for ((i = 0; i < CLIENTS; i++)); do
		background client$i /vm/tools/cmtool cycle $SELF 7300 20
	done
	for ((i = 0; i < CLIENTS; i++)); do
		finish client$i 120 || return 1
	done
	finish server 30
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

death_round() {
	answering_server || return 1
	rm -f $RUN/client.log
	victim client /vm/tools/hold_peer client $SELF 7300 stay $1
	kill -KILL "$(cat $RUN/client.pid)"
	bystander_connects || return 1
	finish client 120
	[ ! -e $RUN/client.pid ] || return 1
	stop server
}

# Clients that connect and disconnect without pause, and that have done so for a while.
load_on() {
	local i
	mark_counters
	background server /vm/tools/cmtool serve $SELF 7300 1000000
	wait_for 20 listening 7300 || return 1
	for ((i = 0; i < CLIENTS; i++)); do
		background client$i /vm/tools/cmtool cycle $SELF 7300 1000000
	done
	wait_for 30 eval '[ "$(unique rep tx)" -ge 20 ]'
}

removal_round() {
	local i
	load_on || return 1
	if [ $(($1 % 2)) = 1 ]; then
		ip link delete v0
	else
		rdma link delete rxe0
	fi
	wait_for 20 device_gone || return 1
	for ((i = 0; i < CLIENTS; i++)); do
		# They end, with an error.
		finish client$i 30
		[ $? = 1 ] || return 1
	done
	finish server 30
	[ $? = 1 ] || return 1
	setup_rxe
	bystander_connects
}

unload_round() {
	local i order="" pids
	load_on || return 1
	pids=$(cat $RUN/client*.pid $RUN/server.pid)
	kill -KILL $pids
	RANDOM=$1
	wait_for 60 unload_any || return 1
	for i in $RUN/client*.pid $RUN/server.pid; do
		i=${i##*/}
		finish "${i%.pid}" 10
	done
	echo "unloaded:$order"
	load_stack || return 1
	setup_rxe
	bystander_connects
}

settle() {
	wait_for 120 eval '[ "$(resources)" = "$before" ]' ||
		bail "resources on rxe0 are $(resources) and were $before"
	wait_for 60 eval '[ "$(live_objects)" = "$idle" ]' ||
		bail "live objects of the module are $(live_objects) and were $idle"
}
