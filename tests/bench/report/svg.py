# SPDX-License-Identifier: GPL-2.0
"""The few kinds of plots that the page needs, as SVG text. Colours are classes of the page."""

import html
import math

WIDTH = 860
LABEL = 360


def escape(text):
    return html.escape(str(text))


def text(x, y, words, anchor="start", name=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{name}">{escape(words)}</text>'


def line(x1, y1, x2, y2, name):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{name}"/>'


def dot(x, y, radius, name, title):
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" class="{name}">'
        f"<title>{escape(title)}</title></circle>"
    )


def bar(x, y, width, height, name, title):
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{height}" '
        f'class="{name}"><title>{escape(title)}</title></rect>'
    )


def picture(height, parts):
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" xmlns="http://www.w3.org/2000/svg">'
        + "".join(parts)
        + "</svg>"
    )


def ratios(rows):
    """rows: (label, ratio, better); a dot and its interval on a logarithmic scale."""
    low = min([ratio.low for _, ratio, _ in rows if ratio.low > 0] + [0.5])
    high = max([ratio.high for _, ratio, _ in rows] + [2.0])
    low, high = math.log(max(low, 0.001)), math.log(high)
    room = WIDTH - LABEL - 30

    def place(value):
        return LABEL + 10 + room * (math.log(max(value, 0.001)) - low) / (high - low)

    bottom = 22 * len(rows) + 10
    parts = []
    for mark in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20):
        if low <= math.log(mark) <= high:
            parts.append(line(place(mark), 4, place(mark), bottom, "one" if mark == 1 else "grid"))
            parts.append(text(place(mark), bottom + 16, f"{mark:g}", "middle"))
    for number, (label, ratio, better) in enumerate(rows):
        y = 22 * number + 18
        # Which side is the good one depends on what is measured.
        name = "good" if (ratio.value >= 1) == (better == "higher") else "bad"
        if ratio.low <= 1 <= ratio.high:
            name = "same"
        title = f"{ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"
        parts.append(text(LABEL, y + 4, label, "end"))
        parts.append(line(place(ratio.low), y, place(ratio.high), y, name))
        parts.append(dot(place(ratio.value), y, 4.5, name, title))
    return picture(bottom + 24, parts)


def runs(groups, unit):
    """groups: (label, {kind: numbers}); every run as a dot, and the median as a bar."""
    largest = max(max(max(numbers) for numbers in by_kind.values()) for _, by_kind in groups)
    room = WIDTH - LABEL - 90
    parts, y = [], 6
    for label, by_kind in groups:
        parts.append(text(LABEL, y + 20, label, "end"))
        for kind, numbers in by_kind.items():
            ordered = sorted(numbers)
            median = ordered[len(ordered) // 2]
            width = room * median / largest
            parts.append(bar(LABEL + 10, y, width, 13, kind, f"{kind}: {median:.6g} {unit}"))
            for number in numbers:
                x = LABEL + 10 + room * number / largest
                parts.append(dot(x, y + 6.5, 2, "run", f"{number:.6g} {unit}"))
            end = LABEL + 16 + room * max(numbers) / largest
            parts.append(text(end, y + 11, f"{median:.4g}", "start", "small"))
            y += 15
        y += 12
    return picture(y, parts)


def shares(rows, names):
    """rows: (label, {name: number}); stacked bars, with a legend of the names."""
    largest = max(sum(parts.values()) for _, parts in rows)
    room = WIDTH - LABEL - 30
    parts, y = [], 6
    for label, row in rows:
        parts.append(text(LABEL, y + 14, label, "end"))
        x = LABEL + 10
        for number, name in enumerate(names):
            width = room * row.get(name, 0) / largest
            parts.append(bar(x, y, width, 20, f"part{number}", f"{name}: {row.get(name, 0):.4g}"))
            x += width
        y += 28
    x = LABEL + 10
    for number, name in enumerate(names):
        parts.append(bar(x, y, 10, 10, f"part{number}", name))
        parts.append(text(x + 14, y + 9, name, "start", "small"))
        x += 24 + 7 * len(name)
        if x > WIDTH - 80:
            x, y = LABEL + 10, y + 16
    return picture(y + 18, parts)
