# SPDX-License-Identifier: GPL-2.0
# title: a subnet manager brings the two ports of an InfiniBand adapter up
# timeout: 60
# debug: yes

. /vm/lib.sh
. /vm/hca/ib.sh

# The capability bit by which others learn that there is a connection manager (IBA 14.2.5.6).
CM_SUPPORTED=0x10000

has_cm_bit() {
	[ $(($(cat $HCA/ports/$1/cap_mask) & CM_SUPPORTED)) != 0 ]
}

ports_found() {
	[ "$(ibnetdiscover -C ibloop0 -P 2 | grep -c ' lid ')" = 2 ]
}

manager_capability() {
	smpquery -C ibloop0 -P 2 portinfo $(($(cat $HCA/ports/1/lid))) |
		grep -q CommunicatonManagementSupported
}

ib_load
assert_eq "ports without a subnet manager" "$(cat $HCA/ports/*/state | tr '\n' ' ')" \
	"2: INIT 2: INIT "
check "the first port says that it has a connection manager" has_cm_bit 1
check "the second port too" has_cm_bit 2
sm_start 1
ok "both ports are active"
assert_eq "ports that ibstat shows as active" "$(ibstat ibloop0 | grep -c 'State: Active')" 2
assert_eq "link layer" "$(ibstat ibloop0 | grep -c 'Link layer: InfiniBand')" 2
assert_eq "ports of ibv_devinfo" "$(ibv_devinfo -d ibloop0 | grep -c PORT_ACTIVE)" 2
check "ibnetdiscover finds both ports" ports_found
check "a subnet manager reads the capability" manager_capability

link down
wait_for 5 eval '! grep -q ACTIVE $PORT/state'
check "the cable is pulled" grep -q DOWN $PORT/state
link up
check "both ports come back" wait_for 15 ports_active
sm_stop
sm_start 2
wait_for 10 eval '[ "$(cat $HCA/ports/*/sm_lid | sort -u)" = "$(cat $HCA/ports/2/lid)" ]'
assert_eq "the subnet manager has moved to port 2" "$(cat $HCA/ports/*/sm_lid | sort -u)" \
	"$(cat $HCA/ports/2/lid)"

check "the adapter is unplugged" ib_unload
check "the connection manager unloads" unload_stack
