"""Measure the gain of more threads: texts sketched, and pages checked by several threads at once.

    python -m benchmarks.threads [--threads 1 2] [--megabytes 64] [--seconds 2]

Wall-clock time, so other load on the machine counts; the best of three runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from time import perf_counter

from benchmarks.process import pages_a_minute
from benchmarks.sketching import LENGTHS, cut, sources
from ndd_search.core.sketching import sketch_many


def texts_a_second(texts: Sequence[str], threads: int) -> float:
    """Return the MB of UTF-8 that the threads sketch per second."""
    megabytes, times = sum(len(text.encode()) for text in texts) / 1e6, []
    for _ in range(3):
        began = perf_counter()
        sketch_many(texts, threads=threads)
        times.append(perf_counter() - began)
    return megabytes / min(times)


def check(counts: Sequence[int] = (1, 2), megabytes: int = 64, seconds: float = 1.0) -> dict[str, dict[str, float]]:
    """Return figures by task, then by number of threads."""
    found: dict[str, dict[str, float]] = {}
    for name, source in sources().items():
        for size in ("140", "mixed"):
            texts = cut(source, LENGTHS[size])
            texts *= 1 + megabytes * 10**6 // sum(map(len, texts))
            row = {f"{n} threads": texts_a_second(texts, n) for n in counts}
            found[f"texts of {size} characters, {name}, MB/s"] = row
    found["pages of 100 hits, a minute"] = {
        f"{n} threads": max(pages_a_minute(n, seconds) for _ in range(3)) for n in counts
    }
    return found


def table(found: dict[str, dict[str, float]]) -> str:
    """Return a Markdown table: figures, and ratios to the first column."""
    names = list(next(iter(found.values())))
    lines = ["| | " + " | ".join(names) + " |", "|---|" + "--:|" * len(names)]
    for what, row in found.items():
        first, *others = row.values()
        cells = [f"{first:,.0f}", *(f"{one:,.0f} ({one / first:.2f}x)" for one in others)]
        lines.append(f"| {what} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--megabytes", type=int, default=64, help="of texts in a row (64)")
    parser.add_argument("--seconds", type=float, default=2.0, help="of checking pages (2)")
    arguments = parser.parse_args()
    print(table(check(arguments.threads, arguments.megabytes, arguments.seconds)))


if __name__ == "__main__":
    main()
