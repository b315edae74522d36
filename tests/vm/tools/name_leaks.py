# SPDX-License-Identifier: GPL-2.0
"""Gives addresses in a kmemleak report (standard input) their names.

When the report is made the modules are unloaded, and their functions are bare numbers in it. The
one argument is the part of /proc/kallsyms on modules, sorted, as it was before.
"""

import bisect
import re
import sys

addresses, names = [], []
with open(sys.argv[1], encoding="utf-8") as symbols:
    for line in symbols:
        address, _, name = line.rstrip("\n").split(" ", 2)
        addresses.append(int(address, 16))
        names.append(name.replace("\t", " "))


def named(match):
    address = int(match[0], 16)
    index = bisect.bisect_right(addresses, address) - 1
    # Farther away than any function is long: it is no function of a module.
    if index < 0 or address - addresses[index] > 0x10000:
        return match[0]
    return f"{names[index]} +{address - addresses[index]:#x}"


for line in sys.stdin:
    print(re.sub(r"0xffffffff[0-9a-f]{8}", named, line), end="")
