"""Measure pages of a cursor at several depths, and total="groups", on a live server: Markdown tables.

    python -m benchmarks.paging http://127.0.0.1:9200 [--documents 4000] [--repeats 100]

An index of documents that all differ is created and deleted at the end: the worst case, as every hit becomes a leader.
The compared requests take turns, so that other load affects all alike.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from statistics import median
from typing import Any

import ndd_search as ndd
from benchmarks.wrapped_search import about, connect, table
from ndd_search.core.paging.cursor import cursor_of
from ndd_search.search.rest.mapping import mapping_properties

WORDS = [f"word{number}" for number in range(5000)]
DEPTHS = (1, 2, 10, 50, 100, 150)
SIZE, WINDOW, LENGTH = 10, 100, 60  # hits of a page and of a window, words of a document


def documents(index: str, count: int) -> list[dict[str, Any]]:
    """Return bulk actions for documents without near-duplicates."""
    rng = random.Random(1)
    return [
        {
            "_index": index,
            "_id": str(number),
            "number": number,
            "body": " ".join(["market", *rng.choices(WORDS, k=LENGTH)]),
        }
        for number in range(count)
    ]


@contextmanager
def filled(url: str, count: int) -> Iterator[tuple[Any, str]]:
    """Yield a wrapped client, and the name of an index that is deleted after the block."""
    make, helpers = connect(url)
    index = f"ndd-paging-{random.SystemRandom().randrange(2**32):08x}"
    with make() as client, make() as other:
        client.indices.create(index=index, body={"mappings": {"properties": mapping_properties()}})
        try:
            helpers.bulk(client, ndd.with_sketches(documents(index, count), fields=["body"]), refresh=True)
            yield ndd.wrap(other, window=WINDOW, cursor_key="secret", min_similarity=0.8, cache=False), index
        finally:
            client.indices.delete(index=index)


def medians(ways: Mapping[int, Callable[[], Any]], repeats: int) -> dict[int, float]:
    """Return the median milliseconds of each way; they take turns, in random order: one after its like is faster."""
    taken: dict[int, list[float]] = {name: [] for name in ways}
    names, rng = list(ways), random.Random(1)
    for _ in range(repeats):
        rng.shuffle(names)
        for name in names:
            began = time.perf_counter()
            ways[name]()
            taken[name].append((time.perf_counter() - began) * 1000)
    return {name: median(times) for name, times in taken.items()}


def cursors(client: Any, index: str, repeats: int) -> list[list[str]]:
    """Return a row for each depth: median milliseconds, as a multiple of the first page, and facts of the token."""

    def page(cursor: Any) -> Any:
        body = {"query": {"match": {"body": "market"}}, "size": SIZE, "ndd": {"cursor": cursor}}
        return client.search(index=index, body=body)["ndd"]["cursor"]

    tokens: list[Any] = [True]
    while len(tokens) < max(DEPTHS):
        tokens.append(page(tokens[-1]))
    spent = medians({depth: partial(page, tokens[depth - 1]) for depth in DEPTHS}, repeats)
    rows = []
    for depth, token in ((depth, tokens[depth - 1]) for depth in DEPTHS):
        leaders = 0 if token is True else len(cursor_of(token, b"secret").leaders)
        weight = 0 if token is True else len(token) / 1000
        ratio = spent[depth] / spent[1]
        rows.append([str(depth), f"{spent[depth]:.2f}", f"{ratio:.2f}", str(leaders), f"{weight:,.0f}"])
    return rows


def totals(client: Any, index: str, count: int, repeats: int) -> list[list[str]]:
    """Return a row for each number of hits: median milliseconds of a page, alone and with total="groups"."""

    def page(most: int, total: str) -> Any:
        query = {"bool": {"must": {"match": {"body": "market"}}, "filter": {"range": {"number": {"lt": most}}}}}
        return client.search(index=index, body={"query": query, "size": SIZE, "ndd": {"total": total}})

    rows = []
    for most in (100, 300, 600, 1000, 2000, 4000):
        if most <= count:
            spent = medians({0: partial(page, most, "hits"), 1: partial(page, most, "groups")}, repeats)
            rows.append([f"{most:,}", f"{spent[0]:.2f}", f"{spent[1]:.2f}", f"{spent[1] / spent[0]:.2f}"])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--documents", type=int, default=4000)
    parser.add_argument("--repeats", type=int, default=100)
    chosen = parser.parse_args()
    print(f"{about(chosen.url)}; {chosen.documents:,} documents without copies, size {SIZE}, window {WINDOW}.\n")
    with filled(chosen.url, chosen.documents) as (client, index):
        rows = cursors(client, index, chosen.repeats)
        table(["page", "ms", "/ page 1", "leaders in the token", "kB of the token"], rows)
        rows = totals(client, index, chosen.documents, chosen.repeats)
        table(["hits", "ms", 'ms, total="groups"', "ratio"], rows)


if __name__ == "__main__":
    main()
