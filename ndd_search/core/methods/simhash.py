"""Simhash fingerprints of 64 bits: near-duplicates differ in few (Charikar 2002; Manku, Jain and Das Sarma 2007).

Each feature of a document has a 64-bit hash and a weight. A bit of the fingerprint is 1 if the features whose hash has
that bit set weigh more in total than the others. Near fingerprints are found without comparing all pairs: if the 64
bits are cut into more blocks than bits may differ, some blocks are equal. There is one table for each choice of equal
blocks, sorted by them.

    weights = Rarity.count(texts)                          # or None for counts, or any function
    prints = fingerprints(texts, weight=weights)
    near, distances = Tables(prints).near(prints[0])       # online, one query
    first, second = Tables(prints).pairs()                 # batch, all pairs
    collapse(hits, sketches=as_sketches(prints), recipe=Recipe.simhash())           # on a page

In an index a fingerprint is stored as a sketch of four values, its blocks of 16 bits (`Recipe.simhash()` weights by
count). A terms query finds every document within distance 3, and the fingerprint can be restored from the blocks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations
from math import acos, comb, inf, log, pi
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ndd_search.core.recipe import Recipe
from ndd_search.core.text.shingles import BATCH, batches_of, many_shingle_texts, shingle_texts
from ndd_search.core.text.tokens import sorted_distinct

Prints = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]
Blocks = npt.NDArray[np.int32]
Weight = Callable[[str, int], float]

BITS = 64
_AT_ONCE = 1 << 20  # pairs compared at a time
_MOST_BLOCKS = 24
_MOST_LOOKED_UP = 15  # bits
_MOST_WORK = 5e11  # nanoseconds, about
_ENTRY, _MET = 300, 15  # nanoseconds, about, for a fingerprint in a table, and for a pair that shares a key
_SAMPLED, _TRIED = 20_000, 8  # fingerprints and tables in which such pairs are counted
WORDS = Recipe.words(size=1)
_PLACES = np.arange(4, dtype=np.uint64)  # positions of the blocks in a sketch, the highest bits first
_BLOCK = np.uint64(16)


@dataclass(frozen=True)
class Rarity:
    """Weighs a feature by tf-idf: its count times ln((1 + documents) / (1 + documents that have it)).

    documents: number of documents counted. holding: document frequency of each feature; absent means 0.
    """

    documents: int
    holding: Mapping[str, int]

    @classmethod
    def count(cls, texts: Iterable[str], recipe: Recipe = WORDS) -> Self:
        """Count the document frequency of the words (or other shingles) of texts."""
        counted, holding = 0, Counter[str]()
        for counted, text in enumerate(texts, 1):  # noqa: B007
            holding.update(set(shingle_texts(text, recipe)))
        return cls(counted, holding)

    def __call__(self, feature: str, count: int) -> float:
        return count * log((1 + self.documents) / (1 + self.holding.get(feature, 0)))


def fingerprints(texts: Iterable[str], recipe: Recipe = WORDS, weight: Weight | None = None) -> Prints:
    """Return the fingerprints of texts by their words, or other shingles; uint64, shape (n,); 0 for a text without any.

    weight: of a word and its count in the text, which may be negative; by default the count.
    """
    found = [np.empty(0, np.uint64)]
    for part in batches_of(texts, BATCH):
        shingles = many_shingle_texts(part, recipe)
        if weight is None:
            found.append(_signs_of_sums(shingles))
        else:
            counted = map(Counter, shingles)
            weighed = [{one: weight(one, count) for one, count in counts.items()} for counts in counted]
            found.append(_signs_of_sums(weighed))
    return np.concatenate(found)


def _signs_of_sums(texts: Sequence[Mapping[str, float] | list[str]]) -> Prints:
    """Return the fingerprint of each of some texts, by its features: with their weights, or a list with repeats."""
    places = {feature: place for place, feature in enumerate(set[str]().union(*texts))}
    hashes = np.array(list(map(_hash, places)), ">u8")
    signs = 2 * np.unpackbits(hashes.view(np.uint8).reshape(-1, 8), axis=1).astype(np.float32) - 1
    rows = (signs[list(map(places.__getitem__, features))] for features in texts)
    sums = [
        np.array(list(features.values()), np.float64) @ row if isinstance(features, Mapping) else row.sum(0)
        for features, row in zip(texts, rows, strict=True)
    ]
    return np.packbits(np.array(sums) > 0, axis=1).view(">u8").ravel().astype(np.uint64)


def distance(a: npt.ArrayLike, b: npt.ArrayLike) -> npt.NDArray[np.uint8]:
    """Return the number of differing bits, 0..64; arrays broadcast."""
    differing: npt.NDArray[np.uint8] = np.bitwise_count(np.asarray(a, np.uint64) ^ np.asarray(b, np.uint64))
    return differing


def as_sketches(prints: npt.ArrayLike) -> Blocks:
    """Return fingerprints as sketches of Recipe.simhash(): int32, shape (n, 4), position * 2**16 + 16 bits."""
    bits = np.asarray(prints, np.uint64)[:, None] >> (_BLOCK * _PLACES[::-1])
    return (_PLACES << _BLOCK | bits & np.uint64(0xFFFF)).astype(np.int32)


def from_sketches(blocks: npt.NDArray[np.integer]) -> tuple[Prints, npt.NDArray[np.bool_]]:
    """Return the fingerprints of sketches of shape (n, 4), and which of the sketches are valid fingerprints."""
    values = blocks.astype(np.uint64)
    parts = (values & np.uint64(0xFFFF)) << (_BLOCK * _PLACES[::-1])
    return np.bitwise_or.reduce(parts, axis=1), (values >> _BLOCK == _PLACES).all(axis=1)


def from_rows(values: Blocks, lengths: Places) -> tuple[Prints, npt.NDArray[np.bool_]]:
    """Return the fingerprint of each row of values, 0 for those that hold none, and which rows hold one."""
    whole = lengths == _PLACES.size
    prints, known = np.zeros(len(whole), np.uint64), np.zeros(len(whole), np.bool_)
    prints[whole], known[whole] = from_sketches(values[np.repeat(whole, lengths)].reshape(-1, _PLACES.size))
    return prints, known


def bits_of(cosine: float) -> int:
    """Return how many bits may differ in two fingerprints whose cosine is at least this."""
    return int(acos(min(max(cosine, 0.0), 1.0)) / pi * BITS + 1e-6)


def cosine(differing: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the cosine of fingerprints that differ in so many bits, at least 0."""
    cosines: npt.NDArray[np.float64] = np.maximum(np.cos(np.asarray(differing) * (pi / BITS)), 0.0)
    return cosines


def near_blocks(value: int, most: int) -> list[int]:
    """Return the values of a sketch that one within `most` bits has for one of its four values at least.

    One of the four blocks differs in a quarter of the bits at most: 1 value up to 3 bits, 17 up to 7, 137 up to 11 and
    697 up to 15. Raises ValueError for more bits.
    """
    if most > _MOST_LOOKED_UP:
        raise ValueError(
            f"{most} differing bits are too many for stored keys: {_MOST_LOOKED_UP} at most, "
            f"a min_similarity of {float(cosine(_MOST_LOOKED_UP)):.3f}"
        )
    turned = [chosen for number in range(most // 4 + 1) for chosen in combinations(range(16), number)]
    return [value ^ sum(1 << bit for bit in chosen) for chosen in turned]


def key_masks(most: int, blocks: int) -> list[np.uint64]:
    """Return the bits of the key of each table, see `Tables`."""
    edges = [block * BITS // blocks for block in range(blocks + 1)]
    pieces = [(1 << edges[block + 1]) - (1 << edges[block]) for block in range(blocks)]
    return [np.uint64(sum(chosen)) for chosen in combinations(pieces, blocks - most)]


def cheapest_blocks(prints: Prints, most: int, count: int | None = None) -> int:
    """Return the number of blocks with which tables of fingerprints within `most` bits cost least.

    count: number of fingerprints, if `prints` are a sample of them. Those of texts with the same frequent words share
    far more keys than random ones, so the sample says how many do. Raises ValueError, which names the largest distance,
    if random fingerprints would cost more than can be waited for.
    """
    count = len(prints) if count is None else count
    works = _works(count, most)
    if works[0][0] > _MOST_WORK:
        largest = next(bits for bits in range(most, -1, -1) if _works(count, bits)[0][0] <= _MOST_WORK)
        raise ValueError(
            f"{most} differing bits are too many for {count:,} fingerprints: {largest} at most, "
            f"a min_similarity of {float(cosine(largest)):.3f}"
        )
    sample, best = prints[:: len(prints) // _SAMPLED + 1], (inf, 0)
    for work, blocks in works:
        if work >= best[0]:
            break
        masks = key_masks(most, blocks)
        share = float(np.mean([_shared(sample & mask) for mask in masks[:: len(masks) // _TRIED + 1]]))
        found = work if masks[0] == 0 else max(work, len(masks) * count * (_ENTRY + _MET * count * share))
        best = min(best, (found, blocks))
    return best[1]


def _works(count: int, most: int) -> list[tuple[float, int]]:
    """Return the work on random fingerprints, about in nanoseconds, by number of blocks, least first.

    With `most` blocks all pairs are compared.
    """
    every = (6.0 * count * count, max(most, 1))
    keys = [(blocks, BITS * (blocks - most) / blocks) for blocks in range(most + 1, _MOST_BLOCKS + 1)]
    tables = [(comb(blocks, most) * count * (_ENTRY + _MET * count / 2**bits), blocks) for blocks, bits in keys]
    return sorted([every, *tables] if most else tables)


def _shared(keys: Prints) -> float:
    """Return the share of pairs with equal keys."""
    holders = np.unique_counts(keys).counts.astype(np.float64)
    return float(holders @ (holders - 1)) / max(len(keys) * (len(keys) - 1), 1)


class Tables:
    """An index of fingerprints by block tables (Manku, Jain and Das Sarma 2007, section 3). It grows by `add`.

    most:   bits that may differ, 0..64. Raises ValueError for more than can be looked up among so many fingerprints.
    blocks: number of pieces of the 64 bits, at least `most`; by default as many as cost least work. There is a table
            for each choice of `blocks - most` of them, which are its key: 4 blocks for 3 bits make 4 tables with keys
            of 16 bits, 6 blocks 20 tables with 32 bits. With `most` blocks all fingerprints are compared.
    """

    def __init__(self, prints: npt.ArrayLike, most: int = 3, blocks: int | None = None) -> None:
        self.prints: Prints = np.asarray(prints, np.uint64)
        self.most, self.blocks = most, blocks or cheapest_blocks(self.prints, most)
        if not 0 <= most <= self.blocks <= BITS:
            raise ValueError(f"blocks must be at least most, and both 0..{BITS}, got {self.blocks} and {most}")
        self.masks = key_masks(most, self.blocks)
        self._orders: list[npt.NDArray[np.uint32]] = []
        self._sorted = 0  # so many fingerprints are in the tables, the later ones are compared one by one

    def add(self, prints: npt.ArrayLike) -> None:
        """Add fingerprints, which are found at once; they are sorted into the tables when they are a sixteenth."""
        self.prints = np.concatenate((self.prints, np.asarray(prints, np.uint64)))

    def near(self, fingerprint: int | np.uint64) -> tuple[Places, npt.NDArray[np.uint8]]:
        """Return the positions of all fingerprints within `most` bits, ascending, and their distances."""
        if len(self.prints) * 15 > self._sorted * 16 or not self._orders:
            self._orders = [self._order(mask) for mask in self.masks]
            self._sorted = len(self.prints)
        wanted = np.uint64(fingerprint)
        found = [self._run(order, mask, wanted & mask) for order, mask in zip(self._orders, self.masks, strict=True)]
        candidates = sorted_distinct(*found, np.arange(self._sorted, len(self.prints)))
        differing = distance(self.prints[candidates], wanted)
        return candidates[differing <= self.most], differing[differing <= self.most]

    def pairs(self) -> tuple[Places, Places]:
        """Return all pairs within `most` bits: two int64 arrays, first < second, in ascending order."""
        codes = [self._pairs_of(number) for number in range(len(self.masks))] if self.masks[0] else self._all_pairs()
        return np.divmod(np.sort(np.concatenate(codes)), max(len(self.prints), 1))

    def _order(self, mask: np.uint64) -> npt.NDArray[np.uint32]:
        return np.argsort(self.prints & mask, kind="stable").astype(np.uint32)

    def _run(self, order: npt.NDArray[np.uint32], mask: np.uint64, key: np.uint64) -> npt.NDArray[np.uint32]:
        """Return the positions of the fingerprints with this key, by binary search."""

        def key_of(place: int) -> Any:
            return self.prints[place] & mask

        return order[bisect_left(order, key, key=key_of) : bisect_right(order, key, key=key_of)]

    def _all_pairs(self) -> list[Places]:
        """Return the pairs found without tables, as first * n + second."""
        count = len(self.prints)
        codes, step = [np.empty(0, np.int64)], max(_AT_ONCE // max(count, 1), 1)
        for start in range(0, count, step):
            near = distance(self.prints[start : start + step, None], self.prints[None, start:]) <= self.most
            row, column = np.nonzero(near)
            codes.append(((row + start) * count + column + start)[column > row])
        return codes

    def _pairs_of(self, number: int) -> Places:
        """Return the pairs that share a key in this table and in none before it, as first * n + second."""
        mask = self.masks[number]
        order = self._order(mask).astype(np.int64)
        sorted_prints = self.prints[order]
        keys = sorted_prints & mask
        codes = [np.empty(0, np.int64)]
        at = np.arange(len(order) - 1)
        for apart in range(1, len(order)):
            at = at[at + apart < len(order)]
            at = at[keys[at + apart] == keys[at]]
            if not len(at):
                break
            mixed = sorted_prints[at] ^ sorted_prints[at + apart]
            near = np.bitwise_count(mixed) <= self.most
            for earlier in self.masks[:number]:
                near &= (mixed & earlier) != 0
            first, second = order[at[near]], order[at[near] + apart]
            codes.append(np.minimum(first, second) * len(order) + np.maximum(first, second))
        return np.concatenate(codes)


def _hash(feature: str) -> int:
    return int.from_bytes(blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
