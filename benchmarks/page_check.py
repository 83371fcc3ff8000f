"""How long the check of one result page takes, by kind of page, next to other libraries in the same process.

    python -m benchmarks.page_check [--hits 100] [--k 64] [--rounds 15] [--json out.json]

Page kinds: distinct documents; 20 % and 40 % near-duplicates in clusters of 2 to 5; 100 edits of one text; 100
documents that share boilerplate at a resemblance of about 0.33; 50 pairs. Signatures are built beforehand. All methods
of a page take turns; figures are medians of processor time, in microseconds. Compare ratios within one run.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import time
from collections.abc import Callable

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import ndd_search as ndd
from benchmarks.page_kinds import KINDS, Documents, sketches_of
from ndd_search import native

MIN_SIMILARITY = 0.5


def ours(page: Documents, k: int) -> Callable[[], object]:
    sketches = sketches_of(page, k)
    return lambda: ndd.leaders(sketches, MIN_SIMILARITY, k)


def numpy_way(page: Documents, k: int) -> Callable[[], object]:
    check = ours(page, k)

    def without_core() -> object:
        core, native.core = native.core, None
        try:
            return check()
        finally:
            native.core = core

    return without_core


def datasketch_all_pairs(page: Documents, k: int) -> Callable[[], object]:
    from datasketch import MinHash

    signatures = []
    for document in page:
        signature = MinHash(num_perm=k, hashfunc=int)
        signature.update_batch(document.tolist())
        signatures.append(signature)

    def check() -> list[tuple[int, int]]:
        count = len(signatures)
        return [
            (i, j)
            for i in range(count)
            for j in range(i + 1, count)
            if signatures[i].jaccard(signatures[j]) >= MIN_SIMILARITY
        ]

    return check


def rensa_lsh(page: Documents, k: int) -> Callable[[], object]:
    from rensa import RMinHash, RMinHashLSH

    signatures = []
    for document in page:
        signature = RMinHash(num_perm=k, seed=42)
        signature.update([str(value) for value in document.tolist()])
        signatures.append(signature)

    def check() -> list[tuple[int, int]]:
        index = RMinHashLSH(threshold=MIN_SIMILARITY, num_perm=k, num_bands=32)
        found = []
        for i, signature in enumerate(signatures):
            found += [(j, i) for j in index.query(signature) if signatures[j].jaccard(signature) >= MIN_SIMILARITY]
            index.insert(i, signature)
        return found

    return check


METHODS = {
    "ndd_search": ours,
    "numpy": numpy_way,
    "datasketch, all pairs": datasketch_all_pairs,
    "rensa, LSH and verify": rensa_lsh,
}


def measure(methods: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median processor time of each, in microseconds; the methods take turns, each after a call that warms it up."""
    times: dict[str, list[float]] = {name: [] for name in methods}
    gc.disable()
    for _ in range(rounds):
        for name, method in methods.items():
            method()
            began = time.process_time_ns()
            method()
            times[name].append((time.process_time_ns() - began) / 1000)
    gc.enable()
    return {name: statistics.median(found) for name, found in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hits", type=int, default=100, help="hits on the page (100)")
    parser.add_argument("--k", type=int, default=64, help="values in a sketch, permutations in a signature (64)")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", help="write the figures to this file as well")
    arguments = parser.parse_args()
    found: dict[str, dict[str, float]] = {}
    for kind, make in KINDS.items():
        page = make(np.random.default_rng(1), arguments.hits)
        methods = {}
        for name, prepare in METHODS.items():
            try:
                methods[name] = prepare(page, arguments.k)
            except ImportError as missing:
                print(f"without {name}: {missing}")
        found[kind] = measure(methods, arguments.rounds)
    names = list(found["distinct"])
    print(f"| page of {arguments.hits}, k = {arguments.k}, µs | " + " | ".join(names) + " |")
    print("|---|" + "--:|" * len(names))
    for kind, row in found.items():
        cells = [f"{row[name]:,.0f} ({row[name] / row['ndd_search']:.1f}x)" for name in names]
        print(f"| {kind} | " + " | ".join(cells) + " |")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"hits": arguments.hits, "k": arguments.k, "microseconds": found}, file, indent=1)


if __name__ == "__main__":
    main()
