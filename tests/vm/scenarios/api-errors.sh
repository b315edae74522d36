# SPDX-License-Identifier: GPL-2.0
# title: the errno of every symbol, in every state and for every bad parameter
# timeout: 240
# debug: yes

. /vm/lib.sh
. /vm/api/api.sh

load_api
run_api listen qp-attr errno-param errno-state
unload_api
