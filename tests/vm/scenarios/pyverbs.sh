# SPDX-License-Identifier: GPL-2.0
# title: rdma-core's own tests of rdma_cm, test_rdmacm.CMTestCase
# timeout: 120

. /vm/lib.sh

load_stack
setup_rxe
before=$(resources)

# The first GID of an IPv4 address; the link-local one, index 0, is not routed.
cd /usr/share/rdma-core-tests || bail "the guest has no rdma-core tests"
timeout 100 python3 run_tests.py --dev rxe0 --gid 1 -v -k test_rdmacm.CMTestCase \
	>$RUN/tests.log 2>&1
assert_eq "the tests end well, status" $? 0
show tests
assert_eq "tests that passed" "$(grep -c ' \.\.\. ok$' $RUN/tests.log)" 10
assert_eq "tests that were skipped or failed" \
	"$(grep -c ' \.\.\. \(skipped\|FAIL\|ERROR\)' $RUN/tests.log)" 0
wait_for 10 eval '[ "$(resources)" = "$before" ]'
assert_eq "resources on rxe0 afterwards" "$(resources)" "$before"
