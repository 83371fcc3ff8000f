"""Find the similar pairs of a page, and the overlaps that a decision needs of a page's pairs or of given pairs.

The native core counts the shared values if it is available, else numpy does (see `shared_values`), with the same result
bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ndd_search import native
from ndd_search.core.matching.decision import Decision, Overlaps
from ndd_search.core.matching.frequency_table import FrequencyTable, Places, Shares
from ndd_search.core.matching.insides import differ_at_edges
from ndd_search.core.matching.shared_values import Counts, commonness, count_shared, most_common, shared_values
from ndd_search.core.matching.sketch_rows import Ranks, Rows, core_arguments
from ndd_search.core.sketching.estimates import estimated_shingles
from ndd_search.core.sketching.sketches import VALUES, Sketches
from ndd_search.native import Rule

_ALIKE = 0.5  # resemblance: pairs above are mostly copies, pairs below mostly texts in one frame
_FEW = 2**9  # pairs: up to so many, exact weights are faster than bounds
_WHOLE, _REAL = np.dtype(np.int64), np.dtype(np.float64)
_COLUMNS = [_WHOLE] * 2 + [_REAL] + [_WHOLE] * 3 + [_REAL] * 5  # types of the columns of native.core.pairs


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


def leaders_of(
    sketches: Sequence[npt.ArrayLike] | Sketches, k: int, decision: Decision, old: int = 0, min_shingles: int = 0
) -> tuple[Ranks, npt.NDArray[np.float64]] | None:
    """Return the leaders of a page and the similarity to them, from the native core; None if only numpy can decide.

    old: the first `old` hits are leaders. min_shingles: a document of fewer is a near-duplicate only of an equal one.
    """
    if not native.core or k < 1 or decision.measure != "kmv":
        return None
    rule = decision.rule._replace(min_shingles=min(min_shingles, k)) if min_shingles else decision.rule
    found = native.core.leaders(*core_arguments(sketches), k, rule, _weights(decision), old)
    return (np.frombuffer(found[0], np.int64), np.frombuffer(found[1])) if found else None


def resembling_pairs(rows: Rows, decision: Decision) -> Pairs:
    """Return all pairs of a page whose resemblance a decision accepts; see `measures` for other measures."""
    if found := _native_pairs(rows, decision.rule, decision, brief=True):
        return Pairs(*found)
    counts = count_shared(rows.table, decision.floor)
    pairs = _pairs(counts)
    if not len(pairs) or decision.bar is not None:  # all pairs have the same bar, the floor
        return pairs
    if not decision.frequency_table:
        return pairs.where(accepted(rows, decision, pairs.first, pairs.second, _overlaps(rows, counts, None)))
    return pairs.where(_accepted(rows, counts, pairs.similarity, decision, decision.frequency_table))


def overlapping_pairs(rows: Rows, decision: Decision, floor: float | None = None) -> tuple[Pairs, Overlaps]:
    """Return the pairs with a resemblance of at least `floor` (default: the decision's), and their overlaps."""
    least = decision.floor if floor is None else floor
    if found := _native_pairs(rows, Rule(least), decision, brief=False):
        return Pairs(*found[:3]), Overlaps(*found[3:])
    counts = count_shared(rows.table, least)
    return _pairs(counts), _overlaps(rows, counts, decision.frequency_table)


def accepted(rows: Rows, decision: Decision, first: Places, second: Places, pairs: Overlaps) -> npt.NDArray[np.bool_]:
    """Return which given pairs are near-duplicates: by their overlaps, or because they differ at their edges."""
    yes = decision.accepts(pairs)
    no = np.flatnonzero(~yes)
    resemblance = pairs.resemblance[no]
    yes[no] = differ_at_edges(rows, first[no], second[no], resemblance, decision.rule, decision.frequency_table)
    return yes


def overlaps(rows: Rows, first: Places, second: Places, frequency_table: FrequencyTable | None) -> Overlaps:
    """Return the overlaps of given pairs; the same numbers as in overlapping_pairs."""
    limits = np.where(rows.lengths == rows.k, rows.largest, VALUES)
    limit = np.minimum(limits[first], limits[second])
    keys = np.repeat(np.arange(len(rows.lengths)), rows.lengths) * (VALUES + 1) + rows.values
    ends = [np.searchsorted(keys, side * (VALUES + 1) + limit, side="right") for side in (first, second)]
    rare = np.ones(len(rows.values)) if frequency_table is None else frequency_table.idf(rows.values)
    sums = np.concatenate(([0.0], np.cumsum(rare)))
    sizes = estimated_shingles(rows.lengths, rows.largest, rows.k)
    number, idf = np.zeros(len(first), np.int64), np.zeros(len(first))
    for shared in shared_values(rows, first, second):
        number += np.bincount(shared.pair, minlength=len(first))
        idf += np.bincount(shared.pair, rare[shared.left], len(first))
    return Overlaps(
        number,
        ends[0] - rows.offsets[first],
        ends[1] - rows.offsets[second],
        np.minimum(sizes[first], sizes[second]),
        np.maximum(sizes[first], sizes[second]),
        idf,
        sums[ends[0]] - sums[rows.offsets[first]],
        sums[ends[1]] - sums[rows.offsets[second]],
    )


def _accepted(
    rows: Rows, counts: Counts, resemblance: Shares, decision: Decision, frequency_table: FrequencyTable
) -> npt.NDArray[np.bool_]:
    """Return which pairs a decision accepts. Only pairs that bounds cannot decide are weighed exactly."""
    found = np.zeros(len(resemblance), dtype=bool)
    if 2 * np.count_nonzero(resemblance >= _ALIKE) >= len(found):
        found = _surely_accepted(rows, counts, resemblance, decision, frequency_table)
        if found.all():
            return found
        unsure = np.flatnonzero(~found)
    elif len(found) > _FEW:
        sizes = _sizes(rows)
        kept = decision.surely_copies(resemblance, np.minimum(sizes.take(counts.first), sizes.take(counts.second)))
        kept |= rows.marked[counts.first] | rows.marked[counts.second]
        unsure = np.flatnonzero(kept | ~_surely_refused(rows, counts, decision, frequency_table))
    else:
        return accepted(rows, decision, counts.first, counts.second, _overlaps(rows, counts, frequency_table))
    rest = Counts(*(column.take(unsure) for column in counts))
    found[unsure] = accepted(rows, decision, rest.first, rest.second, _overlaps(rows, rest, frequency_table))
    return found


def _surely_accepted(
    rows: Rows, counts: Counts, resemblance: Shares, decision: Decision, frequency_table: FrequencyTable
) -> npt.NDArray[np.bool_]:
    """Return which pairs are accepted even if their shared values are the commonest of one row: nearly all copies."""
    most = most_common(rows.table, counts, frequency_table)
    specificity = np.maximum(1 - most / counts.shared, 0)
    own = _overlaps(rows, counts, None).own
    shortest = _sizes(rows).take(np.concatenate((counts.first, counts.second))).min()
    return decision.surely_accepts(resemblance, specificity, own, float(shortest))


def _surely_refused(
    rows: Rows, counts: Counts, decision: Decision, frequency_table: FrequencyTable
) -> npt.NDArray[np.bool_]:
    """Return which pairs are rejected wherever their common values are: nearly all texts in one frame."""
    weights = commonness(rows.table, counts, frequency_table, limited=False)
    if weights is None:
        return np.zeros(len(counts.first), dtype=bool)
    shared, left, right = numbers = np.array(counts[2:], np.float64)
    rare_shared, rare_left, rare_right = numbers - weights
    return decision.surely_refuses(
        shared, left + right - 2 * shared, rare_shared, rare_left - rare_shared, rare_right - rare_shared
    )


def _sizes(rows: Rows) -> Shares:
    """Return the estimated number of shingles of each document, of at least one."""
    return estimated_shingles(rows.lengths, rows.table[:, -1], rows.k)  # the padding of a short row is never used


def _overlaps(rows: Rows, counts: Counts, frequency_table: FrequencyTable | None) -> Overlaps:
    """Return the overlaps of counted pairs."""
    numbers = counts.shared, counts.left, counts.right
    sizes = _sizes(rows) if len(counts.first) else np.ones(len(rows.lengths))
    first, second = sizes.take(counts.first), sizes.take(counts.second)
    weights = commonness(rows.table, counts, frequency_table) if frequency_table and len(first) else None
    rare = np.array(numbers, np.float64) if weights is None else np.array(numbers) - weights
    return Overlaps(*numbers, np.minimum(first, second), np.maximum(first, second), *rare)


def _native_pairs(rows: Rows, rule: Rule, decision: Decision, *, brief: bool) -> list[npt.NDArray[Any]] | None:
    """Return the columns of native.core.pairs as arrays; None if only numpy can decide."""
    if not native.core:
        return None
    found = native.core.pairs(rows.values, rows.offsets, rows.k, rule, _weights(decision), brief)
    return [np.frombuffer(column, kind) for column, kind in zip(found, _COLUMNS, strict=False)] if found else None


def _weights(decision: Decision) -> bytes | None:
    """Return the frequency table for the native core; b"", which the core refuses, if the core did not make it."""
    return (decision.frequency_table.native_table or b"") if decision.frequency_table else None


def _pairs(counts: Counts) -> Pairs:
    first, second, shared, left, right = counts
    return Pairs(first, second, shared / (left + right - shared))
