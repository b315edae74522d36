# SPDX-License-Identifier: GPL-2.0
# title: a short tour, as make demo shows it
# timeout: 180
# long: yes

. /vm/lib.sh

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
check "everything unloads" unload_stack
warnings=$(dmesg | sed -n '/vm: start/,$p' | grep -cE 'WARNING|BUG|Oops|still live')
assert_eq "warnings in the kernel log" "$warnings" 0
if [ $failures = 0 ]; then
	say "Unloaded cleanly, nothing left, no warning in the kernel log."
else
	say "$failures checks FAILED."
fi
