# SPDX-License-Identifier: GPL-2.0
# title: speed and memory of both modules, up to 100,000 connections at a time
# timeout: 3000
# memory: 4096
# manual: yes

SCALE=1
. /vm/scenarios/bench.sh
