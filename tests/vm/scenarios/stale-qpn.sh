# SPDX-License-Identifier: GPL-2.0
# title: connections that are stale because their peer uses its QPN again, in each state
# cpus: 1
# timeout: 150
# debug: yes

. /vm/lib.sh

load_stack
setup_rxe
timeout 120 /vm/tools/hold_stale $SELF 7300 $MODULE_KIND >$RUN/stale.log 2>&1
status=$?
cat $RUN/stale.log
while read -r line; do
	case $line in
	"ok "*) ok "${line#ok }" ;;
	"not ok "*) fail "${line#not ok }" ;;
	esac
done <$RUN/stale.log
assert_eq "hold_stale ends well, status" $status 0
