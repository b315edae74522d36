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
start=${EPOCHREALTIME/./}
timeout 30 rmmod ib_cm
assert_eq "rmmod ib_cm, status" $? 0
took=$(((${EPOCHREALTIME/./} - start) / 1000))
check "it ends within a second, or two under emulation: $took ms" [ $took -lt $((2000 * SLOW)) ]
finish client 10
check "the process is gone" [ ! -e $RUN/client.pid ]

# The device works as before, without the module and with it again.
load_ib_cm
modprobe -a rdma_cm rdma_ucm
background server rping -s -a $SELF -p 7174 -C 5
wait_for 30 listening 7174 || bail "rping does not listen"
check "a connection after all that" rping -c -a $SELF -p 7174 -C 5
finish server 10
