"""Measure a wrapped client against the plain client on a live server, and the time of each stage: Markdown tables.

    python -m tests.engines.launch opensearch3 --heap 1g        prints an address, runs until Ctrl-C
    python -m benchmarks.wrapped_search http://127.0.0.1:9200 [--documents 20000] [--repeats 300] [--profile]
    python -m benchmarks.wrapped_search http://127.0.0.1:9200 --collection FOLDER [--orjson]

Indexes are created and deleted at the end, each with sketches: short documents (0.3 kB) and long ones
(3 kB), a third of them near-copies; or the documents and queries of a labelled collection (documents.jsonl.gz,
queries.jsonl.gz), real text with copies. The ways to search take turns, so that other load affects all alike: trust the
ratios. The lower bound is one `_msearch` for the page and the sketches of the window, sent with the plain client, whose
answer is parsed and not used. Processor time is that of this process, the client; its fastest tenth is about what a
quiet machine takes. --orjson: all clients, plain and wrapped, read JSON with orjson.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import os
import platform
import random
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from itertools import cycle
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any, NamedTuple

import ndd_search as ndd
from benchmarks.stopwatch import Stopwatch
from benchmarks.workloads import LENGTHS, Workload, collected, generated
from ndd_search.core.paging.stream import Stream
from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.indexing.backfill import store_frequency_table
from ndd_search.search.flow import carry_out_search, fetch_hits, intercept_requests
from ndd_search.search.flow.choose_frequency_table import TABLES, document_id
from ndd_search.search.flow.plan import Plan
from ndd_search.search.rest.mapping import mapping_properties
from ndd_search.search.rest.read_request import Search

WARM_UP = 60  # searches before the measured ones
CONCURRENT = 200  # searches of an asynchronous client at once
NEW_CLIENTS = 15
COUNT = {"mode": "count"}
WHOLE = {"timeout": "1m"}  # a search that cannot be split, and is fetched in one phase
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
# The functions that take the time of our stages: their stage, the module or class that holds them, and their names.
TIMED: tuple[tuple[Any, ...], ...] = (
    (ASK, intercept_requests, "conversation"),
    (ASK, Plan, "requests", "documents"),
    (ASK, carry_out_search, "plan_of"),
    (DECODE, SketchField, "decode"),
    (PAIRS, Stream, "_assign_leaders"),
    (PAGE, fetch_hits, "with_more_hits", "with_documents"),
    (PAGE, carry_out_search, "slice_page", "unfiltered_body"),
    (PAGE, Search, "filtered"),
)

Way = Callable[[dict[str, Any]], Any]
Make = Callable[..., Any]


class Times(NamedTuple):
    """Milliseconds of a search: medians by the clock and of processor time, and of the fastest tenth of the latter."""

    wall: float
    processor: float
    fastest: float

    @classmethod
    def of(cls, taken: Sequence[tuple[float, float]], each: float = 1000) -> Times:
        """Summarize seconds by the clock and of the processor. each: what to multiply them with."""
        walls, processors = zip(*taken, strict=True)
        tenth = sorted(processors)[: max(1, len(processors) // 10)]
        return cls(median(walls) * each, median(processors) * each, median(tenth) * each)


def connect(url: str, asynchronous: bool = False, orjson: bool = False) -> tuple[Make, Any]:
    """Return a function that makes clients for the engine at an address, and the helpers of its library.

    orjson: whether the clients read JSON with orjson.
    """
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=10) as answer:
        distribution = json.load(answer)["version"].get("distribution", "elasticsearch")
    module, name = (
        ("opensearchpy", "OpenSearch") if distribution == "opensearch" else ("elasticsearch", "Elasticsearch")
    )
    make = getattr(importlib.import_module(module), f"Async{name}" if asynchronous else name)
    retry: dict[str, Any] = {"timeout": 120} if module == "opensearchpy" else {"request_timeout": 120}  # for merges
    if orjson:
        retry["serializer"] = with_orjson(module)
    return lambda **more: make(url, max_retries=0, **retry, **more), importlib.import_module(f"{module}.helpers")


def with_orjson(module: str) -> Any:
    """Return a serializer of a client's library that reads JSON with orjson."""
    serializers = importlib.import_module(f"{module}.serializer")
    if module == "elasticsearch":
        return serializers.OrjsonSerializer()
    loads = importlib.import_module("orjson").loads
    kind = type("OrjsonSerializer", (serializers.JSONSerializer,), {"loads": lambda self, text: loads(text)})
    return kind()


@contextmanager
def filled(url: str, workload: Workload, orjson: bool = False, shards: int = 1) -> Iterator[tuple[Make, str]]:
    """Yield a function that makes clients, and the name of an index that is deleted after the block.

    Each shard of the index has one segment.
    """
    make, helpers = connect(url, orjson=orjson)
    index = f"ndd-benchmark-{uuid.uuid4().hex[:12]}"
    with make() as client:
        mapping = {"properties": mapping_properties()}
        client.indices.create(index=index, body={"mappings": mapping, "settings": {"number_of_shards": shards}})
        try:
            sketched = ndd.with_sketches(workload.documents(index), fields=["body"])
            helpers.bulk(client, sketched, refresh=True)
            client.indices.forcemerge(index=index, max_num_segments=1)
            yield make, index
        finally:
            client.indices.delete(index=index)


def plain_search(client: Any, index: str, size: int) -> Way:
    """Return the engine's own page, without sketches in it."""
    rest = {"size": size, "_source": {"excludes": ["ndd", "ndd_keys"]}}
    return lambda query: client.search(index=index, body={"query": query, **rest})


def lower_bound(client: Any, index: str) -> Way:
    """Return what a wrapped search cannot do without: the page and the sketches of the window, in one `_msearch`.

    It is sent with a plain client, and nothing is done with the parsed answer.
    """
    page = {"size": 10, "_source": {"excludes": ["ndd", "ndd_keys"]}}
    read = list(SketchField().read)
    window = {"size": 100, "_source": False, "stored_fields": "_none_", "docvalue_fields": read}
    window["track_total_hits"] = False
    return lambda query: client.msearch(
        index=index, body=[{}, {"query": query, **page}, {}, {"query": query, **window}]
    )


def wrapped_search(client: Any, index: str, more: Mapping[str, Any] = MappingProxyType({}), **wishes: Any) -> Way:
    """Return a page of ten without near-duplicates. more: further keys of the body."""
    rest = {"size": 10, "ndd": wishes, **more}
    return lambda query: client.search(index=index, body={"query": query, **rest})


def milliseconds(ways: dict[str, Way], asked: list[Any], repeats: int) -> dict[str, Times]:
    """Return the medians of each way to search.

    They take turns, so that other load affects all alike. Each turn has another order, because a way that follows a
    similar one finds warm caches, and is a fifth faster.
    """
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    names, rng = list(ways), random.Random(1)
    for _, query in zip(range(repeats + WARM_UP), cycle(asked), strict=False):
        rng.shuffle(names)
        for name in names:
            began, before = time.perf_counter(), time.process_time()
            ways[name](query)
            taken[name].append((time.perf_counter() - began, time.process_time() - before))
    return {name: Times.of(of[WARM_UP:]) for name, of in taken.items()}


def compare(url: str, workload: Workload, repeats: int, orjson: bool = False) -> dict[str, Times]:
    """Return medians of plain and wrapped searches in an index made for them.

    Each wrapped client is of its own, because it learns from its searches.
    """
    wishes: dict[str, dict[str, Any]] = {
        "two_phases": {},
        "two_phases, mode=ids": {"mode": "ids"},
        "two_phases, mode=count": COUNT,
        "two_phases, mode=drop": {"mode": "drop"},
    }
    with filled(url, workload, orjson) as (make, index), make() as plain:
        ways = {f"plain, size {size}": plain_search(plain, index, size) for size in (10, 100)}
        ways["the lower bound"] = lower_bound(plain, index)
        for name, wish in wishes.items():
            ways[f"wrapped, {name}"] = wrapped_search(ndd.wrap(make(), cache=False), index, **wish)
        ways["wrapped, one_phase"] = wrapped_search(ndd.wrap(make(), cache=False), index, WHOLE)
        cached = {"wrapped, cached": wrapped_search(ndd.wrap(make()), index)}
        times = milliseconds(ways, workload.queries, repeats)
        times |= milliseconds(cached, workload.queries[:1], repeats)
        times |= first_searches(make, index, workload)
        return times | asyncio.run(at_once(url, index, workload, orjson))


def first_searches(make: Make, index: str, workload: Workload) -> dict[str, Times]:
    """Return the medians of the first search of new clients in turn: plain, wrapped without and with a stored table."""
    alias = f"{index}-alias"  # its searches read the table that is stored for it; those of the index find none
    ways: dict[str, Callable[[Any], Way]] = {
        "first search, plain": lambda client: plain_search(client, index, 10),
        "first search, wrapped": lambda client: wrapped_search(ndd.wrap(client), index),
        "first search, table stored": lambda client: wrapped_search(ndd.wrap(client), alias),
    }
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    with make() as writer:
        writer.indices.put_alias(index=index, name=alias)
        store_frequency_table(writer, alias, SketchField(), ndd.Recipe())
        for query, _ in zip(cycle(workload.queries), range(NEW_CLIENTS), strict=False):
            for name, of in taken.items():
                with make() as client:
                    way = ways[name](client)
                    began, before = time.perf_counter(), time.process_time()
                    way(query)
                    of.append((time.perf_counter() - began, time.process_time() - before))
        writer.delete(index=TABLES, id=document_id(alias, SketchField(), ndd.Recipe().id))
    return {name: Times.of(of) for name, of in taken.items()}


async def at_once(url: str, index: str, workload: Workload, orjson: bool = False) -> dict[str, Times]:
    """Return the milliseconds a search of many concurrent searches of one asynchronous client, plain and wrapped."""
    make, _ = connect(url, asynchronous=True, orjson=orjson)
    taken: dict[str, list[tuple[float, float]]] = {}
    async with make() as plain, make() as other, make() as third:
        clients = {
            "wrapped": (ndd.wrap(other, cache=False), {}),
            "wrapped, count": (ndd.wrap(third, cache=False), COUNT),
        }

        ways = {
            "plain": plain_search(plain, index, 10),
            "the lower bound": lower_bound(plain, index),
        }
        for name, (client, wishes) in clients.items():
            ways[name] = partial(_search_of_ten, client, index, wishes)
        for _ in range(5):
            for name, way in ways.items():
                asked = [query for query, _ in zip(cycle(workload.queries), range(CONCURRENT), strict=False)]
                began, before = time.perf_counter(), time.process_time()
                await asyncio.gather(*map(way, asked))
                taken.setdefault(name, []).append((time.perf_counter() - began, time.process_time() - before))
    return {f"{CONCURRENT} at once, {name}": Times.of(of[1:], 1000 / CONCURRENT) for name, of in taken.items()}


def _search_of_ten(client: Any, index: str, wishes: dict[str, Any], query: Any) -> Any:
    return client.search(index=index, body={"query": query, "size": 10, "ndd": wishes})


def profile(url: str, workload: Workload, repeats: int) -> dict[str, dict[str, float]]:
    """Return the median microseconds of each stage, for each way to search."""
    with filled(url, workload) as (make, index), make() as plain, make() as other:
        wrapped = ndd.wrap(other, min_similarity=0.8)
        ways = {f"plain, size {size}": (plain, plain_search(plain, index, size)) for size in (10, 100)}
        ways["one_phase"] = wrapped, wrapped_search(wrapped, index, WHOLE, cache=False)
        ways["two_phases"] = wrapped, wrapped_search(wrapped, index, cache=False)
        return {name: stages(client, way, workload.queries, repeats) for name, (client, way) in ways.items()}


def stages(client: Any, way: Way, asked: list[Any], repeats: int) -> dict[str, float]:
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
    for stage, owner, *names in TIMED:
        watch.put_under(stage, owner, *names)
    try:
        for query, _ in zip(cycle(asked), range(repeats + WARM_UP), strict=False):
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
    parser.add_argument(
        "--collection", type=Path, help="the folder of a labelled collection, instead of generated text"
    )
    parser.add_argument("--orjson", action="store_true", help="clients that read JSON with orjson")
    parser.add_argument("--profile", action="store_true", help="where each microsecond goes, instead of the comparison")
    chosen = parser.parse_args()
    print(f"{about(chosen.url)}; one shard and segment; size 10, window 100.\n")
    workloads = [generated(name, length, chosen.documents) for name, length in LENGTHS.items()]
    if chosen.collection:
        workloads = [collected(chosen.collection)]
    rows = []
    for workload in workloads:
        if chosen.profile:
            found = profile(chosen.url, workload, chosen.repeats)
            lines = [[label, *(f"{of.get(stage, 0):,.0f}" for of in found.values())] for stage, label in STAGES.items()]
            lines.append(["together", *(f"{sum(of.values()):,.0f}" for of in found.values())])
            table([f"µs, {workload.name}", *found], lines)
            continue
        times = compare(chosen.url, workload, chosen.repeats, chosen.orjson)
        ten, hundred = times["plain, size 10"], times["plain, size 100"]
        for way, one in times.items():
            walls = f"{one.wall:.2f}", f"{one.wall / ten.wall:.2f}", f"{one.wall / hundred.wall:.2f}"
            processor = f"{one.processor:.2f}", f"{one.processor / hundred.processor:.2f}"
            fastest = f"{one.fastest:.2f}", f"{one.fastest / hundred.fastest:.2f}"
            rows.append([workload.name, way, *walls, *processor, *fastest])
    if rows:
        ratios = [
            "median ms",
            "/ plain 10",
            "/ plain 100",
            "processor ms",
            "/ plain 100",
            "fastest tenth",
            "/ plain 100",
        ]
        table(["documents", "search", *ratios], rows)


if __name__ == "__main__":
    main()
