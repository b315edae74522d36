# SPDX-License-Identifier: GPL-2.0
# title: what held QPs cost is charged to their own control group, and delays nobody else
# cpus: 1
# timeout: 90

. /vm/lib.sh
. /vm/crash.sh

# The debug kernel has no control groups.
GROUP=/sys/fs/cgroup/storm
COUNT=60
# Objects of uverbs, for one such process and not for two.
OBJECTS=70
# What a connection beside it may take under emulation; the holds last 4.3 s.
LIMIT_MS=2500

load_stack
setup_rxe
mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup || bail "no control groups"
echo +rdma >/sys/fs/cgroup/cgroup.subtree_control || bail "no control groups for RDMA"
mkdir -p $GROUP
echo "rxe0 hca_object=$OBJECTS" >$GROUP/rdma.max || bail "no limit"
before=$(resources)
idle=$(live_objects)

background server /vm/tools/hold_peer serve $SELF 7300 answer
background witness /vm/tools/cmtool serve $SELF 7301 1
wait_for 30 listening 7300 && wait_for 30 listening 7301 || bail "the servers do not listen"

# in_group CMD...: as a process of the group.
in_group() {
	echo $BASHPID >$GROUP/cgroup.procs || exit 1
	exec "$@"
}
export -f in_group
export GROUP

objects() {
	sed -n 's/^rxe0 .*hca_object=\([0-9]*\).*/\1/p' $GROUP/rdma.current
}

charged() {
	[ "$(objects)" -ge 1 ]
}

# storm NAME: COUNT connections with a TimeWait of 4.3 s, by a process of the group.
storm() {
	background "$1" bash -c 'in_group "$@"' storm \
		/vm/tools/hold_peer client $SELF 7300 stay $COUNT 20
}

storm first
wait_for 60 grep -q '^ready' $RUN/first.log || { show first; bail "no connections"; }
assert_ge "objects charged to the group" "$(objects)" $COUNT
kill -KILL "$(cat $RUN/first.pid)"
[ $MODULE_KIND = c ] || wait_for 20 eval '[ "$(stat holds_taken)" = '$COUNT' ]'

start=${EPOCHREALTIME/./}
check "a process of another group connects" /vm/tools/cmtool cycle $SELF 7301 1
took=$(((${EPOCHREALTIME/./} - start) / 1000))
check "meanwhile, without delay: $took ms" [ $took -lt $((LIMIT_MS * SLOW)) ]
if [ $MODULE_KIND = rust ]; then
	assert_ge "objects that are still charged" "$(objects)" $COUNT
	storm second
	check "another such process of the group does not get its QPs" \
		wait_for 30 grep -q 'rdma_create_qp' $RUN/second.log
	check "the limit was met, and not passed: $(tr '\n' ' ' <$GROUP/rdma.current)" \
		[ "$(objects)" -le $OBJECTS ]
	finish second 20
else
	check "on the C module nothing is charged any more" wait_for 5 eval '! charged'
fi
finish first 20
check "the process is gone" [ ! -e $RUN/first.pid ]
wait_for 10 eval '! charged'
check "nothing is charged to the group" eval '! charged'
storm third
check "then its QPs are made" wait_for 60 grep -q '^ready' $RUN/third.log
kill_victim third 20
finish witness 20
assert_eq "the server beside it ends well, status" $? 0
stop server
wait_for 20 eval '[ "$(resources)" = "$before" ]'
assert_eq "resources on rxe0 afterwards" "$(resources)" "$before"
wait_for 20 eval '[ "$(live_objects)" = "$idle" ]'
assert_eq "live objects of the module, as before" "$(live_objects)" "$idle"
rmdir $GROUP
