"""The methods of others on given pairs, each as its source describes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ndd_search.common_values import Shares
from ndd_search.config import Recipe
from ndd_search.evaluation.collection import Places
from ndd_search.evaluation.methods import Method, Prepared, broder, sketched
from ndd_search.evaluation.sets import interned, rows_of_sets
from ndd_search.overlaps import shared_sums
from ndd_search.pairs import Rows
from ndd_search.shingles import shingle_texts
from ndd_search.sketches import sketch_many
from ndd_search.text import tokens

Signatures = npt.NDArray[np.uint64]

_WHOLE = 4096  # the largest k of a recipe: of a longer document the permutations see a sample


@dataclass(frozen=True)
class Signed:
    """Rows of numbers, compared place by place; the score is the share of equal places."""

    rows: Signatures
    bytes: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bytes", self.rows.nbytes)

    def scores(self, first: Places, second: Places) -> Shares:
        return np.concatenate(
            [
                (self.rows[first[start : start + 20_000]] == self.rows[second[start : start + 20_000]]).mean(axis=1)
                for start in range(0, len(first), 20_000)
            ]
        )


def permuted(count: int, recipe: Recipe, seed: int = 1) -> Callable[[Sequence[str]], Signed]:
    """Prepare min-hash signatures: the smallest shingle under each of `count` independent, seeded permutations."""

    def prepare(texts: Sequence[str]) -> Signed:
        salts = np.random.default_rng(seed).integers(0, 2**63, (count, 1), dtype=np.uint64)
        signatures = np.full((len(texts), count), np.iinfo(np.uint64).max, np.uint64)
        for row, values in zip(signatures, sketch_many(texts, recipe), strict=True):
            if len(values):
                row[:] = _mixed(values.astype(np.uint64) + salts).min(axis=1)
        return Signed((signatures >> np.uint64(32)).astype(np.uint32))

    return prepare


def super_shingles(groups: int, each: int, recipe: Recipe) -> Callable[[Sequence[str]], Prepared]:
    """Prepare Broder's super-shingles: `groups` numbers, each made of `each` min-hashes (84 in 6 in AltaVista)."""

    def prepare(texts: Sequence[str]) -> Prepared:
        signatures = permuted(groups * each, recipe)(texts).rows.astype(np.uint64)
        joined = np.zeros((len(texts), groups), np.uint64)
        for place in range(each):
            joined = _mixed(joined + signatures[:, place::each][:, :groups])
        return Signed(joined)

    return prepare


def overlap(rows: Rows, first: Places, second: Places) -> Shares:
    """Common values over the values of a full sketch: not resemblance, nearer to 2 * J / (1 + J)."""
    return shared_sums(rows, first, second) / np.maximum(np.maximum(rows.lengths[first], rows.lengths[second]), 1)


@dataclass(frozen=True)
class Overlapping:
    """Small sets; the score is the number of common members over the most a set may hold."""

    rows: Rows
    most: int
    bytes: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bytes", 4 * len(self.rows.values))

    def scores(self, first: Places, second: Places) -> Shares:
        return shared_sums(self.rows, first, second) / self.most


def frequent_characters(size: int, most: int) -> Callable[[Sequence[str]], Prepared]:
    """Prepare the `most` most frequent character n-grams of each text, ties by the alphabet (Basu 2011)."""

    def prepare(texts: Sequence[str]) -> Prepared:
        bags = (Counter(shingle_texts(text, Recipe.characters(size=size))) for text in texts)
        chosen = (
            [name for name, _ in sorted(bag.items(), key=lambda item: (-item[1], item[0]))[:most]] for bag in bags
        )
        return Overlapping(rows_of_sets(interned(chosen)), most)

    return prepare


def profile(text: str, shortest: int = 2, rate: float = 0.01) -> str:
    """The profile of Nutch's and Solr's TextProfileSignature: words of two letters and more whose frequency, rounded
    down to a quantum, is at least that quantum; the most frequent first. Equal profiles, equal signatures.
    """
    counts = Counter(word for word in tokens(text, Recipe.words(size=1)) if len(word) >= shortest)
    highest = max(counts.values(), default=0)
    quantum = round(highest * rate)
    if quantum < 2:
        quantum = 2 if highest > 1 else 1
    kept = [(count // quantum * quantum, word) for word, count in counts.items() if count >= quantum]
    return " ".join(f"{word} {count}" for count, word in sorted(kept, key=lambda one: (-one[0], one[1])))


def profiles(texts: Sequence[str]) -> Prepared:
    """Prepare one number per profile."""
    (numbers,) = interned([[profile(text) for text in texts]])
    return Signed(np.array(numbers, np.uint64).reshape(-1, 1))


def classic_methods() -> list[Method]:
    """The methods of others, with the bars their sources give."""
    whole = Recipe.words(k=_WHOLE)
    return [
        Method("min-hash", "64 independent permutations (Broder 2000)", 0.5, permuted(64, whole)),
        Method("super-shingles", "two of six super-shingles (Broder 2000)", 2 / 6, super_shingles(6, 14, whole)),
        Method(
            "sentences",
            "CRC-32 of stemmed sentences (Smith 2008)",
            0.5,
            sketched(broder, Recipe.sentences("english", hash="crc32")),
        ),
        Method("top-k", "the 64 most frequent 5-grams of characters (Basu 2011)", 0.5, frequent_characters(5, 64)),
        Method(
            "bottom-16",
            "16 values of 17 characters, common / 16 (Sycamore)",
            0.85,
            sketched(overlap, Recipe.characters(size=17, k=16)),
        ),
        Method("profile", "one signature of the frequent words (Solr)", 1.0, profiles),
    ]


def _mixed(values: Signatures) -> Signatures:
    values = (values ^ (values >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    values = (values ^ (values >> np.uint64(29))) * np.uint64(0xC4CEB9FE1A85EC53)
    return values ^ (values >> np.uint64(32))
