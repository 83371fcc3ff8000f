"""Curves and histograms as inline SVG, for the report of a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from ndd_search.core.matching.frequency_table import Shares

WIDTH, HEIGHT, LEFT, BOTTOM = 420, 240, 44, 34
COLOURS = ("#0b6e4f", "#c1440e", "#2f4b9b", "#8a5a00", "#7a1f7a", "#4c8c99", "#a83a5b", "#5b7f1f", "#666666", "#b58900")


def lines(title: str, across: str, up: str, curves: Mapping[str, tuple[Shares, Shares]], least: float = 0.0) -> str:
    """Return a plot of curves, each (x, y) in 0..1; the vertical axis runs from `least` to 1."""
    parts = [_frame(title, across, up, least)]
    for number, (name, (x, y)) in enumerate(curves.items()):
        chosen = np.unique(np.linspace(0, len(x) - 1, min(len(x), 200)).astype(int)) if len(x) else np.empty(0, int)
        inside = chosen[y[chosen] >= least]
        points = " ".join(f"{_x(x[i]):.1f},{_y((y[i] - least) / (1 - least)):.1f}" for i in inside)
        parts.append(f'<polyline points="{points}" fill="none" {_stroke(number)} stroke-width="1.5"/>')
        parts.append(_legend(number, name))
    return _picture(parts, len(curves))


def histogram(title: str, across: str, groups: Mapping[str, Shares], bar: float | None = None) -> str:
    """Return a histogram of 20 bins over 0..1, as shares of each group; a dashed line marks the bar."""
    parts = [_frame(title, across, "share of the pairs", 0.0)]
    width = (WIDTH - LEFT) / 20 / max(len(groups), 1)
    for number, (name, values) in enumerate(groups.items()):
        colour = COLOURS[number % len(COLOURS)]
        shares = np.histogram(values, 20, (0, 1))[0] / max(len(values), 1)
        for bin_, share in enumerate(shares.tolist()):
            left, top = _x(bin_ / 20) + number * width, _y(share)
            parts.append(
                f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{_y(0) - top:.1f}" fill="{colour}"/>'
            )
        parts.append(_legend(number, f"{name} ({len(values)})"))
    if bar is not None:
        parts.append(f'<path d="M{_x(bar):.1f} {_y(0)}V{_y(1)}" stroke="#000" stroke-dasharray="4 3"/>')
    return _picture(parts, len(groups))


def _frame(title: str, across: str, up: str, least: float) -> str:
    ticks: Sequence[float] = (0, 0.25, 0.5, 0.75, 1)
    marks = "".join(
        f'<text x="{_x(tick):.0f}" y="{_y(0) + 14}" text-anchor="middle">{tick:g}</text>'
        f'<text x="{LEFT - 5}" y="{_y(tick) + 4:.0f}" text-anchor="end">{least + tick * (1 - least):.2g}</text>'
        f'<path d="M{LEFT} {_y(tick):.0f}H{WIDTH}" stroke="#ddd"/>'
        for tick in ticks
    )
    return (
        f'{marks}<text x="{LEFT}" y="12" font-weight="bold">{escape(title)}</text>'
        f'<text x="{(WIDTH + LEFT) / 2:.0f}" y="{_y(0) + 30}" text-anchor="middle">{escape(across)}</text>'
        f'<text transform="translate(11 {HEIGHT / 2:.0f}) rotate(-90)" text-anchor="middle">{escape(up)}</text>'
    )


def _stroke(number: int) -> str:
    """Return the style of a curve. After the last colour they start again, dashed."""
    dashes = ' stroke-dasharray="5 3"' if number >= len(COLOURS) else ""
    return f'stroke="{COLOURS[number % len(COLOURS)]}"{dashes}'


def _legend(number: int, name: str) -> str:
    """Return what a curve stands for, in one of two columns."""
    y = HEIGHT + 14 + 15 * (number // 2)
    x = LEFT + (WIDTH - LEFT) // 2 * (number % 2)
    line = f'<path d="M{x} {y - 4}h18" {_stroke(number)} stroke-width="3"/>'
    return f'{line}<text x="{x + 23}" y="{y}">{escape(name)}</text>'


def _picture(parts: Sequence[str], legends: int) -> str:
    height = HEIGHT + 20 + 15 * ((legends + 1) // 2)
    size = f'viewBox="0 0 {WIDTH + 10} {height}" width="{WIDTH + 10}" height="{height}"'
    return f'<svg {size} role="img">{"".join(parts)}</svg>'


def _x(share: float) -> float:
    return LEFT + share * (WIDTH - LEFT)


def _y(share: float) -> float:
    return HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - 22)
