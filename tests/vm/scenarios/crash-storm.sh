# SPDX-License-Identifier: GPL-2.0
# title: 10,000 connections: a process makes 500 and is killed, 20 times, as fast as it goes
# timeout: 900
# long: yes

. /vm/lib.sh
. /vm/crash.sh

load_stack
setup_rxe
ROUNDS=20
COUNT=500
# What a bystander's connection may take while 500 are torn down under emulation.
LIMIT_MS=5000

before=$(resources)
idle=$(live_objects)
background server /vm/tools/hold_peer serve $SELF 7300 answer
background witness /vm/tools/cmtool serve $SELF 7301 $ROUNDS
wait_for 30 listening 7300 && wait_for 30 listening 7301 || bail "the servers do not listen"

# None is left but that of the MAD layer.
no_qps() {
	[[ $(resources) = *" qp 1 "* ]]
}

worst=0
for round in $(seq $ROUNDS); do
	victim client$round /vm/tools/hold_peer client $SELF 7300 stay $COUNT
	kill -KILL "$(cat $RUN/client$round.pid)"
	start=${EPOCHREALTIME/./}
	/vm/tools/cmtool cycle $SELF 7301 1 || fail "a bystander does not connect"
	took=$(((${EPOCHREALTIME/./} - start) / 1000))
	[ $took -le $worst ] || worst=$took
	note "round $round: a bystander's connection takes $took ms"
	# What the first ones make grow stays: caches, tables.
	[ $round != 2 ] || { wait_for 30 no_qps; memory=$(kernel_kb); }
done
check "nobody else is delayed: at worst $worst ms" [ $worst -lt $((LIMIT_MS * SLOW)) ]
for round in $(seq $ROUNDS); do
	finish client$round 60 || [ $? != 124 ] || fail "client $round does not end"
done
finish witness 20
assert_eq "the bystander's server ends well, status" $? 0
if [ $MODULE_KIND = rust ]; then
	assert_eq "holds taken" "$(stat holds_taken)" $((ROUNDS * COUNT))
	assert_eq "holds released and expired" \
		$(($(stat holds_released) + $(stat holds_expired))) $((ROUNDS * COUNT))
fi
stop server
wait_for 60 eval '[ "$(resources)" = "$before" ]'
assert_eq "resources on rxe0, as before" "$(resources)" "$before"
wait_for 60 eval '[ "$(live_objects)" = "$idle" ]'
assert_eq "live objects of the module, as before" "$(live_objects)" "$idle"
grown=$(($(kernel_kb) - memory))
# 9,000 connections have come and gone: a quarter of a KiB each.
check "memory of the kernel is back, after 1,000 connections $memory KiB, since then $grown" \
	[ $grown -lt 2250 ]
