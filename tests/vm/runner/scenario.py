# SPDX-License-Identifier: GPL-2.0
"""A scenario: a shell file with a header, and what came of running it."""

import dataclasses
import fnmatch
import os
import re
import sys

import pace

HEADER = re.compile(r"^# ([a-z]+): *(.*?) *$")
DEFAULTS = {
    "title": "",
    "guests": "1",
    "timeout": "60",  # seconds, sized for emulation
    "cpus": "2",
    "fresh": "no",  # yes: in a guest that ran nothing before, and that runs nothing after
    "long": "no",  # yes: only by make test-all, or when it is named
    "manual": "no",  # yes: only when it is named
    "soak": "no",  # yes: it goes on for MINUTES, beyond the timeout
    "modules": "",  # of the guests in turn: "test", "c" or "rust"; test is the one under test
    "only": "",  # rust or c: for one module only
    "kernel": "",  # debug: only on that one
    "debug": "no",  # yes: make test runs it on the debug kernel, too
    "finds": "",  # patterns, with ";" between: the kernel has to complain of each
    "foreign": "",  # a pattern: whose first complaint fits it, has met a fault of other code
    "counted": "no",  # yes: the emulator counts instructions, see count/count.c
    "memory": "2048",  # MiB; the debug kernel gets more
}


@dataclasses.dataclass
class Scenario:
    name: str
    title: str
    guests: int
    timeout: int
    cpus: int
    fresh: bool
    long: bool
    manual: bool
    modules: list
    only: str
    kernel: str
    debug: bool
    finds: list
    foreign: str
    counted: bool
    memory: int

    @property
    def shape(self):
        """What guests have to be like to run it."""
        return (self.guests, self.cpus, self.memory, self.counted)

    def kinds(self, under_test):
        """Which module each guest loads."""
        return [under_test if kind == "test" else kind for kind in self.modules]


@dataclasses.dataclass
class Result:
    scenario: Scenario
    outcome: str  # ok, failed or skipped
    seconds: float = 0.0
    lines: list = dataclasses.field(default_factory=list)  # KTAP of the subtests
    serious: bool = False  # a complaint of the kernel, a hang or a death
    foreign: bool = False  # what was serious began with a fault of other code
    reasons: list = dataclasses.field(default_factory=list)  # why it failed


def judge_findings(result):
    """Of a scenario that is there for the kernel's complaints: each has to be among the reasons."""
    complaints = result.reasons
    result.reasons = [line for line in complaints if line.startswith("not ok")]
    for pattern in result.scenario.finds:
        found = [line for line in complaints if re.search(pattern, line)]
        if found:
            result.lines.append(("a", f"ok {len(result.lines) + 1} noticed: {found[0].strip()}"))
        else:
            result.reasons.append(f"the kernel does not complain: {pattern}")
    result.outcome = "failed" if result.reasons else "ok"
    result.serious = False


def parse(path):
    fields = dict(DEFAULTS)
    with open(path, encoding="utf-8") as file:
        for line in file:
            if not line.startswith("#"):
                break
            match = HEADER.match(line)
            if match and match[1] not in DEFAULTS:
                known = ", ".join(DEFAULTS)
                sys.exit(f"{path}: correct '# {match[1]}:', which nobody reads; there are {known}")
            if match:
                fields[match[1]] = match[2]
    guests = int(fields["guests"])
    name = os.path.basename(path).removesuffix(".sh")
    modules = fields["modules"].split() or ["test"] * guests
    timeout = int(fields["timeout"])
    if fields["soak"] == "yes":
        timeout += 60 * pace.minutes
    if guests not in (1, 2) or len(modules) != guests:
        sys.exit(f"{path}: 'guests' must be 1 or 2, and 'modules' must name one for each")
    return Scenario(
        name=name,
        title=fields["title"] or name,
        guests=guests,
        timeout=timeout,
        cpus=int(fields["cpus"]),
        fresh=fields["fresh"] == "yes",
        long=fields["long"] == "yes",
        manual=fields["manual"] == "yes",
        modules=modules,
        only=fields["only"],
        kernel=fields["kernel"],
        debug=fields["debug"] == "yes",
        foreign=fields["foreign"],
        counted=fields["counted"] == "yes",
        finds=[each.strip() for each in fields["finds"].split(";") if each.strip()],
        memory=int(fields["memory"]),
    )


def select(folder, patterns, with_long):
    """The scenarios whose name matches one of the patterns, or all without patterns."""
    scenarios = [
        parse(os.path.join(folder, name))
        for name in sorted(os.listdir(folder))
        if name.endswith(".sh")
    ]
    if not patterns:
        return [each for each in scenarios if not each.manual and (with_long or not each.long)]
    return [
        each for each in scenarios if any(fnmatch.fnmatch(each.name, glob) for glob in patterns)
    ]
