# SPDX-License-Identifier: GPL-2.0
"""Compares the runs of both modules: medians, and the interval of their ratio by bootstrap."""

import random
import statistics
import sys

SAMPLES = 10000
PHASES = {"qp_conn": "with QPs", "cm_conn": "without QPs (the manager alone)"}


def interval(first, second):
    """95 % interval of median(first) / median(second)."""
    generator = random.Random(1)
    ratios = sorted(
        statistics.median(generator.choices(first, k=len(first)))
        / statistics.median(generator.choices(second, k=len(second)))
        for _ in range(SAMPLES)
    )
    return ratios[int(SAMPLES * 0.025)], ratios[int(SAMPLES * 0.975)]


def main():
    values = {}
    for line in sys.stdin:
        what, kind, phase, number = line.split()
        values.setdefault((what, phase, kind), []).append(int(number))
    for phase, text in PHASES.items():
        c, rust = values["rate", phase, "c"], values["rate", phase, "rust"]
        # The rate is the inverse of the time: above 1 this module is the faster one.
        low, high = interval(c, rust)
        ratio = statistics.median(c) / statistics.median(rust)
        verdict = "no slower" if high >= 1.0 else "SLOWER"
        print(
            f"connection rate, {text}: {ratio:.2f} of the C module's"
            f" (95 % interval {low:.2f} to {high:.2f}, {len(c)} and {len(rust)} runs): {verdict}"
        )
    c = statistics.median(values["memory", "bytes", "c"])
    rust = statistics.median(values["memory", "bytes", "rust"])
    print(
        f"slab memory of one end of an established connection, all layers: C {c:.0f},"
        f" this module {rust:.0f} bytes, difference {rust - c:+.0f}"
    )


if __name__ == "__main__":
    main()
