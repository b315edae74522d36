# SPDX-License-Identifier: GPL-2.0
# title: the device goes during a hold, and with 100 live processes
# cpus: 1
# timeout: 180

. /vm/lib.sh
. /vm/crash.sh

load_stack
setup_rxe

# The longest that the removal may take: uverbs takes its locks, the MAD layer its agents.
LIMIT_MS=3000

# removed TEXT: deletes rxe0 and says how long that took.
removed() {
	local start=${EPOCHREALTIME/./} took
	timeout 40 rdma link delete rxe0
	assert_eq "$1: rxe0 is deleted, status" $? 0
	took=$(((${EPOCHREALTIME/./} - start) / 1000))
	check "$1: within $LIMIT_MS ms: $took" [ $took -lt $((LIMIT_MS * SLOW)) ]
}

background server /vm/tools/hold_peer serve $SELF 7300 answer
wait_for 30 listening 7300 || bail "hold_peer does not listen"
[ $MODULE_KIND = c ] || echo 20000 >/sys/module/ib_cm/parameters/hold_max_ms
oracle_on
# A TimeWait of 17 s.
victim client /vm/tools/hold_peer client $SELF 7300 stay 1 22
kill -KILL "$(cat $RUN/client.pid)"
if [ $MODULE_KIND = rust ]; then
	wait_for 20 seen icm_hold: || bail "no hold"
	wait_for 20 seen icm_send_drep || bail "no DREP"
fi
removed "during a hold"
finish client 10
check "the process is gone" [ ! -e $RUN/client.pid ]
judge
stop server
[ $MODULE_KIND = c ] || assert_eq "the hold was given up and counted" \
	"expired $expired broken $broken" "expired 1 broken 0"

# live TEXT: the device goes, and with it the QPs of 100 processes that live.
live() {
	local taken
	setup_rxe
	background server /vm/tools/hold_peer serve $SELF 7300 answer
	wait_for 30 listening 7300 || bail "hold_peer does not listen"
	victim many /vm/tools/hold_peer client $SELF 7300 many 100
	taken=$(stat holds_taken)
	LIMIT_MS=15000
	removed "$1"
	assert_eq "$1: holds taken by the removal" "$(stat holds_taken)" "$taken"
	stop many
	stop server
}

live "100 live processes"
if [ $MODULE_KIND = rust ]; then
	check "everything unloads" unload_stack
	load_stack hold_explicit=1
	live "100 live processes, hold_explicit=1"
fi
