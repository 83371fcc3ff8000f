"""Measure members="all" on a live server: time of a page, and the share of the copies that it lists, as Markdown.

    python -m benchmarks.whole_groups http://127.0.0.1:9200 [--groups 2000] [--repeats 50]

An index of groups of three is created, and deleted at the end. The copies of a group rank far apart; in two of them
some words are changed, and all documents end in one of five footers. The compared requests take turns, so that other
load affects all alike.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import ndd_search as ndd
from benchmarks.paging import medians
from benchmarks.wrapped_search import about, connect, table
from ndd_search.search.rest.mapping import mapping_properties

WORDS = [f"word{number}" for number in range(5000)]
CHANGED = (0.0, 0.02, 0.05)  # share of the words that are changed in each copy
SIZE, WINDOW, LENGTH, FOOTER = 10, 100, 150, 30  # hits of a page and of a window, words of a text and of a footer
WAYS: dict[str, dict[str, Any]] = {
    "alone": {},
    'members="all"': {"members": "all"},
    'total="groups"': {"total": "groups"},
}


def documents(index: str, groups: int) -> Iterator[dict[str, Any]]:
    """Yield bulk actions."""
    rng = random.Random(1)
    footers = [rng.choices(WORDS, k=FOOTER) for _ in range(5)]
    for group in range(groups):
        text, footer = rng.choices(WORDS, k=LENGTH), footers[group % 5]
        for copy, share in enumerate(CHANGED):
            body = [rng.choice(WORDS) if rng.random() < share else word for word in text]
            place = groups * copy + group
            yield {"_index": index, "_id": f"{group}-{copy}", "place": place, "body": " ".join([*body, *footer])}


@contextmanager
def filled(url: str, groups: int) -> Iterator[tuple[Any, str]]:
    """Yield a wrapped client, and the name of an index that is deleted after the block."""
    make, helpers = connect(url)
    index = f"ndd-whole-{random.SystemRandom().randrange(2**32):08x}"
    with make() as client, make() as other:
        client.indices.create(index=index, body={"mappings": {"properties": mapping_properties()}})
        try:
            acts = ndd.with_sketches(list(documents(index, groups)), fields=["body"], keys=8)
            helpers.bulk(client, acts, refresh=True)
            yield ndd.wrap(other, window=WINDOW, cache=False), index
        finally:
            client.indices.delete(index=index)


def listed(answer: Any) -> int:
    """Return the number of copies under the hits of a page."""
    hits = [hit.get("inner_hits", {}).get("near_duplicates") for hit in answer["hits"]["hits"]]
    return sum(found["hits"]["total"]["value"] for found in hits if found)


def rows_of(client: Any, index: str, groups: int, repeats: int) -> list[list[str]]:
    """Return a row for each way: milliseconds, as a multiple of the page alone, copies listed, hits that lack some."""

    def page(options: dict[str, Any], start: int = 0) -> Any:
        body = {"query": {"match_all": {}}, "sort": ["place"], "size": SIZE, "from": start, "ndd": options}
        return client.search(index=index, body=body)

    names = list(WAYS)
    spent = medians({at: partial(page, WAYS[name]) for at, name in enumerate(names)}, repeats)
    rows = []
    for at, name in enumerate(names):
        answers = [page(WAYS[name], start) for start in range(0, min(groups, 20 * SIZE), SIZE)]
        copies = len(answers) * SIZE * (len(CHANGED) - 1)
        share = sum(map(listed, answers)) / copies
        reasons = [one for answer in answers for one in answer["ndd"].get("members", {"incomplete": []})["incomplete"]]
        incomplete = sum(len(one["ids"]) for one in reasons)
        rows.append([name, f"{spent[at]:.1f}", f"{spent[at] / spent[0]:.2f}", f"{share:.1%}", str(incomplete)])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--groups", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=50)
    chosen = parser.parse_args()
    print(f"{about(chosen.url)}; {chosen.groups:,} groups of {len(CHANGED)}, size {SIZE}, window {WINDOW}.\n")
    with filled(chosen.url, chosen.groups) as (client, index):
        rows = rows_of(client, index, chosen.groups, chosen.repeats)
        table(["page", "ms", "/ alone", "copies listed", "hits that may lack some"], rows)


if __name__ == "__main__":
    main()
