# SPDX-License-Identifier: GPL-2.0
# title: first_retry_ms, mra_once, sidr_replay: what each gains, and that none changes anything unset
# timeout: 180

. /vm/lib.sh
. /vm/api/api.sh

PARAMETERS=/sys/module/ib_cm/parameters

load_api
run_api optional-as-c
if [ $MODULE_KIND = rust ]; then
	# The times are those of tests/api/optional.c.
	echo 500 >$PARAMETERS/first_retry_ms
	run_api first-retry
	echo 0 >$PARAMETERS/first_retry_ms
	echo Y >$PARAMETERS/mra_once
	run_api mra-once
	echo N >$PARAMETERS/mra_once
	echo 64 >$PARAMETERS/sidr_replay
	run_api sidr-replay
	echo 0 >$PARAMETERS/sidr_replay
	run_api optional-as-c
fi
unload_api
