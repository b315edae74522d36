# SPDX-License-Identifier: GPL-2.0
# title: speed and memory of both modules, a short look
# timeout: 900
# memory: 3072
# manual: yes

QUICK=1
. /vm/scenarios/bench.sh
