# SPDX-License-Identifier: GPL-2.0
# title: address handles: one for all messages of a connection, and none a while after the last
# timeout: 60

. /vm/lib.sh

TRACING=/sys/kernel/tracing

# times NAME: how often a probe was hit.
times() {
	awk -v name=$1 '$1 == name { print $2 }' $TRACING/kprobe_profile
}

all_destroyed() {
	[ "$(times made)" = "$(times destroyed)" ]
}

load_stack
setup_rxe
# Returns are counted: what fails made no handle.
echo 'r:handles/made rdma_create_ah' >>$TRACING/kprobe_events &&
	echo 'p:handles/destroyed rdma_destroy_ah_user' >>$TRACING/kprobe_events ||
	bail "no probes"
echo 1 >$TRACING/events/handles/enable

background server ucmatose -b $SELF -c 50
wait_for 10 listening 7471 || bail "ucmatose does not listen"
check "50 connections come and go" ucmatose -s $SELF -c 50
finish server 20
assert_eq "server ends well, status" $? 0

made=$(times made)
say "$made handles for the messages of 50 connections"
if [ $MODULE_KIND = rust ]; then
	# One for each flow label; two connections may share a place in the table.
	check "each connection has one" [ $made -ge 10 -a $made -le 100 ]
else
	check "each message has one" [ $made -ge 250 ]
fi
# They hold entries of GIDs, which may have to go.
check "all are destroyed soon" wait_for 15 all_destroyed
echo 0 >$TRACING/events/handles/enable
: >$TRACING/kprobe_events
check "everything unloads" unload_stack
