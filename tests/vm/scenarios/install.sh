# SPDX-License-Identifier: GPL-2.0
# title: install and uninstall on a copy of the module tree, and what modprobe loads
# timeout: 120
# only: rust

. /vm/lib.sh

RELEASE=$(uname -r)
TREE=/run/tree
MODULES=$TREE/usr/lib/modules/$RELEASE
UPDATE=$MODULES/updates/ib_cm.ko

build_id_of() {
	cat $VM/modules/$1/build-id
}

run_install() {
	INSTALL_MOD_PATH=$TREE $VM/install "$@" >$RUN/install.log 2>&1
}

load_from_tree() {
	modprobe -d $TREE -a rdma_cm rdma_ucm ib_uverbs rdma_rxe
}

# What the stack needs of the tree: depmod takes half a minute for all of it.
mkdir -p $MODULES
ln -s usr/lib $TREE/lib
cd /usr/lib/modules/$RELEASE
modprobe -a --show-depends rdma_cm rdma_ucm ib_uverbs rdma_rxe | sed -n "s|^insmod .*/$RELEASE/||p" |
	cut -d' ' -f1 | sort -u | xargs cp --parents -t $MODULES
# An earlier scenario may have put the module under test in the place of the packaged one.
cp $VM/modules/c/ib_cm.ko $MODULES/kernel/drivers/infiniband/core/ib_cm.ko
depmod -b $TREE $RELEASE || bail "depmod fails on the copy"
(cd $MODULES && find . ! -name 'modules.*' | sort) >$RUN/before

check "install" run_install $VM/modules/rust/ib_cm.ko
show install
check "it stands in updates/" cmp $VM/modules/rust/ib_cm.ko $UPDATE
check "it says how to go back" grep -q "^To go back: make uninstall" $RUN/install.log
check "modprobe rdma_cm" load_from_tree || bail "the stack does not load"
assert_eq "build id of the ib_cm that it pulls" "$(loaded_build_id)" "$(build_id_of rust)"
setup_rxe
background server rping -s -a $SELF -p 7174 -C 5
wait_for 10 listening 7174 || bail "rping does not listen"
check "rping over it" rping -c -a $SELF -p 7174 -C 5
finish server 10
check "it unloads" unload_stack

check "install over an installed one" run_install $VM/modules/rust/ib_cm.ko
check "uninstall" run_install --uninstall
show install
assert_eq "the tree is as before" \
	"$(cd $MODULES && find . ! -name 'modules.*' | sort | diff $RUN/before - && echo same)" same
check "modprobe rdma_cm" load_from_tree || bail "the stack does not load"
assert_eq "build id of the ib_cm that it pulls" "$(loaded_build_id)" "$(build_id_of c)"
check "it unloads" unload_stack
check "a second uninstall has nothing to do" run_install --uninstall

mkdir ${UPDATE%/*}
cp $VM/modules/c/ib_cm.ko $UPDATE
run_install $VM/modules/rust/ib_cm.ko
assert_eq "refuses to overwrite another vendor's module, status" $? 1
show install
check "that module is untouched" cmp $VM/modules/c/ib_cm.ko $UPDATE
run_install --uninstall
check "nor does uninstall remove it" cmp $VM/modules/c/ib_cm.ko $UPDATE
rm -r $TREE
run_install $VM/modules/rust/ib_cm.ko
assert_eq "refuses a root without that kernel, status" $? 1
show install
