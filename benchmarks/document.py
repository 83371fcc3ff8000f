"""Build the tables and plots of benchmarks/figures/performance.md from figures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from benchmarks import decisions, exact_collapse, page_check, sketching, threads

Times = dict[str, dict[str, float]]


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table with all columns but the first right-aligned."""
    first, *others = head
    lines = [[first, *others], ["---", *["--:"] * len(others)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def kinds(found: Times) -> str:
    """Return a table of methods by kinds of page, with ratios to the first method in brackets."""
    first, *others = next(iter(found.values()))
    rows = [[first, *(f"{times[first]:,.0f}" for times in found.values())]]
    for name in others:
        rows.append([name, *(f"{times[name]:,.0f} ({times[name] / times[first]:,.1f}x)" for times in found.values())])
    return table(["µs a page of 100 hits, k = 128", *found], rows)


def sizes(found: Times) -> str:
    """Return a table of hits by k: native core, if it was measured, / numpy."""
    ks = sorted({k for _, k in page_check.SIZES})
    rows = []
    for hits in sorted({hits for hits, _ in page_check.SIZES}):
        cells = [" / ".join(f"{time:,.0f}" for time in found[f"{hits} hits, k = {k}"].values()) for k in ks]
        rows.append([f"{hits:,}", *cells])
    return table(["hits", *(f"k = {k}" for k in ks)], rows)


def process(found: dict[str, float]) -> str:
    return table(["", ""], ([name, f"{value:,.2f}".removesuffix(".00")] for name, value in found.items()))


def machine(found: dict[str, str]) -> str:
    return "Measured on " + ", ".join(f"{name} {value}" for name, value in found.items()) + "."


BLOCKS: dict[str, Callable[[Any], str]] = {
    "machine": machine,
    "kinds": kinds,
    "sizes": sizes,
    "decisions": decisions.table,
    "sketching": sketching.table,
    "threads": threads.table,
    "process": process,
    "collapse": exact_collapse.table,
}


def markdown(found: dict[str, Any]) -> dict[str, str]:
    """Return the Markdown of each measured part."""
    return {name: block(found[name]) for name, block in BLOCKS.items() if name in found}


def _between(block: str, mark: re.Match[str]) -> str:
    return f"{mark[1]}{block}\n{mark[2]}"


def rewrite(text: str, found: dict[str, Any]) -> str:
    """Replace the text between `<!-- part -->` and `<!-- end -->` of each part. Raises KeyError without such marks."""
    for name, block in markdown(found).items():
        marks = re.compile(f"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        text, places = marks.subn(partial(_between, block), text)
        if not places:
            raise KeyError(f"no place for {name}: write <!-- {name} --> and <!-- end --> where its figures belong")
    return text
