# SPDX-License-Identifier: GPL-2.0
# title: messages that come again, too late, to nobody, or that make no sense
# timeout: 240

. /vm/lib.sh
. /vm/api/api.sh

gid_of_v1() {
	grep -qi "ffff:0a00:0101" /sys/class/infiniband/rxe1/ports/1/gids/*
}

load_api
ip addr replace 10.0.1.1/24 dev v1
rdma link add rxe1 type rxe netdev v1 && wait_for 10 gid_of_v1 || bail "rxe1 cannot be made on v1"
api_live=$(live_objects)
api_resources=$(resources)
run_api duplicates junk
unload_api
