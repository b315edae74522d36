# SPDX-License-Identifier: GPL-2.0
# title: two devices with the same QPNs, and a process on each
# cpus: 1
# timeout: 90

. /vm/lib.sh
. /vm/crash.sh

load_stack
setup_rxe
ip link add w0 type veth peer name w1 && ip link set w1 up && ip link set w0 up
ip addr replace 10.0.1.1/24 dev w0
rdma link add rxe1 type rxe netdev w0 || bail "rxe1 cannot be made"
wait_for 30 grep -qi ffff:0a00:0101 /sys/class/infiniband/rxe1/ports/1/gids/* ||
	bail "rxe1 has no GID for its address"

for address in $SELF 10.0.1.1; do
	background server$address /vm/tools/hold_peer serve $address 7300 answer
	wait_for 30 grep -q . /proc/"$(cat $RUN/server$address.pid)"/cmdline
done
wait_for 30 eval '[ "$(rdma resource show cm_id | grep -c LISTEN.*:7300)" = 2 ]' ||
	bail "the servers do not listen"
victim one /vm/tools/hold_peer client $SELF 7300 stay 2
victim other /vm/tools/hold_peer client 10.0.1.1 7300 stay 2
assert_eq "the same QPNs on both devices" "$(grep qpn $RUN/one.log)" "$(grep qpn $RUN/other.log)"

oracle_on
kill_victim one
assert_eq "the other device is not concerned" \
	"$(grep -c DISCONNECTED $RUN/server10.0.1.1.log)" 0
check "its process lives" [ -d /proc/"$(cat $RUN/other.pid)" ]
kill -0 "$(cat $RUN/other.pid)"
kill_victim other
wait_for 5 eval '[ "$(grep -c DISCONNECTED $RUN/server10.0.1.1.log)" = 2 ]'
assert_eq "then it is" "$(grep -c DISCONNECTED $RUN/server10.0.1.1.log)" 2
judge
# They became ready before the trace began, so it says nothing of their connections.
assert_eq "QPs that were left behind" $((kept + broken + expired + free)) 4
if [ $MODULE_KIND = rust ]; then
	assert_eq "holds taken and released" "$(stat holds_taken) $(stat holds_released)" "4 4"
fi

# Both at the same time. The trace tells QPs by their numbers: these differ, because one device has
# given out four more.
victim spare /vm/tools/hold_peer client 10.0.1.1 7300 stay 2
kill_victim spare
oracle_on
victim one /vm/tools/hold_peer client $SELF 7300 stay 2
victim other /vm/tools/hold_peer client 10.0.1.1 7300 stay 2
kill -KILL "$(cat $RUN/one.pid)" "$(cat $RUN/other.pid)"
finish one 15
finish other 15
judge
expect_kept "two QPs on each device, at the same time" 4
check "no device waits for the other: $longest ms" [ "$longest" -lt $((1200 * SLOW)) ]
stop server$SELF
stop server10.0.1.1
rdma link delete rxe1
ip link delete w0
