"""What every setting would do to the result pages of some queries. No I/O: pages in, figures and pairs out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from ndd_search.collapse_options import CollapseOptions
from ndd_search.documents import value_of
from ndd_search.matching.decision import ROUNDING, Decision, Setting
from ndd_search.matching.frequency_table import FrequencyTable
from ndd_search.matching.groups import choose_leaders
from ndd_search.matching.guards import allowed
from ndd_search.matching.measures import judged_pairs
from ndd_search.matching.pairs import Pairs
from ndd_search.matching.rows import Ranks, rows_of
from ndd_search.recipe import Recipe
from ndd_search.sketching.sketches import Lack, Sketch

Shares = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

LEAST = 0.2  # resemblance: two texts with four times as much apart as in common are nobody's near-duplicates
STEP = 0.05  # the standard error of a resemblance from 64 values: a finer bar means little
BARS: Shares = np.round(np.arange(LEAST, 1 + STEP / 2, STEP), 2)
SETTINGS: tuple[Setting, ...] = ("auto", *BARS.tolist())

_NO_VALUES = np.empty(0, np.int32)


@dataclass(frozen=True, eq=False)
class FoundHit:
    """A hit of a page.

    sketch:   ascending values, or why there are none. text: to show.
    document: for the guards; numbers: the same (see `numbers`), read only when that guard is on.
    """

    id: str
    sketch: Sketch | Lack
    text: str
    document: Mapping[str, Any]
    numbers: Callable[[], int | None] = lambda: None


@dataclass(frozen=True)
class ResultPage:
    """The first hits of a query, as the engine ranks them. query: in words or as JSON, to show."""

    query: str
    hits: Sequence[FoundHit]


@dataclass(frozen=True)
class Pair:
    """A hit and the one above it that it is most like, the better ranked one first.

    similarity: resemblance as estimated, at least LEAST. joined: whether "auto" makes near-duplicates of them.
    count:      how many hits of the pages this stands for: of the same two sketches, on whatever page. A half where
                "auto" would join a hit to another one than the most similar.
    key:        tells these two sketches from others.
    """

    query: str
    first: FoundHit
    second: FoundHit
    similarity: float
    joined: bool
    count: float
    key: str


@dataclass(frozen=True, eq=False)
class Pages:
    """The pages of some queries and what each of SETTINGS does to them.

    pairs:  for each hit that resembles one above it, the nearest; each pair once.
    hidden: whether a setting lists a hit under another one; bool, shape (len(SETTINGS), hits of all pages).
    starts: the place of each page's first hit in `hidden`; int64, shape (pages,).
    """

    pages: Sequence[ResultPage]
    recipe: Recipe
    options: CollapseOptions
    pairs: tuple[Pair, ...]
    hidden: Flags
    starts: Ranks

    @property
    def hits(self) -> int:
        """On all pages together."""
        return int(self.hidden.shape[1])

    @cached_property
    def hides(self) -> list[int]:
        """How many hits each setting hides."""
        return [int(count) for count in self.hidden.sum(axis=1)]

    @cached_property
    def touches(self) -> list[int]:
        """On how many pages each setting hides a hit."""
        if not self.hits:
            return [0] * len(SETTINGS)
        filled = self.starts[np.diff(self.starts, append=self.hits) > 0]
        return [int(count) for count in np.logical_or.reduceat(self.hidden, filled, axis=1).sum(axis=1)]

    @cached_property
    def nearest(self) -> Shares:
        """How many hits resemble one above them by each of BARS and less than the next: those that "auto" shows apart,
        and those that it joins; shape (len(BARS), 2).
        """
        counts = np.zeros((len(BARS), 2))
        for pair in self.pairs:
            counts[step_of(pair.similarity), int(pair.joined)] += pair.count
        return counts


def step_of(similarity: float) -> int:
    """The place in BARS of the highest bar that a resemblance of at least LEAST reaches."""
    return int(np.searchsorted(BARS, similarity + ROUNDING, side="right")) - 1


class _Reader:
    """How guards look into a hit."""

    def value(self, hit: FoundHit, field: str) -> Any:
        return value_of(hit.document, field)

    def numbers(self, hit: FoundHit) -> int | None:
        return hit.numbers()


def look_at(
    pages: Sequence[ResultPage], recipe: Recipe, frequency_table: FrequencyTable | None, options: CollapseOptions
) -> Pages:
    """Compare the hits of each page with each other.

    frequency_table: of the index, for "auto". options: their guards hold for every setting; the rest is not used.
    """
    decision = Decision.of("auto", recipe, frequency_table)
    found: dict[str, Pair] = {}
    hidden = [np.empty((len(SETTINGS), 0), bool)]
    for page in pages:
        pairs, joined = _compared(page, recipe, decision, options)
        chosen = [joined, *(pairs.similarity >= bar - ROUNDING for bar in BARS.tolist())]
        hidden.append(_hidden(len(page.hits), pairs, chosen))
        for one in _nearest(page, pairs, joined):
            known = found.setdefault(one.key, replace(one, count=0))
            found[one.key] = replace(known, count=known.count + one.count)
    starts = np.cumsum([0, *(len(page.hits) for page in pages)], dtype=np.int64)[:-1]
    return Pages(pages, recipe, options, tuple(found.values()), np.concatenate(hidden, axis=1), starts)


def _compared(page: ResultPage, recipe: Recipe, decision: Decision, options: CollapseOptions) -> tuple[Pairs, Flags]:
    """The pairs of a page that the guards leave to the settings, and whether "auto" joins them."""
    sketches = [_NO_VALUES if isinstance(hit.sketch, str) else hit.sketch for hit in page.hits]
    rows = rows_of(sketches, recipe.k)
    pairs, held, bars = judged_pairs(rows, decision, LEAST)
    guards = allowed(pairs, rows, page.hits, _Reader(), options)
    may = np.logical_and.reduce(list(guards.values()))
    return pairs.where(may), (held >= bars - ROUNDING)[may]


def _hidden(count: int, pairs: Pairs, chosen: Sequence[Flags]) -> Flags:
    """Which of `count` hits each setting hides. chosen: the pairs that it joins."""
    hidden = np.zeros((len(SETTINGS), count), bool)
    for setting, wanted in enumerate(chosen):
        hidden[setting] = choose_leaders(count, pairs.where(wanted))[0] != np.arange(count)
    return hidden


def _nearest(page: ResultPage, pairs: Pairs, joined: Flags) -> Iterator[Pair]:
    """For each hit that resembles one above it, the most similar one, and the most similar that "auto" joins it to."""
    best: dict[tuple[int, bool], int] = {}
    for at in np.lexsort((-pairs.first, pairs.similarity)).tolist():  # of equally similar ones the best ranked
        best[int(pairs.second[at]), bool(joined[at])] = at
    for second in {second for second, _ in best}:
        by_auto, parted = best.get((second, True)), best.get((second, False))
        if by_auto is None or parted is None or pairs.similarity[parted] <= pairs.similarity[by_auto]:
            yield _pair(page, pairs, joined, at=parted if by_auto is None else by_auto, count=1)
        else:
            yield _pair(page, pairs, joined, at=by_auto, count=0.5)
            yield _pair(page, pairs, joined, at=parted, count=0.5)


def _pair(page: ResultPage, pairs: Pairs, joined: Flags, at: int | None, count: float) -> Pair:
    first, second = page.hits[int(pairs.first[at])], page.hits[int(pairs.second[at])]
    values = sorted(np.asarray(hit.sketch).tobytes() for hit in (first, second))
    key = blake2b(b"".join(values), digest_size=8).hexdigest()
    return Pair(page.query, first, second, float(pairs.similarity[at]), bool(joined[at]), count, key)


def samples(pages: Pages, most: int) -> list[Pair]:
    """Some pairs to look at, spread over the resemblances at which settings differ; the most alike first."""
    left = sorted(pages.pairs, key=lambda pair: -pair.count)
    chosen: list[Pair] = []
    for wanted in np.linspace(0.95, 0.3, most).tolist():
        near = min(left, key=lambda pair: abs(pair.similarity - wanted), default=None)
        if near is not None:
            left.remove(near)
            chosen.append(near)
    return sorted(chosen, key=lambda pair: -pair.similarity)
