# SPDX-License-Identifier: GPL-2.0
# title: a message that names an identifier of another device does nothing
# timeout: 90
#
# Two devices, each in a network namespace of its own. The C module acts on such messages: with it
# the same forgeries are shown to be good ones.

. /vm/lib.sh

OTHER=/sys/class/infiniband/rxe1/ports/1
ABSENT=10.0.0.99

other() {
	ip netns exec other "$@"
}

setup_other() {
	ip netns add other && ip link set v1 netns other || return 1
	other ip link set lo up
	other ip link set v1 up
	other ip addr add $PEER/24 dev v1
	other rdma link add rxe1 type rxe netdev v1 || return 1
	wait_for 10 grep -q ACTIVE $OTHER/state && wait_for 10 port_active &&
		wait_for 10 grep -qi ffff:0a00:0002 $OTHER/gids/*
}

# forge_other MESSAGE...: one to the other device; forge_own: one to the device of the identifier.
forge_other() {
	python3 /vm/tools/cm_wire.py send $SELF $PEER "$@"
}

forge_own() {
	other python3 /vm/tools/cm_wire.py send $PEER $SELF "$@"
}

# field MESSAGE N: field N of the last such message that was sent from $SELF or to it.
field() {
	grep " $1 " $RUN/watch.log | tail -n 1 | cut -d' ' -f$2
}

# A message of that name has arrived on the other device, and nothing happens any more.
arrived_on_other() {
	wait_for 10 eval '[ "$(cat '$OTHER/cm_rx_msgs/$1')" -gt '"$2"' ]' && wait_for 10 quiet
}

# What rdma_cm thinks of the connection's end on rxe0.
near_state() {
	rdma resource show cm_id | grep rxe0 | grep ":7301 " | sed -n 's/.* state \([A-Z]*\) .*/\1/p'
}

sent_by_other() {
	cat $OTHER/cm_tx_msgs/{rej,mra,rep,rtu,dreq,drep} | tr '\n' ' '
}

# What an earlier scenario in this guest has left must not pass for this one's.
rm -f $RUN/*.log $RUN/enough
load_stack
setup_rxe
check "a second device in a network namespace of its own" setup_other || bail "no second device"
background watch python3 /vm/tools/cm_wire.py watch v0
wait_for 20 grep -q watching $RUN/watch.log || bail "v0 is not watched"

# An identifier that waits for the reply of an absent host.
ip neigh replace $ABSENT lladdr 02:00:00:00:00:99 dev v0
background waiting /vm/tools/cmtool reject $ABSENT 7300 1
wait_for 20 grep -q "$ABSENT req" $RUN/watch.log || bail "no request goes out"
id=$(field req 4)
before=$(sent_by_other)
if [ $MODULE_KIND = rust ]; then
	forge_other rep 4660 $id 77
	check "REP for it arrives on the other device" arrived_on_other rep 0
	assert_eq "the other device answers nothing" "$(sent_by_other)" "$before"
	assert_eq "RTUs sent, of either device" "$(counter tx_msgs rtu)" 0
fi
forge_other rej 0 $id 28
check "REJ for it arrives on the other device" arrived_on_other rej 0
assert_eq "the other device answers nothing" "$(sent_by_other)" "$before"
forge_own rej 0 $id 8
finish waiting 15
if [ $MODULE_KIND = rust ]; then
	assert_eq "the same message on its own device has its effect" \
		"$(grep -ao 'rejected [0-9]*' $RUN/waiting.log)" "rejected 8"
else
	assert_eq "the C module acts on the one from the other device" \
		"$(grep -ao 'rejected [0-9]*' $RUN/waiting.log)" "rejected 28"
fi

# An established connection between the two devices.
background server ip netns exec other /vm/tools/cmtool serve $PEER 7301 1
wait_for 10 listening 7301 || bail "cmtool does not listen"
background client /vm/tools/cmtool hold $PEER 7301 1 $RUN/enough
wait_for 20 grep -q held $RUN/client.log || bail "no connection between the devices"
wait_for 10 grep -q " rtu " $RUN/watch.log
near=$(field rep 5) far=$(field rep 4) qpn=$(field req 6)
before=$(sent_by_other)
dreqs=$(cat $OTHER/cm_rx_msgs/dreq)
assert_eq "state of the near end" "$(near_state)" CONNECT
forge_other dreq $far $near $qpn
check "DREQ for its near end arrives on the other device" arrived_on_other dreq $dreqs
assert_eq "the other device answers nothing" "$(sent_by_other)" "$before"
if [ $MODULE_KIND = rust ]; then
	assert_eq "state of the near end" "$(near_state)" CONNECT
	forge_own dreq $far $near $qpn
	wait_for 10 eval '[ "$(near_state)" = DISCONNECT ]'
	assert_eq "after the same message on its own device" "$(near_state)" DISCONNECT
else
	assert_eq "the C module acts on it: the near end" "$(near_state)" DISCONNECT
fi
touch $RUN/enough
finish client 20
# The far end was told nothing by anyone.
stop server
check "the namespace goes with its device" ip netns delete other
check "that device is gone" wait_for 20 eval '[ ! -e /sys/class/infiniband/rxe1 ]'
