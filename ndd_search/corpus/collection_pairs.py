"""The leaders and pairs of a whole collection, from its sketches.

The native core does the work (native/corpus.h explains how). Without the core, numpy finds the same pairs, but slower,
because it compares every pair of documents that share one of their rarest values: no budget cuts any of them. Simhash
fingerprints are found by block tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, repeat
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ndd_search import native
from ndd_search.core.matching.choose_leaders import choose_leaders
from ndd_search.core.matching.decision import ROUNDING, Decision
from ndd_search.core.matching.document_frequency import count_document_frequency
from ndd_search.core.matching.frequency_table import SAMPLE, FrequencyTable, Shares
from ndd_search.core.matching.shared_sketch_values import partners
from ndd_search.core.matching.short_copies import inside
from ndd_search.core.matching.similar_pairs import Pairs, as_compared, collection_pairs, given_pairs, overlaps
from ndd_search.core.matching.similarity_measures import near_prints, similarities
from ndd_search.core.matching.sketch_rows import Ranks, Rows, rows_of
from ndd_search.core.recipe import Measure, Recipe
from ndd_search.core.setting_values import check_whole
from ndd_search.core.sketching.sketches import Sketches
from ndd_search.core.text.tokens import sorted_distinct
from ndd_search.corpus.guard_columns import Guards
from ndd_search.corpus.write_files import write

BUDGET = 10_000  # see Effort.cut
_SEED = 1  # of the sample that the frequency table is counted in
_AT_ONCE = 1 << 20  # pairs that numpy compares at a time
_EVERY = 1 << 62
_MEASURES: tuple[Measure, ...] = ("kmv", "broder", "overlap", "shorter")  # of the native core

Progress = Callable[[int], object]


@dataclass(frozen=True)
class Effort:
    """What a search cost, and what it left out.

    documents: documents with different sketches that are not empty.
    met:       how often two documents were met in the list of a value that both hold.
    compared:  pairs compared value by value.
    cut:       entries of such lists that were not read because one document had met `budget` others already, and what
               `each` left out. No pair was missed when this is 0.
    """

    documents: int
    met: int
    compared: int
    cut: int


@dataclass(frozen=True, eq=False)
class Led:
    """The leader of each document.

    leader:     the place of the document that stands for it, its own place for a leader, int64, shape (n,).
    similarity: resemblance to the leader, 1.0 for a leader, float64, shape (n,).
    effort:     what the search cost.
    """

    leader: Ranks
    similarity: Shares
    effort: Effort


@dataclass(frozen=True, eq=False)
class Found:
    """The pairs of a collection.

    pairs:    of documents with different sketches.
    same:     of each document the first one with an equal sketch, int64, shape (n,).
    effort:   what the search cost.
    sketches: of the collection.
    recipe:   of the sketches.
    ids:      of the documents, for `rows`.
    """

    pairs: Pairs
    same: Ranks
    effort: Effort
    sketches: Sketches
    recipe: Recipe
    ids: Sequence[str] = ()

    def rows(self) -> Iterator[dict[str, Any]]:
        """Each pair as a mapping: the ids of the first and second document, and their similarity.

        With a recipe that measures resemblance, "containment" is the larger share of one document that the other one
        contains, and "contains" says which one contains so much: first, second or both.
        """
        for place, same in enumerate(self.same.tolist()):
            if same != place:
                yield self._row(same, place, 1.0, (1.0, 1.0))
        shares = zip(*self.containments(), strict=True) if self.recipe.measure == "kmv" else repeat(None)
        columns = (self.pairs.first.tolist(), self.pairs.second.tolist(), self.pairs.similarity.tolist())
        for first, second, similarity, contained in zip(*columns, shares):  # noqa: B905 - one of them may be endless
            yield self._row(first, second, similarity, contained)

    def write(self, path: str | Path) -> int:
        """Write `rows` as .parquet, .jsonl or .csv. Returns how many."""
        return write(path, self.rows())

    def _row(self, first: int, second: int, similarity: float, shares: tuple[float, float] | None) -> dict[str, Any]:
        of_first, of_second = shares or (None, None)
        row = {"first": self.ids[first], "second": self.ids[second], "similarity": round(similarity, 4)}
        if of_first is None or of_second is None:
            return {**row, "containment": None, "contains": None}
        side = "both" if of_first == of_second else "second" if of_first > of_second else "first"
        return {**row, "containment": round(float(max(of_first, of_second)), 4), "contains": side}

    def containments(self) -> tuple[Shares, Shares]:
        """Of each pair the share of the first document that the second one contains, and the reverse, 0..1, estimated.

        Only for a recipe that measures resemblance.
        """
        rows = rows_of(self.sketches, self.recipe.k)
        columns: list[tuple[Shares, Shares]] = [(np.empty(0), np.empty(0))]
        for start in range(0, len(self.pairs), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            shared = overlaps(rows, self.pairs.first[part], self.pairs.second[part], None)
            columns.append((shared.shared / np.maximum(shared.left, 1), shared.shared / np.maximum(shared.right, 1)))
        first, second = zip(*columns, strict=True)
        return np.concatenate(first), np.concatenate(second)


@dataclass(frozen=True, kw_only=True)
class Search:
    """How the pairs of a collection are searched.

    recipe:       of the sketches.
    decision:     which pairs count.
    min_shingles: a document of fewer shingles pairs only with a document of the same sketch.
    guards:       which documents may pair, in the order of the sketches.
    budget:       documents met for one document at most, at least 1; see Effort.cut. Numpy meets all of them.
    progress:     called now and then with the number of documents done; an exception that it raises ends the search.
    threads:      of the native core.
    """

    recipe: Recipe
    decision: Decision
    min_shingles: int = 0
    guards: Guards = field(default_factory=Guards)
    budget: int = BUDGET
    progress: Progress | None = None
    threads: int = native.THREADS

    def __post_init__(self) -> None:
        check_whole("budget", self.budget, 1)

    def leaders(self, sketches: Sketches, old: int = 0) -> Led:
        """Let each document, in the order given, join the first leader that it resembles, or become a leader.

        old: so many documents at the head are leaders whatever they share, but for those equal to an earlier one.
        """
        pairs, same, effort = self._found(sketches, 0, old)
        leader, similarity = choose_leaders(len(sketches), pairs)
        leader, similarity = leader[same], similarity[same]
        leader[:old], similarity[:old] = np.arange(old), 1.0
        return Led(leader, similarity, effort)

    def pairs(self, sketches: Sketches, each: int | None = None, old: int = 0) -> Found:
        """All pairs of documents with different sketches that count, ordered by the first, then the second.

        Documents with equal sketches are in `same`, not in pairs: a thousand equal texts would be half a million pairs.
        each: pairs of one document with earlier ones at most; what that leaves out counts as cut.
        old:  so many documents at the head make no pairs with each other.
        """
        return Found(*self._found(sketches, each or _EVERY, old), sketches, self.recipe)

    @property
    def native_rule(self) -> native.Rule:
        """The rule of the decision and of min_shingles, for the native core."""
        return self.decision.rule._replace(min_shingles=self._few, measure=_MEASURES.index(self.decision.measure))

    @property
    def _few(self) -> int:
        return min(self.min_shingles, self.recipe.k)

    @property
    def native_table(self) -> bytes | None:
        """The frequency table for the native core; b"", which the core refuses, if the core did not make it."""
        table = self.decision.frequency_table
        return (table.native_table or b"") if table else None

    def _found(self, sketches: Sketches, each: int, old: int = 0) -> tuple[Pairs, Ranks, Effort]:
        """The pairs of different documents, of each document the first with its values, and the effort.

        each, old: as in `pairs`; an `each` of 0 may leave out all but the pair of each document with its leader.
        """
        sketches = as_compared(sketches, self.recipe.k, self.decision)
        if native.core and self.decision.measure in _MEASURES:
            given, limits = (self.native_rule, self.native_table), (self.budget, each, old, self.threads)
            found = collection_pairs(sketches, self.recipe.k, *given, limits, self.guards.arguments, self.progress)
            if found is not None:
                return *found[:2], Effort(*found[2])
        return self._without_core(sketches, each or _EVERY, old)

    def _without_core(self, sketches: Sketches, each: int, old: int) -> tuple[Pairs, Ranks, Effort]:
        rows = rows_of(sketches, self.recipe.k)
        same = _same(rows, self.guards)
        different = (same == np.arange(len(same))) & (rows.lengths > 0)
        if self.decision.measure == "cosine":
            pairs = near_prints(rows, np.flatnonzero(different), self.decision.bar or 0.0)
            pairs, effort = self._allowed(rows, pairs), Effort(int(different.sum()), len(pairs), len(pairs), 0)
        else:
            pairs, effort = self._pairs_that_meet(rows, different)
        pairs = pairs.where(pairs.second >= old)
        kept = pairs.where(_nth_of_second(pairs) < each)
        return kept, same, replace(effort, cut=len(pairs) - len(kept))

    def _check(self, rows: Rows, first: Ranks, second: Ranks) -> Pairs:
        if self.decision.measure == "kmv":
            return self._allowed(rows, given_pairs(rows, self.decision, first, second))
        pairs = Pairs(first, second, similarities(rows, first, second, self.decision.measure))
        return self._allowed(rows, pairs.where(pairs.similarity >= self.decision.floor - ROUNDING))

    def _allowed(self, rows: Rows, pairs: Pairs) -> Pairs:
        """Those of some pairs that the guards and min_shingles do not keep apart."""
        pairs = pairs.where(self.guards.allow(pairs.first, pairs.second))
        short = np.minimum(rows.lengths[pairs.first], rows.lengths[pairs.second]) < self._few
        return pairs.where(~short | (pairs.similarity >= 1) & (self.decision.measure != "shorter"))

    def looked_up(self, rows: Rows, holders: Ranks) -> tuple[Ranks, Ranks]:
        """The values by which rows are looked up: (row, place in rows.values), of one row those with few holders first.

        holders: of each value of rows, int64. The prefix of a row is all but as many of its values as it must share
        with any other, and one more, in an order that has values of few holders first. A value with one holder is left
        out.
        """
        counted = np.minimum(rows.lengths, max(self._few, 1)) if self.decision.measure == "shorter" else rows.lengths
        least = np.maximum(np.ceil((self.decision.floor - 2 * ROUNDING) * counted), 1)
        if self.decision.rule.edges:  # pairs that differ at their edges share that much inside
            within = np.ceil((self.decision.rule.least - 2 * ROUNDING) * inside(rows).lengths)
            least = np.where(rows.whole, np.maximum(within, 1), least)
        owner = np.repeat(np.arange(len(rows.lengths)), rows.lengths)
        order = np.lexsort((rows.values, holders, owner))
        place_in_row = np.arange(len(owner)) - np.repeat(rows.offsets[:-1], rows.lengths)
        chosen = (place_in_row <= (rows.lengths - least)[owner]) & (holders[order] > 1)
        return owner[chosen], order[chosen]

    def _pairs_that_meet(self, rows: Rows, different: npt.NDArray[np.bool_]) -> tuple[Pairs, Effort]:
        """The pairs among different documents that share a value of their prefixes."""
        _, values, holders = np.unique(rows.values, return_inverse=True, return_counts=True)
        row, place = self.looked_up(rows, holders[values])
        row, value = row[different[row]], values[place[different[row]]]
        kept = [Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
        met = 0
        for first, second in _meetings(row, value, len(different)):
            kept.append(self._check(rows, first, second))
            met += len(first)
        columns = zip(*((one.first, one.second, one.similarity) for one in kept), strict=True)
        first, second, similarity = (np.concatenate(column) for column in columns)
        _, at = np.unique(first * np.int64(len(different)) + second, return_index=True)
        return Pairs(first[at], second[at], similarity[at]), Effort(int(different.sum()), met, met, 0)


def frequency_table(sketches: Sketches, recipe: Recipe) -> FrequencyTable:
    """The frequency table of a collection, counted in a random sample of at most SAMPLE of its sketches."""
    return count_document_frequency([sketches[place] for place in sample_of(len(sketches)).tolist()], recipe)


def sample_of(count: int) -> Ranks:
    """The places of at most SAMPLE of `count` documents, ascending; the same in every process."""
    if count <= SAMPLE:
        return np.arange(count)
    return np.sort(np.random.default_rng(_SEED).choice(count, SAMPLE, replace=False))


def _meetings(row: Ranks, value: Ranks, rows: int) -> Iterator[tuple[Ranks, Ranks]]:
    """Pairs of rows that are looked up by one value, the first before the second, a block at a time.

    A pair may be in several blocks, once in each. rows: how many there are.
    """
    order = np.lexsort((row, value))
    row, value = row[order], value[order]
    begin = np.searchsorted(value, value)  # the first entry of the same value
    for first, second in partners(begin, np.arange(len(row)) - begin):
        codes = sorted_distinct(row[first] * np.int64(rows) + row[second])
        yield codes // rows, codes % rows


def _nth_of_second(pairs: Pairs) -> Ranks:
    """Of each pair the number of earlier pairs with the same second document."""
    order = np.argsort(pairs.second, kind="stable")
    second = pairs.second[order]
    nth = np.empty(len(order), np.int64)
    nth[order] = np.arange(len(order)) - np.searchsorted(second, second)
    return nth


def _same(rows: Rows, guards: Guards) -> Ranks:
    """Of each row the first one with the same values that no guard tells from it; an empty row has no equal."""
    first: dict[object, int] = {}
    ends = rows.offsets.tolist()
    same = [
        first.setdefault((key, rows.values[start:end].tobytes()), place)
        if end > start and (key := guards.key(place)) is not None
        else place
        for place, (start, end) in enumerate(pairwise(ends))
    ]
    return np.array(same, np.int64)
