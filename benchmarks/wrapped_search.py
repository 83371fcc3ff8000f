"""What a wrapped client costs on a live server, against the plain client: medians in milliseconds, as Markdown.

    python -m tests.engines.launch opensearch3        prints an address, runs until Ctrl-C
    python -m benchmarks.wrapped_search http://127.0.0.1:9200 [--documents 20000] [--repeats 200]

Two indexes are made and deleted again: short documents (300 bytes) and long ones (3 kB), a third of them near-copies.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import time
import urllib.request
from collections.abc import Callable, Iterator
from itertools import cycle
from statistics import median
from typing import Any

import ndd_search as ndd
from ndd_search.indexing.templates import properties

WORDS = [f"{a}{b}{c}" for a in ("ka", "lo", "mi", "re", "su") for b in ("ban", "dor", "fel", "gim") for c in range(400)]
LENGTHS = {"0.3 kB": 40, "3 kB": 400}  # words
QUERIES = 20


def connect(url: str) -> tuple[Callable[[], Any], Any]:
    """A way to make clients for what answers at an address, and the helpers of its library."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=10) as answer:
        distribution = json.load(answer)["version"].get("distribution", "elasticsearch")
    module, name = (
        ("opensearchpy", "OpenSearch") if distribution == "opensearch" else ("elasticsearch", "Elasticsearch")
    )
    make = getattr(importlib.import_module(module), name)
    patience = {"timeout": 120} if module == "opensearchpy" else {"request_timeout": 120}  # for merges
    return lambda: make(url, max_retries=0, **patience), importlib.import_module(f"{module}.helpers")


def documents(index: str, count: int, length: int) -> Iterator[dict[str, Any]]:
    """Bulk actions; every third document is a near-copy of the one before it."""
    rng = random.Random(length)
    weights = [1 / (place + 10) for place in range(len(WORDS))]
    words: list[str] = []
    for number in range(count):
        if number % 3 == 2:
            words = [rng.choice(WORDS) if rng.random() < 0.01 else word for word in words]
        else:
            words = rng.choices(WORDS, weights, k=length)
        yield {"_index": index, "_id": str(number), "body": " ".join(words)}


def milliseconds(
    ways: dict[str, Callable[[dict[str, Any]], Any]], queries: list[Any], repeats: int
) -> dict[str, float]:
    """The median of each way to search; they take turns, so that what disturbs the machine disturbs them alike."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for query, _ in zip(cycle(queries), range(repeats + len(queries)), strict=False):
        for name, search in ways.items():
            began = time.perf_counter()
            search(query)
            taken[name].append((time.perf_counter() - began) * 1000)
    return {name: median(times[len(queries) :]) for name, times in taken.items()}  # the first of each query warm up


def measure(url: str, length: int, count: int, repeats: int) -> dict[str, float]:
    """Medians of plain and wrapped searches in an index of its own."""
    make, helpers = connect(url)
    index = f"ndd-benchmark-{length}"
    with make() as plain, make() as other, make() as fixed:
        plain.indices.delete(index=index, ignore_unavailable=True)
        plain.indices.create(index=index, body={"mappings": {"properties": properties()}})
        try:
            helpers.bulk(plain, ndd.with_sketches(documents(index, count, length), fields=["body"]), refresh=True)
            plain.indices.forcemerge(index=index, max_num_segments=1)
            wrapped, bar = ndd.wrap(other), ndd.wrap(fixed, min_similarity=0.8)
            source = {"_source": {"excludes": ["ndd"]}}

            def body(query: Any, size: int, **more: Any) -> dict[str, Any]:
                return {"query": query, "size": size, **more}

            rng = random.Random(1)
            queries = [{"match": {"body": " ".join(rng.sample(WORDS[:200], 2))}} for _ in range(QUERIES)]

            def by(client: Any, strategy: str) -> Callable[[dict[str, Any]], Any]:
                wish = {"cache": False, "strategy": strategy}
                return lambda query: client.search(index=index, body=body(query, 10, ndd=wish))

            ways = {
                "plain, size 10": lambda query: plain.search(index=index, body=body(query, 10, **source)),
                "plain, size 100": lambda query: plain.search(index=index, body=body(query, 100, **source)),
                **{f"wrapped, {name}": by(wrapped, name) for name in ("one_phase", "two_phase", "one_trip", "auto")},
                "wrapped, auto, bar 0.8": by(bar, "auto"),
            }
            found = milliseconds(ways, queries, repeats)
            cached = {"wrapped, cached": lambda query: wrapped.search(index=index, body=body(query, 10))}
            return {**found, **milliseconds(cached, queries[:1], repeats)}
        finally:
            plain.indices.delete(index=index)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=200)
    chosen = parser.parse_args()
    print("| documents | search | median ms | / plain 10 | / plain 100 |\n|---|---|---|---|---|")
    for name, length in LENGTHS.items():
        found = measure(chosen.url, length, chosen.documents, chosen.repeats)
        ten, hundred = found["plain, size 10"], found["plain, size 100"]
        for way, value in found.items():
            print(f"| {name} | {way} | {value:.3f} | {value / ten:.2f} | {value / hundred:.2f} |")


if __name__ == "__main__":
    main()
