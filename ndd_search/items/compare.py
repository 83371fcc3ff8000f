"""Compares the values of one field, many pairs at a time.

A comparer is made from the distinct values of a field. `compare(a, b)` takes places of values, and returns similarities
in 0..1; 1 is identical. `tokens()` returns what near values share: the keys of candidate pairs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ndd_search.errors import importing
from ndd_search.items.places import corner_tokens, kilometres
from ndd_search.items.synonyms import Synonyms
from ndd_search.items.values import Date
from ndd_search.matching.pairs import overlaps
from ndd_search.matching.rows import rows_of
from ndd_search.recipe import Recipe
from ndd_search.sketching.sketches import sketch_many

with importing("rapidfuzz", "comparing records", "rapidfuzz", "items"):
    from rapidfuzz.distance import OSA, Indel, JaroWinkler
    from rapidfuzz.process import cpdist

Places = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_SYNONYM, _INITIAL, _LEAST = 0.97, 0.85, 0.8  # similarity of words; below _LEAST two words have nothing in common
_FAR = 3  # times the usual distance, up to which two places surely share a token
_NO_DIGIT = re.compile(r"\D")
_PREFIX = 4  # letters of a longer word that are a token of their own


class Compared(NamedTuple):
    """similarity: 0..1. share: of the records that hold the rarest value that both have in common; 1 if none."""

    similarity: Floats
    share: Floats


class Ragged(NamedTuple):
    """Lists of integers one after the other: list i is items[offsets[i]:offsets[i + 1]]."""

    items: Places
    offsets: Places

    @classmethod
    def of(cls, lists: Sequence[Sequence[int]]) -> Ragged:
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        items = np.fromiter(chain.from_iterable(lists), np.int64, int(lengths.sum()))
        return cls(items, np.concatenate(([0], np.cumsum(lengths))))

    def lengths(self, which: Places) -> Places:
        counts: Places = self.offsets[which + 1] - self.offsets[which]
        return counts

    def taken(self, which: Places) -> tuple[Places, Places]:
        """Return the items of some lists, and for each the place in `which` of its list."""
        counts = self.lengths(which)
        owner = np.repeat(np.arange(len(which)), counts)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.items[np.repeat(self.offsets[which], counts) + within], owner


class Rareness(NamedTuple):
    """How many records hold the values of a field. shares: of the most common ones. rest: of any other."""

    shares: Mapping[str, float]
    rest: float

    def of(self, values: Iterable[str]) -> Floats:
        return np.array([self.shares.get(value, self.rest) for value in values], np.float64)


class Comparer(Protocol):
    """The distinct values of one field."""

    def tokens(self) -> list[Iterable[Any]]:
        """Return the tokens of each value."""

    def compare(self, first: Places, second: Places) -> Compared:
        """Compare pairs of values, given by their places."""


def _plain(similarity: Floats) -> Compared:
    return Compared(np.clip(similarity, 0.0, 1.0), np.ones(len(similarity)))


class Names:
    """Names: words in any order, weighted by how rare they are.

    Each word meets the most similar one of the other name: equal, a synonym, an initial, or alike by Jaro-Winkler
    (Winkler 1990). The similarity is the weight of the words that meet over the weight of all words of both names,
    a symmetric form of soft TF-IDF (Cohen, Ravikumar and Fienberg 2003). Names that are divided into words in another
    way are compared as one word, too.
    """

    def __init__(self, values: Sequence[tuple[str, ...]], synonyms: Synonyms, rareness: Rareness) -> None:
        self._values = values
        self._synonyms = synonyms
        ids: dict[str, int] = {}
        self._words = Ragged.of([[ids.setdefault(word, len(ids)) for word in value] for value in values])
        self._vocabulary = list(ids)
        special = (len(word) == 1 or word.isdigit() or word in self._synonyms for word in self._vocabulary)
        self._special = np.fromiter(special, np.bool_, len(self._vocabulary))
        self._share = rareness.of(self._vocabulary)
        self._weight = -np.log(np.minimum(self._share, 0.9))
        digits: dict[str, int] = {}
        self._digits = np.array(
            [digits.setdefault(_NO_DIGIT.sub("", " ".join(value)), len(digits)) for value in values]
        )
        self._joined = ["".join(synonyms.get(word, (word,))[0] for word in value) for value in values]

    def tokens(self) -> list[Iterable[Any]]:
        return [
            {reading for word in value for reading in (*self._readings(word), *_prefix(word))}
            | ({self._joined[place]} if len(value) > 1 else set())
            for place, value in enumerate(self._values)
        ]

    def _readings(self, word: str) -> frozenset[str]:
        return frozenset((word, *self._synonyms.get(word, ())))

    def compare(self, first: Places, second: Places) -> Compared:
        a, b = self._words.lengths(first), self._words.lengths(second)
        owner = np.repeat(np.arange(len(first)), a * b)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(a * b) - a * b, a * b)
        of_b = b[owner]
        left = self._words.offsets[first][owner] + within // of_b
        right = self._words.offsets[second][owner] + within % of_b
        one, other = self._words.items[left], self._words.items[right]
        alike = self._words_alike(one, other)
        met = np.zeros(len(first))
        total = np.zeros(len(first))
        for names, side in ((first, left), (second, right)):
            starts = np.concatenate(([0], np.cumsum(self._words.lengths(names))))
            base = starts[owner] + side - self._words.offsets[names][owner]
            best = np.zeros(starts[-1])
            np.maximum.at(best, base, alike)
            words, of = self._words.taken(names)
            weight = self._weight[words]
            met += np.bincount(of, best * weight, len(names))
            total += np.bincount(of, weight, len(names))
        share = np.ones(len(first))
        shared = alike >= _INITIAL
        common = np.maximum(self._share[one], self._share[other])
        np.minimum.at(share, owner[shared], common[shared])
        similarity = met / np.maximum(total, 1e-12)
        whole = self._joined_alike(first, second)
        return Compared(np.clip(np.maximum(similarity, whole), 0.0, 1.0), share)

    def _joined_alike(self, first: Places, second: Places) -> Floats:
        """Return the similarity of names as one word, 0 where it is below 0.85 or their digits differ."""
        texts = self._joined
        ratio = cpdist(
            [texts[i] for i in first.tolist()],
            [texts[i] for i in second.tolist()],
            scorer=Indel.normalized_similarity,
            score_cutoff=0.85,
            dtype=np.float32,
        )
        return ratio * np.where(self._digits[first] == self._digits[second], 0.97, 0.0)

    def _words_alike(self, one: Places, other: Places) -> Floats:
        """Return the similarity of words, each pair compared once."""
        size, words = len(self._vocabulary), self._vocabulary
        keys, which = np.unique(np.minimum(one, other) * size + np.maximum(one, other), return_inverse=True)
        low, high = keys // size, keys % size
        first, second = [words[i] for i in low.tolist()], [words[i] for i in high.tolist()]
        alike = cpdist(first, second, scorer=JaroWinkler.similarity, score_cutoff=_LEAST, dtype=np.float32)
        alike = np.minimum(alike.astype(np.float64), 0.99)
        for place in np.flatnonzero(self._special[low] | self._special[high]).tolist():
            alike[place] = self._special_alike(first[place], second[place], float(alike[place]))
        alike[low == high] = 1.0
        return alike[which]

    def _special_alike(self, a: str, b: str, otherwise: float) -> float:
        """Compare two different words, one of which is a letter, a number or has synonyms."""
        if self._readings(a) & self._readings(b):
            return _SYNONYM
        if a.isdigit() or b.isdigit():
            return _LEAST if min(len(a), len(b)) > 2 and OSA.distance(a, b, score_cutoff=1) < 2 else 0.0
        if len(a) == 1 or len(b) == 1:
            return _INITIAL if a[0] == b[0] else 0.0
        return otherwise


def _prefix(word: str) -> tuple[str, ...]:
    return (f"{word[:_PREFIX]}…",) if len(word) > _PREFIX else ()


class Texts:
    """Longer texts: resemblance of their sketches."""

    def __init__(self, values: Sequence[str], recipe: Recipe) -> None:
        self._rows = rows_of(sketch_many(values, recipe), recipe.k)

    def tokens(self) -> list[Iterable[Any]]:
        ends = self._rows.offsets.tolist()
        values = self._rows.values.tolist()
        return [values[start:end][:16] for start, end in pairwise(ends)]

    def compare(self, first: Places, second: Places) -> Compared:
        found = overlaps(self._rows, np.minimum(first, second), np.maximum(first, second), None)
        return _plain(np.where(first == second, 1.0, found.resemblance))


class Globe:
    """Places: 1 at the same place, 0.5 at `km` kilometres, 0.25 at three times as much, and so on."""

    def __init__(self, values: Sequence[tuple[float, float]], km: float) -> None:
        self._places, self._km = np.array(values, np.float64).reshape(-1, 2), km

    def tokens(self) -> list[Iterable[Any]]:
        return list(corner_tokens(self._places, _FAR * self._km).tolist())

    def compare(self, first: Places, second: Places) -> Compared:
        return _plain(1 / (1 + kilometres(self._places[first], self._places[second]) / self._km))


class Numbers:
    """Numbers: 1 if equal, 0.5 where they differ by the tolerance, 0.25 at three times as much, and so on."""

    def __init__(self, values: Sequence[float], tolerance: float, within: float) -> None:
        self._values, self._tolerance, self._within = np.array(values, np.float64), tolerance, within

    def tokens(self) -> list[Iterable[Any]]:
        """Return numbers of intervals, of which near values share one."""
        size = np.maximum(np.abs(self._values) * self._tolerance, self._within)
        step = np.exp2(np.ceil(np.log2(np.maximum(size, 1e-9)))) * 2
        low = np.floor(self._values / step)
        return [((s, n), (s, n + 1)) for s, n in zip(step.tolist(), low.tolist(), strict=True)]

    def compare(self, first: Places, second: Places) -> Compared:
        a, b = self._values[first], self._values[second]
        allowed = np.maximum(np.maximum(np.abs(a), np.abs(b)) * self._tolerance, self._within)
        return _plain(1 / (1 + np.abs(a - b) / np.maximum(allowed, 1e-12)))


class Dates:
    """Dates, of which parts may be unknown. See `compare` for the steps of their similarity."""

    def __init__(self, values: Sequence[Date]) -> None:
        self._dates = np.array(values, np.int64).reshape(-1, 3)

    def tokens(self) -> list[Iterable[Any]]:
        return [
            ((y, m, d), ("ym", y, m), ("y", y), *((("yd", y, d), ("md", min(m, d), max(m, d))) if d else ()))
            for y, m, d in self._dates.tolist()
        ]

    def compare(self, first: Places, second: Places) -> Compared:
        """1 equal; 0.9 day and month swapped; 0.8 one digit differs; 0.75 two parts equal; 0.6 only the year is known
        and equal; 0.5 day and month equal, the year is not; 0.4 the year equal; 0.2 a year apart; else 0.
        """
        a, b = self._dates[first], self._dates[second]
        both = (a > 0) & (b > 0)
        same = (a == b) & both
        differ = both & ~same
        similarity = np.zeros(len(a))
        similarity[np.abs(a[:, 0] - b[:, 0]) == 1] = 0.2
        similarity[same[:, 0]] = 0.4
        similarity[same[:, 1] & same[:, 2]] = 0.5
        similarity[same[:, 0] & ~both[:, 1]] = 0.6
        similarity[same[:, 0] & (same[:, 1] | same[:, 2])] = 0.75
        # Two digits at the same place differ in one position only: their decimal digits are compared one by one.
        digits = np.array([1000, 100, 10, 1])
        wrong = np.zeros(len(a), np.int64)
        for part in range(3):
            unlike = (a[:, part, None] // digits % 10 != b[:, part, None] // digits % 10).sum(1)
            wrong += np.where(both[:, part], unlike, 0)
        similarity[(wrong == 1) & both.all(1)] = 0.8
        swapped = same[:, 0] & (a[:, 1] == b[:, 2]) & (a[:, 2] == b[:, 1]) & both.all(1)
        similarity[swapped] = 0.9
        similarity[same[:, 0] & ~differ.any(1) & both[:, 1]] = 0.95
        similarity[(a == b).all(1)] = 1.0
        return _plain(similarity)


class Sets:
    """Sets of values: the share of values in common (Jaccard). A single value is a set of one."""

    def __init__(self, values: Sequence[frozenset[str]], rareness: Rareness) -> None:
        self._values = [sorted(value) for value in values]
        ids: dict[str, int] = {}
        self._members = Ragged.of([[ids.setdefault(one, len(ids)) for one in value] for value in self._values])
        self._share = rareness.of(ids)

    def tokens(self) -> list[Iterable[Any]]:
        return list(self._values)

    def compare(self, first: Places, second: Places) -> Compared:
        a, of_a = self._members.taken(first)
        b, of_b = self._members.taken(second)
        size = len(self._share) + 1
        shared = np.intersect1d(of_a * size + a, of_b * size + b, assume_unique=True)
        of = shared // size
        common = np.bincount(of, minlength=len(first))
        share = np.ones(len(first))
        np.minimum.at(share, of, self._share[shared % size])
        union = self._members.lengths(first) + self._members.lengths(second) - common
        return Compared(common / np.maximum(union, 1), share)


class Urls:
    """Web addresses: 1 if equal, 0.5 to 0.9 on one host by the beginning that paths have in common, else 0."""

    def __init__(self, values: Sequence[tuple[str, str]], rareness: Rareness) -> None:
        self._values = values
        self._share = rareness.of(host for host, _ in values)

    def tokens(self) -> list[Iterable[Any]]:
        return [(value, host) for value, host in ((value, value[0]) for value in self._values)]

    def compare(self, first: Places, second: Places) -> Compared:
        similarity, share = np.zeros(len(first)), np.ones(len(first))
        for place, (i, j) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
            (host, path), (other, way) = self._values[i], self._values[j]
            if host == other:
                share[place] = self._share[i]
                steps, more = path.split("/")[1:], way.split("/")[1:]
                common = next((n for n, (a, b) in enumerate(zip(steps, more, strict=False)) if a != b), None)
                common = min(len(steps), len(more)) if common is None else common
                similarity[place] = 1.0 if path == way else 0.5 + 0.4 * common / max(len(steps), len(more), 1)
        return Compared(similarity, share)
