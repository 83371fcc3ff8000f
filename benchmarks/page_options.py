"""Time what group_by, max_per and seen add to one page of a list, side by side in one run.

    python -m benchmarks.page_options [--hits 100] [--rounds 30]

The hits are texts of 60 words, sketched beforehand; every fifth is a copy of an earlier one. Each has one of 40 sources
and one of 60 numbers. Variants take turns; the median of the rounds is shown, and its ratio to a page without options.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

import ndd_search as ndd
from ndd_search.core.sketching import sketch_many


def variants(count: int) -> dict[str, Callable[[], object]]:
    """Return a call for each variant."""
    rng = random.Random(1)
    words = [f"word{number}" for number in range(5000)]
    texts = [" ".join(rng.choices(words, k=60)) for _ in range(count)]
    texts = [texts[place // 2] if place % 5 == 4 else text for place, text in enumerate(texts)]
    hits = [{"source": f"s{rng.randrange(40)}", "isbn": f"{rng.randrange(60)}"} for _ in texts]
    sketches = list(sketch_many(texts))
    shown = [ndd.sketch(" ".join(rng.choices(words, k=60))) for _ in range(1000)]
    options: dict[str, dict[str, Any]] = {
        "no option": {},
        "guards": {"guards": ["same:source"]},
        "group_by": {"group_by": ["isbn"]},
        "max_per": {"max_per": ["source:2"]},
        "seen, 100 items": {"seen": shown[:100]},
        "seen, 1,000 items": {"seen": shown},
    }
    given: dict[str, Any] = {"sketches": sketches, "window": count}
    return {name: partial(ndd.collapse, hits, **given, **chosen) for name, chosen in options.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hits", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=30)
    arguments = parser.parse_args()
    calls = variants(arguments.hits)
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(arguments.rounds):
        for name, call in calls.items():
            began = perf_counter()
            call()
            seconds[name].append(perf_counter() - began)
    base = median(seconds["no option"])
    print(f"| {arguments.hits} hits | ms | ratio |\n|---|--:|--:|")
    for name, found in seconds.items():
        print(f"| {name} | {1000 * median(found):.2f} | {median(found) / base:.1f} |")


if __name__ == "__main__":
    main()
