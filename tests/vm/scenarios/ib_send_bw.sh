# SPDX-License-Identifier: GPL-2.0
# title: ib_send_bw -R, perftest over a connection of rdma_cm
# timeout: 60

. /vm/lib.sh

load_stack
setup_rxe
mark_counters

background server stdbuf -oL ib_send_bw -R -d rxe0 -x 1 -n 500 -s 1024 -F
wait_for 10 listening 18515 || bail "ib_send_bw does not listen"
timeout 30 ib_send_bw -R -d rxe0 -x 1 -n 500 -s 1024 -F $SELF >$RUN/client.log 2>&1
assert_eq "client ends well, status" $? 0
show client
finish server 20
assert_eq "server ends well, status" $? 0
assert_ge "connections" "$(unique req rx)" 1
counters_agree "$(unique req rx)"
