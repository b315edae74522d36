# SPDX-License-Identifier: GPL-2.0
# title: cmstat: lists, a stuck connection, a history, and agreement with rdma resource
# only: rust
# timeout: 120

. /vm/lib.sh

CMSTAT=/vm/cmstat
[ -x $CMSTAT ] || bail "there is no cmstat: run 'make cmstat' first"
mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug

# says TEXT-OF-CHECK PATTERN CMD...: fails, with one line that has the pattern
says() {
	local text=$1 pattern=$2 status=0
	shift 2
	"$@" >$RUN/says 2>&1 || status=$?
	assert_eq "$text: status, lines" "$status $(wc -l <$RUN/says)" "1 1"
	check "$text: $(cat $RUN/says)" grep -q "$pattern" $RUN/says
}

# ids OPTION...: local IDs of cmstat list
ids() {
	$CMSTAT list "$@" | awk 'NR > 1 { print $1 }' | sort -n
}

count() {
	ids "$@" | wc -l
}

has() {
	[ "$(count --state "$1")" -ge "$2" ]
}

says "without the module" "is not loaded" $CMSTAT
load_stack
umount /sys/kernel/debug
says "without debugfs" "is not mounted" $CMSTAT list
mount -t debugfs none /sys/kernel/debug
setup_rxe
echo 64 >/sys/module/ib_cm/parameters/history
check "with nothing to show" $CMSTAT

background server /vm/tools/cmtool serve $SELF 7300 5
wait_for 20 listening 7300 || bail "cmtool does not listen"
check "the listener" sh -c "$CMSTAT listeners | grep -q 'rxe0 .*$(printf %04x 7300) .*rdma_cm'"
background client /vm/tools/cmtool hold $SELF 7300 5 $RUN/end
wait_for 60 grep -q held $RUN/client.log || bail "no connections"
wait_for 10 has established 10 || bail "they are not established"

# rdma resource knows rdma_cm's ids: device, port, queue pair, and its own states.
rdma -j resource show cm_id >$RUN/rdma.json
$CMSTAT --json list >$RUN/cmstat.json
cat $RUN/rdma.json $RUN/cmstat.json
python3 - $RUN/rdma.json $RUN/cmstat.json <<'END' >$RUN/compared
import json, sys
rdma, cmstat = (json.load(open(path)) for path in sys.argv[1:])
# CONNECT is all of rdma_cm's life between its connect or accept and its disconnect.
connect = [i for i in rdma if i.get("state") == "CONNECT"]
established = [c for c in cmstat if c["state"] == "ESTABLISHED"]
theirs = sorted((i["ifname"], i["port"], i["lqpn"]) for i in connect)
ours = sorted((c["device"], c["port"], c["local_qpn"]) for c in established)
print("same" if theirs == ours else f"rdma: {theirs} cmstat: {ours}", len(ours))
END
assert_eq "device, port, queue pair as rdma resource has them" "$(cat $RUN/compared)" "same 10"
assert_eq "rxe0, established" "$(count --device rxe0 --state Established)" 10
assert_eq "another device" "$(count --device rxe1)" 0
assert_eq "by peer and owner" "$(count --peer $SELF --owner rdma_cm)" 10

one=$(ids | head -n 1)
$CMSTAT why $one >$RUN/why
cat $RUN/why
check "why: an established one waits for nothing" grep -q "waits for nothing" $RUN/why
check "why: its last change" grep -q "ESTABLISHED  *\(call_rtu\|received_rtu\)$" $RUN/why
check "history: the last change of each" \
	[ "$($CMSTAT history | grep -c ' ESTABLISHED ')" -ge 10 ]
check "a state that there is not" sh -c "$CMSTAT list --state bogus 2>&1 | grep -q 'choose one of IDLE'"
says "why of an id that never was" "there is no id" $CMSTAT why 1
assert_eq "nothing is stuck" "$($CMSTAT --json stuck --after 0)" "[]"
$CMSTAT --json >$RUN/summary
check "the summary as JSON" python3 -c 'import json, sys
s = json.load(sys.stdin)
assert s["connections"] == {"rxe0": {"ESTABLISHED": 10}}, s
assert s["listeners"] == {"rxe0": 1} and s["stuck"] == 0 and s["stats"]["ids"] == 11, s' \
	<$RUN/summary
$CMSTAT watch --interval 0.2 --count 3 --json >$RUN/watch
assert_eq "three looks" "$(python3 -c 'import json, sys
print(sum("messages_per_s" in json.loads(line) for line in sys.stdin))' <$RUN/watch)" 3
touch $RUN/end
finish client 60
finish server 60

# A server that never answers: the client waits for it.
background server /vm/tools/hold_peer serve $SELF 7301 ignore
wait_for 30 listening 7301 || bail "hold_peer does not listen"
background client /vm/tools/hold_peer client $SELF 7301 request
wait_for 30 has req_sent 1 || wait_for 5 has mra_req_rcvd 1 || bail "no request"
$CMSTAT stuck --after 0 >$RUN/stuck
cat $RUN/stuck
check "the client's id and what it waits for" \
	grep -qE "It waits for ::ffff:$SELF to answer the REQ|::ffff:$SELF has the REQ" $RUN/stuck
check "the server's id and what it waits for" \
	grep -q "It waits for rdma_cm to answer (rep .* TCP port 7301" $RUN/stuck
stop client
stop server
