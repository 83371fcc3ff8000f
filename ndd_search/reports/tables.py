"""Markdown tables."""

from __future__ import annotations

from collections.abc import Sequence

Cells = Sequence[str]


def markdown(heads: Cells, rows: Sequence[Cells]) -> str:
    """Return a table whose first column is left-aligned and whose others, numbers, are right-aligned."""
    rule = ["---", *["---:"] * (len(heads) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (heads, rule, *rows))
