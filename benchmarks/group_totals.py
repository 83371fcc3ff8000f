"""Measure total="estimate" and facets: how often their intervals hold, and what they cost. Markdown tables.

    python -m benchmarks.group_totals [--data FOLDER] [--queries 250]                       coverage of the intervals
    python -m benchmarks.group_totals --url http://127.0.0.1:9200 [--documents 4000] [--repeats 100]         the cost

Coverage: the labelled collections are searched for words, in memory; a result holds more hits than the window. Its true
number of groups is counted over all of its hits. A facet divides it at random into 12 buckets of falling size.
Cost: on a live server, in an index that is deleted at the end. The compared requests take turns, so that other load
affects all alike.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.paging import SIZE, WINDOW, filled, medians
from benchmarks.wrapped_search import about, table
from ndd_search.core.matching.document_frequency import count_document_frequency
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.options import CollapseOptions
from ndd_search.core.paging.group_estimate import GroupEstimate, Sample, estimate_groups, head_of
from ndd_search.core.paging.stream import Stream
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import Lack, Sketch, sketch_many
from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.search.flow.count_groups import SAMPLE
from ndd_search.search.flow.facet_count import OF_BUCKET
from ndd_search.search.rest.read_answer import HitReader

COLLECTIONS = ("xquad_pages", "factbook", "advisories", "synth_web", "licences")
RECIPE = Recipe()
BUCKETS = 12
Found = Sketch | Lack


@dataclass(frozen=True)
class Collection:
    """The sketches of a collection, its frequency table, and results: the documents with a word, best first."""

    sketches: list[Found]
    table: FrequencyTable
    results: list[list[int]]

    @classmethod
    def read(cls, path: Path, queries: int) -> Collection:
        """Read a collection. queries: most results."""
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            texts = [json.loads(line)["text"] for line in lines]
        sketches = list(sketch_many(texts, RECIPE))
        counted = count_document_frequency(sketches, RECIPE)
        found: list[Found] = [one if len(one) else Lack.EMPTY for one in sketches]
        return cls(found, counted, list(_results(texts, queries)))


def _results(texts: Sequence[str], most: int) -> Iterator[list[int]]:
    """Yield different results of more hits than the window, ranked by how dense the word is in the text."""
    postings: dict[str, Counter[int]] = defaultdict(Counter)
    words = [re.findall(r"\w+", text.lower()) for text in texts]
    for number, some in enumerate(words):
        for word in some:
            postings[word][number] += 1
    chosen = sorted(word for word, found in postings.items() if len(found) > WINDOW)
    random.Random(1).shuffle(chosen)
    different = {frozenset(postings[word]): word for word in reversed(chosen)}
    for word in list(different.values())[:most]:
        found = postings[word]
        yield sorted(found, key=lambda number: (-found[number] / (1 + len(words[number]) / 200), number))


class Checker:
    """Compares estimates with the true number of groups, with one setting of min_similarity."""

    def __init__(self, collection: Collection, min_similarity: float | str) -> None:
        self._sketches = collection.sketches
        self._options = CollapseOptions(min_similarity=min_similarity, window=WINDOW)
        self._table = collection.table if min_similarity == "auto" else None

    def total(self, result: Sequence[int]) -> tuple[int, GroupEstimate]:
        """Return the true number of groups of a result, and the estimate that a search would give."""
        stream = self._stream(result)
        head = head_of(stream, WINDOW)
        reader = partial(self._reader, head.fetched)
        return _groups(stream), estimate_groups(head, self._sample(result, SAMPLE), reader, self._options)

    def bucket(self, members: Sequence[int]) -> tuple[int, GroupEstimate]:
        """Return the same for a bucket of a facet."""
        sample = self._sample(members, OF_BUCKET)
        return _groups(self._stream(members)), estimate_groups(
            Stream(), sample, partial(self._reader, 0), self._options
        )

    def _stream(self, members: Sequence[int]) -> Stream:
        hits = [{"_index": "a", "_id": str(number)} for number in members]
        reader = self._reader(0, [self._sketches[number] for number in members])
        return Stream().extend(hits, len(hits) + 1, reader, self._options, total=len(hits))

    def _sample(self, members: Sequence[int], size: int) -> Sample:
        """Return the sample that an engine gives: the members with the smallest values."""
        valued = [one for one in map(self._sketches.__getitem__, members) if not isinstance(one, str)]
        first = sorted(valued, key=lambda one: int(one[0]))[:size]
        hits = [{"_index": "a"} for _ in first]
        return Sample(hits, first, [int(one[0]) for one in first], len(members), len(members) - len(valued))

    def _reader(self, start: int, found: Sequence[Found]) -> HitReader:
        return HitReader(RECIPE, SketchField(), self._table, found, start)


def _groups(stream: Stream) -> int:
    return len(set(stream.leader.tolist()))


def _figures(checked: Sequence[tuple[int, GroupEstimate]]) -> list[str]:
    """Return number of estimates, share inside their interval, median half width and median error."""
    inside = sum(found.low <= true <= found.high for true, found in checked) / len(checked)
    width = median((found.high - found.low) / 2 / true for true, found in checked)
    error = median(abs(found.value - true) / true for true, found in checked)
    return [str(len(checked)), f"{inside:.1%}", f"{width:.0%}", f"{error:.0%}"]


def coverage(folder: Path, queries: int) -> tuple[list[list[str]], list[list[str]]]:
    """Return rows about the totals of results, and rows about the buckets of facets that are not counted."""
    totals, facets = [], []
    for name in COLLECTIONS:
        collection = Collection.read(folder / name / "documents.jsonl.gz", queries)
        rng = random.Random(5)
        of = [rng.choices(range(BUCKETS), [2.0**-place for place in range(BUCKETS)])[0] for _ in collection.sketches]
        for bar in (0.8, "auto"):
            checker = Checker(collection, bar)
            totals.append([name, str(bar), *_figures([checker.total(result) for result in collection.results])])
            parts = ([n for n in result if of[n] == place] for result in collection.results for place in range(BUCKETS))
            facets.append([name, str(bar), *_figures([checker.bucket(one) for one in parts if len(one) > OF_BUCKET])])
    return totals, facets


def cost(client: Any, index: str, count: int, repeats: int) -> list[list[str]]:
    """Return a row for each number of hits: median milliseconds of a page, alone and with each count, and ratios."""
    facet = {"tens": {"histogram": {"field": "number", "interval": max(count // 10, 1)}}}

    def page(most: int, options: dict[str, Any], aggregated: bool) -> Any:
        query = {"bool": {"must": {"match": {"body": "market"}}, "filter": {"range": {"number": {"lt": most}}}}}
        body = {"query": query, "size": SIZE, "ndd": options, **({"aggs": facet} if aggregated else {})}
        return client.search(index=index, body=body)

    rows = []
    for most in (100, 300, 1000, 4000, 10_000, 40_000):
        if most > count:
            break
        ways = {
            0: partial(page, most, {"total": "hits"}, False),
            1: partial(page, most, {}, False),
            2: partial(page, most, {"total": "estimate"}, False),
            3: partial(page, most, {"total": "groups"}, False),
            4: partial(page, most, {"total": "hits"}, True),
            5: partial(page, most, {"total": "hits", "facets": ["tens"]}, True),
        }
        if most > 1000:
            del ways[3]
        spent = medians(ways, repeats)
        ratios = [f"{spent[way] / spent[0]:.2f}" if way in spent else "-" for way in (1, 2, 3)]
        rows.append([f"{most:,}", f"{spent[0]:.1f}", *ratios, f"{spent[5] / spent[4]:.2f}"])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--queries", type=int, default=250)
    parser.add_argument("--url")
    parser.add_argument("--documents", type=int, default=4000)
    parser.add_argument("--repeats", type=int, default=100)
    chosen = parser.parse_args()
    if chosen.url:
        print(f"{about(chosen.url)}; {chosen.documents:,} documents, size {SIZE}, window {WINDOW}, no cache.\n")
        with filled(chosen.url, chosen.documents) as (client, index):
            rows = cost(client, index, chosen.documents, chosen.repeats)
        table(["hits", 'ms, total="hits"', "auto", "estimate", "groups", "one facet"], rows)
        return
    totals, facets = coverage(chosen.data, chosen.queries)
    heads = ["collection", "min_similarity", "estimates", "inside", "median half width", "median error"]
    print(f"Totals, samples of {SAMPLE} hits:\n")
    table(heads, totals)
    print(f"\nBuckets of facets, samples of {OF_BUCKET} hits:\n")
    table(heads, facets)


if __name__ == "__main__":
    main()
