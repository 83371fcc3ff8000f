"""Self-contained HTML pages, their tables, and plots as inline SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

Cells = Sequence[str]

_WIDTH, _LEFT = 420, 44  # of a plot, and of the sums beside its bars
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse;margin:.5rem 0 1.5rem;font-size:.85rem}
td,th{padding:.2rem .6rem;border-bottom:1px solid #ddd}
td+td,th+th{text-align:right;font-variant-numeric:tabular-nums}svg{font:11px system-ui,sans-serif;margin:0 1rem 1rem 0}
.pair{display:grid;grid-template-columns:1fr 1fr;gap:1rem;border-top:1px solid #ddd;padding:.6rem 0;font-size:.85rem}
.pair p{margin:0}.pair mark{background:#fd8}.pair b{grid-column:1/3}.scroll{overflow-x:auto}
"""


def document(title: str, body: str, style: str = _STYLE) -> str:
    """Return a page that loads no other file and runs no script. title: plain text; body: HTML; style: CSS."""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    meta = '<meta charset=utf-8><meta name=viewport content="width=device-width">'
    meta += f'<meta http-equiv=Content-Security-Policy content="{policy}">'
    head = f"{meta}<title>{escape(title)}</title><style>{style}</style>"
    return f"<!doctype html><html lang=en><head>{head}</head><body><h1>{escape(title)}</h1>{body}</body></html>\n"


def html_table(heads: Cells, rows: Sequence[Cells]) -> str:
    """Return a table. heads: () for none."""
    head = "<tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in heads) + "</tr>" if heads else ""
    lines = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{head}{lines}</table>"


def bars(title: str, rows: Sequence[tuple[str, int]]) -> str:
    """Return a plot of horizontal bars, each with its label and its count. "" without rows."""
    if not rows:
        return ""
    labels, step, most = 7 * max(len(label) for label, _ in rows), 15, max(count for _, count in rows) or 1
    drawn = [f'<text x="0" y="12" font-weight="bold">{escape(title)}</text>']
    for place, (label, count) in enumerate(rows):
        top, width = 20 + step * place, (_WIDTH - _LEFT) * count / most
        drawn += [
            f'<text x="{labels - 5}" y="{top + 11}" text-anchor="end">{escape(label)}</text>',
            f'<rect x="{labels}" y="{top}" width="{width:.1f}" height="{step - 3}" fill="#0b6e4f"/>',
            f'<text x="{labels + width + 3:.1f}" y="{top + 11}">{count:,}</text>',
        ]
    width, height = labels + _WIDTH, 25 + step * len(rows)
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return f'<svg {size} role="img">{"".join(drawn)}</svg>'
