# SPDX-License-Identifier: GPL-2.0
# title: the log tells of an id that cannot be destroyed, and of one that is stale
# only: rust
# timeout: 120

. /vm/lib.sh
. /vm/api/api.sh

ID="rxe0: id [0-9]+ \(peer's [0-9]+\), queue pair [0-9]+ \(peer's [0-9]+\), "

# log_has WHAT PATTERN: the newest line about an id
log_has() {
	local line
	line=$(dmesg | grep -E "ib_cm: $ID$2" | tail -n 1)
	check "$1: ${line#*ib_cm: }" [ -n "$line" ]
}

dmesg -C
load_api
run_api slow-handler
log_has "which handler it is that does not return" \
	"IDLE: to be destroyed, but a handler in ib_cm_api_test has not returned for 10 s; look "
run_api stale
log_has "a stale connection" "[A-Z_]+: ended, since the peer uses its queue pair for a new"
unload_api
