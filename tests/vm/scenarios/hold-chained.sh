# SPDX-License-Identifier: GPL-2.0
# title: the device's own ufile_hw_cleanup is called after the hold, and put back
# cpus: 1
# only: rust
# timeout: 90

. /vm/lib.sh
. /vm/crash.sh

OTHER=/sys/module/cleanup/parameters

[ -e $VM/hca/cleanup.ko ] || bail "cleanup was not built: see the runner's messages"

warnings() {
	dmesg | sed -n "/vm: start $SCENARIO\$/,\$p" |
		grep -c 'an operation of a device was replaced by another module'
}

# crash TEXT: a process is killed; the hold and the other operation do what they should.
crash() {
	local calls
	background server /vm/tools/hold_peer serve $SELF 7300 answer
	wait_for 30 listening 7300 || bail "hold_peer does not listen"
	oracle_on
	victim client /vm/tools/hold_peer client $SELF 7300 stay
	calls=$(cat $OTHER/calls)
	kill_victim client
	judge
	expect_kept "$1: QP of the client" 1
	# Of the one file, for the pass that finds QPs and for the rest.
	assert_ge "$1: calls of the other operation" "$(($(cat $OTHER/calls) - calls))" 1
	stop server
}

# The device has an operation before this module comes, as a driver's own.
modprobe -a ib_uverbs rdma_rxe || bail "soft-RoCE does not load"
setup_rxe
insmod $VM/hca/cleanup.ko netdev=v0 || bail "cleanup does not load: $(dmesg | tail -n 1)"
assert_eq "the device has an operation of its own, in place" "$(cat $OTHER/in_place)" Y
load_stack
assert_eq "this module stands before it, in place" "$(cat $OTHER/in_place)" N
crash "a driver with an operation"
for module in rdma_ucm rdma_cm ib_cm; do
	wait_for 15 rmmod $module || bail "$module does not unload"
done
assert_eq "it is put back when this module goes, in place" "$(cat $OTHER/in_place)" Y
rmmod cleanup || bail "cleanup does not unload"

# Another module puts itself before this one: as long as it does, this one has to stay.
load_stack
insmod $VM/hca/cleanup.ko netdev=v0 || bail "cleanup does not load: $(dmesg | tail -n 1)"
crash "another module before this one"
for module in rdma_ucm rdma_cm; do
	wait_for 15 rmmod $module || bail "$module does not unload"
done
background leaves rmmod ib_cm
check "rmmod waits, and says for what" wait_for 10 eval '[ "$(warnings)" -ge 1 ]'
check "it still waits" [ -d /proc/"$(cat $RUN/leaves.pid)" ]
rmmod cleanup || bail "cleanup does not unload"
finish leaves 15
assert_eq "then rmmod ends, status" $? 0
check "the module is gone" [ ! -d /sys/module/ib_cm ]
assert_eq "it has said so once" "$(warnings)" 1
