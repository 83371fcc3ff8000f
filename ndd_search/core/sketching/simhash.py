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
count), or, in a keyword field of your own, as block tokens. A terms query on either finds every document within
distance 3, and the fingerprint can be restored from the blocks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations
from math import log
from typing import Self

import numpy as np
import numpy.typing as npt

from ndd_search.core.recipe import Recipe
from ndd_search.core.text.shingles import shingle_texts

Prints = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]
Blocks = npt.NDArray[np.int32]
Weight = Callable[[str, int], float]

BITS = 64
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

    weight: of a word and its count in the text; by default the count.
    """
    hashes: dict[str, int] = {}
    return np.array([_fingerprint(Counter(shingle_texts(text, recipe)), weight, hashes) for text in texts], np.uint64)


def fingerprint(features: Mapping[str, float]) -> int:
    """Return the fingerprint of weighted features, 0..2**64-1; 0 for none. Weights may be negative."""
    hashes = {feature: _hash(feature) for feature in features}
    return _sign(list(hashes.values()), list(features.values()))


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


def block_tokens(fingerprint: int, blocks: int = 4) -> list[str]:
    """Return a fingerprint as `blocks` tokens like "0:1f2e". Fingerprints within distance blocks - 1 share a token."""
    width = BITS // blocks
    if blocks * width != BITS or width % 4:
        raise ValueError(f"blocks must be 1, 2, 4, 8 or 16, got {blocks}")
    digits = f"{fingerprint:016x}"
    step = width // 4
    return [f"{block}:{digits[block * step : (block + 1) * step]}" for block in range(blocks)]


def from_block_tokens(stored: Sequence[str]) -> int:
    """Return the fingerprint of tokens in any order. Raises ValueError unless they are all blocks of one."""
    parts = sorted((int(number), digits) for number, _, digits in (token.partition(":") for token in stored))
    digits = "".join(part for _, part in parts)
    if [number for number, _ in parts] != list(range(len(parts))) or len(digits) != BITS // 4:
        raise ValueError(f"not the tokens of one fingerprint: {', '.join(stored)}")
    return int(digits, 16)


class Tables:
    """An index of fingerprints by block tables (Manku, Jain and Das Sarma 2007, section 3).

    most:   bits that may differ, 0..8.
    blocks: number of pieces of the 64 bits, more than `most`. most + 1 gives the fewest tables (4 with keys of 16 bits
            for 3: 24 bytes a fingerprint, suitable for some millions). More blocks give more tables with longer keys
            (6 for 3: 20 tables with 32 bits), and so fewer candidates among billions.
    """

    def __init__(self, prints: npt.ArrayLike, most: int = 3, blocks: int | None = None) -> None:
        self.prints: Prints = np.asarray(prints, np.uint64)
        self.most, self.blocks = most, blocks or most + 1
        if not 0 <= most <= 8 or not most < self.blocks <= 16:
            raise ValueError(f"most must be 0..8 and blocks above it, at most 16, got {most} and {blocks}")
        edges = [block * BITS // self.blocks for block in range(self.blocks + 1)]
        masks = [(1 << edges[block + 1]) - (1 << edges[block]) for block in range(self.blocks)]
        self.masks = [np.uint64(sum(chosen)) for chosen in combinations(masks, self.blocks - most)]
        self._orders = [np.argsort(self.prints & mask, kind="stable").astype(np.uint32) for mask in self.masks]

    @property
    def bytes(self) -> int:
        """Return the memory of the fingerprints and their tables."""
        return self.prints.nbytes + sum(order.nbytes for order in self._orders)

    def near(self, fingerprint: int | np.uint64) -> tuple[Places, npt.NDArray[np.uint8]]:
        """Return the positions of all fingerprints within `most` bits, ascending, and their distances."""
        wanted = np.uint64(fingerprint)
        runs = [self._run(order, mask, wanted & mask) for order, mask in zip(self._orders, self.masks, strict=True)]
        candidates = np.sort(np.concatenate(runs).astype(np.int64))
        candidates = candidates[np.diff(candidates, prepend=-1) > 0]
        differing = distance(self.prints[candidates], wanted)
        return candidates[differing <= self.most], differing[differing <= self.most]

    def pairs(self) -> tuple[Places, Places]:
        """Return all pairs within `most` bits: two int64 arrays, first < second, in ascending order."""
        codes = [self._pairs_of(number) for number in range(len(self.masks))]
        return np.divmod(np.sort(np.concatenate(codes)), max(len(self.prints), 1))

    def _run(self, order: npt.NDArray[np.uint32], mask: np.uint64, key: np.uint64) -> npt.NDArray[np.uint32]:
        """Return the positions of the fingerprints with this key, by binary search."""
        ends = []
        for strictly in (False, True):
            low, high = 0, len(order)
            while low < high:
                middle = (low + high) // 2
                value = self.prints[order[middle]] & mask
                if value < key or (strictly and value == key):
                    low = middle + 1
                else:
                    high = middle
            ends.append(low)
        return order[ends[0] : ends[1]]

    def _pairs_of(self, number: int) -> Places:
        """Return the pairs that share a key in this table and in none before it, as first * n + second."""
        order, mask = self._orders[number].astype(np.int64), self.masks[number]
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


def _fingerprint(counts: Mapping[str, int], weight: Weight | None, hashes: dict[str, int]) -> int:
    for feature in counts:
        if feature not in hashes:
            hashes[feature] = _hash(feature)
    weights = [float(n) if weight is None else weight(feature, n) for feature, n in counts.items()]
    return _sign([hashes[feature] for feature in counts], weights)


def _hash(feature: str) -> int:
    return int.from_bytes(blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def _sign(hashes: Sequence[int], weights: Sequence[float]) -> int:
    bits = np.unpackbits(np.array(hashes, ">u8").view(np.uint8).reshape(-1, 8), axis=1)
    sums = np.asarray(weights, np.float64) @ (2.0 * bits - 1.0)
    return int.from_bytes(np.packbits(sums > 0).tobytes(), "big")
