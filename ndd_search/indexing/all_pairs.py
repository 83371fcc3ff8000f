"""All near-duplicate pairs of a whole index: the stored sketches are read once and compared on this machine.

Keys are not used, so every pair is found whose stored sketches resemble each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np

from ndd_search.indexing.candidates import CandidateSearch
from ndd_search.indexing.retry import Retry
from ndd_search.indexing.scan import snapshot
from ndd_search.middleware.scope import options
from ndd_search.paging.candidates import Candidate
from ndd_search.sketching.field import SketchField
from ndd_search.sketching.sketches import Sketch, Sketches

_PAGE = 1_000  # documents
_PART = 2_500  # sketches. If all those of two parts resemble each other, that is 12 million pairs, 1 GB
_SHARED = 2**28  # shared values, summed over all pairs of sketches: below that, all are compared at once

Name = tuple[str, str]  # the id of a document, and its index


@dataclass(frozen=True)
class Collection:
    """The sketches of an index: about 4 bytes for each of their values and 200 for each document.

    copies:     for each distinct sketch, the documents that have it.
    sketches:   the distinct sketches, in the same order.
    uncompared: number of documents without a readable sketch of the recipe. Documents without text have an empty
                sketch, which resembles nothing, and do not count.
    """

    copies: list[list[Name]]
    sketches: Sketches
    uncompared: int

    def pairs(self, search: CandidateSearch) -> Iterator[tuple[str, Candidate]]:
        """Yield every pair of similar documents: the id of the first, and the second as a candidate.

        The first document of a pair has the smaller id, or with equal ids the smaller index name. The order of the
        pairs is not defined.
        """
        for group in self.copies:
            for first_name, second_name in combinations(sorted(group), 2):
                yield first_name[0], Candidate(second_name[0], second_name[1], 1.0)
        for places, split in self._parts():
            pairs = search.pairs([self.sketches[place] for place in places])
            if split:
                pairs = pairs.where((pairs.first < split) & (pairs.second >= split))
            columns = pairs.first.tolist(), pairs.second.tolist(), pairs.similarity.tolist()
            for first, second, similarity in zip(*columns, strict=True):
                for pair in product(self.copies[places[first]], self.copies[places[second]]):
                    first_name, second_name = sorted(pair)
                    yield first_name[0], Candidate(second_name[0], second_name[1], similarity)

    def _parts(self) -> Iterator[tuple[Sequence[int], int]]:
        """Yield the places of the sketches to compare at one time, and the number of those in the first of two parts.

        The number is 0 for a single part, of which all pairs are new. Of two parts, only the pairs between them are
        new. There is one part unless the pairs might not fit into memory.
        """
        everything = range(len(self.sketches))
        _, counts = np.unique(self.sketches.values, return_counts=True)
        shared = int((counts * (counts - 1) // 2).sum())
        size = _PART if shared > _SHARED else max(len(everything), 1)
        parts = [everything[start : start + size] for start in range(0, len(everything), size)]
        yield from ((part, 0) for part in parts)
        yield from (([*first, *second], len(first)) for first, second in combinations(parts, 2))


def read_collection(client: Any, index: str, search: CandidateSearch) -> Collection:
    """Read the sketches of a snapshot of an index. client: synchronous, wrapped or not."""
    where, retry = SketchField(search.field), Retry()
    of_recipe = {"term": {where.recipe: search.recipe.id}}
    body = {"query": of_recipe, "_source": False, "docvalue_fields": where.read}
    others = {"query": {"bool": {"must_not": of_recipe}}}
    copies: dict[bytes, list[Name]] = {}
    with options(enabled=False), snapshot(client, index, retry) as now:
        uncompared = int(client.count(index=index, body=others)["count"])
        for hits in now.pages(body, _PAGE):
            decoded = where.decode([hit.get("fields", {}) for hit in hits], search.recipe)
            for hit, sketch in zip(hits, decoded, strict=True):
                if not isinstance(sketch, str):
                    copies.setdefault(sketch.tobytes(), []).append((hit["_id"], hit["_index"]))
                elif sketch != "empty":
                    uncompared += 1
    return Collection(list(copies.values()), _joined(list(copies)), uncompared)


def all_duplicates(client: Any, index: str, search: CandidateSearch) -> Iterator[tuple[str, Candidate]]:
    """Yield every pair of similar documents of an index, see Collection.pairs."""
    yield from read_collection(client, index, search).pairs(search)


def _joined(sketches: list[bytes]) -> Sketches:
    values: Sketch = np.frombuffer(b"".join(sketches), np.int32)
    offsets = np.zeros(len(sketches) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, sketches), np.int64, len(sketches)) // values.itemsize, out=offsets[1:])
    return Sketches(values, offsets)
