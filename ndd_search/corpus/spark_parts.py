"""The parts of a collection on Spark in which documents meet, each small enough for one process.

A document is looked up by its rarest values (prefix filter, see native/corpus.h): any two documents that count as a
pair share one of them. A cluster sends each document to the part of each of these values, and searches each part as one
machine searches a collection. So two documents that count as a pair are together in at least one part. A collection of
a few parts is divided into blocks instead, and any two blocks are a part, if that sends each document to fewer parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ndd_search.core.matching.sketch_rows import Ranks, rows_of
from ndd_search.core.sketching.sketches import Sketches
from ndd_search.core.text.tokens import sorted_distinct
from ndd_search.corpus.collection_pairs import Search

SIZE = 200_000  # documents of a part, about: a process needs 1.4 kB for each
LISTED = 20_000  # holders of a value that one part takes, if the budget is not larger
_MULTIPLIER, _STEP = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)

Keys = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Parts:
    """Which parts each document is in.

    search:    how pairs are searched.
    documents: how many there are; their ranks are below.
    number:    of parts. The rest is asked only if there are several.
    holders:   of values, uint32, shape (a power of two,), by slot; values with one slot are counted together. None for
               fingerprints.
    masks:     the bits of the keys by which fingerprints are looked up, one in each block table.
    blocks:    of documents, any two of which are a part; 0 if documents are looked up by their values.
    """

    search: Search
    documents: int
    number: int = 1
    holders: npt.NDArray[np.uint32] | None = None
    masks: Sequence[np.uint64] = ()
    blocks: int = 0

    @classmethod
    def of(cls, search: Search, documents: int, different: int, sampled: Callable[[], Sketches]) -> Parts:
        """The parts of a collection.

        different: documents that meet others. sampled: returns a sample of their sketches, if there are several parts;
        a value that is not in it counts as held by two.
        """
        if different <= SIZE:
            return cls(search, documents)
        sample = sampled()
        if search.decision.measure == "cosine":
            from ndd_search.core.methods.simhash import bits_of, cheapest_blocks, from_rows, key_masks  # rarely used

            most = bits_of(search.decision.bar or 0.0)
            prints, known = from_rows(sample.values, np.diff(sample.offsets))
            masks = key_masks(most, cheapest_blocks(prints[known], most, different))
            parts = cls(search, documents, 1, masks=masks)
        else:
            slots = 1 << min(max(len(sample.values).bit_length(), 4), 31)
            counts = np.bincount(_slots(sample.values, slots), minlength=slots)
            if different > len(sample):
                counts = np.maximum(counts * (different / max(len(sample), 1)), 2)
            parts = cls(search, documents, 1, np.minimum(counts, 2**32 - 1).astype(np.uint32))
        entries = len(parts._keys(sample, np.zeros(len(sample), np.int64))[0]) / max(len(sample), 1)
        if (blocks := -(-2 * different // SIZE)) <= entries:
            return cls(search, documents, blocks * (blocks - 1) // 2, blocks=blocks)
        entered = entries * different
        return cls(search, documents, int(-(-max(entered, different) // SIZE)), parts.holders, parts.masks)

    def entered(self, sketches: Sketches, ranks: Ranks) -> tuple[Ranks, Ranks, int]:
        """The parts that documents are in, as (row, part), and about how many documents the budget leaves out."""
        if self.blocks:
            row, other = (one.ravel() for one in np.indices((len(ranks), self.blocks - 1)))
            own = (ranks * self.blocks // self.documents)[row]
            other += other >= own
            low, high = np.minimum(own, other), np.maximum(own, other)
            return row, high * (high - 1) // 2 + low, 0
        document, keys, cut = self._keys(sketches, ranks)
        parts = (keys * _MULTIPLIER >> np.uint64(32)) % np.uint64(self.number)
        found = sorted_distinct(document * np.int64(self.number) + parts.astype(np.int64))
        return found // self.number, found % self.number, cut

    def _keys(self, sketches: Sketches, ranks: Ranks) -> tuple[Ranks, Keys, int]:
        """The keys of the lists that documents are in, as (row, key), and what the budget leaves out."""
        if self.holders is None:
            from ndd_search.core.methods.simhash import from_rows

            prints, known = from_rows(sketches.values, np.diff(sketches.offsets))
            tables = np.arange(1, len(self.masks) + 1, dtype=np.uint64)[:, None] * _STEP
            keys = (prints[known] & np.array(self.masks)[:, None]) * _MULTIPLIER ^ tables
            return np.tile(np.flatnonzero(known), len(self.masks)), keys.ravel(), 0
        rows = rows_of(sketches, self.search.recipe.k)
        holders = self.holders[_slots(rows.values, len(self.holders))].astype(np.int64)
        row, place = self.search.looked_up(rows, holders)
        size = max(LISTED, self.search.budget)  # a longer list is cut into blocks, of which the first meets all others
        blocks = -(-holders[place] // size)
        block = ranks[row] * blocks // max(self.documents, 1)
        lists = np.where(block == 0, np.maximum(blocks - 1, 1), 1)
        at = np.repeat(np.arange(len(row)), lists)
        nth = np.arange(len(at)) - np.repeat(np.cumsum(lists) - lists, lists)
        met = np.where(block[at] == 0, nth + 1, block[at]).astype(np.uint64)
        keys = (rows.values[place[at]].astype(np.uint64) << np.uint64(32)) ^ met * _STEP
        return row[at], keys, int(np.maximum(block - 1, 0).sum()) * size


def _slots(values: npt.NDArray[np.int32], count: int) -> npt.NDArray[np.int64]:
    """The slot of each value in a table of `count` slots."""
    slots = (values.astype(np.uint64) * _MULTIPLIER) >> np.uint64(65 - count.bit_length())
    return slots.astype(np.int64)
