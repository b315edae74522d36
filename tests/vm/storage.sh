# SPDX-License-Identifier: GPL-2.0
# For scenarios with block devices over RDMA. Sourced after lib.sh.
#
# ramdisk_on, ramdisk_off	a disk of LIO, $RAMDISK, for a target to export
# disk_present			sets DISK to the initiator's device of it
# same_on_disk			compares its beginning with $RUN/data
# nvmet_on, nvmet_off		an NVMe target on $SELF that exports /dev/ram0 as $NQN
# HOST				options by which an NVMe host says who it is

CONFIGFS=/sys/kernel/config
RAMDISK=$CONFIGFS/target/core/rd_mcp_0/disk
NVMET=$CONFIGFS/nvmet
NQN=nqn.2024-01.test:disk
HOST=(-q nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-000000000001
	-I 00000000-0000-4000-8000-000000000001)

mount_configfs() {
	mountpoint -q $CONFIGFS || mount -t configfs configfs $CONFIGFS
}

ramdisk_on() {
	mount_configfs
	mkdir -p $RAMDISK && echo rd_pages=4096 >$RAMDISK/control && echo 1 >$RAMDISK/enable
}

ramdisk_off() {
	rmdir $RAMDISK ${RAMDISK%/*}
}

disk_present() {
	local vendor
	for vendor in /sys/block/sd*/device/vendor; do
		grep -q LIO-ORG "$vendor" || continue
		vendor=${vendor#/sys/block/}
		DISK=/dev/${vendor%%/*}
		[ -b "$DISK" ] && [ "$(blockdev --getsize64 "$DISK")" -ge 8388608 ] && return 0
	done
	return 1
}

same_on_disk() {
	dd if=$DISK bs=1M count=8 iflag=direct status=none | cmp - $RUN/data
}

nvmet_on() {
	local subsystem=$NVMET/subsystems/$NQN port=$NVMET/ports/1
	modprobe brd rd_nr=1 rd_size=16384 && modprobe nvmet_rdma || return 1
	mount_configfs
	mkdir $subsystem && mkdir $subsystem/namespaces/1 && mkdir $port || return 1
	echo 1 >$subsystem/attr_allow_any_host
	echo /dev/ram0 >$subsystem/namespaces/1/device_path
	echo 1 >$subsystem/namespaces/1/enable
	echo rdma >$port/addr_trtype
	echo ipv4 >$port/addr_adrfam
	echo $SELF >$port/addr_traddr
	echo 4420 >$port/addr_trsvcid
	ln -s $subsystem $port/subsystems/$NQN
}

# The port's link to the subsystem may have been taken away before.
nvmet_off() {
	local link=$NVMET/ports/1/subsystems/$NQN
	[ ! -L $link ] || rm $link || return 1
	rmdir $NVMET/ports/1 &&
		echo 0 >$NVMET/subsystems/$NQN/namespaces/1/enable &&
		rmdir $NVMET/subsystems/$NQN/namespaces/1 $NVMET/subsystems/$NQN &&
		modprobe -r nvmet_rdma && modprobe -r brd
}
