# SPDX-License-Identifier: GPL-2.0
"""The figures of a run: lines "ROUND KIND CASE NAME NUMBER NAME NUMBER...", and "# KEY: TEXT"."""

import random
import statistics

SAMPLES = 4000
KINDS = ("c", "rust")


class Figures:
    def __init__(self, lines):
        self.facts = {}
        self.values = {}  # (case, name) -> kind -> numbers in the order of the rounds
        rounds = {}
        for line in lines:
            if line.startswith("# "):
                key, _, text = line[2:].strip().partition(": ")
                self.facts[key] = text
            elif line.strip():
                number, kind, case, *pairs = line.split()
                figures = rounds.setdefault((case, kind, int(number)), {})
                figures.update(zip(pairs[::2], map(float, pairs[1::2])))
        for (case, kind, _), figures in sorted(rounds.items()):
            derive(figures)
            for name, value in figures.items():
                by_kind = self.values.setdefault((case, name), {each: [] for each in KINDS})
                by_kind[kind].append(value)

    def both(self, case, name):
        """The numbers of each module; None when one of them has none."""
        by_kind = self.values.get((case, name))
        return by_kind if by_kind and all(by_kind[kind] for kind in KINDS) else None


def derive(figures):
    if "connections" in figures and "elapsed" in figures:
        figures["rate"] = figures["connections"] * 1e9 / figures["elapsed"]
    if "duplicates" in figures:
        figures["rate"] = figures["duplicates"] * 1e9 / figures["elapsed"]
    if "slab" in figures and "ends" in figures:
        figures["slab_per_end"] = figures["slab"] / figures["ends"]


class Ratio:
    """median(rust) / median(c), with its 95 % interval by bootstrap."""

    def __init__(self, by_kind):
        c, rust = by_kind["c"], by_kind["rust"]
        self.c, self.rust = statistics.median(c), statistics.median(rust)
        self.runs = min(len(c), len(rust))
        self.value = divide(self.rust, self.c)
        generator = random.Random(1)
        ratios = sorted(
            divide(
                statistics.median(generator.choices(rust, k=len(rust))),
                statistics.median(generator.choices(c, k=len(c))),
            )
            for _ in range(SAMPLES)
        )
        self.low = ratios[int(SAMPLES * 0.025)]
        self.high = ratios[int(SAMPLES * 0.975)]


def divide(a, b):
    return a / b if b else float("nan")
