# SPDX-License-Identifier: GPL-2.0
"""How much slower the guest's kernel is: the one place where time limits are scaled.

Time limits, here and in scenarios, are written for the stock kernel under emulation. The guest
gets the factor as vm.slow= on its command line; lib.sh applies it to wait_for, finish and
timeout. SLOW= in the environment is another factor, for a machine that is busy.

MINUTES= in the environment is how long a scenario goes on that has no end of its own.
"""

import os

# A kernel that checks each access to memory and each lock.
FACTORS = {"stock": 1, "debug": 5}

factor = 1
minutes = int(os.environ.get("MINUTES") or 60)


def choose(kernel):
    global factor
    factor = int(os.environ.get("SLOW") or FACTORS[kernel])


def scaled(seconds):
    return seconds * factor
