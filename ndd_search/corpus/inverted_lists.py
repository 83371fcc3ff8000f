"""The lists of documents that hold one value, cut into pieces that can be read anywhere and in any order.

One machine reads these lists inside the native core (native/corpus.h). A cluster distributes them: `entries_of` gives
the values by which each document is looked up (prefix filter), `sublists` the lists that it is in, `pairs_of` the pairs
of documents that a list makes. Two documents that count as a pair are in at least one list together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ndd_search import native
from ndd_search.core.matching.shared_sketch_values import partners
from ndd_search.core.matching.sketch_rows import Ranks
from ndd_search.core.sketching.sketches import Sketches
from ndd_search.core.text.tokens import sorted_distinct
from ndd_search.errors import IndexUnusable

LISTED = 2_000  # documents of a list that are met as a whole: longer lists are cut
PROFILES = 3  # see native/own_content.h
_HOT = 1 << PROFILES  # in `kind`, above the profiles
_CLASS_BITS = 15
_MULTIPLIER, _STEP = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_OF_CODES = np.uint64(0xD6E8FEB86659FD93)


@dataclass(frozen=True, eq=False)
class Holders:
    """How many documents hold each value, in a hash table.

    counts: uint32, shape (a power of two,), by slot; values with one slot are counted together.
    """

    counts: npt.NDArray[np.uint32]

    @classmethod
    def counted(cls, sample: Sketches, codes: Ranks | None, documents: int) -> Holders:
        """Count the values of a sample of a collection of `documents` documents.

        codes: of the guards of the sample, or None. A value that is not in the sample counts as held by two.
        """
        _core()  # raises early
        keys = keys_of(sample, codes)
        slots = 1 << min(max(len(keys).bit_length(), 4), 31)
        counts = np.bincount(_slots(keys, slots), minlength=slots)
        if documents > len(sample):
            counts = np.maximum(counts * (documents / max(len(sample), 1)), 2)
        return cls(np.minimum(counts, 2**32 - 1).astype(np.uint32))

    def of(self, keys: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        """The holders of some keys."""
        return self.counts[_slots(keys, len(self.counts))].astype(np.int64)


def keys_of(sketches: Sketches, codes: Ranks | None) -> npt.NDArray[np.int32]:
    """The key under which each value is looked up: the value, mixed with the document's code, as key_of in the core."""
    if codes is None:
        return sketches.values
    values, code = sketches.values.astype(np.uint64), np.repeat(codes + 1, np.diff(sketches.offsets)).astype(np.uint64)
    mixed = ((values << np.uint64(32) | values) ^ code * _MULTIPLIER) * _OF_CODES >> np.uint64(33)
    return np.where(code > 0, mixed, values).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Entries:
    """The values by which documents are looked up; of one document, those with few holders first.

    document: int32, the row of the document.
    key:      int32, the value, mixed with the document's code.
    kind:     uint8, 0 for a usual value; for a hot one 8 and the profiles in which the entry is closed (see Entry in
              native/corpus_lists.h): two documents are no pair whose first shared value is closed for both in one
              profile.
    """

    document: npt.NDArray[np.int32]
    key: npt.NDArray[np.int32]
    kind: npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Keys:
    """The keys by which fingerprints are looked up, one in each block table: see `methods.simhash`.

    most: bits in which a pair may differ. masks: the bits of each key.
    """

    most: int
    masks: Sequence[np.uint64]

    @classmethod
    def of(cls, cosine: float, sample: Sketches, documents: int) -> Keys:
        """The keys that cost least for pairs of at least this cosine. sample: of so many documents."""
        from ndd_search.core.methods.simhash import bits_of, cheapest_blocks, from_rows, key_masks  # rarely used

        most, (prints, known) = bits_of(cosine), from_rows(sample.values, np.diff(sample.offsets))
        return cls(most, key_masks(most, cheapest_blocks(prints[known], most, documents)))

    def lists(self, sketches: Sketches) -> tuple[Ranks, Ranks, Ranks]:
        """The lists that documents are in: (document, list, fingerprint), all int64."""
        from ndd_search.core.methods.simhash import from_rows

        prints, known = from_rows(sketches.values, np.diff(sketches.offsets))
        documents, prints = np.flatnonzero(known), prints[known]
        places = np.arange(1, len(self.masks) + 1, dtype=np.uint64)[:, None] * _STEP
        keys = ((prints & np.array(self.masks)[:, None]) * _MULTIPLIER ^ places) * _MULTIPLIER
        lists = (keys >> np.uint64(2 * _CLASS_BITS) << np.uint64(2 * _CLASS_BITS)).view(np.int64).ravel()
        return np.tile(documents, len(self.masks)), lists, np.tile(prints.view(np.int64), len(self.masks))


def entries_of(
    sketches: Sketches, k: int, rule: native.Rule, table: bytes | None, codes: Ranks | None, holders: Holders
) -> Entries:
    """The entries of documents.

    k: values of a sketch at most. rule, table: of the decision. codes: of the guards, or None.
    """
    popular = np.minimum(holders.counts, 2**16 - 1).astype(np.uint16).view(np.int32)
    found = _core().corpus_entries(sketches.values, sketches.offsets, k, rule, table, (codes, None, 0.0), popular)
    if found is None:
        raise ValueError(f"sketches of {k} values are longer than the lists of a collection take")
    kinds = (np.int32, np.int32, np.uint8)
    return Entries(*(np.frombuffer(column, kind) for column, kind in zip(found, kinds, strict=True)))


def sublists(
    entries: Entries, places: Ranks, holders: Holders, documents: int, budget: int
) -> tuple[Ranks, Ranks, npt.NDArray[np.bool_], int]:
    """The lists that documents are in: (entry, list, side, cut).

    places: of the rows, 0..documents - 1.
    budget: documents of one list that a document meets at most, about; those at the head of the collection are met.
    Returns for each membership the number of its entry and of its list, both int64. A list of one class of documents
    makes a pair of any two; a list of two classes, which `side` tells apart, makes a pair of any two of different ones.
    cut is the number of documents, about, that `budget` leaves out.
    """
    numbers = np.arange(len(entries.key))
    blocks = np.maximum(-(-holders.of(entries.key) // LISTED), 1)
    usual = (entries.kind == 0) & (blocks == 1)
    parts = [(numbers[usual], np.zeros(int(usual.sum()), np.int64), np.zeros(int(usual.sum()), np.bool_))]
    cut, hubs = 0, max(budget // LISTED, 1)
    rest = numbers[~usual]
    combined = entries.kind[rest].astype(np.int64) << 32 | blocks[rest]
    for one in sorted_distinct(combined).tolist():
        kind, count = one >> 32, min(one & 0xFFFFFFFF, 1 << (_CLASS_BITS - PROFILES))
        chosen = rest[combined == one]
        block = places[entries.document[chosen]] * count // max(documents, 1)
        cut += int(np.maximum(block - hubs, 0).sum()) * LISTED
        profile = kind & (_HOT - 1)
        for other_profile in (others for others in range(_HOT if kind else 1) if not others & profile):
            for other_block in range(count):
                met = np.flatnonzero((np.minimum(block, other_block) < hubs) | (block == other_block))
                own, other = profile * count + block[met], other_profile * count + other_block
                low, high = np.minimum(own, other), np.maximum(own, other)
                code = (kind > 0) << 2 * _CLASS_BITS | low << _CLASS_BITS | high
                parts.append((chosen[met], code, own > other))
    entry, code, side = (np.concatenate(column) for column in zip(*parts, strict=True))
    return entry, entries.key[entry].astype(np.int64) << 32 | code, side, cut


def pairs_of(lists: Ranks, side: npt.NDArray[np.bool_]) -> Iterator[tuple[Ranks, Ranks]]:
    """The pairs that lists make, as positions, a block at a time.

    lists, side: of memberships (see `sublists`), ordered by both.
    """
    starts = np.flatnonzero(np.diff(lists, prepend=lists[:1] - 1 if len(lists) else 0))
    sizes = np.diff(starts, append=len(lists))
    begin = np.repeat(starts, sizes)
    code = lists & ((1 << 2 * _CLASS_BITS) - 1)
    within = (code >> _CLASS_BITS) == (code & ((1 << _CLASS_BITS) - 1))
    lows = np.repeat(np.add.reduceat(~side, starts, dtype=np.int64) if len(starts) else sizes, sizes)
    count = np.where(within, np.arange(len(lists)) - begin, np.where(side, lows, 0))
    return partners(begin, count)


def _slots(keys: npt.NDArray[np.int32], count: int) -> npt.NDArray[np.uint64]:
    """The slot of each key in a table of `count` slots, as slot_of in native/corpus_documents.h."""
    slots: npt.NDArray[np.uint64] = (keys.view(np.uint32).astype(np.uint64) * _MULTIPLIER) >> np.uint64(
        65 - count.bit_length()
    )
    return slots


def _core() -> native.Core:
    if native.core is None:
        what = f"this machine searches with {native.in_use()}"
        raise IndexUnusable("the native core", what, "install a wheel of ndd-search, or a C compiler and install again")
    return native.core
