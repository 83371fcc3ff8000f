"""Measure on a live server the cost of sketches at ingest and in a backfill, their size, and the recall of keys.

    python -m benchmarks.ingest URL overhead      bulk of documents of 3 kB, plain and through with_sketches, in turns
    python -m benchmarks.ingest URL backfill      200,000 documents of 1 kB, and the plain _reindex of the same index
    python -m benchmarks.ingest URL candidates    find_duplicates on the Factbook at 8 and 16 keys against brute force
    python -m benchmarks.ingest URL bytes         store size with and without the template's fields

`python -m tests.engines.launch opensearch3` starts a server. Texts are cut from the Factbook (tests/collections.py says
where it is expected). Figures are medians over alternating rounds; compare ratios within one run.
"""

from __future__ import annotations

import argparse
import importlib
import json
import resource
import statistics
import time
import timeit
import uuid
from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import Any

import numpy as np

import ndd_search as ndd
from ndd_search.cli.cluster import Address
from ndd_search.core.matching.decision import Decision
from ndd_search.core.matching.similarity_measures import similar_pairs
from ndd_search.core.matching.sketch_rows import rows_of
from ndd_search.core.sketching import sketch_many
from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.indexing.backfill import Backfill
from ndd_search.indexing.duplicates_in_index import CandidateSearch
from ndd_search.search.rest.mapping import mapping_properties
from tests.collections import read

PLAIN: dict[str, Any] = {"text": {"type": "text"}, "number": {"type": "long"}}
QUIET = {
    **{"number_of_shards": 1, "number_of_replicas": 0, "refresh_interval": "-1"},
    "store.stats_refresh_interval": "0s",  # by default the size of an index is up to ten seconds old
}
NAME = f"ndd-benchmark-{uuid.uuid4().hex[:12]}"


def texts(size: int) -> Iterator[str]:
    """Yield endlessly different texts of `size` characters: windows of the Factbook."""
    everything = "\n".join(document["text"] for document in read("factbook"))
    step = 7919  # prime and no multiple of the size, so windows of later rounds start at other positions
    for number in count():
        start = number * step % (len(everything) - size)
        yield everything[start : start + size]


def create(client: Any, name: str, fields: dict[str, Any]) -> None:
    client.indices.delete(index=name, ignore_unavailable=True)
    client.indices.create(index=name, body={"settings": QUIET, "mappings": {"dynamic": "strict", "properties": fields}})


def bulk_of(client: Any) -> Callable[..., Any]:
    return importlib.import_module(f"{type(client).__module__.partition('.')[0]}.helpers").bulk  # type: ignore[no-any-return]


def store(client: Any, name: str) -> int:
    client.indices.forcemerge(index=name, max_num_segments=1, flush=True)
    client.indices.refresh(index=name)
    return int(client.indices.stats(index=name, metric="store")["_all"]["primaries"]["store"]["size_in_bytes"])


def overhead(client: Any, documents: int, rounds: int) -> dict[str, float]:
    made = [{"_index": NAME, "text": text, "number": n} for n, text in enumerate(islice(texts(3_000), documents))]
    sketched = [dict(action) for action in ndd.with_sketches(made, "text")]
    ways = {
        "plain": lambda: made,
        "sketches made before": lambda: sketched,  # cost of the larger documents to the server
        "with_sketches": lambda: ndd.with_sketches(made, "text"),
        "with_sketches, no keys": lambda: ndd.with_sketches(made, "text", keys=0),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    own: dict[str, list[float]] = {name: [] for name in ways}
    engines: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, actions in ways.items():
            create(client, NAME, {**PLAIN, **mapping_properties()})
            began, used, used_there = time.perf_counter(), time.process_time(), processor(client)
            bulk_of(client)(client, actions())  # type: ignore[no-untyped-call]
            if number:  # the first round warms the server up
                engines[name].append(processor(client) - used_there)
                seconds[name].append(time.perf_counter() - began)
                own[name].append(time.process_time() - used)
    plain = statistics.median(seconds["plain"])
    for name in ways:
        median = statistics.median(seconds[name])
        client_ms = 1_000 * statistics.median(own[name]) / documents
        engine = statistics.median(engines[name])
        rate, times = documents / median, engine / statistics.median(engines["plain"])
        told = (
            f"{name:24} {rate:8,.0f} documents/s   {median / plain:5.2f} x plain   client {client_ms:.3f} ms/document"
        )
        print(f"{told}   processor of the engine {1_000 * engine / documents:.3f} ms/document, {times:.2f} x plain")
    return {name: statistics.median(values) / plain for name, values in seconds.items()}


def processor(client: Any) -> float:
    """Return the processor seconds that the server has used; of use if nobody else uses it."""
    (node,) = client.nodes.stats(metric="process")["nodes"].values()
    return float(node["process"]["cpu"]["total_in_millis"]) / 1_000


def backfill(client: Any, documents: int) -> dict[str, float]:
    create(client, NAME, PLAIN)
    actions = ({"_index": NAME, "_id": str(n), "text": text, "number": n} for n, text in enumerate(texts(1_000)))
    bulk_of(client)(client, islice(actions, documents))
    client.indices.refresh(index=NAME)
    copy = f"{NAME}-copy"
    create(client, copy, PLAIN)
    began = time.perf_counter()
    told: dict[str, float] = {}
    try:
        body = {"source": {"index": NAME, "size": 500}, "dest": {"index": copy}}
        task = client.reindex(body=body, wait_for_completion=False)["task"]
        while not client.tasks.get(task_id=task)["completed"]:
            time.sleep(0.2)
        told["_reindex"] = documents / (time.perf_counter() - began)
    except Exception as error:  # Elasticsearch from published jars has no _reindex
        print(f"no _reindex here: {error}")
    client.indices.delete(index=copy)
    used = time.process_time()
    memory: list[int] = []
    began = time.perf_counter()
    settings = Backfill(index=NAME, fields=["text"], slices=2)
    report = settings.run(client, lambda done, total: memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
    told["backfill"] = documents / (time.perf_counter() - began)
    told["client ms a document"] = 1_000 * (time.process_time() - used) / documents
    assert (report.tally.written, report.remaining) == (documents, 0)
    tenth = max(len(memory) // 10, 1)
    told["memory after a tenth, MB"], told["memory at the end, MB"] = memory[tenth] / 1_024, memory[-1] / 1_024
    for name, value in told.items():
        print(f"{name:28} {value:10,.3f}" if value < 10 else f"{name:28} {value:10,.0f}")
    return told


def candidates(client: Any, rounds: int) -> dict[str, Any]:
    documents = read("factbook")
    create(client, NAME, {**PLAIN, "id": {"type": "keyword"}, **mapping_properties()})
    made = ({"_index": NAME, "_id": one["id"], "text": one["text"]} for one in documents)
    bulk_of(client)(client, ndd.with_sketches(made, "text", keys=16))
    client.indices.refresh(index=NAME)
    sketches = sketch_many(one["text"] for one in documents)
    told: dict[str, Any] = {}
    for bar in (0.5, 0.7):
        pairs = similar_pairs(rows_of(sketches, 64), Decision.of(bar, ndd.Recipe()))
        expected = set(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))
        place = {one["id"]: number for number, one in enumerate(documents)}
        for keys in (8, 16):
            search = CandidateSearch(keys=keys, min_similarity=bar)
            found, milliseconds, compared = set(), [], []
            for number, sketch in enumerate(sketches):
                began = time.perf_counter()
                hits = client.search(index=NAME, body=search.body(sketch))["hits"]["hits"]
                near = search.verified(sketch, hits)
                milliseconds.append(1_000 * (time.perf_counter() - began))
                compared.append(len(hits))
                found |= {(min(number, place[one.id]), max(number, place[one.id])) for one in near}
            found -= {(number, number) for number in range(len(documents))}
            told[f"{bar} {keys}"] = facts = {
                "pairs": len(expected),
                "recall": len(found & expected) / len(expected),
                "precision": len(found & expected) / len(found),
                "compared": statistics.mean(compared),
                "median ms": statistics.median(milliseconds),
            }
            print(f"bar {bar}, {keys:2} keys: " + ", ".join(f"{name} {value:.4g}" for name, value in facts.items()))
    rng = np.random.default_rng(3)
    milliseconds = []
    for number in rng.choice(len(documents), 200 * rounds).tolist():
        words = " ".join(documents[number]["text"].split()[:4])
        body = {"query": {"match": {"text": words}}, "size": 10, "_source": False}
        began = time.perf_counter()
        client.search(index=NAME, body=body)
        milliseconds.append(1_000 * (time.perf_counter() - began))
    told["match"] = statistics.median(milliseconds)
    print(f"a match query of four words: median {told['match']:.3g} ms")
    return told


def response(client: Any, fields: list[str]) -> float:
    """Return the bytes of a response with the sketches of 100 hits, and print the time to parse it."""
    body = {"size": 100, "_source": False, "stored_fields": "_none_", "docvalue_fields": fields}
    text = json.dumps(getattr(found := client.search(index=NAME, body=body), "body", found))
    parsed = min(timeit.repeat(lambda: json.loads(text), number=10, repeat=20)) / 10
    print(f"{'':28} {len(text):8,} bytes in a response of 100 hits, {parsed * 1e6:,.0f} µs to parse")
    return float(len(text))


def sizes(client: Any, documents: int) -> dict[str, float]:
    where = SketchField()
    full = mapping_properties()
    no_object = {**full, where.name: {"type": "object", "enabled": False}}
    unread = {**no_object, where.keys: {"type": "keyword", "index": False, "doc_values": False}}
    variants: dict[str, tuple[dict[str, Any], int]] = {
        "no sketch": (PLAIN, -1),
        "sketch": ({**PLAIN, **full}, 0),
        "sketch in _source alone": ({**PLAIN, **unread}, 0),
        "sketch mapped dynamically": (PLAIN, 0),
        "with 8 keys": ({**PLAIN, **full}, 8),
        "with 16 keys": ({**PLAIN, **full}, 16),
    }
    told: dict[str, float] = {}
    for name, (fields, keys) in variants.items():
        create(client, NAME, fields)
        if name == "sketch mapped dynamically":
            client.indices.put_mapping(index=NAME, body={"dynamic": True})
        made: Any = ({"_index": NAME, "text": text, "number": n} for n, text in enumerate(texts(3_000)))
        made = islice(made, documents)
        bulk_of(client)(client, made if keys < 0 else ndd.with_sketches(made, "text", keys=keys))
        told[name] = store(client, NAME) / documents
        print(f"{name:28} {told[name]:8,.0f} bytes/document   {told[name] - told['no sketch']:+8,.0f}")
        if name == "sketch":
            told["a response"] = response(client, [*where.read])
    return told


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ingest", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("url")
    parser.add_argument("what", choices=("overhead", "backfill", "candidates", "bytes"))
    parser.add_argument("--documents", type=int, help="how many (overhead 10,000; backfill 200,000; bytes 20,000)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", metavar="FILE")
    given = parser.parse_args()
    address = Address.parse(given.url)
    with address.client(address.detect()) as client:
        told: Any = {  # type: ignore[no-untyped-call]
            "overhead": lambda: overhead(client, given.documents or 10_000, given.rounds),
            "backfill": lambda: backfill(client, given.documents or 200_000),
            "candidates": lambda: candidates(client, given.rounds),
            "bytes": lambda: sizes(client, given.documents or 20_000),
        }[given.what]()
        client.indices.delete(index=NAME, ignore_unavailable=True)
    if given.json:
        with open(given.json, "w", encoding="utf-8") as out:
            json.dump(told, out, indent=2)


if __name__ == "__main__":
    main()
