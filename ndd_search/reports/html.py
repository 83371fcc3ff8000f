"""Self-contained HTML pages, and tables as Markdown and as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

Cells = Sequence[str]

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


def markdown(heads: Cells, rows: Sequence[Cells]) -> str:
    """Return a table whose first column is left-aligned and whose others, numbers, are right-aligned."""
    rule = ["---", *["---:"] * (len(heads) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (heads, rule, *rows))


def html_table(table: str) -> str:
    """Convert a table of `markdown` to HTML."""
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()]
    head, *body = [rows[0], *rows[2:]]
    cells = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    lines = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in body)
    return f"<table><tr>{cells}</tr>{lines}</table>"
