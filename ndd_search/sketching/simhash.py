"""Simhash: 64 bits a document, near-duplicates differ in few of them (Charikar 2002; Manku, Jain and Das Sarma 2007).

Every feature of a document has a hash of 64 bits and a weight; a bit of the fingerprint is 1 when the features whose
hash has a 1 there weigh more than those with a 0. Near fingerprints are found without comparing all: 64 bits cut into
more blocks than bits may differ leave some blocks equal, so each choice of blocks makes one table sorted by them.

    weights = Rarity.count(texts)                          # or None for plain counts, or any function of your own
    prints = fingerprints(texts, weight=weights)
    near, distances = Tables(prints).near(prints[0])       # online, one query
    first, second = Tables(prints).pairs()                 # batch, all pairs
    collapse(hits, sketches=as_sketches(prints), recipe=Recipe.simhash())           # on a page

In an index a fingerprint is stored as a sketch of four values, its blocks of 16 bits (`Recipe.simhash()` makes them of
plain counts), or, in a keyword field of your own, as its block tokens. A terms query over either finds every document
within distance 3, and the blocks themselves hold the fingerprint.
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

from ndd_search.recipe import Recipe
from ndd_search.text.shingles import shingle_texts

Prints = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]
Blocks = npt.NDArray[np.int32]
Weight = Callable[[str, int], float]

BITS = 64
WORDS = Recipe.words(size=1)
_PLACES = np.arange(4, dtype=np.uint64)  # of the blocks of a sketch, the highest bits first
_BLOCK = np.uint64(16)


@dataclass(frozen=True)
class Rarity:
    """Weighs a feature by tf-idf: its count times ln((1 + documents) / (1 + documents that have it)).

    documents: how many were counted; with: in how many of them each feature is, absent for none.
    """

    documents: int
    holding: Mapping[str, int]

    @classmethod
    def count(cls, texts: Iterable[str], recipe: Recipe = WORDS) -> Self:
        """Count the words of some texts, or other shingles."""
        counted, holding = 0, Counter[str]()
        for counted, text in enumerate(texts, 1):  # noqa: B007
            holding.update(set(shingle_texts(text, recipe)))
        return cls(counted, holding)

    def __call__(self, feature: str, count: int) -> float:
        return count * log((1 + self.documents) / (1 + self.holding.get(feature, 0)))


def fingerprints(texts: Iterable[str], recipe: Recipe = WORDS, weight: Weight | None = None) -> Prints:
    """The fingerprints of some texts by their words, or other shingles; uint64, shape (n,). A text without any has 0.

    weight: of a word that a text has `count` times, its count by default.
    """
    hashes: dict[str, int] = {}
    return np.array([_fingerprint(Counter(shingle_texts(text, recipe)), weight, hashes) for text in texts], np.uint64)


def fingerprint(features: Mapping[str, float]) -> int:
    """The fingerprint of any weighted features, 0..2**64-1; 0 for none. Negative weights count against a bit."""
    hashes = {feature: _hash(feature) for feature in features}
    return _sign(list(hashes.values()), list(features.values()))


def distance(a: npt.ArrayLike, b: npt.ArrayLike) -> npt.NDArray[np.uint8]:
    """How many bits differ, 0..64; arrays broadcast."""
    differing: npt.NDArray[np.uint8] = np.bitwise_count(np.asarray(a, np.uint64) ^ np.asarray(b, np.uint64))
    return differing


def as_sketches(prints: npt.ArrayLike) -> Blocks:
    """Fingerprints as sketches of Recipe.simhash(): int32, shape (n, 4), place * 2**16 + 16 bits, the highest first."""
    bits = np.asarray(prints, np.uint64)[:, None] >> (_BLOCK * _PLACES[::-1])
    return (_PLACES << _BLOCK | bits & np.uint64(0xFFFF)).astype(np.int32)


def from_sketches(blocks: npt.NDArray[np.integer]) -> tuple[Prints, npt.NDArray[np.bool_]]:
    """The fingerprints of sketches, shape (n, 4), and which of them are fingerprints at all."""
    values = blocks.astype(np.uint64)
    parts = (values & np.uint64(0xFFFF)) << (_BLOCK * _PLACES[::-1])
    return np.bitwise_or.reduce(parts, axis=1), (values >> _BLOCK == _PLACES).all(axis=1)


def block_tokens(fingerprint: int, blocks: int = 4) -> list[str]:
    """A fingerprint as `blocks` tokens, "0:1f2e": within a distance of blocks - 1 two documents share at least one."""
    width = BITS // blocks
    if blocks * width != BITS or width % 4:
        raise ValueError(f"blocks must be 1, 2, 4, 8 or 16, got {blocks}")
    digits = f"{fingerprint:016x}"
    step = width // 4
    return [f"{block}:{digits[block * step : (block + 1) * step]}" for block in range(blocks)]


def from_block_tokens(stored: Sequence[str]) -> int:
    """The fingerprint of its tokens, in any order. Raises ValueError for what is not all blocks of one fingerprint."""
    parts = sorted((int(number), digits) for number, _, digits in (token.partition(":") for token in stored))
    digits = "".join(part for _, part in parts)
    if [number for number, _ in parts] != list(range(len(parts))) or len(digits) != BITS // 4:
        raise ValueError(f"not the tokens of one fingerprint: {', '.join(stored)}")
    return int(digits, 16)


class Tables:
    """Fingerprints, sorted by every choice of blocks that `most` differing bits must leave one of untouched.

    most:   bits that may differ, 0..8.
    blocks: pieces of the 64 bits, more than `most`. most + 1 makes the fewest tables (4 of 16 bits for 3: 24 bytes a
            fingerprint, fit for some millions); more make more tables with longer keys (6 for 3: 20 tables of 32 bits),
            which keep candidates few among billions. (Manku, Jain and Das Sarma, section 3.)
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
        """Memory of the fingerprints and their tables."""
        return self.prints.nbytes + sum(order.nbytes for order in self._orders)

    def near(self, fingerprint: int | np.uint64) -> tuple[Places, npt.NDArray[np.uint8]]:
        """The places of all fingerprints within `most` bits, ascending, and their distances."""
        wanted = np.uint64(fingerprint)
        found = [self._run(order, mask, wanted & mask) for order, mask in zip(self._orders, self.masks, strict=True)]
        candidates = np.sort(np.concatenate(found).astype(np.int64))
        candidates = candidates[np.diff(candidates, prepend=-1) > 0]
        differing = distance(self.prints[candidates], wanted)
        return candidates[differing <= self.most], differing[differing <= self.most]

    def pairs(self) -> tuple[Places, Places]:
        """All pairs within `most` bits: two int64 arrays, first < second, ordered by the first, then the second."""
        codes = [self._pairs_of(number) for number in range(len(self.masks))]
        return np.divmod(np.sort(np.concatenate(codes)), max(len(self.prints), 1))

    def _run(self, order: npt.NDArray[np.uint32], mask: np.uint64, key: np.uint64) -> npt.NDArray[np.uint32]:
        """The places of the fingerprints with this key: a binary search that looks at a few of them only."""
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
        """The pairs that share a key of this table and of none before it, as first * n + second."""
        order, mask = self._orders[number].astype(np.int64), self.masks[number]
        sorted_prints = self.prints[order]
        keys = sorted_prints & mask
        found = [np.empty(0, np.int64)]
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
            one, other = order[at[near]], order[at[near] + apart]
            found.append(np.minimum(one, other) * len(order) + np.maximum(one, other))
        return np.concatenate(found)


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
