"""Compares names, many pairs at a time."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from ndd_search.errors import importing
from ndd_search.items.compare_values import Compared, CoreRows, Rareness, letters_of
from ndd_search.items.integer_lists import Floats, Places, Ragged, distinct
from ndd_search.items.synonyms import Synonyms

with importing("rapidfuzz", "comparing records", "rapidfuzz", "items"):
    from rapidfuzz.distance import OSA, Indel, JaroWinkler
    from rapidfuzz.process import cpdist

_SYNONYM, _INITIAL, _LEAST = 0.97, 0.85, 0.8  # similarity of words; below _LEAST two words have nothing in common
_DIFFERENT = 0.99  # most similarity of different words, and of names with the same words in another order
_WHOLE, _AS_ONE = 0.85, 0.97  # least similarity of names as one word, and what it counts
_OVERLAP = _WHOLE / (2 - _WHOLE)  # least length of the shorter of two such names, as a share of the longer one
_AT_ONCE = 1 << 18  # pairs of words in memory at a time
_FINE = 1e9  # steps of a similarity
_SLACK = 0.01  # rapidfuzz returns 0 also for a similarity that is its score_cutoff
_NO_DIGIT = re.compile(r"\D")
_PREFIX = 4  # letters of a longer word that are a token of their own
_CONSONANT = re.compile(r"[^\W\d_aeiouhwy]")


class Names:
    """Names: words in any order, weighted by how rare they are.

    Each word meets the most similar one of the other name: equal, a synonym, an initial, or alike by Jaro-Winkler
    (Winkler 1990). The similarity is the weight of the words that meet over the weight of all words of both names,
    a symmetric form of soft TF-IDF (Cohen, Ravikumar and Fienberg 2003). Names that are divided into words in another
    way are compared as one word, too. Names that differ in the order of their words only are nearly equal.
    """

    def __init__(self, values: Sequence[tuple[str, ...]], synonyms: Synonyms, rareness: Rareness) -> None:
        self._values = values
        self._synonyms = synonyms
        # Words in alphabetical order: a comparison does not depend on which of two words is read first.
        self._vocabulary = words = sorted({word for value in values for word in value})
        ids = {word: place for place, word in enumerate(words)}
        self._words = Ragged.of(values, ids)
        self._share = rareness.of(words)
        self._weight = -np.log(np.minimum(self._share, 0.9))

    @cached_property
    def _lengths(self) -> Places:
        return np.fromiter(map(len, self._vocabulary), np.int64, len(self._vocabulary))

    @cached_property
    def _initial(self) -> Places:
        return np.fromiter((ord(word[0]) for word in self._vocabulary), np.int64, len(self._vocabulary))

    @cached_property
    def _kinds(self) -> Places:
        """Of each word whether it is a number (1), and has synonyms (2)."""
        return np.array([word.isdigit() + 2 * (word in self._synonyms) for word in self._vocabulary], np.int64)

    @cached_property
    def _joined(self) -> list[str]:
        """The names as one word, abbreviations written out."""
        written = {word: self._synonyms[word][0] for word in self._vocabulary if word in self._synonyms}
        return ["".join([written.get(word, word) for word in value]) for value in self._values]

    @cached_property
    def _digits(self) -> Places:
        """A number for each name, equal for equal digits."""
        digits: dict[str, int] = {"": 0}
        return np.array([digits.setdefault(_digits_of(value), len(digits)) for value in self._values], np.int64)

    def tokens(self, *, across: bool) -> list[Collection[Any]]:
        of = {
            word: tuple(dict.fromkeys((word, *self._synonyms.get(word, ()), *_near(word)))) for word in self._vocabulary
        }
        return [
            of[value[0]] if len(value) == 1 else dict.fromkeys([*(one for word in value for one in of[word]), joined])
            for value, joined in zip(self._values, self._joined, strict=True)
        ]

    def compare(self, first: Places, second: Places) -> Compared:
        similarity, share = np.zeros(len(first)), np.ones(len(first))
        words = np.cumsum(self._words.lengths(first) * self._words.lengths(second))
        for some in np.split(np.arange(len(first)), np.flatnonzero(np.diff(words // _AT_ONCE)) + 1):
            if len(some):
                similarity[some], share[some] = self._words_met(first[some], second[some])
        self._compare_as_one_word(first, second, similarity)
        # The core adds in another order: both are rounded, so that sums that are equal meet the same edges.
        similarity = np.where(first == second, 1.0, np.clip(similarity, 0.0, _DIFFERENT))
        return Compared(np.rint(similarity * _FINE) / _FINE, share)

    @cached_property
    def rows(self) -> CoreRows:
        one_word = len(self._words.items) == len(self._values)  # no name is compared as one word
        letters, ends = letters_of(self._vocabulary)
        joined, joined_ends = letters_of([""] * len(self._values) if one_word else self._joined)
        digits = np.zeros(len(self._values), np.int64) if one_word else self._digits
        weights, shares = self._weight.view(np.int64), self._share.view(np.int64)
        words = (letters, ends, self._kinds, weights, shares)
        return 0, (*words, *self._words, joined, joined_ends, digits, self._synonymous)

    def _words_met(self, first: Places, second: Places) -> tuple[Floats, Floats]:
        """Return the weight of the words that meet as a share of all words, and the share of the rarest that meets."""
        (items, offsets), every = self._words, np.arange(len(first))
        lefts, rights = self._words.lengths(first), self._words.lengths(second)
        start = np.cumsum(lefts * rights) - lefts * rights
        pair = np.repeat(every, lefts * rights)  # of each two words
        row, column = np.divmod(np.arange(len(pair)) - start[pair], rights[pair])
        one, other = items[offsets[first][pair] + row], items[offsets[second][pair] + column]
        alike = self._words_alike(one, other)
        met = np.zeros(len(first))
        for names, lengths, place in ((first, lefts, row), (second, rights, column)):
            words, owner = self._words.taken(names)
            best = np.zeros(len(words))
            np.maximum.at(best, (np.cumsum(lengths) - lengths)[pair] + place, alike)
            met += np.bincount(owner, best * self._weight[words], len(first))
        total = np.add.reduceat(self._weight[items], offsets[:-1])
        common = np.where(alike >= _INITIAL, np.maximum(self._share[one], self._share[other]), 1.0)
        return met / np.maximum(total[first] + total[second], 1e-12), np.minimum.reduceat(common, start)

    def _compare_as_one_word(self, first: Places, second: Places, similarity: Floats) -> None:
        """Raise the similarity, in place, of names that are divided into words in different ways.

        Names below 0.85, or whose digits differ, are not alike as one word.
        """
        length = np.fromiter(map(len, self._joined), np.int64, len(self._joined))
        one, other = length[first], length[second]
        lengths = np.minimum(one, other) >= _OVERLAP * np.maximum(one, other)
        several = (self._words.lengths(first) > 1) | (self._words.lengths(second) > 1)
        same_digits = self._digits[first] == self._digits[second]
        places = np.flatnonzero(several & same_digits & lengths & (similarity < _AS_ONE))
        if len(places):
            texts = self._joined
            left, right = [texts[i] for i in first[places].tolist()], [texts[i] for i in second[places].tolist()]
            ratio = cpdist(
                left, right, scorer=Indel.normalized_similarity, score_cutoff=_WHOLE - _SLACK, dtype=np.float64
            )
            ratio[ratio < _WHOLE - 1 / _FINE] = 0.0
            similarity[places] = np.maximum(similarity[places], ratio * _AS_ONE)

    def _words_alike(self, one: Places, other: Places) -> Floats:
        """Return the similarity of words."""
        alike = np.ones(len(one))
        differ = np.flatnonzero(one != other)
        size, words = len(self._vocabulary), self._vocabulary
        keys, which = distinct(
            np.minimum(one[differ], other[differ]) * size + np.maximum(one[differ], other[differ]), size**2
        )
        low, high = keys // size, keys % size
        first, second = [words[i] for i in low.tolist()], [words[i] for i in high.tolist()]
        found = cpdist(first, second, scorer=JaroWinkler.similarity, score_cutoff=_LEAST - _SLACK, dtype=np.float64)
        found = np.where(found < _LEAST - 1 / _FINE, 0.0, np.minimum(found, _DIFFERENT))
        is_special = (self._lengths == 1) | (self._kinds > 0)  # not compared by letters alone
        special = np.flatnonzero(is_special[low] | is_special[high])
        if len(special):
            found[special] = self._special_alike(low[special], high[special], found[special])
        alike[differ] = found[which]
        return alike

    def _special_alike(self, low: Places, high: Places, otherwise: Floats) -> Floats:
        """Compare different words, one of which is a letter, a number or has synonyms."""
        words, size = self._vocabulary, len(self._vocabulary)
        single = self._lengths[low] == 1, self._lengths[high] == 1
        same_letter = self._initial[low] == self._initial[high]
        alike = np.where(single[0] | single[1], np.where(same_letter, _INITIAL, 0.0), otherwise)
        of_numbers = (self._kinds[low] | self._kinds[high]) & 1 > 0
        alike[of_numbers] = 0.0
        longer = np.minimum(self._lengths[low], self._lengths[high]) > 2  # of shorter numbers each digit counts
        near = np.abs(self._lengths[low] - self._lengths[high]) < 2
        if len(numbers := np.flatnonzero(of_numbers & longer & near)):
            one, other = ([words[i] for i in of[numbers].tolist()] for of in (low, high))
            apart = cpdist(one, other, scorer=OSA.distance, score_cutoff=1, dtype=np.int32)
            alike[numbers[apart < 2]] = _LEAST
        if len(self._synonymous):
            alike[np.isin(low * size + high, self._synonymous)] = _SYNONYM
        return alike

    @cached_property
    def _synonymous(self) -> Places:
        """The pairs of different words that have a reading in common, as low * size + high."""
        ids = {word: place for place, word in enumerate(self._vocabulary)}
        of: dict[str, list[int]] = {}
        for word, place in ids.items():
            for reading in self._synonyms.get(word, ()):
                of.setdefault(reading, [ids[reading]] if reading in ids else []).append(place)
        pairs = {pair for places in of.values() for pair in combinations(sorted({*places}), 2)}
        return np.array(sorted(low * len(ids) + high for low, high in pairs), np.int64)


def _digits_of(name: tuple[str, ...]) -> str:
    text = "".join(name)
    return "" if text.isalpha() else _NO_DIGIT.sub("", text)


def _near(word: str) -> tuple[str, ...]:
    """Return what misspelt forms of a word are likely to have, too: the beginning, and which consonants there are."""
    if len(word) < _PREFIX or not word.isalpha():
        return ()
    consonants = f"{''.join(sorted({*_CONSONANT.findall(word)}))}~"
    return (f"{word[:_PREFIX]}…", consonants) if len(word) > _PREFIX else (consonants,)
