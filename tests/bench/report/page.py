# SPDX-License-Identifier: GPL-2.0
"""The page with the plots: one file, which needs no other and no network."""

import svg
from rows import ROWS, write

STYLE = """
:root { --ink: #1b1f24; --paper: #ffffff; --faint: #d8dee4; --c: #8c959f; --rust: #b7410e;
	--good: #1a7f37; --bad: #cf222e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117;
	--faint: #30363d; --c: #768390; --rust: #e5734a; --good: #3fb950; --bad: #f85149; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
	max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
svg { width: 100%; height: auto; }
svg text { font-size: 12px; fill: var(--ink); }
svg text.small { font-size: 10px; }
.grid { stroke: var(--faint); } .one { stroke: var(--ink); }
line.good { stroke: var(--good); stroke-width: 2; } circle.good { fill: var(--good); }
line.bad { stroke: var(--bad); stroke-width: 2; } circle.bad { fill: var(--bad); }
rect.c { fill: var(--c); } rect.rust { fill: var(--rust); }
line.same { stroke: var(--c); stroke-width: 2; } circle.same { fill: var(--c); }
circle.run { fill: var(--ink); fill-opacity: 0.55; }
.part0 { fill: #b7410e; } .part1 { fill: #0969da; } .part2 { fill: #8250df; }
.part3 { fill: #1a7f37; } .part4 { fill: #bf8700; } .part5 { fill: #8c959f; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th, td { padding: 0.2rem 0.6rem; border-bottom: 1px solid var(--faint); text-align: right; }
th:first-child, td:first-child { text-align: left; }
tr.group td { font-weight: 600; padding-top: 0.8rem; }
"""

RATES = ("flight1", "flight16", "flight256", "flight4096", "keep1000", "keep10000")
LATENCIES = ("flight1", "flight16", "flight256", "flight4096")
PARTS = ("ib_cm", "ib_core", "rdma_rxe", "ib_cm_bench", "(kernel)", "(user)")


def render(figures, rows):
    facts = "".join(
        f"<tr><td>{svg.escape(key)}</td><td>{svg.escape(value)}</td></tr>"
        for key, value in figures.facts.items()
    )
    sections = [
        ("Ratios, Rust to C",
         "The dot is the ratio of the medians, the line its 95 % interval. Green is where the "
         "Rust module is the better one, red where the C one is, grey where the interval does "
         "not tell.",
         svg.ratios([(f"{row.group}: {row.label}", ratio, row.better)
                     for row, ratio in rows])),
        ("Connections per second", "Grey is C, red-brown is Rust; each dot is a run.",
         by_case(figures, RATES, "rate", 1, "/s")),
        ("Time to connect, p99, milliseconds", "",
         by_case(figures, LATENCIES, "connect_p99", 1e-6, "ms")),
        ("Time to connect beside a consumer that sleeps, milliseconds", "",
         quantiles(figures, "sleeper")),
        ("CPU time of one connection, by module, microseconds",
         "A sample belongs to the module whose function is the innermost on the stack.",
         cpu(figures)),
    ]  # fmt: skip
    body = "".join(
        f"<h2>{svg.escape(title)}</h2><p>{svg.escape(note)}</p>{plot}"
        for title, note, plot in sections
        if plot
    )
    return (
        "<!DOCTYPE html>\n<!-- SPDX-License-Identifier: GPL-2.0 -->\n"
        '<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>ib_cm in Rust and in C</title><style>{STYLE}</style></head><body>"
        "<h1>ib_cm in Rust and in C, measured</h1>"
        "<p>Both modules in turn in one virtual machine, the same load generator above them. "
        "The machine is an emulated one: only the ratios mean something.</p>"
        f"<table>{facts}</table>{body}<h2>All figures</h2>{table(rows)}</body></html>\n"
    )


def label_of(case):
    return next(row.label for row in ROWS if row.case == case).split(", p")[0]


def by_case(figures, cases, name, factor, unit):
    groups = []
    for case in cases:
        by_kind = figures.both(case, name)
        if by_kind:
            scaled = {kind: [n * factor for n in numbers] for kind, numbers in by_kind.items()}
            groups.append((label_of(case), scaled))
    return svg.runs(groups, unit) if groups else ""


def quantiles(figures, case):
    groups = []
    for name in ("p50", "p99", "p999"):
        by_kind = figures.both(case, f"connect_{name}")
        if by_kind:
            scaled = {kind: [n * 1e-6 for n in numbers] for kind, numbers in by_kind.items()}
            groups.append((name.replace("999", "99.9"), scaled))
    return svg.runs(groups, "ms") if groups else ""


def cpu(figures):
    rows = []
    for kind, label in (("c", "C"), ("rust", "Rust")):
        parts = {}
        for name in PARTS:
            by_kind = figures.both("own", f"cpu_{name}")
            if by_kind:
                numbers = sorted(by_kind[kind])
                parts[name] = numbers[len(numbers) // 2] / 1000
        if parts:
            rows.append((label, parts))
    return svg.shares(rows, PARTS) if rows else ""


def table(rows):
    lines = ["<table><tr><th></th><th>C</th><th>Rust</th><th>Rust/C</th><th>95 %</th>"
             "<th>runs</th></tr>"]  # fmt: skip
    group = None
    for row, ratio in rows:
        if row.group != group:
            group = row.group
            lines.append(f'<tr class="group"><td colspan="6">{svg.escape(group)}</td></tr>')
        cells = (
            row.label, write(ratio.c, row.unit), write(ratio.rust, row.unit),
            f"{ratio.value:.2f}", f"{ratio.low:.2f} to {ratio.high:.2f}", ratio.runs,
        )  # fmt: skip
        lines.append("<tr>" + "".join(f"<td>{svg.escape(cell)}</td>" for cell in cells) + "</tr>")
    return "".join(lines) + "</table>"
