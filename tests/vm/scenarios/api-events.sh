# SPDX-License-Identifier: GPL-2.0
# title: events: their order, their contents, what handlers may do, the end in each state
# timeout: 240

. /vm/lib.sh
. /vm/api/api.sh

load_api
run_api order handlers refused destroy data stale
unload_api
