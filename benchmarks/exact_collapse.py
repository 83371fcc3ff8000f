"""Time the engine's own collapse on an exact key, a plain search and a wrapped search, on a live server.

    python -m tests.engines.launch elasticsearch9      prints an address, runs until Ctrl-C
    python -m benchmarks.exact_collapse http://127.0.0.1:9200 [--documents 20000] [--repeats 200]

The key is a hash of the text, so the engine's collapse hides equal texts only. A third of the documents are
near-copies, which it shows. The index is deleted at the end. Times are medians of the whole search, in milliseconds.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Any

import ndd_search as ndd
from benchmarks.workloads import QUERIES, WORDS, documents
from benchmarks.wrapped_search import connect, milliseconds
from ndd_search.search.rest.mapping import mapping_properties

INDEX = "ndd-benchmark-collapse"
WORDS_EACH = 400


def with_keys(count: int) -> Iterator[dict[str, Any]]:
    """Yield bulk actions of documents with the key for an exact collapse."""
    for action in documents(INDEX, count, WORDS_EACH):
        yield {**action, "key": blake2b(action["body"].encode(), digest_size=8).hexdigest()}


def measure(url: str, count: int = 20_000, repeats: int = 200) -> dict[str, float]:
    """Return the milliseconds of each kind of search."""
    make, helpers = connect(url)
    with make() as plain, make() as other:
        plain.indices.delete(index=INDEX, ignore_unavailable=True)
        fields = {**mapping_properties(), "key": {"type": "keyword"}}
        plain.indices.create(index=INDEX, body={"mappings": {"properties": fields}})
        try:
            helpers.bulk(plain, ndd.with_sketches(with_keys(count), fields=["body"]), refresh=True)
            plain.indices.forcemerge(index=INDEX, max_num_segments=1)
            wrapped = ndd.wrap(other)

            def search(client: Any, **more: Any) -> Callable[[dict[str, Any]], Any]:
                return lambda query: client.search(index=INDEX, body={"query": query, "size": 10, **more})

            source = {"_source": {"excludes": ["ndd"]}}
            listed = {"field": "key", "inner_hits": {"name": "equal", "size": 3, **source}}
            ways = {
                "plain": search(plain, **source),
                "collapse on an exact key": search(plain, collapse={"field": "key"}, **source),
                "the same, equal ones listed": search(plain, collapse=listed, **source),
                "wrapped, near-duplicates listed": search(wrapped, ndd={"cache": False}),
                "the same, from the cache": search(wrapped),
            }
            rng = random.Random(1)
            queries = [{"match": {"body": " ".join(rng.sample(WORDS[:200], 2))}} for _ in range(QUERIES)]
            return {name: times.wall for name, times in milliseconds(ways, queries, repeats).items()}
        finally:
            plain.indices.delete(index=INDEX)


def table(found: dict[str, float]) -> str:
    """Return a Markdown table."""
    first = next(iter(found.values()))
    rows = [f"| {name} | {value:.2f} | {value / first:.2f} |" for name, value in found.items()]
    return "\n".join(["| a page of 10 | ms | / plain |", "|---|--:|--:|", *rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=200)
    chosen = parser.parse_args()
    print(table(measure(chosen.url, chosen.documents, chosen.repeats)))


if __name__ == "__main__":
    main()
