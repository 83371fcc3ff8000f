"""Apply every setting to the result pages of some queries, and recommend one from answers about pairs of hits. No I/O.

An answer is a vote on every pair: a "no" counts for pairs that are no more alike, a "yes" for pairs that are no less
alike, and for others the less, the further their similarity is from that of the pair asked about. What "auto" does with
a pair counts like one more answer. The recommended setting decides the most hits as these votes do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ndd_search.core.document_fields import value_of
from ndd_search.core.matching.choose_leaders import choose_leaders
from ndd_search.core.matching.decision import ROUNDING, Decision, Setting
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.matching.guards import allowed
from ndd_search.core.matching.similar_pairs import Pairs, accepted, as_compared, overlaps
from ndd_search.core.matching.similarity_measures import similar_pairs
from ndd_search.core.matching.sketch_rows import rows_of
from ndd_search.core.options import CollapseOptions
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import Lack, Sketch

Shares = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

LEAST = 0.2  # resemblance; below it, texts have more than four times as much apart as in common
STEP = 0.05  # about the standard error of a resemblance from 64 values; finer steps mean little
BARS: Shares = np.round(np.arange(LEAST, 1 + STEP / 2, STEP), 2)
SETTINGS: tuple[Setting, ...] = ("auto", *BARS.tolist())

_NEAR = 0.1  # difference of similarities over which a vote falls to 0.37
_OTHERWISE = 0.3  # weight of a vote on pairs that "auto" treats in another way than the pair asked about
_BETTER = 0.02  # share of the hits with a similar hit above; a bar replaces "auto" if it decides so many more rightly
_NO_VALUES = np.empty(0, np.int32)


@dataclass(frozen=True, eq=False)
class FoundHit:
    """A hit of a page.

    sketch:   ascending values, or the reason why there are none. text: shown to the user.
    document: read by the guards; numbers: returns the number signature, called only for the guard numbers.
    """

    id: str
    sketch: Sketch | Lack
    text: str
    document: Mapping[str, Any]
    numbers: Callable[[], int | None] = lambda: None


@dataclass(frozen=True)
class ResultPage:
    """The first hits of a query, in the engine's order. query: words or JSON, shown to the user."""

    query: str
    hits: Sequence[FoundHit]


@dataclass(frozen=True)
class Pair:
    """A hit (second) and the most similar hit ranked above it (first).

    similarity: estimated resemblance, at least LEAST. joined: whether "auto" lists the second under a hit above it.
    count:      number of hits, on all pages, with these same two sketches. key: identifies the two sketches.
    """

    query: str
    first: FoundHit
    second: FoundHit
    similarity: float
    joined: bool
    count: int
    key: bytes


@dataclass(frozen=True, eq=False)
class Pages:
    """The pages of some queries and the hits that each of SETTINGS hides.

    pairs:  for each hit with a similar hit above, the pair with the most similar one; no pair twice.
    hidden: for each page, whether a setting lists a hit under another one; bool, shape (len(SETTINGS), hits).
    """

    pages: Sequence[ResultPage]
    recipe: Recipe
    options: CollapseOptions
    pairs: tuple[Pair, ...]
    hidden: Sequence[Flags]

    @property
    def hits(self) -> int:
        """Return the number of hits on all pages."""
        return sum(len(page.hits) for page in self.pages)

    @cached_property
    def hides(self) -> list[int]:
        """Return the number of hits that each setting hides."""
        return [sum(int(one[place].sum()) for one in self.hidden) for place in range(len(SETTINGS))]

    @cached_property
    def touches(self) -> list[int]:
        """Return the number of pages on which each setting hides a hit."""
        return [sum(bool(one[place].any()) for one in self.hidden) for place in range(len(SETTINGS))]


class _Reader:
    """Reads the values that guards compare."""

    def value(self, hit: FoundHit, field: str) -> Any:
        return value_of(hit.document, field)

    def numbers(self, hit: FoundHit) -> int | None:
        return hit.numbers()


def look_at(
    pages: Sequence[ResultPage], recipe: Recipe, frequency_table: FrequencyTable | None, options: CollapseOptions
) -> Pages:
    """Compare the hits of each page with one another under every setting.

    frequency_table: of the index, for "auto". options: only the guards are used; they apply to every setting.
    """
    decision = Decision.of("auto", recipe, frequency_table)
    by_key: dict[bytes, Pair] = {}
    hidden = []
    for page in pages:
        pairs, joined = _compared(page, recipe, decision, options)
        joins = [joined, *(pairs.similarity >= bar - ROUNDING for bar in BARS.tolist())]
        hidden.append(np.array([_hidden(len(page.hits), pairs.where(one)) for one in joins]))
        for pair in _nearest(page, pairs, hidden[-1][0]):
            known = by_key.setdefault(pair.key, replace(pair, count=0))
            by_key[pair.key] = replace(known, count=known.count + 1)
    return Pages(pages, recipe, options, tuple(by_key.values()), hidden)


def _compared(page: ResultPage, recipe: Recipe, decision: Decision, options: CollapseOptions) -> tuple[Pairs, Flags]:
    """Return the pairs of a page that no guard keeps apart, and whether "auto" joins them."""
    sketches = [_NO_VALUES if isinstance(hit.sketch, str) else hit.sketch for hit in page.hits]
    rows, least = rows_of(sketches, recipe.k), Decision.of(LEAST, recipe)
    pairs = similar_pairs(rows_of(as_compared(sketches, recipe.k, least), recipe.k), least)
    joined = pairs.similarity >= (decision.bar or 0.0) - ROUNDING
    if decision.bar is None:
        both = rows, decision, pairs.first, pairs.second
        joined = accepted(*both, overlaps(rows, pairs.first, pairs.second, decision.frequency_table))
    guards = allowed(pairs, rows, page.hits, _Reader(), options, recipe.min_shingles)
    permitted = np.logical_and.reduce(list(guards.values()))
    return pairs.where(permitted), joined[permitted]


def _hidden(count: int, joined: Pairs) -> Flags:
    """Return which of `count` hits are listed under another one."""
    return choose_leaders(count, joined)[0] != np.arange(count)  # type: ignore[no-any-return]


def _nearest(page: ResultPage, pairs: Pairs, hidden: Flags) -> Iterator[Pair]:
    """Yield for each hit its pair with the most similar hit above. hidden: which hits "auto" lists under another."""
    order = np.lexsort((-pairs.first, pairs.similarity))  # of equally similar hits, the best ranked is last
    best = {int(pairs.second[at]): at for at in order.tolist()}
    for place, at in best.items():
        first, second = page.hits[int(pairs.first[at])], page.hits[place]
        key = b"".join(sorted(np.asarray(hit.sketch).tobytes() for hit in (first, second)))
        yield Pair(page.query, first, second, float(pairs.similarity[at]), bool(hidden[place]), 1, key)


def samples(pages: Pages, most: int) -> list[Pair]:
    """Return at most `most` pairs spread over the similarities at which settings differ, the most similar first."""
    left = sorted(pages.pairs, key=lambda pair: -pair.count)
    chosen: list[Pair] = []
    for wanted in np.linspace(0.95, 0.3, most).tolist():
        near = min(left, key=lambda pair: abs(pair.similarity - wanted), default=None)
        if near is not None:
            left.remove(near)
            chosen.append(near)
    return sorted(chosen, key=lambda pair: -pair.similarity)


@dataclass(frozen=True)
class Tuning:
    """Pages and answers about their pairs. Immutable: `answered` returns a new object.

    answers: by key of a pair: True for near-duplicates, False for different, None for "don't know".
    """

    pages: Pages
    answers: Mapping[bytes, bool | None] = field(default_factory=dict)

    def answered(self, key: bytes, answer: bool | None) -> Tuning:
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
