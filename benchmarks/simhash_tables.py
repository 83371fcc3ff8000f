"""Measure time and memory of simhash tables at Hamming distance 3: building, one query, all pairs.

    python -m benchmarks.simhash_tables [--prints 1000000] [--blocks 4]

Fingerprints are random; a hundredth are copies of others with up to four bits flipped.
"""

import argparse
from time import perf_counter

import numpy as np

from ndd_search.core.methods.simhash import BITS, Tables, distance


def made(count: int, seed: int = 1) -> np.ndarray:
    """Return random fingerprints, uint64, shape (count,)."""
    generator = np.random.default_rng(seed)
    prints = generator.integers(0, 2**64, count, dtype=np.uint64)
    copies = count // 100
    places = generator.permutation(count)[: 2 * copies]
    turned = np.zeros(copies, np.uint64)
    for _ in range(4):
        bit = np.uint64(1) << generator.integers(0, BITS, copies, dtype=np.uint64)
        turned ^= np.where(generator.random(copies) < 0.7, bit, np.uint64(0))
    prints[places[:copies]] = prints[places[copies:]] ^ turned
    return prints


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prints", type=int, default=1_000_000)
    parser.add_argument("--blocks", type=int, default=4)
    arguments = parser.parse_args()
    prints = made(arguments.prints)
    start = perf_counter()
    tables = Tables(prints, blocks=arguments.blocks)
    held = len(prints) * (8 + 4 * len(tables.masks))  # bytes: each fingerprint, and its place in each table
    print(f"{len(prints):,} fingerprints in {len(tables.masks)} tables: {held / 1e6:.0f} MB", end=", ")
    print(f"built in {perf_counter() - start:.2f} s")
    queries = prints[:2000]
    start = perf_counter()
    found = [len(tables.near(query)[0]) for query in queries]
    print(f"one query {1e6 * (perf_counter() - start) / len(queries):.0f} us", end=", ")
    start = perf_counter()
    brute = [int((distance(prints, query) <= tables.most).sum()) for query in queries[:20]]
    print(f"comparing all {1e6 * (perf_counter() - start) / 20:.0f} us; the same finds: {brute == found[:20]}")
    start = perf_counter()
    first, _ = tables.pairs()
    print(f"all pairs: {len(first):,} in {perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()
