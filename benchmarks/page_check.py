"""Time the check of one result page, by kind and size of page, next to other libraries in the same process.

    python -m benchmarks.page_check [--hits 100] [--k 128] [--rounds 9] [--peers rensa] [--json out.json]

Signatures are computed beforehand (TF-IDF starts from text). page_kinds describes the pages, peers the libraries.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks.measure import Method, measure
from benchmarks.page_kinds import KINDS, Documents, sketches_of
from benchmarks.peers import MIN_SIMILARITY, PEERS

import numpy as np  # isort: skip  # after measure, which sets the number of its threads

from ndd_search import native
from ndd_search.core.matching import leaders

__all__ = ["measure"]
OURS, PLAIN = "native core", "numpy"
SIZES = [(hits, k) for hits in (20, 50, 100, 200, 1000) for k in (32, 64, 128, 256)]


def plainly(method: Method) -> Method:
    """Run without the native core."""

    def call() -> object:
        core, native.core = native.core, None
        try:
            return method()
        finally:
            native.core = core

    return call


def ours(page: Documents, k: int) -> dict[str, Method]:
    """Return the page check with numpy and, if it is built, with the native core."""
    sketches = sketches_of(page, k)

    def check() -> object:
        return leaders(sketches, MIN_SIMILARITY, k)

    return {OURS: check, PLAIN: plainly(check)} if native.core else {PLAIN: check}


def check_kinds(hits: int, k: int, rounds: int, peers: str = "") -> dict[str, dict[str, float]]:
    """Return the microseconds of each method on each kind of page. peers: only those whose name contains this."""
    found: dict[str, dict[str, float]] = {}
    for kind, make in KINDS.items():
        page = make(np.random.default_rng(1), hits)
        methods = ours(page, k)
        for name, prepare in PEERS.items():
            if peers not in name:
                continue
            try:
                methods[name] = prepare(page, k)
            except ImportError as missing:
                print(f"without {name}: {missing}", file=sys.stderr)
        found[kind] = measure(methods, rounds)
    return found


def check_sizes(rounds: int) -> dict[str, dict[str, float]]:
    """Return the microseconds of ndd_search on pages of several sizes with 20 % duplicates."""
    return {
        f"{hits} hits, k = {k}": measure(ours(KINDS["20 % duplicates"](np.random.default_rng(1), hits), k), rounds)
        for hits, k in SIZES
    }


def table(found: dict[str, dict[str, float]], head: str) -> str:
    """Return a Markdown table: microseconds, and ratios to the first column."""
    names = list(next(iter(found.values())))
    lines = [f"| {head} | " + " | ".join(names) + " |", "|---|" + "--:|" * len(names)]
    for row, times in found.items():
        first = times[names[0]]
        cells = [
            f"{times[name]:,.0f}" + (f" ({times[name] / first:,.1f}x)" if name != names[0] else "") for name in names
        ]
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hits", type=int, default=100, help="hits on the page (100)")
    parser.add_argument("--k", type=int, default=128, help="values in a sketch, permutations in a signature (128)")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--peers", default="", help="only peers whose name holds this")
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    arguments = parser.parse_args()
    found = check_kinds(arguments.hits, arguments.k, arguments.rounds, arguments.peers)
    print(table(found, f"page of {arguments.hits}, k = {arguments.k}, µs"))
    if arguments.json:
        arguments.json.write_text(
            json.dumps({"hits": arguments.hits, "k": arguments.k, "microseconds": found}, indent=1)
        )


if __name__ == "__main__":
    main()
