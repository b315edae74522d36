# SPDX-License-Identifier: GPL-2.0
# title: SRP by its own InfiniBand path, without rdma_cm: login, I/O, logout, login again
# timeout: 120
# debug: yes

. /vm/lib.sh
. /vm/storage.sh
. /vm/hca/ib.sh

SRPT=/sys/kernel/config/target/srpt

# Both ends of a session have the name of a port: the last half of its GID.
port_name() {
	cut -d: -f5-8 $HCA/ports/$1/gids/0
}

target_on() {
	local tpg
	mkdir -p /etc/target
	modprobe -a target_core_mod ib_srpt ib_srp sd_mod || return 1
	ramdisk_on || return 1
	tpg=$SRPT/$(port_name 2)/$(port_name 2)
	mkdir -p $tpg/lun/lun_0 && ln -s $RAMDISK $tpg/lun/lun_0/disk || return 1
	mkdir -p $tpg/acls/$(port_name 1)/lun_0 &&
		ln -s $tpg/lun/lun_0 $tpg/acls/$(port_name 1)/lun_0/disk || return 1
	echo 1 >$tpg/enable
}

target_off() {
	local tpg
	tpg=$SRPT/$(port_name 2)/$(port_name 2)
	echo 0 >$tpg/enable
	rm $tpg/acls/$(port_name 1)/lun_0/disk $tpg/lun/lun_0/disk &&
		rmdir $tpg/acls/$(port_name 1)/lun_0 $tpg/acls/$(port_name 1) $tpg/lun/lun_0 $tpg \
			${tpg%/*} $SRPT &&
		ramdisk_off &&
		modprobe -r ib_srp && modprobe -r ib_srpt
}

# For a moment after the logout the old session is still known, and a second one is refused.
login() {
	wait_for 15 add_target && wait_for 15 disk_present
}

add_target() {
	local guid gid
	guid=$(cat /sys/module/ib_srpt/parameters/srpt_service_guid)
	guid=${guid#0x}
	gid=$(cat $HCA/ports/2/gids/0)
	echo "id_ext=$guid,ioc_guid=$guid,dgid=${gid//:/},pkey=ffff,service_id=$guid" \
		>/sys/class/infiniband_srp/srp-ibloop0-1/add_target
}

logout() {
	echo 1 >"$(ls /sys/class/srp_remote_ports/*/delete)"
	wait_for 15 eval '! disk_present'
}

ib_load
sm_start 1
dd if=/dev/urandom of=$RUN/data bs=1M count=8 status=none
check "a target on port 2" target_on
for round in 1 2; do
	mark_both
	check "login from port 1" login || bail "no disk appears: $(dmesg | tail -n 5)"
	channels=$(of_port 1 unique req tx)
	assert_ge "REQs of one login, one for each channel, at least" "$channels" 1
	check "8 MiB written" dd if=$RUN/data of=$DISK bs=1M oflag=direct status=none
	check "8 MiB read back, the same" same_on_disk
	check "logout" logout
	wait_for 10 eval '[ "$(of_port 1 unique drep rx)" = '$channels' ]'
	for pair in "2 rep" "1 rtu" "1 dreq"; do
		set -- $pair
		assert_eq "$2 of port $1, as many as channels" "$(of_port $1 unique $2 tx)" "$channels"
	done
done
check "the target goes" target_off
check "everything unloads" ib_unload
check "the connection manager unloads" unload_stack
