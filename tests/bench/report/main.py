# SPDX-License-Identifier: GPL-2.0
"""Compares the runs of both modules: report/main.py FIGURES FOLDER

Prints a table of ratios, and writes the page with the plots, the table for the documentation and
the figures themselves into the folder.
"""

import os
import shutil
import sys

import page
from figures import Figures, Ratio
from rows import ROWS, write


def compare(figures):
    """The rows for which both modules have figures, each with its ratio."""
    pairs = [(row, figures.both(row.case, row.name)) for row in ROWS]
    return [(row, Ratio(by_kind)) for row, by_kind in pairs if by_kind]


def print_table(rows):
    group = None
    for row, ratio in rows:
        if row.group != group:
            group = row.group
            print(f"\n{group:<40} {'C':>12} {'Rust':>12}   Rust/C (95 % interval), runs")
        print(
            f"  {row.label:<38} {write(ratio.c, row.unit):>12} {write(ratio.rust, row.unit):>12}"
            f"   {ratio.value:5.2f} ({ratio.low:.2f} to {ratio.high:.2f}), {ratio.runs}"
        )
    print("\nA ratio above 1 is the better one for connections per second, else one below 1.")


def table_rst(rows):
    """A csv-table to be included by Documentation/performance.rst."""
    lines = [
        ".. SPDX-License-Identifier: GPL-2.0",
        "",
        ".. csv-table::",
        '   :header: "Measured", "C", "Rust", "Rust/C", "95 % interval", "Runs"',
        "   :widths: 40, 12, 12, 10, 16, 6",
        "",
    ]
    for row, ratio in rows:
        cells = (
            f"{row.group}: {row.label}",
            write(ratio.c, row.unit),
            write(ratio.rust, row.unit),
            f"{ratio.value:.2f}",
            f"{ratio.low:.2f} to {ratio.high:.2f}",
            str(ratio.runs),
        )
        lines.append("   " + ", ".join(f'"{cell}"' for cell in cells))
    return "\n".join(lines) + "\n"


def main():
    source, folder = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        figures = Figures(file)
    rows = compare(figures)
    if not rows:
        sys.exit(f"{source} has no figures of both modules: run 'make bench' again")
    print_table(rows)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "index.html"), "w", encoding="utf-8") as file:
        file.write(page.render(figures, rows))
    with open(os.path.join(folder, "table.inc"), "w", encoding="utf-8") as file:
        file.write(table_rst(rows))
    kept = os.path.join(folder, "figures.txt")
    if os.path.abspath(source) != os.path.abspath(kept):
        shutil.copyfile(source, kept)


if __name__ == "__main__":
    main()
