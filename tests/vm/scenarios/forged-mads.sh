# SPDX-License-Identifier: GPL-2.0
# title: 10,000 forged messages from the second guest, while connections run in the first
# guests: 2
# modules: test c
# timeout: 240

# The C module has no table of connections: the forger hits them by chance only.

. /vm/lib.sh
. /vm/forge.sh

load_stack
setup_rxe
wait_for 20 ping -c 1 -W 1 $PEER || bail "the other guest ($PEER) does not answer"

forge 10000 7
