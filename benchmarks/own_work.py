"""Time the work of a wrapped search in the client alone: no engine, answers of 100 hits, a third of them copies.

    python -m benchmarks.own_work [--rounds 15] [--longer 0] [--calls | --list]

The transport of elasticsearch-py gets recorded answers in place of a node's, so that what the client does for a plain
search is measured beside it. "the lower bound" sends and parses the requests of two_phases with the plain client. The
last columns are medians of `ndd.took_ms`, our own work as each answer states it: from the request read to the page, for
one way repeated and for the ways in turn. Processor times are measured in turn: trust the ratios on a busy machine.

--calls counts instead which functions of `ndd_search` run: the files that hold them, the functions, and their calls.
--list prints them, too. A generator that continues counts as called. An expression (comprehension, generator
expression, lambda) is a part of its function. `cached_property` is not counted: from Python 3.12 on it is the standard
library's. "first" is the first search of a process.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any, NamedTuple

import elastic_transport
from elasticsearch import Elasticsearch

from benchmarks.measure import Method, measure

import ndd_search as ndd  # isort: skip  # after measure, which sets the number of its threads
from ndd_search.core.paging.cache import MemoryCache
from ndd_search.core.sketching.stored_sketch import SketchField

WORDS, HITS, PAGE = 150, 100, 10
ASKED = 1000  # searches whose `took_ms` is read
FIELD = SketchField()
MATCH = {"match": {"body": "market"}}
PACKAGE = Path(ndd.__file__).parent
Calls = Counter[tuple[str, str]]  # of functions, by file and name


def documents() -> list[dict[str, Any]]:
    """Return the hits of the engine: every third one is a copy of the one before with a changed word."""
    texts: list[str] = []
    for number in range(HITS):
        words = [f"w{number}x{place}" for place in range(WORDS)]
        texts.append(texts[-1].replace(texts[-1].split()[7], "changed") if number % 3 == 2 else " ".join(words))
    found = ndd.with_sketches([{"_index": "news", "_id": "", "body": text} for text in texts], fields=["body"])
    stored = [action["ndd"] for action in found]
    return [
        {
            "_index": "news",
            "_id": str(rank),
            "_seq_no": rank,
            "_primary_term": 1,
            "_score": 10 - rank / 100,
            "_source": {"body": text, "ndd": {"recipe": one["recipe"], "text": one["text"]}},
            "fields": {FIELD.sketch: one["sketch"], FIELD.recipe: [one["recipe"]]},
        }
        for rank, (text, one) in enumerate(zip(texts, stored, strict=True))
    ]


ENGINE = documents()


def found(body: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a search for some of the hits, with what it asks for."""
    start, asked = body.get("from", 0), body["query"]
    left_out = {"fields"} if "docvalue_fields" not in body else set[str]()
    left_out |= {"_source"} if body.get("_source") is False else set()
    left_out |= {"_id"} if body.get("stored_fields") == "_none_" else set()
    only = asked["bool"]["filter"][0]["terms"]["_seq_no"] if "bool" in asked else range(HITS)
    hits = [hit for hit in ENGINE if hit["_seq_no"] in only and "ids" not in asked]  # no frequency table is stored
    hits = [
        {name: value for name, value in hit.items() if name not in left_out}
        for hit in hits[start : start + body.get("size", PAGE)]
    ]
    total = {"value": 5 * HITS, "relation": "eq"}
    shards = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
    return {"took": 1, "timed_out": False, "_shards": shards, "hits": {"total": total, "max_score": 10, "hits": hits}}


class Recorded(NamedTuple):
    """An answer, as the nodes of elastic_transport return it."""

    meta: elastic_transport.ApiResponseMeta
    body: bytes


KNOWN: dict[tuple[str, bytes | None], Recorded] = {}


class RecordedNode(elastic_transport.BaseNode):
    """Answers a request that came before with the same bytes."""

    _CLIENT_META_HTTP_CLIENT = ("rc", "1")

    def perform_request(  # type: ignore[override]
        self, method: str, target: str, body: bytes | None = None, headers: Any = None, request_timeout: Any = None
    ) -> Recorded:
        """Return the recorded answer."""
        if (target, body) not in KNOWN:
            lines = [json.loads(line) for line in (body or b"").splitlines()]
            answer = {"took": 1, "responses": [found(one) for one in lines[1::2]]} if "_msearch" in target else None
            kind = elastic_transport.HttpHeaders(
                {"content-type": "application/json", "x-elastic-product": "Elasticsearch"}
            )
            meta = elastic_transport.ApiResponseMeta(200, "1.1", kind, 0.0, self.config)
            content = json.dumps(answer or found(lines[0]), separators=(",", ":")).encode()
            KNOWN[target, body] = Recorded(meta, content)
        return KNOWN[target, body]

    def close(self) -> None:
        """Close nothing."""


def ways() -> dict[str, Method]:
    """Return the ways to search."""

    def client() -> Elasticsearch:
        return Elasticsearch("http://recorded:9200", node_class=RecordedNode)

    plain = client()
    found: dict[str, Method] = {}
    page = {"query": MATCH, "_source": {"excludes": ["ndd"]}}
    window = {"query": MATCH, "size": HITS, "_source": False, "stored_fields": "_none_", "docvalue_fields": FIELD.read}
    lines = [{}, {**page, "size": PAGE}, {}, {**window, "track_total_hits": False}]
    found["plain, size 10"] = partial(plain.search, index="news", body={**page, "size": PAGE})
    found["plain, size 100"] = partial(plain.search, index="news", body={**page, "size": HITS})
    found["the lower bound"] = partial(plain.msearch, index="news", body=lines)
    ways_of_asking: dict[str, dict[str, Any]] = {
        "one_phase": {"timeout": "1m"},  # which is not split
        "two_phases": {},
        "two_phases, mode=count": {"ndd": {"mode": "count"}},
    }
    for name, options in ways_of_asking.items():
        wrapped = ndd.wrap(client(), cache=False)
        found[f"wrapped, {name}"] = partial(wrapped.search, index="news", body={"query": MATCH, **options})
    stored = ndd.wrap(client(), cache=MemoryCache(seconds=1e-9))  # each page is stored, and found no more
    found["wrapped, two_phases, stored in the cache"] = partial(stored.search, index="news", body={"query": MATCH})
    cached = ndd.wrap(client())
    found["wrapped, cached"] = partial(cached.search, index="news", body={"query": MATCH})
    return found


def stated(methods: Mapping[str, Method], order: Iterable[str]) -> dict[str, str]:
    """Return the median of the microseconds of own work that the answers of each way state, "" where none does."""
    taken: dict[str, list[float]] = {name: [] for name in methods}
    for name in order:
        answer: Any = methods[name]()
        if (block := answer.get("ndd")) and block["cache"] != "hit":
            taken[name].append(1000 * block["took_ms"])
    return {name: f"{median(found):,.0f}" if len(found) > ASKED / 2 else "" for name, found in taken.items()}


def counted(lists: bool) -> None:
    """Print how many files, functions and calls of the package each way takes, or which. Each has its own process."""
    print("| search | files | functions | calls | files, first | functions, first | calls, first |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in [name for name in ways() if name.startswith("wrapped")]:
        with get_context("fork").Pool(1) as pool:
            first, again = pool.apply(two_searches, (name,))
        counts = [f"{len({file for file, _ in one})} | {len(one)} | {one.total()}" for one in (again, first)]
        print(f"| {name} | {' | '.join(counts)} |")
        for place, ((file, function), calls) in enumerate(sorted(first.items()) if lists else ()):
            print(f"{place + 1}. {file}: {function}, {calls}, then {again[file, function]}")


def two_searches(name: str) -> tuple[Calls, Calls]:
    """Return the calls of the first and the third search of one way."""
    method = ways()[name]
    first, _, again = calls_of(method), method(), calls_of(method)
    return first, again


def calls_of(method: Method) -> Calls:
    """Return how often a search calls each function of the package."""
    calls = Calls()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        file = Path(code.co_filename)
        if event == "call" and PACKAGE in file.parents and code.co_name[0] != "<" and file.name != "immutable.py":
            calls[str(file.relative_to(PACKAGE)), code.co_qualname] += 1

    sys.setprofile(note)
    try:
        method()
    finally:
        sys.setprofile(None)
    return calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", action="store_true", help="count calls, and measure no time")
    parser.add_argument("--list", action="store_true", help="the same, and print what is called")
    parser.add_argument("--longer", type=int, default=0, help="characters that each document has beside its text")
    chosen, methods = parser.parse_args(), ways()
    for hit in ENGINE:
        hit["_source"]["more"] = "x " * (chosen.longer // 2)
    if chosen.calls or chosen.list:
        counted(chosen.list)
        return
    taken = measure(methods, chosen.rounds)
    repeated = stated(methods, [name for name in methods for _ in range(ASKED)])
    in_turn = stated(methods, [*methods] * ASKED)
    least = taken["the lower bound"]
    print("| µs | processor, a search | beyond the lower bound | took_ms, repeated | took_ms, in turn |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, one in taken.items():
        print(f"| {name} | {one:,.0f} | {max(one - least, 0):,.0f} | {repeated[name]} | {in_turn[name]} |")


if __name__ == "__main__":
    main()
