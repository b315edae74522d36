# SPDX-License-Identifier: GPL-2.0
# title: identifiers that outlive their device
# timeout: 120

. /vm/lib.sh
. /vm/api/api.sh

# The removal is over when the driver has let go of it.
rxe0_gone() {
	[ ! -e /sys/class/infiniband/rxe0 ]
}

load_api
run_api device-hold
check "rxe0 is removed while identifiers of it exist" timeout 20 rdma link delete rxe0
check "rxe0 is gone" wait_for 20 rxe0_gone
run_api device-gone
check "ib_cm_api_test unloads" rmmod ib_cm_api_test
if [ -n "$api_live" ]; then
	wait_for 30 eval '[ "$(live_objects)" = "$api_live" ]'
	assert_eq "live objects afterwards" "$(live_objects)" "$api_live"
fi
