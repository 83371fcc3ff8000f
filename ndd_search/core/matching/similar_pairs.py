"""Find the similar pairs of a page, and the overlaps that a decision needs of a page's pairs or of given pairs.

The native core counts the shared values if it is available, else numpy does (see `shared_sketch_values`), with the
same result bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ndd_search import native
from ndd_search.core.matching.decision import ROUNDING, Decision, Overlaps
from ndd_search.core.matching.frequency_table import FrequencyTable, Places, Shares
from ndd_search.core.matching.shared_sketch_values import count_shared, shared_values
from ndd_search.core.matching.short_copies import differ_at_edges, may_differ_at_edges
from ndd_search.core.matching.sketch_rows import Ranks, Rows, rows_of, unmarked
from ndd_search.core.sketching.estimate_similarity import estimated_shingles
from ndd_search.core.sketching.sketches import VALUES, Sketches, core_arguments
from ndd_search.core.text.tokens import runs
from ndd_search.native import Rule

LONG = 5_000  # hits of a list, from where on pairs that share only common values are left out as in a collection
_EVERY = 1 << 62
Rowwise = TypeVar("Rowwise", bound=Sequence[npt.ArrayLike])  # sketches, one row each


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of hits, ordered by the first, then the second; three arrays of one length.

    first, second: ranks on the page, first < second.
    similarity:    estimated, 0..1.
    """

    first: Ranks
    second: Ranks
    similarity: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.first)

    def where(self, wanted: npt.NDArray[np.bool_]) -> Pairs:
        """Return the pairs marked True."""
        if wanted.all():
            return self
        at = np.flatnonzero(wanted)
        return Pairs(self.first.take(at), self.second.take(at), self.similarity.take(at))

    def with_more(self, others: Pairs) -> Pairs:
        """Return these pairs, then the others, which need not be different ones."""
        return Pairs(
            np.concatenate((self.first, others.first)),
            np.concatenate((self.second, others.second)),
            np.concatenate((self.similarity, others.similarity)),
        )


def as_compared(sketches: Rowwise, k: int, decision: Decision) -> Rowwise | Sketches:
    """Return sketches as a decision compares them: a fixed bar does not ask what touches an edge."""
    return unmarked(sketches, k) if decision.unmarks else sketches


def leaders_of(
    sketches: Sequence[npt.ArrayLike] | Sketches, k: int, decision: Decision, old: int = 0, min_shingles: int = 0
) -> tuple[Ranks, npt.NDArray[np.float64]] | None:
    """Return the leaders of a page and the similarity to them, from the native core; None if only numpy can decide.

    old: the first `old` hits are leaders. min_shingles: a document of fewer is a near-duplicate only of an equal one.
    """
    if not native.core or k < 1 or decision.measure != "kmv":
        return None
    rule = decision.rule._replace(min_shingles=min(min_shingles, k)) if min_shingles else decision.rule
    sketches, weights = as_compared(sketches, k, decision), _weights(decision)
    if (
        weights
        and len(sketches) > LONG
        and (many := collection_pairs(rows_of(sketches, k), k, rule, weights, (_EVERY, 0, old, 1)))
    ):
        pairs, same, _ = many
        leader, similarity = np.arange(len(same)), np.ones(len(same))
        leader[pairs.second], similarity[pairs.second] = pairs.first, pairs.similarity
        leader, similarity = leader[same], similarity[same]
        leader[:old], similarity[:old] = np.arange(old), 1.0
        return leader, similarity
    found = native.core.leaders(*core_arguments(sketches), k, rule, weights, old)
    return (np.frombuffer(found[0], np.int64), np.frombuffer(found[1])) if found else None


def resembling_pairs(rows: Rows, decision: Decision) -> Pairs:
    """Return all pairs of a page whose resemblance a decision accepts; see `similarity_measures` for other measures."""
    if (found := _native_pairs(rows, decision.rule, _weights(decision))) is not None:
        return found
    pairs, pair_overlaps = _pairs_by_numpy(rows, decision, decision.floor, edges=True)
    if decision.bar is not None:  # all pairs have the same bar, the floor
        return pairs
    return pairs.where(accepted(rows, decision, pairs.first, pairs.second, pair_overlaps))


def overlapping_pairs(rows: Rows, decision: Decision, floor: float | None = None) -> tuple[Pairs, Overlaps]:
    """Return the pairs with a resemblance of at least `floor` (default: the decision's), and their overlaps."""
    least = decision.floor if floor is None else floor
    if (pairs := _native_pairs(rows, Rule(least), None)) is not None:
        return pairs, overlaps(rows, pairs.first, pairs.second, decision.frequency_table)
    return _pairs_by_numpy(rows, decision, least)


def accepted(rows: Rows, decision: Decision, first: Places, second: Places, pairs: Overlaps) -> npt.NDArray[np.bool_]:
    """Return which given pairs are near-duplicates: by their overlaps, or because they differ at their edges."""
    yes = decision.accepts(pairs)
    no = np.flatnonzero(~yes)
    yes[no] = differ_at_edges(rows, first[no], second[no], decision.rule, decision.frequency_table)
    return yes


def given_pairs(rows: Rows, decision: Decision, first: Ranks, second: Ranks) -> Pairs:
    """Return those of given pairs of different sketches whose resemblance a decision accepts."""
    no_guards, both = (None, None, 0.0), np.concatenate((first, second))
    given = rows.values, rows.offsets, rows.k, decision.rule, _weights(decision), no_guards, both
    if native.core and (found := native.core.corpus_check(*given)) is not None:
        similarity = np.frombuffer(found)
        return Pairs(first, second, similarity).where(similarity >= 0)
    pair_overlaps = overlaps(rows, first, second, decision.frequency_table)
    pairs = Pairs(first, second, pair_overlaps.resemblance)
    return pairs.where(accepted(rows, decision, first, second, pair_overlaps))


def overlaps(rows: Rows, first: Places, second: Places, frequency_table: FrequencyTable | None) -> Overlaps:
    """Return the overlaps of given pairs; the same numbers as in overlapping_pairs."""
    idf = _idf(rows, frequency_table)
    shared, rare = np.zeros(len(first), np.int64), np.zeros(len(first))
    for some in shared_values(rows, first, second):
        shared += np.bincount(some.pair, minlength=len(first))
        rare += np.bincount(some.pair, idf[some.left], len(first))
    return _overlaps(rows, first, second, shared, rare, idf)


def _pairs_by_numpy(rows: Rows, decision: Decision, floor: float, *, edges: bool = False) -> tuple[Pairs, Overlaps]:
    """Return the pairs with a resemblance of at least `floor`, or may differ at their edges; and their overlaps."""
    table = decision.frequency_table
    first, second, shared, rare = count_shared(rows, table)
    found = _overlaps(rows, first, second, shared, rare, _idf(rows, table))
    resemble = found.resemblance >= floor - ROUNDING
    if edges:
        resemble |= may_differ_at_edges(rows, first, second, decision.rule)
    kept = np.flatnonzero(resemble)
    pairs = Pairs(first[kept], second[kept], found.resemblance[kept])
    return pairs, Overlaps(*(getattr(found, one.name)[kept] for one in fields(found)))


def _idf(rows: Rows, frequency_table: FrequencyTable | None) -> Shares:
    """Return the idf of each value of each row, 1 without a table."""
    return np.ones(len(rows.values)) if frequency_table is None else frequency_table.idf(rows.values)


def _overlaps(rows: Rows, first: Places, second: Places, shared: Ranks, rare: Shares, idf: Shares) -> Overlaps:
    """Return the overlaps of pairs. shared, rare: number and idf of their shared values. idf: of each value of rows."""
    limits = np.where(rows.lengths == rows.k, rows.largest, VALUES)
    limit = np.minimum(limits[first], limits[second])
    keys = np.repeat(np.arange(len(rows.lengths)), rows.lengths) * (VALUES + 1) + rows.values
    ends = [np.searchsorted(keys, side * (VALUES + 1) + limit, side="right") for side in (first, second)]
    sums = np.concatenate(([0.0], np.cumsum(idf)))
    sizes = estimated_shingles(rows.lengths, rows.largest, rows.k)
    return Overlaps(
        shared,
        ends[0] - rows.offsets[first],
        ends[1] - rows.offsets[second],
        np.minimum(sizes[first], sizes[second]),
        np.maximum(sizes[first], sizes[second]),
        rare,
        sums[ends[0]] - sums[rows.offsets[first]],
        sums[ends[1]] - sums[rows.offsets[second]],
    )


def collection_pairs(
    rows: Rows | Sketches,
    k: int,
    rule: Rule,
    weights: bytes | None,
    limits: tuple[int, int, int, int],
    guards: tuple[object, object, float] = (None, None, 0.0),
    progress: object = None,
) -> tuple[Pairs, Ranks, tuple[int, int, int, int]] | None:
    """Return what the native core's `corpus_pairs` does; None if only numpy can decide."""
    core = native.core
    found = core and core.corpus_pairs(rows.values, rows.offsets, k, rule, weights, guards, progress, limits)
    if not found:
        return None
    first, second, similarity, same, effort = found
    pairs = Pairs(np.frombuffer(first, np.int64), np.frombuffer(second, np.int64), np.frombuffer(similarity))
    return pairs, np.frombuffer(same, np.int64), effort


def _with_equals(pairs: Pairs, same: Ranks) -> Pairs:
    """Return pairs of different rows with those of rows that have the same values. same: as collection_pairs."""
    order, sizes = np.argsort(same, kind="stable"), np.bincount(same, minlength=len(same))
    ends, numbers = np.cumsum(sizes), np.arange(len(same))
    starts, each = ends - sizes, sizes[pairs.first] * sizes[pairs.second]
    of, nth = np.repeat(np.arange(len(pairs)), each), runs(np.zeros_like(each), each)
    second = pairs.second[of]
    left, right = order[starts[pairs.first[of]] + nth // sizes[second]], order[starts[second] + nth % sizes[second]]
    behind = ends[same[order]] - numbers - 1  # of each row of `order`, those with its values that follow there
    equal = Pairs(np.repeat(order, behind), order[runs(numbers + 1, behind)], np.ones(behind.sum()))
    every = Pairs(np.minimum(left, right), np.maximum(left, right), pairs.similarity[of]).with_more(equal)
    kept = np.lexsort((every.second, every.first))
    return Pairs(every.first[kept], every.second[kept], every.similarity[kept])


def _native_pairs(rows: Rows, rule: Rule, weights: bytes | None) -> Pairs | None:
    """Return the pairs that a rule accepts, from the native core; None if only numpy can decide."""
    if (
        weights
        and len(rows.lengths) > LONG
        and (many := collection_pairs(rows, rows.k, rule, weights, (_EVERY, _EVERY, 0, 1)))
    ):
        return _with_equals(*many[:2])
    found = native.core and native.core.pairs(rows.values, rows.offsets, rows.k, rule, weights)
    if not found:
        return None
    first, second, similarity = found
    return Pairs(np.frombuffer(first, np.int64), np.frombuffer(second, np.int64), np.frombuffer(similarity))


def _weights(decision: Decision) -> bytes | None:
    """Return the frequency table for the native core; b"", which the core refuses, if the core did not make it."""
    return (decision.frequency_table.native_table or b"") if decision.frequency_table else None
