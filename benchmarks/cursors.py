"""Measure pages of a cursor on a live server, at several depths side by side: Markdown tables.

    python -m benchmarks.cursors http://127.0.0.1:9200 [--documents 4000] [--repeats 100]

An index of documents that all differ is created and deleted at the end: the worst case, as every hit becomes a leader.
The requests for the first page and for pages at several depths take turns, so that other load affects all alike.
"""

from __future__ import annotations

import argparse
import random
import time
from statistics import median
from typing import Any

import ndd_search as ndd
from benchmarks.wrapped_search import about, connect, table
from ndd_search.indexing.templates import mapping_properties
from ndd_search.paging.cursor import cursor_of

WORDS = [f"word{number}" for number in range(5000)]
DEPTHS = (1, 2, 10, 50, 100, 150)
SIZE, WINDOW, LENGTH = 10, 100, 60  # hits of a page and of a window, words of a document


def documents(index: str, count: int) -> list[dict[str, Any]]:
    """Return bulk actions for documents without near-duplicates."""
    rng = random.Random(1)
    return [
        {"_index": index, "_id": str(number), "body": " ".join(["market", *rng.choices(WORDS, k=LENGTH)])}
        for number in range(count)
    ]


def measure(url: str, count: int, repeats: int) -> list[list[str]]:
    """Return a row for each depth: median milliseconds, as a multiple of the second page, and facts of the token."""
    make, helpers = connect(url)
    index = f"ndd-cursors-{random.SystemRandom().randrange(2**32):08x}"
    with make() as client, make() as other:
        client.indices.create(index=index, body={"mappings": {"properties": mapping_properties()}})
        try:
            helpers.bulk(client, ndd.with_sketches(documents(index, count), fields=["body"]), refresh=True)
            wrapped = ndd.wrap(other, window=WINDOW, cursor_key="secret", min_similarity=0.8)

            def page(cursor: Any) -> str:
                body = {"query": {"match": {"body": "market"}}, "size": SIZE, "ndd": {"cursor": cursor}}
                token: str = wrapped.search(index=index, body=body)["ndd"]["cursor"]
                return token

            tokens: list[Any] = [True]
            while len(tokens) < max(DEPTHS):
                tokens.append(page(tokens[-1]))
            taken: dict[int, list[float]] = {depth: [] for depth in DEPTHS}
            for _ in range(repeats):
                for depth in DEPTHS:
                    began = time.perf_counter()
                    page(tokens[depth - 1])
                    taken[depth].append((time.perf_counter() - began) * 1000)
        finally:
            client.indices.delete(index=index)
    first = median(taken[1])
    rows = []
    for depth in DEPTHS:
        token = tokens[depth - 1]
        leaders = len(cursor_of(token, b"secret").leaders.ids) if depth > 1 else 0
        spent = median(taken[depth])
        weight = f"{len(token) / 1000:,.1f}" if depth > 1 else "0"
        rows.append([str(depth), f"{spent:.2f}", f"{spent / first:.2f}", str(leaders), weight])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--documents", type=int, default=4000)
    parser.add_argument("--repeats", type=int, default=100)
    chosen = parser.parse_args()
    print(f"{about(chosen.url)}; {chosen.documents:,} documents without copies, size {SIZE}, window {WINDOW}.\n")
    rows = measure(chosen.url, chosen.documents, chosen.repeats)
    table(["page", "ms", "/ page 1", "leaders in the token", "kB of the token"], rows)


if __name__ == "__main__":
    main()
