"""Check that memory stays flat over a long stream of texts that are not kept.

    python -m benchmarks.stream [--gigabytes 10] [--threads 2] [--without-core]

Texts of mixed lengths in seventeen languages and plain ASCII are generated on demand, in pieces of a hundred megabytes,
each of which goes through `sketch_many` as a generator. A line is printed with the peak memory of the process and its
growth since the first piece; the exit code is 1 if the growth exceeds 32 MB.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
from collections.abc import Iterator
from time import perf_counter

from benchmarks.sketching import sources
from ndd_search import native
from ndd_search.core.sketching import sketch_many

PIECE = 100 * 10**6  # bytes of UTF-8
MOST_GROWTH = 32 * 10**6  # bytes: room for some large texts at the same time


def texts(rng: random.Random, long: list[str], total: int) -> Iterator[str]:
    """Yield texts of some 2,000 characters, a few of them long, up to `total` bytes of UTF-8."""
    while total > 0:
        source = rng.choice(long)
        length = min(int(rng.lognormvariate(7.6, 1.2)), 100_000, len(source))
        start = rng.randrange(len(source) - length + 1)
        text = source[start : start + length]
        total -= len(text.encode())
        yield text


def peak() -> int:
    """Return the peak memory of this process in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=10.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--without-core", action="store_true", help="with numpy alone")
    arguments = parser.parse_args()
    if arguments.without_core:
        native.core = None
    rng, began = random.Random(1), perf_counter()
    long = [text for group in sources().values() for text in group]
    done, count, first = 0, 0, 0
    while done < arguments.gigabytes * 1e9:
        count += len(sketch_many(texts(rng, long, PIECE), threads=arguments.threads))
        done += PIECE
        first = first or peak()
        if done % (10 * PIECE) == 0 or done == PIECE:
            print(
                f"{done / 1e9:.1f} GB, {count:,} texts, {perf_counter() - began:.0f} s: "
                f"{peak() / 1e6:.0f} MB, {(peak() - first) / 1e6:+.1f} MB since the first piece",
                flush=True,
            )
    sys.exit(int(peak() - first > MOST_GROWTH))


if __name__ == "__main__":
    main()
