"""Measure a wrapped client against the plain client on a live server, and the time of each stage: Markdown tables.

    python -m tests.engines.launch opensearch3 --heap 1g        prints an address, runs until Ctrl-C
    python -m benchmarks.wrapped_search http://127.0.0.1:9200 [--documents 20000] [--repeats 300] [--profile]

Two indexes are created and deleted at the end: short documents (0.3 kB) and long ones (3 kB);
a third are near-copies.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import random
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from itertools import cycle
from statistics import median
from typing import Any

import ndd_search as ndd
from benchmarks.stopwatch import Stopwatch
from ndd_search.indexing.templates import mapping_properties
from ndd_search.middleware import conversation, driver, fetch_hits
from ndd_search.middleware.plan import Plan
from ndd_search.paging.stream import Stream
from ndd_search.sketching.field import SketchField

WORDS = [f"{a}{b}{c}" for a in ("ka", "lo", "mi", "re", "su") for b in ("ban", "dor", "fel", "gim") for c in range(400)]
LENGTHS = {"0.3 kB": 40, "3 kB": 400}  # words
QUERIES = 20
WARM_UP = 60  # searches before the measured ones
DISTRIBUTIONS = {"elasticsearch": "elasticsearch", "opensearchpy": "opensearch-py"}  # of the clients' packages

# Stages of a search, innermost first, and their titles.
ENGINE, JSON, ASK, DECODE, PAIRS, PAGE = "engine", "json", "ask", "decode", "pairs", "page"
STAGES = {
    ENGINE: "the engine and the way there and back",
    JSON: "the client: JSON",
    "": "the client: everything else, and our hook",
    ASK: "ours: what to ask",
    DECODE: "ours: sketches out of the answer",
    PAIRS: "ours: which are near-duplicates",
    PAGE: "ours: groups, the page, the answer",
}

Way = Callable[[dict[str, Any]], Any]


def connect(url: str) -> tuple[Callable[[], Any], Any]:
    """Return a function that makes clients for the engine at an address, and the helpers of its library."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=10) as answer:
        distribution = json.load(answer)["version"].get("distribution", "elasticsearch")
    module, name = (
        ("opensearchpy", "OpenSearch") if distribution == "opensearch" else ("elasticsearch", "Elasticsearch")
    )
    make = getattr(importlib.import_module(module), name)
    retry = {"timeout": 120} if module == "opensearchpy" else {"request_timeout": 120}  # for merges
    return lambda: make(url, max_retries=0, **retry), importlib.import_module(f"{module}.helpers")


def documents(index: str, count: int, length: int) -> Iterator[dict[str, Any]]:
    """Yield bulk actions; every third document is a near-copy of the one before it."""
    rng = random.Random(length)
    weights = [1 / (place + 10) for place in range(len(WORDS))]
    words: list[str] = []
    for number in range(count):
        if number % 3 == 2:
            words = [rng.choice(WORDS) if rng.random() < 0.01 else word for word in words]
        else:
            words = rng.choices(WORDS, weights, k=length)
        yield {"_index": index, "_id": str(number), "body": " ".join(words)}


@contextmanager
def filled(url: str, length: int, count: int) -> Iterator[tuple[Callable[[], Any], str]]:
    """Yield a function that makes clients, and the name of an index of one segment that is deleted after the block."""
    make, helpers = connect(url)
    index = f"ndd-benchmark-{length}-{uuid.uuid4().hex[:8]}"
    with make() as client:
        client.indices.create(index=index, body={"mappings": {"properties": mapping_properties()}})
        try:
            helpers.bulk(client, ndd.with_sketches(documents(index, count, length), fields=["body"]), refresh=True)
            client.indices.forcemerge(index=index, max_num_segments=1)
            yield make, index
        finally:
            client.indices.delete(index=index)


def queries() -> list[dict[str, Any]]:
    """Return queries: pairs of frequent words."""
    rng = random.Random(1)
    return [{"match": {"body": " ".join(rng.sample(WORDS[:200], 2))}} for _ in range(QUERIES)]


def plain_search(client: Any, index: str, size: int) -> Way:
    """Return the engine's own page, without sketches in it."""
    rest = {"size": size, "_source": {"excludes": ["ndd"]}}
    return lambda query: client.search(index=index, body={"query": query, **rest})


def wrapped_search(client: Any, index: str, **wishes: Any) -> Way:
    """Return a page of ten without near-duplicates."""
    rest = {"size": 10, "ndd": wishes}
    return lambda query: client.search(index=index, body={"query": query, **rest})


def milliseconds(ways: dict[str, Way], asked: list[Any], repeats: int) -> dict[str, float]:
    """Return the median of each way to search. They alternate, so that other load affects all alike."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    names = list(ways)
    for turn, query in zip(range(repeats + WARM_UP), cycle(asked), strict=False):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            began = time.perf_counter()
            ways[name](query)
            taken[name].append((time.perf_counter() - began) * 1000)
    return {name: median(times[WARM_UP:]) for name, times in taken.items()}


def compare(url: str, length: int, count: int, repeats: int) -> dict[str, float]:
    """Return medians of plain and wrapped searches in an index made for them."""
    with filled(url, length, count) as (make, index), make() as plain, make() as other, make() as fixed:
        wrapped, bar = ndd.wrap(other), ndd.wrap(fixed, min_similarity=0.8)
        ways = {f"plain, size {size}": plain_search(plain, index, size) for size in (10, 100)}
        for strategy in ("one_phase", "one_trip", "auto"):
            ways[f"wrapped, {strategy}"] = wrapped_search(wrapped, index, cache=False, strategy=strategy)
        ways["wrapped, auto, bar 0.8"] = wrapped_search(bar, index, cache=False)
        cached = {"wrapped, cached": wrapped_search(wrapped, index)}
        return milliseconds(ways, queries(), repeats) | milliseconds(cached, queries()[:1], repeats)


def profile(url: str, length: int, count: int, repeats: int) -> dict[str, dict[str, float]]:
    """Return the median microseconds of each stage, for each way to search."""
    with filled(url, length, count) as (make, index), make() as plain, make() as other:
        wrapped = ndd.wrap(other, min_similarity=0.8)
        ways = {f"plain, size {size}": (plain, plain_search(plain, index, size)) for size in (10, 100)}
        for strategy in ("one_phase", "one_trip"):
            ways[strategy] = wrapped, wrapped_search(wrapped, index, cache=False, strategy=strategy)
        return {name: stages(client, way, repeats) for name, (client, way) in ways.items()}


def stages(client: Any, way: Way, repeats: int) -> dict[str, float]:
    """Return the median microseconds of each stage of a search."""
    watch = Stopwatch()
    transport = getattr(client, "_transport", None) or client.transport
    transport = getattr(transport, "inner", transport)
    if hasattr(transport, "node_pool"):
        watch.put_under(ENGINE, transport.node_pool.get(), "perform_request")
        watch.put_under(JSON, transport.serializers, "loads", "dumps")
    else:
        watch.put_under(ENGINE, transport.get_connection(), "perform_request")
        watch.put_under(JSON, transport.deserializer, "loads")
        watch.put_under(JSON, transport.serializer, "dumps")
    watch.put_under(ASK, driver, "conversation")
    watch.put_under(ASK, Plan, "requests", "document_requests")
    watch.put_under(ASK, conversation, "plan_of")
    watch.put_under(DECODE, SketchField, "decode")
    watch.put_under(PAIRS, Stream, "_assign_leaders")
    watch.put_under(PAGE, fetch_hits, "extended", "with_documents")
    watch.put_under(PAGE, conversation, "slice_page", "page_body")
    try:
        for query, _ in zip(cycle(queries()), range(repeats + WARM_UP), strict=False):
            watch.call(lambda query=query: way(query))  # type: ignore[misc]
        del watch.calls[:WARM_UP]
        return watch.microseconds()
    finally:
        watch.take_off()


def table(head: list[str], rows: list[list[Any]]) -> None:
    """Print Markdown."""
    print("|", " | ".join(head), "|")
    print("|---|", "|".join(["--:"] * (len(head) - 1)), "|", sep="")
    for row in rows:
        print("|", " | ".join(row), "|")
    print()


def about(url: str) -> str:
    """Return what was measured, on one line."""
    make, _ = connect(url)
    with make() as client:
        server = client.info()["version"]
        package = type(client).__module__.partition(".")[0]
    engine = f"{server.get('distribution', 'elasticsearch')} {server['number']}"
    library = DISTRIBUTIONS[package]
    return f"{engine}, client {library} {version(library)}, Python {platform.python_version()}, {os.cpu_count()} cores"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=300)
    parser.add_argument("--profile", action="store_true", help="where each microsecond goes, instead of the comparison")
    chosen = parser.parse_args()
    print(f"{about(chosen.url)}; {chosen.documents:,} documents, one shard and segment; size 10, window 100.\n")
    given = chosen.documents, chosen.repeats
    if chosen.profile:
        for name, length in LENGTHS.items():
            found = profile(chosen.url, length, *given)
            rows = [[label, *(f"{of.get(stage, 0):,.0f}" for of in found.values())] for stage, label in STAGES.items()]
            rows.append(["together", *(f"{sum(of.values()):,.0f}" for of in found.values())])
            table([f"µs, documents of {name}", *found], rows)
        return
    rows = []
    for name, length in LENGTHS.items():
        times = compare(chosen.url, length, *given)
        ten, hundred = times["plain, size 10"], times["plain, size 100"]
        rows += [[name, way, f"{t:.3f}", f"{t / ten:.2f}", f"{t / hundred:.2f}"] for way, t in times.items()]
    table(["documents", "search", "median ms", "/ plain 10", "/ plain 100"], rows)


if __name__ == "__main__":
    main()
