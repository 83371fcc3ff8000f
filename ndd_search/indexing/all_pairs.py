"""All near-duplicates of a whole index: its sketches are read once, and compared on this machine.

Nothing is asked of the keys, so no pair is missed: every pair is found whose stored sketches resemble each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np

from ndd_search.indexing.candidates import Candidate, CandidateSearch
from ndd_search.indexing.retry import Retry
from ndd_search.indexing.scan import snapshot
from ndd_search.middleware.scope import options
from ndd_search.sketching.field import SketchField
from ndd_search.sketching.sketches import Sketch, Sketches

_PAGE = 1_000  # documents
_PART = 2_500  # sketches, of which each may resemble each other: 12 million pairs with those of another part, 1 GB
_SHARED = 2**28  # values shared by two sketches, over all pairs: with fewer, all sketches are compared at once

Name = tuple[str, str]  # the id of a document, and its index


@dataclass(frozen=True)
class Collection:
    """The sketches of an index, about 4 bytes for each of their values and 200 for each document.

    copies:     the documents of each different sketch.
    sketches:   those, in the same order.
    uncompared: how many documents have no sketch of the recipe, or one that cannot be read. Documents without text have
                an empty sketch, which resembles nothing.
    """

    copies: list[list[Name]]
    sketches: Sketches
    uncompared: int

    def pairs(self, search: CandidateSearch) -> Iterator[tuple[str, Candidate]]:
        """Every pair that resembles each other: the id of one, and the other as a candidate, which comes after it.

        Documents are ordered by their ids, those of one id by their indexes. The pairs come in no order.
        """
        for group in self.copies:
            for one, other in combinations(sorted(group), 2):
                yield one[0], Candidate(other[0], other[1], 1.0)
        for places, split in self._parts():
            found = search.pairs([self.sketches[place] for place in places])
            if split:
                found = found.where((found.first < split) & (found.second >= split))
            columns = found.first.tolist(), found.second.tolist(), found.similarity.tolist()
            for first, second, similarity in zip(*columns, strict=True):
                for pair in product(self.copies[places[first]], self.copies[places[second]]):
                    one, other = sorted(pair)
                    yield one[0], Candidate(other[0], other[1], similarity)

    def _parts(self) -> Iterator[tuple[Sequence[int], int]]:
        """The places of the sketches to compare at a time, and how many of them are the first of two parts.

        Of two parts only the pairs of one with the other are new; 0 when all pairs are. There is one part, unless so
        many sketches share values that their pairs might not fit into memory.
        """
        everything = range(len(self.sketches))
        _, counts = np.unique(self.sketches.values, return_counts=True)
        shared = int((counts * (counts - 1) // 2).sum())
        size = _PART if shared > _SHARED else max(len(everything), 1)
        parts = [everything[start : start + size] for start in range(0, len(everything), size)]
        yield from ((part, 0) for part in parts)
        yield from (([*one, *other], len(one)) for one, other in combinations(parts, 2))


def read_collection(client: Any, index: str, search: CandidateSearch) -> Collection:
    """Read the sketches of an index as it is now. client: synchronous, wrapped or not."""
    where, retry = SketchField(search.field), Retry()
    of_recipe = {"term": {where.recipe: search.recipe.id}}
    body = {"query": of_recipe, "_source": False, "docvalue_fields": [where.sketch, where.recipe]}
    others = {"query": {"bool": {"must_not": of_recipe}}}
    groups: dict[bytes, list[Name]] = {}
    with options(enabled=False), snapshot(client, index, retry) as now:
        uncompared = int(client.count(index=index, body=others)["count"])
        for hits in now.pages(body, _PAGE):
            decoded = where.decode([hit.get("fields", {}) for hit in hits], search.recipe)
            for hit, sketch in zip(hits, decoded, strict=True):
                if not isinstance(sketch, str):
                    groups.setdefault(sketch.tobytes(), []).append((hit["_id"], hit["_index"]))
                elif sketch != "empty":
                    uncompared += 1
    return Collection(list(groups.values()), _joined(list(groups)), uncompared)


def all_duplicates(client: Any, index: str, search: CandidateSearch) -> Iterator[tuple[str, Candidate]]:
    """Every pair of resembling documents of an index, see Collection.pairs; documents without a sketch are in none."""
    yield from read_collection(client, index, search).pairs(search)


def _joined(sketches: list[bytes]) -> Sketches:
    values: Sketch = np.frombuffer(b"".join(sketches), np.int32)
    offsets = np.zeros(len(sketches) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, sketches), np.int64, len(sketches)) // values.itemsize, out=offsets[1:])
    return Sketches(values, offsets)
