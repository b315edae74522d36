#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Prints each order in which modules can be unloaded, one a line: unload_orders.py MODULE...

A module goes after those that use it, which /sys/module/MODULE/holders names.
"""

import os
import sys


def orders(left, holders):
    if not left:
        yield []
    for module in left:
        if not holders[module] & set(left):
            rest = [other for other in left if other != module]
            for order in orders(rest, holders):
                yield [module] + order


def main():
    modules = sys.argv[1:]
    holders = {module: set(os.listdir(f"/sys/module/{module}/holders")) for module in modules}
    for order in orders(modules, holders):
        print(*order)


main()
