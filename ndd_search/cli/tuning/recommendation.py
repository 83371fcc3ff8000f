"""Recommends a setting from a person's answers about pairs of hits. No I/O.

An answer is a vote on every pair: a "no" counts for pairs that are no more alike, a "yes" for pairs that are no less
alike, and for the others the less, the further their similarity is from that of the pair asked about. What "auto" does
with a pair counts like one more answer. The recommended setting decides the most hits as these votes do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ndd_search.cli.tuning.compare_settings import BARS, SETTINGS, Flags, Pages, Pair, Shares
from ndd_search.core.matching.decision import ROUNDING

_NEAR = 0.1  # difference of similarities over which a vote falls to 0.37
_OTHERWISE = 0.3  # weight of a vote on pairs that "auto" treats in another way than the pair asked about
_BETTER = 0.02  # share of the hits with a similar hit above; a bar replaces "auto" if it decides so many more rightly


@dataclass(frozen=True)
class Tuning:
    """Pages and answers about their pairs. Immutable: `answered` returns a new object.

    answers: by key of a pair: True for near-duplicates, False for different, None for "don't know". Answers to pairs
             that the pages do not hold (from an earlier run) are ignored.
    """

    pages: Pages
    answers: Mapping[str, bool | None] = field(default_factory=dict)

    def answered(self, key: str, answer: bool | None) -> Tuning:
        """Return a copy with this answer added or replaced."""
        return replace(self, answers={**self.answers, key: answer})

    def question(self) -> Pair | None:
        """Return the pair to ask about next: one far from those asked about that stands for many hits; None at the end.

        A pair that all settings join is not asked about.
        """
        asked = np.isin(np.arange(len(self._similarity)), [place for place, _ in self._given])
        apart = np.abs(self._similarity[:, None] - self._similarity[asked]) + (
            self._joined[:, None] != self._joined[asked]
        )
        worth = np.where(asked | self._joins.all(axis=0), 0, np.sqrt(self._counts) * apart.min(axis=1, initial=2))
        return self.pages.pairs[int(worth.argmax())] if worth.any() else None

    @property
    def place(self) -> int:
        """The position in SETTINGS of the recommended setting; 0, "auto", without answers."""
        bar = int(self.right[1:].argmax()) + 1
        return bar if self.right[bar] > self.right[0] + _BETTER else 0

    @cached_property
    def right(self) -> Shares:
        """The share of the hits with a similar hit above that each of SETTINGS decides as the votes do; float64."""
        votes, weights = self._joined.astype(float), np.ones(len(self._joined))
        for place, answer in self._given:
            if answer is not None:
                ahead = (self._similarity - self._similarity[place]) * (1 if answer else -1)
                weight = np.exp(np.minimum(ahead, 0) / _NEAR)
                weight *= np.where(self._joined == self._joined[place], 1, _OTHERWISE)
                votes += weight * answer
                weights += weight
        yes = votes / weights
        shares: Shares = np.where(self._joins, yes, 1 - yes) @ self._counts / max(self._counts.sum(), 1)
        return shares

    def agreeing(self, place: int) -> int:
        """Return the number of answers that a setting agrees with. place: in SETTINGS."""
        return sum(answer is not None and bool(self._joins[place, at]) == answer for at, answer in self._given)

    def count(self, answer: bool | None) -> int:
        """Return the number of answers of this kind to pairs of these pages."""
        return sum(given is answer for _, given in self._given)

    @cached_property
    def _given(self) -> list[tuple[int, bool | None]]:
        """The answers to pairs of these pages, by the place of the pair."""
        keys = enumerate(pair.key for pair in self.pages.pairs)
        return [(place, self.answers[key]) for place, key in keys if key in self.answers]

    @cached_property
    def _similarity(self) -> Shares:
        return np.array([pair.similarity for pair in self.pages.pairs])

    @cached_property
    def _joined(self) -> Flags:
        return np.array([pair.joined for pair in self.pages.pairs], bool)

    @cached_property
    def _counts(self) -> Shares:
        return np.array([pair.count for pair in self.pages.pairs], float)

    @cached_property
    def _joins(self) -> Flags:
        """Whether each setting joins each pair; shape (len(SETTINGS), pairs)."""
        joins = [self._joined, *(self._similarity >= bar - ROUNDING for bar in BARS.tolist())]
        return np.array(joins, bool).reshape(len(SETTINGS), -1)
