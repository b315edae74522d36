# SPDX-License-Identifier: GPL-2.0
# title: alternate paths: a connection moves to the other ports when the primary path breaks
# timeout: 90
# debug: yes

. /vm/lib.sh
. /vm/hca/ib.sh

ib_load
sm_start 1
mark_both
check "a consumer with alternate paths loads" insmod $VM/hca/ib_apm_test.ko
dmesg | sed -n "/vm: start $SCENARIO\$/,\$p" | sed -n 's/.*ib_apm_test: //p' >$RUN/steps
while read -r line; do
	case $line in
	"ok "*) ok "${line#ok }" ;;
	"not ok "*) fail "${line#not ok }" ;;
	*) note "${line#"# "}" ;;
	esac
done <$RUN/steps
# Three connections. Two end by the ports of the alternate path, the other way round.
assert_eq "REQs of port 1 and port 2" "$(both unique req tx)" "3 0"
assert_eq "REPs of port 1 and port 2" "$(both unique rep tx)" "0 3"
assert_eq "DREQs of port 1 and port 2" "$(both unique dreq tx)" "1 2"
assert_eq "DREPs of port 1 and port 2" "$(both unique drep tx)" "2 1"
assert_eq "LAPs that port 2 received, and duplicates among them" \
	"$(of_port 2 counter_delta rx_msgs lap) $(of_port 2 counter_delta rx_duplicates lap)" "2 1"
assert_eq "APRs that port 1 received" "$(of_port 1 counter_delta rx_msgs apr)" 1
[ ! -d /sys/module/ib_apm_test ] || check "it unloads" rmmod ib_apm_test

check "everything unloads" ib_unload
check "the connection manager unloads" unload_stack
