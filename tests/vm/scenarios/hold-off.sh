# SPDX-License-Identifier: GPL-2.0
# title: hold_max_ms: 0 from the start, and 0 during a hold
# cpus: 1
# only: rust
# timeout: 60

. /vm/lib.sh
. /vm/crash.sh

load_stack hold_max_ms=0
PARAMETER=/sys/module/ib_cm/parameters/hold_max_ms
assert_eq "hold_max_ms" "$(cat $PARAMETER)" 0
setup_rxe
background server /vm/tools/hold_peer serve $SELF 7300 answer
wait_for 30 listening 7300 || bail "hold_peer does not listen"

oracle_on
victim client /vm/tools/hold_peer client $SELF 7300 stay
kill_victim client
judge
assert_eq "with 0 the QP goes at once, as on the C module" \
	"kept $kept broken $broken expired $expired" "kept 0 broken 1 expired 0"
assert_eq "holds taken" "$(stat holds_taken)" 0

# A TimeWait of 4.3 s.
echo 20000 >$PARAMETER
oracle_on
victim client /vm/tools/hold_peer client $SELF 7300 stay 1 20
kill -KILL "$(cat $RUN/client.pid)"
wait_for 20 seen 'icm_hold:' || bail "no hold"
wait_for 20 seen 'icm_send_drep'
check "the process waits" [ -d /proc/"$(cat $RUN/client.pid)" ]
task=$(cat /proc/"$(cat $RUN/client.pid)"/stat | sed 's/.*) //; s/ .*//')
assert_eq "and is no load: its state" "$task" I
start=${EPOCHREALTIME/./}
echo 0 >$PARAMETER
finish client 10
passed=$(((${EPOCHREALTIME/./} - start) / 1000))
check "0 lets go at once: $passed ms" [ $passed -lt $((1000 * SLOW)) ]
judge
assert_eq "the hold is counted as given up" "kept $kept broken $broken expired $expired" \
	"kept 0 broken 0 expired 1"
assert_eq "holds taken, released, expired" \
	"$(stat holds_taken) $(stat holds_released) $(stat holds_expired)" "1 0 1"

# The limit bounds a hold that would last longer.
echo 1500 >$PARAMETER
oracle_on
victim client /vm/tools/hold_peer client $SELF 7300 stay 1 20
kill_victim client 20
judge
check "hold_max_ms=1500 bounds the wait: $longest ms" [ "$longest" -ge 1400 -a "$longest" -lt $((2500 * SLOW)) ]
assert_eq "and that is counted" "kept $kept broken $broken expired $expired" \
	"kept 0 broken 0 expired 1"
