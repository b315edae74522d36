# SPDX-License-Identifier: GPL-2.0
# title: the Debian packages: installed, used by modprobe rdma_cm and cmstat, and removed
# only: rust
# fresh: yes
# long: yes
# timeout: 300

. /vm/lib.sh

RELEASE=$(uname -r)
MODULES=/usr/lib/modules/$RELEASE

build_id_of() {
	cat $VM/modules/$1/build-id
}

load() {
	modprobe -a rdma_cm rdma_ucm ib_uverbs rdma_rxe
}

ls $VM/deb/*.deb || bail "there are no packages: run 'make deb' first"
# The folder as the kernel's package leaves it, without what this kernel's guests never load:
# depmod takes long for all of it.
cp $VM/modules/c/ib_cm.ko $MODULES/kernel/drivers/infiniband/core/ib_cm.ko
depmod $RELEASE || bail "depmod fails"

check "dpkg installs the module and cmstat" \
	dpkg --force-depends -i $VM/deb/ib-cm-rust-modules-*.deb $VM/deb/cmstat_*.deb
assert_eq "where modprobe finds ib_cm" \
	"$(modinfo -n ib_cm)" "/lib/modules/$RELEASE/updates/ib_cm.ko"
check "modprobe rdma_cm" load || bail "the stack does not load"
assert_eq "build id of the ib_cm that it pulls" "$(loaded_build_id)" "$(build_id_of rust)"
setup_rxe
background server rping -s -a $SELF -p 7174 -C 5
wait_for 10 listening 7174 || bail "rping does not listen"
mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug
check "the packaged cmstat sees the listener" sh -c "cmstat listeners | grep -q rdma_cm"
check "rping over it" rping -c -a $SELF -p 7174 -C 5
finish server 10
check "it unloads" unload_stack

check "dpkg removes the module" dpkg -r ib-cm-rust-modules-$RELEASE
check "modprobe rdma_cm" load || bail "the stack does not load"
assert_eq "build id of the ib_cm that it pulls" "$(loaded_build_id)" "$(build_id_of c)"
cmstat >$RUN/cmstat 2>&1
check "cmstat says that it is the C module: $(cat $RUN/cmstat)" \
	grep -q "is the C module" $RUN/cmstat
check "it unloads" unload_stack
check "dpkg removes cmstat" dpkg -r cmstat
assert_eq "nothing is left" "$(find $MODULES/updates /usr/sbin/cmstat 2>/dev/null)" ""
