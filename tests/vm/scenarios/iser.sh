# SPDX-License-Identifier: GPL-2.0
# title: iSER: LIO target and open-iscsi, login, I/O, second login
# cpus: 1
# timeout: 150
# foreign: WARNING: .*iscsit_release_cmd

. /vm/lib.sh
. /vm/storage.sh

# The target has a race of its own, on the C module too: the initiator disconnects as soon as it
# has the logout response. When that response's own send completion comes after the target's QP
# was flushed, ib_isert takes its error path, frees a command that is still in the connection's
# list (the WARNING above), and nobody tells the target that the logout is done: it never goes.
# With two idle processors that came at the second logout on the C module, at the fifth on this
# one. Here the initiator's daemon runs only when nothing else wants the one processor, so that
# the completion comes first: that was not seen in 70 logouts, on both modules, and once since.

IQN=iqn.2024-01.test:disk
ISCSI=/sys/kernel/config/target/iscsi
TPG=$ISCSI/$IQN/tpgt_1
PORTAL=$TPG/np/$SELF:3260

target_on() {
	modprobe -a target_core_mod iscsi_target_mod ib_isert ib_iser sd_mod || return 1
	ramdisk_on || return 1
	mkdir -p $PORTAL $TPG/lun/lun_0 || return 1
	echo 0 >$TPG/attrib/authentication
	echo 1 >$TPG/attrib/generate_node_acls
	echo 0 >$TPG/attrib/demo_mode_write_protect
	ln -s $RAMDISK $TPG/lun/lun_0/disk
	echo 1 >$PORTAL/iser && echo 1 >$TPG/enable
}

target_off() {
	echo 0 >$TPG/enable
	rm $TPG/lun/lun_0/disk &&
		rmdir $TPG/lun/lun_0 $PORTAL $TPG $ISCSI/$IQN $ISCSI && ramdisk_off &&
		modprobe -r ib_iser && modprobe -r ib_isert && modprobe -r iscsi_target_mod
}

# open-iscsi's tools read these; they come with the package's set-up, which needs an init.
initiator_on() {
	mkdir -p /etc/iscsi /run/lock/iscsi
	echo "InitiatorName=iqn.2024-01.test:host" >/etc/iscsi/initiatorname.iscsi
	touch /etc/iscsi/iscsid.conf
	background iscsid chrt --idle 0 iscsid -f
	# The socket that iscsiadm talks to.
	wait_for 15 grep -q ISCSIADM /proc/net/unix || return 1
	iscsiadm -m node -T $IQN -p $SELF:3260 -I iser -o new
}

login() {
	timeout 40 iscsiadm -m node -T $IQN -p $SELF:3260 -I iser --login && wait_for 15 disk_present
}

logout() {
	timeout 40 iscsiadm -m node -T $IQN -p $SELF:3260 -I iser --logout
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
check "an initiator" initiator_on

mark_counters
check "login" login || bail "no disk appears"
assert_eq "REQs of one login" "$(unique req tx)" 1
assert_eq "sessions over iSER" "$(iscsiadm -m session | grep -c '^iser:')" 1
check "8 MiB written" dd if=$RUN/data of=$DISK bs=1M oflag=direct status=none
check "8 MiB read back, the same" same_on_disk
check "logout" logout
check "second login" login
check "8 MiB read again, the same" same_on_disk
check "second logout" logout
wait_for 10 ended 2
assert_eq "req, rep, rtu, without repetitions" \
	"$(unique req tx) $(unique rep tx) $(unique rtu tx)" "2 2 2"

stop iscsid
check "the target goes" target_off
wait_for 10 eval '[ "$(held)" = "$before" ]'
assert_eq "resources on rxe0 afterwards" "$(held)" "$before"
