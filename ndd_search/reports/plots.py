"""Plots as inline SVG, so that a report is a single file."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

WIDTH, LEFT = 420, 44
COLOURS = ("#0b6e4f", "#c1440e", "#2f4b9b", "#8a5a00", "#7a1f7a", "#4c8c99", "#a83a5b", "#5b7f1f", "#666666", "#b58900")


def bars(title: str, rows: Sequence[tuple[str, Sequence[float]]], form: str = ",.0f", names: Sequence[str] = ()) -> str:
    """Return a plot of horizontal bars, each with its label and its sum. "" without rows.

    rows: of each bar its label and its parts, one behind the other; a bar below 0 goes to the left. form: of the sums.
    names: what the parts are.
    """
    if not rows:
        return ""
    labels, step, totals = 7 * max(len(label) for label, _ in rows), 15, [sum(parts) for _, parts in rows]
    most = max(map(abs, totals)) or 1.0
    zero, scale = (WIDTH / 2, WIDTH / 2.4 / most) if min(totals) < 0 else (0, (WIDTH - LEFT) / most)
    drawn = [f'<text x="0" y="12" font-weight="bold">{escape(title)}</text>']
    for place, ((label, parts), total) in enumerate(zip(rows, totals, strict=True)):
        top, at = 20 + step * place, labels + zero
        drawn.append(f'<text x="{labels - 5}" y="{top + 11}" text-anchor="end">{escape(label)}</text>')
        for number, value in enumerate(parts):
            left, width, colour = at + min(value * scale, 0), abs(value) * scale, COLOURS[number + (value < 0)]
            drawn.append(f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{step - 3}" fill="{colour}"/>')
            at += value * scale
        anchor, x = ("start", at + 3) if total >= 0 else ("end", at - 3)
        drawn.append(f'<text x="{x:.1f}" y="{top + 11}" text-anchor="{anchor}">{total:{form}}</text>')
    drawn += [
        legend(number, name, 35 + step * len(rows), f'stroke="{COLOURS[number]}"') for number, name in enumerate(names)
    ]
    height = 25 + step * len(rows) + 30 * bool(names)
    size = f'viewBox="0 0 {labels + WIDTH} {height}" width="{labels + WIDTH}" height="{height}"'
    return f'<svg {size} role="img">{"".join(drawn)}</svg>'


def legend(number: int, name: str, top: int, stroke: str) -> str:
    """Return what a colour stands for, in one of two columns from `top` on. stroke: the attributes of its line."""
    y = top + 15 * (number // 2)
    x = LEFT + (WIDTH - LEFT) // 2 * (number % 2)
    line = f'<path d="M{x} {y - 4}h18" {stroke} stroke-width="3"/>'
    return f'{line}<text x="{x + 23}" y="{y}">{escape(name)}</text>'
