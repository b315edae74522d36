# SPDX-License-Identifier: GPL-2.0
# title: 200 rounds of removal
# timeout: 1500
# long: yes

ROUNDS=200
. /vm/scenarios/removal.sh
