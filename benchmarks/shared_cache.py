"""Measure a page of a wrapped client without a cache, remembered in memory, and remembered in Redis, in turns.

    python -m tests.engines.launch elasticsearch9
    python -m benchmarks.shared_cache http://127.0.0.1:PORT redis://127.0.0.1:6379/0

The figures are milliseconds of a page of ten hits, window 100. The least are comparable on a busy machine, too. Index
and keys are removed at the end.
"""

from __future__ import annotations

import argparse
import random
import uuid
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

from elasticsearch import Elasticsearch, helpers

import ndd_search as ndd
from ndd_search.core.paging.cache import MemoryCache

_WORDS = 50  # of a document
_WARM, _ROUNDS = 20, 200


def documents(count: int) -> list[dict[str, Any]]:
    """Return documents; every third one is a copy of the one before with a changed word."""
    rng = random.Random(1)
    made: list[dict[str, Any]] = []
    for number in range(count):
        words = [f"w{rng.randrange(5000)}" for _ in range(_WORDS)]
        if number % 3 == 2:
            words = [*made[-1]["body"].split()[:-1], "changed"]
        made.append({"_id": str(number), "body": " ".join([*words, f"topic{rng.randrange(50)}"])})
    return made


def measure(ways: dict[str, Callable[[int], Any]]) -> dict[str, tuple[float, float]]:
    """Return the median and the least milliseconds of each way. The ways take turns, and are given the round."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(_WARM + _ROUNDS):
        for name, way in ways.items():
            began = perf_counter()
            way(number)
            if number >= _WARM:
                times[name].append((perf_counter() - began) * 1000)
    return {name: (median(taken), min(taken)) for name, taken in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("url", help="of an Elasticsearch")
    parser.add_argument("redis", help="of a Redis or Valkey")
    parser.add_argument("--documents", type=int, default=20_000)
    arguments = parser.parse_args()
    index, prefix = f"ndd-bench-{uuid.uuid4().hex[:8]}", uuid.uuid4().hex
    shared = ndd.plugins.RedisCache(arguments.redis, prefix=prefix, seconds=600.0, budget=1.0)
    caches: dict[str, Any] = {"no cache": False, "memory": MemoryCache(seconds=600.0), "redis": shared}
    clients = {name: Elasticsearch(arguments.url) for name in ("plain", *caches)}
    plain = clients["plain"]
    plain.indices.create(index=index, body={"mappings": {"properties": ndd.indexing.mapping_properties()}})
    try:
        acts = ({"_index": index, **one} for one in documents(arguments.documents))
        helpers.bulk(plain, ndd.with_sketches(acts, fields=["body"]), refresh=True)
        plain.indices.forcemerge(index=index, max_num_segments=1)
        for name, cache in caches.items():
            ndd.wrap(clients[name], cache=cache)

        def search(name: str) -> Callable[[int], Any]:
            def ask(number: int) -> Any:
                body = {"query": {"match": {"body": f"topic{number % 20}"}}, "size": 10}
                return clients[name].search(index=index, body=body)

            return ask

        found = measure({name: search(name) for name in clients})
        for name, (middle, least) in found.items():
            share = least / found["plain"][1]
            print(f"{name:10} median {middle:7.3f} ms, least {least:7.3f} ms, {share:5.2f} of the least of plain")
    finally:
        ndd.wrap(plain, enabled=False).indices.delete(index=index)
        shared.clear()
        for client in clients.values():
            client.close()


if __name__ == "__main__":
    main()
