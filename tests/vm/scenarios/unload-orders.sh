# SPDX-License-Identifier: GPL-2.0
# title: the modules go in each order that their dependencies allow, beside TIMEWAIT
# timeout: 240

. /vm/lib.sh

# What nothing else uses then, iw_cm and ib_uverbs_support, goes last.
MODULES=(rdma_ucm rdma_cm ib_cm rdma_rxe ib_uverbs)

# connect: leaves two identifiers in TIMEWAIT.
connect() {
	background server /vm/tools/cmtool serve $SELF 7300 1
	wait_for 10 listening 7300 && timeout 20 /vm/tools/cmtool cycle $SELF 7300 1 &&
		finish server 20
}

# unload_in_order MODULE...: the device goes with its driver. What is still being ended keeps a
# module for a moment.
unload_in_order() {
	local module
	for module in "$@"; do
		! driver_stays || [ $module != rdma_rxe ] || rdma link delete rxe0
		wait_for 15 rmmod $module || return 1
	done
}

# unload_rest: what stands beside the others.
unload_rest() {
	ip link delete v0 2>/dev/null
	modprobe -r iw_cm ib_uverbs_support ib_core
	[ ! -d /sys/module/ib_core ]
}

load_stack
setup_rxe
python3 /vm/tools/unload_orders.py "${MODULES[@]}" >$RUN/orders
assert_ge "orders" "$(wc -l <$RUN/orders)" 5
good=0
while read -r -a order; do
	[ -d /sys/module/ib_cm ] || load_stack >/dev/null
	[ -d $PORT ] || setup_rxe
	start=$EPOCHREALTIME
	connect || bail "no connection before ${order[*]}"
	unload_in_order "${order[@]}" || bail "does not go: ${order[*]}"
	wait_for 10 unload_rest || bail "ib_core stays after ${order[*]}"
	good=$((good + 1))
	note "${order[*]}"
	echo "from $start to $EPOCHREALTIME"
done <$RUN/orders
assert_eq "orders in which everything was unloaded" $good "$(wc -l <$RUN/orders)"
