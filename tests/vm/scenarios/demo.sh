# SPDX-License-Identifier: GPL-2.0
# title: a short tour, as make demo shows it
# timeout: 180
# cpus: 1
# long: yes

. /vm/lib.sh
. /vm/crash.sh

# shown TEXT CMD...: one line of the transcript for one program.
shown() {
	local text=$1 start=${EPOCHREALTIME/./}
	shift
	check "$text" "$@"
	if [ "${checked:-}" != $failures ]; then
		checked=$failures
		say "  FAILED   $text"
		return
	fi
	say "$(printf '  %-62s %5d ms' "$text" $(((${EPOCHREALTIME/./} - start) / 1000)))"
}
checked=0

# served PORT SERVER... -- CLIENT...: both must end well.
served() {
	local port=$1 server=()
	shift
	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	shift
	background server "${server[@]}"
	wait_for 10 listening "$port" && "$@" && finish server 60
}

say "Linux $(uname -r), Debian's own kernel, soft-RoCE on a pair of virtual Ethernet devices"
say ""
load_stack
setup_rxe
say "The module (the $MODULE_KIND one)"
say "  loaded build id   $(loaded_build_id)"
say "  that of the file  $(cat $VM/modules/$MODULE_KIND/build-id)"
say "  used by           $(awk '$1 == "ib_cm" { print $4 }' /proc/modules | sed 's/,$//; s/,/, /g')"
say ""
say "Programs"
mark_counters
shown "rping: 100 iterations on one connection" \
	served 7174 rping -s -a $SELF -p 7174 -C 100 -- rping -c -a $SELF -p 7174 -C 100
shown "ucmatose: 50 connections with data" \
	served 7471 ucmatose -b $SELF -c 50 -- ucmatose -s $SELF -c 50
shown "udaddy: 10 datagram endpoints, resolved by SIDR" \
	served 7174 udaddy -b $SELF -c 10 -- udaddy -s $SELF -c 10
shown "cmtime: 2 x 500 connections, with and without QPs" \
	served 7471 cmtime -b $SELF -c 500 -q 350000 -- cmtime -s $SELF -c 500 -q 340000
wait_for 20 ended "$(unique req rx)"
say ""
say "Messages (from /sys/class/infiniband/rxe0/ports/1/cm_*)"
say "$(printf '  %-10s %8s %8s' message sent received)"
for message in req rep rtu dreq drep rej sidr_req sidr_rep; do
	say "$(printf '  %-10s %8d %8d' $message \
		"$(counter_delta tx_msgs $message)" "$(counter_delta rx_msgs $message)")"
done
counters_agree "$(unique req rx)"
say "  connections made and ended: $(unique rtu rx)"
say ""

# crash TEXT: kills an rping client while it exchanges data with its server; the trace is kept
# for the picture.
crash() {
	background server rping -s -a $SELF -p 7174
	wait_for 10 listening 7174 || bail "rping does not listen"
	oracle_on
	sent=$(cat $PORT/hw_counters/sent_pkts)
	background client rping -c -a $SELF -p 7174 -C 1000000
	wait_for 20 eval '[ "$(cat $PORT/hw_counters/sent_pkts)" -gt $((sent + 100)) ]' ||
		bail "no traffic"
	kill_victim client
	# On the C module TimeWait ends when the QP is long gone.
	wait_for 5 grep -qE 'cm_work|timewait_exit' $TRACING/trace
	judge
	stop server
	cp $RUN/trace $RUN/trace.$MODULE_KIND
	say "$1"
	python3 /vm/tools/hold_oracle.py timeline $RUN/trace.$MODULE_KIND >$RUN/timeline
	while IFS= read -r line; do say "  $line"; done <$RUN/timeline
	say ""
	expect_kept "$1" 1
}

say "A crash: an rping client is killed in the middle of its traffic"
under_test=$MODULE_KIND
if [ $under_test = rust ]; then
	check "everything unloads" unload_stack
	MODULE_KIND=c
	load_stack
	setup_rxe
	crash "The C module"
	check "everything unloads" unload_stack
	MODULE_KIND=rust
	load_stack
	setup_rxe
	crash "This module"
	# The lines of the picture go through the log to scripts/demo.
	python3 /vm/tools/hold_oracle.py picture $RUN/trace.c $RUN/trace.rust >$RUN/picture
	assert_eq "picture drawn, status" $? 0
	sed 's/^/svg /' $RUN/picture
	say "The same as a picture: out/demo.svg"
	say ""
else
	crash "The C module"
fi
check "everything unloads" unload_stack
warnings=$(dmesg | sed -n '/vm: start/,$p' | grep -cE 'WARNING|BUG|Oops|still live')
assert_eq "warnings in the kernel log" "$warnings" 0
if [ $failures = 0 ]; then
	say "Unloaded cleanly, nothing left, no warning in the kernel log."
else
	say "$failures checks FAILED."
fi
