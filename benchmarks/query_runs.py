"""Measure how often a wrapped search runs its query in the engine, and what a search costs: a Markdown table.

    python -m tests.engines.launch opensearch3 --heap 1g        prints an address, runs until Ctrl-C
    python -m benchmarks.query_runs http://127.0.0.1:9200 [--documents 100000] [--words 130] [--rounds 3] [--only bool]
    python -m tests.engines.launch opensearch3 --nodes 3        a cluster; ask it with --shards 3

Two indexes of generated documents are made and deleted at the end. In one a third of the documents are near-copies; the
other one, with a tenth of the documents, holds five copies of each text, and is searched by the rows with "copies". A
document has --words words of 7 characters. Plain and wrapped searches take turns; trust the ratios.

wall:      the median time of a search; of the row "first search" of new clients, whose import and connection count.
processor: of the client and of all nodes of the cluster, so nothing else may use the cluster. Nodes state it once a
           second, and the benchmark waits for that.
query:     the time that shards spend on queries, as the engine states it: how often the query runs, if each time costs
           the same. fetch: the same for reading documents and sketches.
phases:    query phases of a shard for each search.
bound:     the requests of the wrapped search alone, sent by a plain client, whose answers are parsed and not used:
           their processor time is the lower bound of this way to search. Of the row "first search" it is left out.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle, islice
from typing import Any, NamedTuple

import ndd_search as ndd
from benchmarks.workloads import WORDS, Workload, documents, queries
from benchmarks.wrapped_search import about, connect, filled, table
from ndd_search.core.paging.cache import MemoryCache

_STATED = 1.1  # seconds after which a node's statement about its processor is new
_ASKED = 20  # searches in a turn
Query = dict[str, Any]
Search = Callable[[Query], Any]


@dataclass(frozen=True)
class Row:
    """A kind of search. queries: that it sends. body: more of the request. wishes: options of the wrapped client.

    client: arguments of a client, whose wrapped search is compared with that of a client without them.
    """

    name: str
    queries: list[Query]
    body: dict[str, Any] = field(default_factory=dict)
    wishes: dict[str, Any] = field(default_factory=dict)
    copies: bool = False
    client: dict[str, Any] = field(default_factory=dict)
    anew: str = ""  # "search": the cache forgets each page; "client": each search is a new client's first


class Cost(NamedTuple):
    """Of a search, in milliseconds; phases is a number."""

    wall: float
    processor: float
    query: float
    fetch: float
    phases: float


def expensive() -> dict[str, list[Query]]:
    """Return queries that cost an engine more than its hits: `bool` of several clauses, `function_score`."""
    rng = random.Random(2)
    found: dict[str, list[Query]] = {"bool": [], "function_score": []}
    for _ in range(_ASKED):
        words = rng.sample(WORDS[:60], 6)
        clauses = {
            "should": [{"match": {"body": word}} for word in words[:4]],
            "must": [{"match": {"body": " ".join(words[4:])}}],
            "must_not": [{"term": {"body": WORDS[900]}}],
        }
        found["bool"].append({"bool": clauses})
        script = {"random_score": {"seed": 7, "field": "_seq_no"}, "boost_mode": "sum"}
        found["function_score"].append({"function_score": {"query": {"match": {"body": " ".join(words)}}, **script}})
    return found


def rows() -> list[Row]:
    """Return the kinds of searches."""
    common, costly = queries(), expensive()
    return [
        Row("match", common),
        Row("match, mode=count", common, wishes={"mode": "count"}),
        Row("bool", costly["bool"]),
        Row("function_score", costly["function_score"]),
        Row("match, one phase", common, {"timeout": "1m"}),  # which is not split
        Row("bool, one phase", costly["bool"], {"timeout": "1m"}),
        Row("match, copies", common, copies=True),
        Row("match, copies, mode=count", common, copies=True, wishes={"mode": "count"}),
        Row("bool, copies", costly["bool"], copies=True),
        Row("bool, copies, one phase", costly["bool"], {"timeout": "1m"}, copies=True),
        Row("match, page 10", common, {"from": 90}),
        Row("match, total=groups", common[:4], wishes={"total": "groups"}),
        Row("match, members=all", common[:4], wishes={"members": "all"}),
        Row("match, http_compress / without it", common, client={"http_compress": True}),
        Row("match, stored in the cache", common, anew="search"),
        Row("match, first search", common[:10], anew="client"),
    ]


def fives(index: str, count: int, length: int) -> Iterator[dict[str, Any]]:
    """Yield bulk actions: five near-copies of each text, far apart."""
    texts = [one["body"].split() for one in islice(documents(index, count // 2, length), 0, None, 3)][: count // 5]
    rng = random.Random(length)
    for number in range(5 * len(texts)):
        text = [rng.choice(WORDS) if rng.random() < 0.01 else word for word in texts[number % len(texts)]]
        yield {"_index": index, "_id": str(number), "body": " ".join(text)}


def searches(row: Row, make: Callable[..., Any], index: str) -> dict[str, Search]:
    """Return the plain and the wrapped search of a row, and the requests of the wrapped one alone."""
    page = {"size": 10, **row.body}
    source = {"_source": {"excludes": ["ndd", "ndd_keys"]}}
    plain, other, cache = make(), make(**row.client), MemoryCache()
    wrapped = ndd.wrap(other, cache=cache if row.anew == "search" else False)
    if row.client:  # in place of the plain client
        plain, source = ndd.wrap(plain, cache=False), {"ndd": row.wishes}

    def search(client: Any, query: Query, more: dict[str, Any]) -> Any:
        return client.search(index=index, body={"query": query, **page, **more})

    def searched(query: Query) -> Any:
        cache.clear()
        return search(wrapped, query, {"ndd": row.wishes})

    def first(wraps: bool) -> Search:
        def one(query: Query) -> Any:
            with make() as client:
                used, more = (ndd.wrap(client), {"ndd": row.wishes}) if wraps else (client, source)
                return search(used, query, more)

        return one

    if row.anew == "client":
        return {"plain": first(False), "wrapped": first(True)}
    sent = {str(query): sent_by(other, partial(searched, query)) for query in row.queries}
    own = transport_of(make(**row.client))

    def bound(query: Query) -> None:
        for arguments, others in sent[str(query)]:
            own.perform_request(*arguments, **others)

    return {"plain": lambda query: search(plain, query, source), "wrapped": searched, "bound": bound}


def transport_of(client: Any) -> Any:
    """Return what sends the requests of a client, below `ndd.wrap`."""
    transport = getattr(client, "_transport", None) or client.transport
    return getattr(transport, "inner", transport)


def sent_by(client: Any, search: Callable[[], Any]) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Return the requests of a wrapped client's search, as arguments of its transport's `perform_request`."""
    search()  # the first one of a client asks for more
    transport, sent = transport_of(client), []
    inner = transport.perform_request

    def perform_request(*arguments: Any, **others: Any) -> Any:
        sent.append((arguments, others))
        return inner(*arguments, **others)

    transport.perform_request = perform_request
    try:
        search()
    finally:
        del transport.perform_request
    return sent


def stated(client: Any, index: str) -> dict[str, float]:
    """Return what the cluster has used so far, in milliseconds, and its query phases."""
    time.sleep(_STATED)
    nodes = client.nodes.stats(metric="process")["nodes"].values()
    of = client.indices.stats(index=index, metric="search")["_all"]["total"]["search"]
    used = {"query": of["query_time_in_millis"], "fetch": of["fetch_time_in_millis"], "phases": of["query_total"]}
    return {**used, "engine": sum(node["process"]["cpu"]["total_in_millis"] for node in nodes)}


def costs(row: Row, make: Callable[..., Any], index: str, rounds: int) -> dict[str, Cost]:
    """Return what each search of a row costs."""
    ways = searches(row, make, index)
    walls: dict[str, list[float]] = {name: [] for name in ways}
    used: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    with make() as watcher:
        for turn in range(rounds + 1):  # the first one warms up
            for name, way in sorted(ways.items(), reverse=bool(turn % 2)):
                before, own, taken = stated(watcher, index), time.process_time(), []
                for query in islice(cycle(row.queries), _ASKED):
                    began = time.perf_counter()
                    way(query)
                    taken.append(1000 * (time.perf_counter() - began))
                own = 1000 * (time.process_time() - own)
                spent = {key: value - before[key] for key, value in stated(watcher, index).items()}
                if turn:
                    walls[name] += taken
                    used[name].append({**spent, "client": own})
    found = {}
    for name, turns in used.items():
        mean = {key: sum(one[key] for one in turns) / (rounds * _ASKED) for key in turns[0]}
        processor = mean["client"] + mean["engine"]
        found[name] = Cost(statistics.median(walls[name]), processor, mean["query"], mean["fetch"], mean["phases"])
    return found


def line(row: Row, found: dict[str, Cost]) -> list[str]:
    """Return the line of a row."""
    plain, wrapped = found["plain"], found["wrapped"]
    ratios = [f"{new / old:.2f}" if old else "" for new, old in zip(wrapped[:4], plain[:4], strict=True)]
    bound = f"{found['bound'].processor / plain.processor:.2f}" if "bound" in found else ""
    times = [f"{one.wall:.1f}" for one in (plain, wrapped)]
    return [row.name, *times, *ratios[:2], bound, *ratios[2:], f"{wrapped.phases:.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--words", type=int, default=130)
    parser.add_argument("--shards", type=int, default=1, help="of each index; its replicas are those of the engine")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="part of the names of the rows to measure")
    chosen = parser.parse_args()
    make, _ = connect(chosen.url)
    asked = [row for row in rows() if chosen.only in row.name]
    lines = []
    for copies, generated, count in ((False, documents, chosen.documents), (True, fives, chosen.documents // 10)):
        workload = Workload("", partial(generated, count=count, length=chosen.words), [])
        if mine := [row for row in asked if row.copies == copies]:
            with filled(chosen.url, workload, shards=chosen.shards) as (_, index):
                lines += [line(row, costs(row, make, index, chosen.rounds)) for row in mine]
    kind = f"{chosen.documents:,} documents of {chosen.words} words in {chosen.shards} shards"
    print(f"{about(chosen.url)}; {kind}; size 10, window 100.\n")
    head = ["search", "plain ms", "wrapped ms", "wall ×", "processor ×", "bound ×", "query ×", "fetch ×", "phases"]
    table(head, lines)


if __name__ == "__main__":
    main()
