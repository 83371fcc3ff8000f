"""What passages say beyond one another, read from their texts: whole texts tell an edit from a new sentence.

Beside another passage, those words of a passage are new that stand in none of its pairs of neighbouring words. A row of
new words adds something if the other passage has more than three of them nowhere; fewer are an edit or a dateline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from functools import cache
from itertools import pairwise

import numpy as np

from ndd_search.core.matching.contained_texts import joined, lies_inside, normalised
from ndd_search.core.matching.guards import allowed_by_fields
from ndd_search.core.matching.similar_pairs import Pairs
from ndd_search.core.options import CollapseOptions
from ndd_search.core.text.numbers import numbers_of
from ndd_search.core.text.tokens import tokens
from ndd_search.integrations.given_passages import Given

_EDIT = 3
_SHARE = 0.25  # of the words of a near-duplicate that may add something to the passage that stands for it
_SCATTERED = 40  # words of a part of a longer passage for each of them that may differ

Neighbours = Counter[tuple[str, str]]  # of neighbouring words, and how often they stand so


def new_words(words: Sequence[str], other: Neighbours, known: Set[str]) -> int:
    """Return how many words of a passage stand in rows that add something. other, known: pairs and words of another."""
    added = row = unknown = 0
    left, before = dict(other), False  # pairs not met yet; whether the pair that ends here is known
    for word, following in pairwise((*words, "")):
        pair = word, following
        after = left.get(pair, 0) > 0
        if after:
            left[pair] -= 1
        if before or after:
            added, row, unknown = added + (row if unknown > _EDIT else 0), 0, 0
        else:
            row, unknown = row + 1, unknown + (word not in known)
        before = after
    return added + (row if unknown > _EDIT else 0)


class Texts:
    """The texts of passages, by rank, compared when somebody asks."""

    def __init__(self, given: Given, options: CollapseOptions) -> None:
        self.given, self.options = given, options
        self.normalised = cache(lambda rank: normalised(given.texts[rank] or ""))
        self.words = cache(self._words)
        self.adds = cache(self._adds)
        self.holds = cache(self._holds)
        self.inside = cache(self._inside)

    def stands_for(self, shown: int, other: int) -> bool:
        """Return whether a shown passage says nearly all that a near-duplicate says.

        A window that overlaps another one of its document is the next part of it, unless it stands inside.
        """
        if self.are_windows(shown, other):
            return self.normalised(shown) == self.normalised(other) or self.inside(other, shown)
        return self.adds(other, shown) <= _SHARE * len(self.words(other)[0]) and self._allowed(shown, other)

    def are_windows(self, one: int, other: int) -> bool:
        """Return whether two passages are of one document and overlap there."""
        document = self.given.document(one)
        if document is None or document != self.given.document(other):
            return False
        return joined(self.given.extract(one), self.given.extract(other)) is not None

    def _adds(self, one: int, other: int) -> int:
        """Return how many words of a passage add something to another one."""
        if self.holds(other, one):
            return 0
        words, pairs = self.words(other)
        return new_words(self.words(one)[0], pairs, set(words))

    def _holds(self, longer: int, shorter: int) -> bool:
        """Return whether a passage stands word for word in another one."""
        return lies_inside(self.normalised(shorter), self.normalised(longer))

    def _inside(self, shorter: int, longer: int) -> bool:
        """Return whether a passage is a part of a longer one but for scattered words, and no guard keeps them apart."""
        is_part = self.holds(longer, shorter) or self._differs_little(shorter, longer)
        return is_part and self._allowed(shorter, longer)

    def _differs_little(self, shorter: int, longer: int) -> bool:
        """Return whether a part of a longer passage differs in one of _SCATTERED words, none of them a number."""
        (words, pairs), (_, others) = self.words(shorter), self.words(longer)
        if len(pairs - others) > 2 * (len(words) // _SCATTERED) or len(words) < _SCATTERED:
            return False
        texts, recipe = self.given.texts, self.given.recipe
        numbers, of_longer = (numbers_of(texts[rank] or "", recipe) for rank in (shorter, longer))
        return numbers <= of_longer

    def _words(self, rank: int) -> tuple[list[str], Neighbours]:
        words = tokens(self.given.texts[rank] or "", self.given.recipe)
        return words, Counter(pairwise(words))

    def _allowed(self, one: int, other: int) -> bool:
        """Return whether no guard keeps two passages apart by their fields."""
        pair, hits = Pairs(np.array([0]), np.array([1]), np.ones(1)), [self.given.hits[rank] for rank in (one, other)]
        return all(verdict.all() for verdict in allowed_by_fields(pair, hits, self.given, self.options).values())
