"""Markdown tables."""

from __future__ import annotations

from collections.abc import Sequence

Cells = Sequence[str]


def markdown(heads: Cells, rows: Sequence[Cells]) -> str:
    """A table whose first column is text and whose others are numbers."""
    rule = ["---", *["---:"] * (len(heads) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (heads, rule, *rows))
