# SPDX-License-Identifier: GPL-2.0
# title: cmtime, 1000 connections, with and without QPs
# timeout: 240

. /vm/lib.sh

load_stack
setup_rxe
before=$(resources)
mark_counters

# Each side invents QPNs in its "no QPs" phase; on one device they must differ, or the second
# one is, rightly, stale.
background server cmtime -b $SELF -c 1000 -q 350000
wait_for 20 listening 7471 || bail "cmtime does not listen"
timeout 200 cmtime -s $SELF -c 1000 -q 340000
assert_eq "client ends well, status" $? 0
finish server 60
assert_eq "server ends well, status" $? 0
show server

count=$(unique req rx)
# One connection to synchronise, and the phases of 1000 each.
assert_ge "connections" "$count" 1000
counters_agree "$count"
wait_for 20 eval '[ "$(resources)" = "$before" ]'
assert_eq "resources on rxe0 afterwards" "$(resources)" "$before"
