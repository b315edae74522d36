# SPDX-License-Identifier: GPL-2.0
# title: NFS over RDMA: mount, copy, server restart, remounts
# timeout: 150

. /vm/lib.sh

NFSD=/proc/fs/nfsd
PIPES=/run/rpc_pipefs
EXPORT=/run/export
MOUNT=/run/mount

# Version 4 only. mountd answers the kernel's questions on exports; nfsdcld records clients, without
# which a grace period cannot be ended.
server_prepare() {
	modprobe -a nfsd nfsv4 rpcrdma || return 1
	mountpoint -q $NFSD || mount -t nfsd nfsd $NFSD || return 1
	mkdir -p $EXPORT $MOUNT
	mount -t tmpfs export $EXPORT || return 1
	exportfs -o rw,fsid=0,no_root_squash,insecure,no_subtree_check "*:$EXPORT" || return 1
	echo "-3 +4 +4.2" >$NFSD/versions
	# A fresh server waits for its old clients this long, at most.
	echo 10 >$NFSD/nfsv4leasetime
	echo 10 >$NFSD/nfsv4gracetime
	background mountd rpc.mountd -F -N 3
	mkdir -p $PIPES /var/lib/nfs/nfsdcld
	mount -t rpc_pipefs pipes $PIPES || return 1
	background nfsdcld nfsdcld -F -p $PIPES
}

server_start() {
	echo "rdma 20049" >$NFSD/portlist && echo 2 >$NFSD/threads && listening 20049 || return 1
	# No client has anything to reclaim: every file is closed when the server stops.
	echo Y >$NFSD/v4_end_grace || echo "the grace period is waited for"
}

server_stop() {
	echo 0 >$NFSD/threads && ! listening 20049
}

mount_it() {
	timeout 40 mount -t nfs -o vers=4.2,proto=rdma,port=20049 $SELF:/ $MOUNT
}

same() {
	echo 3 >/proc/sys/vm/drop_caches
	timeout 60 cmp $RUN/data $MOUNT/data
}

load_stack
setup_rxe
before=$(resources)
dd if=/dev/urandom of=$RUN/data bs=1M count=8 status=none
check "exports" server_prepare
check "the server listens on RDMA" server_start

mark_counters
check "mount" mount_it || bail "no mount"
assert_ge "REQs of the mount" "$(unique req tx)" 1
assert_eq "the mount's protocol" \
	"$(grep " $MOUNT " /proc/mounts | grep -o 'proto=[a-z]*')" proto=rdma
check "8 MiB copied" dd if=$RUN/data of=$MOUNT/data bs=256k conv=fsync status=none
check "they arrived" cmp $RUN/data $EXPORT/data
check "8 MiB read over the wire, the same" same

requests=$(unique req tx)
check "the server stops under the mount" server_stop
check "the server starts again" server_start
check "8 MiB read after the restart, the same" same
assert_ge "the client connected again, REQs" "$(unique req tx)" $((requests + 1))
check "8 MiB written after the restart" \
	dd if=$RUN/data of=$MOUNT/again bs=256k conv=fsync status=none
check "they arrived" cmp $RUN/data $EXPORT/again
check "unmount" timeout 30 umount $MOUNT

good=0
for i in $(seq 5); do
	mount_it && same && timeout 30 umount $MOUNT && good=$((good + 1))
done
assert_eq "remounts with the data intact" $good 5

check "the server stops" server_stop
stop mountd
stop nfsdcld
umount $PIPES
exportfs -ua
umount $EXPORT $NFSD
check "NFS unloads" modprobe -r nfsd nfsv4 rpcrdma
wait_for 10 eval '[ "$(resources)" = "$before" ]'
assert_eq "resources on rxe0 afterwards" "$(resources)" "$before"
