# SPDX-License-Identifier: GPL-2.0
"""What the emulator has counted, as figures: report/count.py LOG COUNTS

LOG is that of the scenario bench-count, COUNTS the file of the emulator's plugin (tests/vm/count).
Prints "ROUND KIND CASE NAME NUMBER...", as figures.py reads it; and on the standard error, for
people, which functions of ib_cm take most instructions, and where locks are held longest.
"""

import bisect
import sys

OURS = "ib_cm"
KERNEL, USER = "core", "user"  # whatever is in no module
LONGEST, MOST = 5, 40  # places and functions that are named


class Layout:
    """What is where in one load of the modules."""

    def __init__(self):
        self.modules, self.symbols = [], []

    def sort(self):
        self.modules.sort()
        self.symbols.sort()

    def module(self, address):
        if address == 0:
            return USER
        at = bisect.bisect_right(self.modules, (address, 1 << 64, "")) - 1
        if at >= 0:
            start, size, name = self.modules[at]
            if address < start + size:
                return name
        return KERNEL

    def symbol(self, address):
        at = bisect.bisect_right(self.symbols, (address, "~")) - 1
        if at < 0:
            return hex(address), 0
        start, name = self.symbols[at]
        return name, address - start


def read_log(path):
    """Layouts by (round, kind), connections by (round, kind, case)."""
    layouts, connections = {}, {}
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            word, *rest = line.split()[:6] or [""]
            if word == "module" and len(rest) == 5:
                number, kind, name, start, size = rest
                layout = layouts.setdefault((number, kind), Layout())
                layout.modules.append((int(start, 16), int(size), name))
            elif word == "symbol" and len(rest) == 4:
                number, kind, address, name = rest
                layouts[number, kind].symbols.append((int(address, 16), name))
            elif word == "connections" and len(rest) == 4:
                connections[tuple(rest[:3])] = int(rest[3])
    for layout in layouts.values():
        layout.sort()
    return layouts, connections


class Dump:
    """What was counted between a begin and a dump."""

    def __init__(self, layout):
        self.layout = layout
        self.executed = {}  # module -> instructions
        self.functions = {}  # those of ib_cm
        self.locks = {"hold": [], "off": []}  # (longest, sum, times, address) of ib_cm

    def take(self, words):
        if words[0] == "block":
            address, length, times = int(words[1], 16), int(words[2]), int(words[3])
            module = self.layout.module(address)
            self.executed[module] = self.executed.get(module, 0) + length * times
            if module == OURS:
                name, _ = self.layout.symbol(address)
                self.functions[name] = self.functions.get(name, 0) + length * times
            return
        address, times, longest, total = int(words[1], 16), *map(int, words[2:])
        if self.layout.module(address) == OURS:
            self.locks[words[0]].append((longest, total, times, address))

    def figures(self, connections):
        if connections:
            for module, count in self.executed.items():
                yield f"insns_{module}", count / connections
            inside = sum(count for name, count in self.executed.items() if name != USER)
            yield "insns_all", inside / connections
        for name, locks in self.locks.items():
            if locks and connections:
                yield f"{name}_times", sum(times for _, _, times, _ in locks) / connections
                yield f"{name}_sum", sum(total for _, total, _, _ in locks) / connections
            elif locks:
                yield f"{name}_longest", max(locks)[0]

    def places(self, connections):
        if connections:
            functions = sorted(self.functions.items(), key=lambda item: -item[1])
            for name, count in functions[:MOST]:
                yield f"{count / connections:8.0f} {name}"
            return
        for what, locks in self.locks.items():
            for longest, _, times, address in sorted(locks, reverse=True)[:LONGEST]:
                name, offset = self.layout.symbol(address)
                yield f"{what} {longest}, {times} times: {name}+{offset:#x}"


def main():
    log, counts = sys.argv[1:]
    layouts, connections = read_log(log)
    tag = dump = None
    with open(counts, encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if words[0] == "dump":
                tag = tuple(words[1:4])
                dump = Dump(layouts[tag[:2]])
            elif words[0] == "end":
                figures = dump.figures(connections.get(tag))
                text = " ".join(f"{name} {number:.0f}" for name, number in figures)
                print(f"{tag[0]} {tag[1]} count_{tag[2]} {text}")
                for place in dump.places(connections.get(tag)):
                    print(f"{' '.join(tag)}: {place}", file=sys.stderr)
            else:
                dump.take(words)


if __name__ == "__main__":
    main()
