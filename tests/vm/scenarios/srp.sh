# SPDX-License-Identifier: GPL-2.0
# title: SRP over rdma_cm: login with two channels, I/O, logout
# timeout: 120

. /vm/lib.sh
. /vm/storage.sh

SRPT=/sys/kernel/config/target/srpt

# The target's name for a port is the last half of its first GID.
port_name() {
	cut -d: -f5-8 $PORT/gids/0
}

target_on() {
	local tpg
	modprobe -a target_core_mod ib_srpt ib_srp sd_mod || return 1
	ramdisk_on || return 1
	tpg=$SRPT/$(port_name)/$(port_name)
	mkdir -p $tpg/lun/lun_0 && ln -s $RAMDISK $tpg/lun/lun_0/disk || return 1
	# Over rdma_cm an initiator is known by its address.
	mkdir -p $tpg/acls/$SELF/lun_0 && ln -s $tpg/lun/lun_0 $tpg/acls/$SELF/lun_0/disk || return 1
	echo 5555 >$SRPT/discovery_auth/rdma_cm_port 2>/dev/null ||
		echo 5555 >$SRPT/rdma_cm_port || return 1
	echo 1 >$tpg/enable && wait_for 10 listening 5555
}

target_off() {
	local tpg
	tpg=$SRPT/$(port_name)/$(port_name)
	echo 0 >$tpg/enable
	echo 0 >$SRPT/discovery_auth/rdma_cm_port 2>/dev/null || echo 0 >$SRPT/rdma_cm_port
	rm $tpg/acls/$SELF/lun_0/disk $tpg/lun/lun_0/disk &&
		rmdir $tpg/acls/$SELF/lun_0 $tpg/acls/$SELF $tpg/lun/lun_0 $tpg ${tpg%/*} $SRPT &&
		ramdisk_off &&
		modprobe -r ib_srp && modprobe -r ib_srpt
}

login() {
	local guid
	guid=$(cat /sys/module/ib_srpt/parameters/srpt_service_guid)
	guid=${guid#0x}
	echo "id_ext=$guid,ioc_guid=$guid,dest=$SELF:5555,ch_count=2" \
		>/sys/class/infiniband_srp/srp-rxe0-1/add_target && wait_for 15 disk_present
}

logout() {
	echo 1 >"$(ls /sys/class/srp_remote_ports/*/delete)"
	wait_for 15 eval '! disk_present'
}

# Completion queues of kernel consumers come from a pool, which is kept with the device.
held() {
	resources | sed 's/ cq [0-9]*//'
}

load_stack
setup_rxe
before=$(held)
dd if=/dev/urandom of=$RUN/data bs=1M count=8 status=none
check "a target on $SELF" target_on

mark_counters
check "login" login || bail "no disk appears"
assert_eq "REQs of one login, one for each channel" "$(unique req tx)" 2
check "8 MiB written" dd if=$RUN/data of=$DISK bs=1M oflag=direct status=none
check "8 MiB read back, the same" same_on_disk
check "logout" logout
wait_for 10 ended 2
assert_eq "req, rep, rtu, without repetitions" \
	"$(unique req tx) $(unique rep tx) $(unique rtu tx)" "2 2 2"

check "the target goes" target_off
wait_for 10 eval '[ "$(held)" = "$before" ]'
assert_eq "resources on rxe0 afterwards" "$(held)" "$before"
