"""Time the default decision against a plain bar: the leaders of 100 hits from their sketches, k = 64.

    python -m benchmarks.decisions [--rounds 9]

The frequency table holds the values that the documents of the page share and 3,000 others, as that of an index would.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from benchmarks.measure import Method, measure
from benchmarks.page_kinds import KINDS, Documents, documents, sketches_of

import numpy as np  # isort: skip  # after measure, which sets the number of its threads

import ndd_search as ndd
from benchmarks.page_check import OURS, PLAIN, plainly
from ndd_search import native
from ndd_search.core.matching.choose_leaders import assign_leaders
from ndd_search.core.matching.decision import Decision
from ndd_search.core.matching.document_frequency import count_document_frequency
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.sketching.sketches import VALUES

HITS, K = 100, 64
RECIPE = ndd.Recipe(k=K)
BAR, AUTO, TABLE = "a bar of 0.5", "auto", "auto with a table"


def common_values(rng: np.random.Generator, page: Documents) -> FrequencyTable:
    counted = count_document_frequency([*sketches_of(page, K), *sketches_of(documents(rng, 400), K)], RECIPE)
    others = np.setdiff1d(rng.choice(VALUES, 3000, replace=False), counted.values)
    values = np.concatenate((counted.values, others)).astype(np.int32)
    counts = np.concatenate((counted.counts, np.full(len(others), 8.0)))
    order = np.argsort(values)
    return FrequencyTable(counted.documents, values[order], counts[order], RECIPE.id)


def checks(page: Documents, frequency_table: FrequencyTable) -> dict[str, Method]:
    """Return every decision, with numpy and, if it is built, with the native core."""
    sketches = sketches_of(page, K)
    decisions = {
        BAR: Decision.of(0.5, RECIPE),
        AUTO: Decision.of("auto", RECIPE),
        TABLE: Decision.of("auto", RECIPE, frequency_table),
    }

    def check(decision: Decision) -> Callable[[], object]:
        return lambda: assign_leaders(sketches, K, decision)

    ways = {OURS: lambda method: method, PLAIN: plainly} if native.core else {PLAIN: lambda method: method}
    return {f"{way}, {name}": turn(check(one)) for way, turn in ways.items() for name, one in decisions.items()}


def figures(rounds: int) -> dict[str, dict[str, float]]:
    """Return the microseconds of each decision on each kind of page."""
    rng = np.random.default_rng(1)
    pages = {kind: make(rng, HITS) for kind, make in KINDS.items()}
    return {kind: measure(checks(page, common_values(rng, page)), rounds) for kind, page in pages.items()}


def table(found: dict[str, dict[str, float]]) -> str:
    """Return a Markdown table: microseconds, and ratios to the plain bar."""
    names = list(next(iter(found.values())))
    lines = ["| µs | " + " | ".join(names) + " |", "|---|" + "--:|" * len(names)]
    for kind, times in found.items():
        bars = [times[f"{name.partition(',')[0]}, {BAR}"] for name in names]
        cells = [
            f"{times[name]:,.0f}" + ("" if name.endswith(BAR) else f" ({times[name] / bar:.2f}x)")
            for name, bar in zip(names, bars, strict=True)
        ]
        lines.append(f"| {kind} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    print(table(figures(parser.parse_args().rounds)))


if __name__ == "__main__":
    main()
