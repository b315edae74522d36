# SPDX-License-Identifier: GPL-2.0
# title: NVMe over RDMA: discover, connect, I/O, reset under I/O, 10 reconnects, target gone
# timeout: 150

. /vm/lib.sh
. /vm/storage.sh

# The disk appears after the controller does, from a scan of its own.
connect() {
	timeout 30 nvme connect -t rdma -a $SELF -s 4420 -n $NQN -i 2 "${HOST[@]}" &&
		wait_for 15 namespace_present
}

disconnect() {
	timeout 30 nvme disconnect -n $NQN
	wait_for 15 eval '! controller'
}

controller() {
	ls /sys/class/nvme | grep -m 1 .
}

namespace_present() {
	DISK=/dev/$(basename "$(ls -d /sys/block/nvme*n1)")
	[ -b "$DISK" ] && [ "$(blockdev --getsize64 "$DISK")" = 16777216 ]
}

live() {
	[ "$(cat /sys/class/nvme/*/state)" = live ]
}

write_disk() {
	dd if=$RUN/data of=$DISK bs=1M oflag=direct status=none
}

# I/O without pause until the file "enough" appears; ends at the first error.
io_load() {
	until [ -e $RUN/enough ]; do
		write_disk && same_on_disk || return 1
		echo round
	done
}

# Completion queues of kernel consumers come from a pool, which is kept with the device.
held() {
	resources | sed 's/ cq [0-9]*//'
}

# What an earlier scenario in this guest has left must not pass for this one's.
rm -f $RUN/*.log $RUN/enough
no_lock_orders "nvmet_config_sem and rdma_cm's handler_mutex"
load_stack
setup_rxe
before=$(held)
check "a target on $SELF" nvmet_on
modprobe nvme_rdma || bail "nvme_rdma does not load"
dd if=/dev/urandom of=$RUN/data bs=1M count=8 status=none

timeout 30 nvme discover -t rdma -a $SELF -s 4420 "${HOST[@]}" >$RUN/discover.log
assert_eq "subsystems discovered" "$(grep -c "subnqn: *$NQN" $RUN/discover.log)" 1
wait_for 10 ended 1

mark_counters
check "connect" connect || bail "no disk appears"
assert_eq "REQs of one connect, admin queue and two I/O queues" "$(unique req tx)" 3
check "8 MiB written" write_disk
check "8 MiB read back, the same" same_on_disk

io_load >$RUN/io.log 2>&1 &
io=$!
wait_for 20 grep -q round $RUN/io.log
check "controller reset under I/O" timeout 40 nvme reset "/dev/$(controller)"
check "the controller is live again" wait_for 30 live
assert_eq "REQs with those of the reset" "$(unique req tx)" 6
rounds=$(wc -l <$RUN/io.log)
check "I/O goes on after the reset" wait_for 30 eval '[ $(wc -l <$RUN/io.log) -gt $((rounds + 1)) ]'
touch $RUN/enough
wait $io
assert_eq "I/O through the reset ends without error, status" $? 0
check "8 MiB read after the reset, the same" same_on_disk
check "disconnect" disconnect

good=0
for i in $(seq 10); do
	connect && same_on_disk && disconnect && good=$((good + 1))
done >$RUN/reconnect.log 2>&1
assert_eq "reconnects with the data intact" $good 10
wait_for 10 ended 36
assert_eq "REQs in all, without repetitions" "$(unique req tx)" 36
assert_eq "REPs and RTUs, without repetitions" "$(unique rep tx) $(unique rtu tx)" "36 36"
assert_eq "REJs" "$(counter_delta tx_msgs rej)" 0

rm $NVMET/ports/1/subsystems/$NQN
connect && fail "connects to a target that is gone" || ok "no connection to a target that is gone"
assert_eq "rejected with 8, no such service" \
	"$(dmesg | grep -c 'Connect rejected: status 8 ')" 1
check "the host's module goes" modprobe -r nvme_rdma
check "the target goes" nvmet_off
wait_for 10 eval '[ "$(held)" = "$before" ]'
assert_eq "resources on rxe0 afterwards" "$(held)" "$before"
