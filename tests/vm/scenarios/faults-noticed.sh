# SPDX-License-Identifier: GPL-2.0
# title: the kernel that checks itself notices faults that are made on purpose
# kernel: debug
# debug: yes
# fresh: yes
# finds: slab-use-after-free; scheduling while atomic|sleeping function|Invalid wait; possible circular; unreferenced object

. /vm/lib.sh

check "a module with faults loads" insmod $VM/api/faulty.ko
check "and unloads" rmmod faulty
