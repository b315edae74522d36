#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Compares two days of a connection manager: parity.py FIRST SECOND MEANT KIND

A day is what the scenario parity wrote: results of calls, events, counters, trace events. The
order of what one side did and was told is kept, and so is that of the trace events of one
identifier; identifiers are not compared, because their numbers are random, nor is what two of them
did at the same time.

MEANT lists differences that are meant, as "- LINE" and "+ LINE", and with "ignore EVENT" trace
events that only the new module has. When KIND is c both days are of the C module, and none is.
"""

import collections
import difflib
import re
import sys


def sequences(lines, ignored):
    """The trace events of each identifier, as one line of text each."""
    of_id = collections.OrderedDict()
    for line in lines:
        event, fields = re.match(r"icm_(\w+): *(.*)", line).groups()
        if event in ignored:
            continue
        ids = dict(re.findall(r"(local_id|remote_id)=(\d+) ?", fields))
        rest = re.sub(r"(cm_id|local_id|remote_id)=\S+ ?", "", fields).strip()
        known = ids.get("local_id", "0") != "0"
        key = ids.get("local_id") if known else "-"
        of_id.setdefault(key, []).append(f"{event} {rest}".strip())
    # What names no identifier of ours comes from several at the same time.
    nobody = sorted(of_id.pop("-", []))
    return sorted("trace: " + "; ".join(events) for events in of_id.values()) + [
        f"trace without an identifier: {event}" for event in nobody
    ]


def read(path, ignored):
    results, counters, trace = [], [], []
    with open(path, encoding="utf-8") as file:
        for line in file:
            kind, _, text = line.rstrip("\n").partition(" ")
            if " the next case took " in text:
                continue
            {"result": results, "counter": counters, "trace": trace}[kind].append(text)
    # Active and passive side ran at the same time, and are written one after the other.
    return results + counters + sequences(trace, ignored)


def read_meant(path):
    meant, ignored = [], set()
    with open(path, encoding="utf-8") as file:
        for line in file:
            line = line.strip()
            if line.startswith("ignore "):
                ignored.add(line.split()[1])
            elif line and not line.startswith("#"):
                meant.append(line)
    return meant, ignored


def main():
    first, second, meant_path, kind = sys.argv[1:]
    meant, ignored = read_meant(meant_path)
    if kind == "c":
        meant = []
    old, new = read(first, ignored), read(second, ignored)
    found = [
        f"{line[0]} {line[1:]}"
        for line in difflib.unified_diff(old, new, n=0, lineterm="")
        if not line.startswith(("---", "+++", "@@"))
    ]
    missing = list(meant)
    unmeant = []
    for line in found:
        if line in missing:
            missing.remove(line)
        else:
            unmeant.append(line)
    for line in unmeant:
        print("not meant,", line)
    for line in missing:
        print("meant, but not there:", line)
    print(f"compared {len(old)}, {len(found) - len(unmeant)} differ as they are meant to")
    sys.exit(bool(unmeant or missing or not old))


main()
