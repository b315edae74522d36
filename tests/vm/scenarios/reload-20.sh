# SPDX-License-Identifier: GPL-2.0
# title: insmod and rmmod 20 times, with and without a device
# timeout: 120

. /vm/lib.sh

modprobe -a rdma_rxe ib_uverbs
good=0
for i in $(seq 10); do
	load_ib_cm && rmmod ib_cm && good=$((good + 1))
done
assert_eq "loaded and unloaded without a device" $good 10

setup_rxe
good=0
for i in $(seq 10); do
	load_ib_cm && [ -e $PORT/cm_tx_msgs/req ] && rmmod ib_cm && [ ! -e $PORT/cm_tx_msgs ] &&
		good=$((good + 1))
done
assert_eq "loaded and unloaded above a device, counters come and go" $good 10

load_ib_cm
check_build_id
modprobe -a rdma_cm rdma_ucm
background server rping -s -a $SELF -p 7174 -C 5
wait_for 10 listening 7174 || bail "rping does not listen"
check "a connection after all that" rping -c -a $SELF -p 7174 -C 5
finish server 10
