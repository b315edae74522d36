# SPDX-License-Identifier: GPL-2.0
# What is installed in the Debian roots. A change here makes a new root at the next run.

# Where everything is compiled, and where QEMU runs.
build_packages="
	ca-certificates make gcc g++ flex bison bc perl python3
	libelf-dev libssl-dev dwarves
	rustc cargo rust-src rustfmt rust-clippy bindgen clang-19 lld-19 llvm-19
	kmod cpio xz-utils zstd
	librdmacm-dev libibverbs-dev libibumad-dev
	valgrind git
	qemu-system-x86"

# What a guest has: the consumers of ib_cm, and tools to look at them.
guest_packages="
	kmod iproute2 procps strace udev iputils-ping nftables tcpdump iperf3
	rdma-core rdmacm-utils ibverbs-utils ibverbs-providers perftest infiniband-diags opensm
	python3 python3-pyverbs e2fsprogs
	nvme-cli nfs-kernel-server open-iscsi targetcli-fb"

# A small system with systemd on a disk, on which the packages of this project are installed.
system_packages="
	systemd-sysv udev kmod iproute2 procps hostname
	e2fsprogs busybox-static
	rdma-core rdmacm-utils ibverbs-providers"
