# SPDX-License-Identifier: GPL-2.0
# title: rmmod of ib_cm during a hold, rdma_cm being unloaded
# cpus: 1
# only: rust
# timeout: 60

. /vm/lib.sh
. /vm/crash.sh

load_stack
PARAMETER=/sys/module/ib_cm/parameters/hold_max_ms
setup_rxe
background server /vm/tools/hold_peer serve $SELF 7300 answer
wait_for 30 listening 7300 || bail "hold_peer does not listen"
# The ids are given up, their TimeWaits of 17 s go on; the QPs stay with their process.
victim client /vm/tools/hold_peer client $SELF 7300 orphan 3 22
# The server's QPs would be held too.
echo 0 >$PARAMETER
stop server
echo 20000 >$PARAMETER
wait_for 30 rmmod rdma_ucm || bail "rdma_ucm does not unload"
rmmod rdma_cm || bail "rdma_cm does not unload"
trace_on ib_cma || bail "no trace events"
kill -KILL "$(cat $RUN/client.pid)"
wait_for 20 seen icm_hold: || bail "no hold"
check "the process waits" [ -d /proc/"$(cat $RUN/client.pid)" ]
assert_eq "holds taken" "$(stat holds_taken)" 3
# With the events the module's text is patched; they go first.
trace_off

# foreign_text: lines of stacks that are in no text that the kernel knows.
foreign_text() {
	cat /proc/[0-9]*/task/[0-9]*/stack 2>/dev/null | grep -c '\] 0x'
}

in_module() {
	cat /proc/[0-9]*/task/[0-9]*/stack 2>/dev/null | grep -c '\[ib_cm\]'
}

assert_ge "who waits stands in the module's text: lines of stacks" "$(in_module)" 1
start=${EPOCHREALTIME/./}
timeout 30 rmmod ib_cm
assert_eq "rmmod ib_cm, status" $? 0
took=$(((${EPOCHREALTIME/./} - start) / 1000))
check "it ends within a second: $took ms" [ $took -lt $((1000 * SLOW)) ]
assert_eq "nobody stands in the text that is gone: lines of stacks" \
	"$(in_module) $(foreign_text)" "0 0"
finish client 10
check "the process is gone" [ ! -e $RUN/client.pid ]
assert_eq "the holds that were let go, as the module counts them at its end" \
	"$(dmesg | sed -n 's/.*ib_cm: \([0-9]*\) queue pairs destroyed before TimeWait has.*/\1/p' | tail -n 1)" 3

# The device works as before, without the module and with it again.
load_ib_cm
modprobe -a rdma_cm rdma_ucm
background server rping -s -a $SELF -p 7174 -C 5
wait_for 30 listening 7174 || bail "rping does not listen"
check "a connection after all that" rping -c -a $SELF -p 7174 -C 5
finish server 10
