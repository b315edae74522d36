# SPDX-License-Identifier: GPL-2.0
# title: 500 times connect and disconnect, then rmmod with nothing left
# timeout: 180

. /vm/lib.sh

load_stack
setup_rxe
before=$(resources)
idle=$(live_objects)
references=$(cat /sys/module/ib_cm/refcnt)
mark_counters

background server /vm/tools/cmtool serve $SELF 7300 500
wait_for 10 listening 7300 || bail "cmtool does not listen"
/vm/tools/cmtool cycle $SELF 7300 500
assert_eq "client ends well, status" $? 0
finish server 20
assert_eq "server ends well, status" $? 0
counters_agree 500
wait_for 10 eval '[ "$(resources)" = "$before" ]'
assert_eq "resources on rxe0 afterwards" "$(resources)" "$before"
# TimeWait keeps objects for about half a second after the last one.
wait_for 20 eval '[ "$(live_objects)" = "$idle" ]'
assert_eq "live objects of the module, as before" "$(live_objects)" "$idle"
assert_eq "references on the module, as before" "$(cat /sys/module/ib_cm/refcnt)" "$references"
check "everything unloads" unload_stack
assert_eq "what the module says about itself at unload" \
	"$(dmesg | grep -c 'ib_cm: .*\(still live\|leaked\|not freed\)')" 0
