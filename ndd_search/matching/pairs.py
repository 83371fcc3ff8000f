"""The sketches of a page, checked, to its similar pairs.

What they share is counted by the native core, where there is one, or by numpy (see counting), the same bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ndd_search import native
from ndd_search.errors import InvalidSketch
from ndd_search.matching import shared_values as counting
from ndd_search.matching.decision import Decision, Overlaps, Rule
from ndd_search.matching.frequency_table import FrequencyTable, Shares
from ndd_search.matching.shared_values import Counts, Ranks, Table
from ndd_search.sketching.estimates import check_sketch, estimated_shingles
from ndd_search.sketching.sketches import VALUES, Sketch, Sketches

_ALIKE = 0.5  # are copies rather than texts in one frame
_FEW = 2**9  # pairs are weighed sooner than bounded
_WHOLE, _REAL = np.dtype(np.int64), np.dtype(np.float64)
_COLUMNS = [_WHOLE] * 2 + [_REAL] + [_WHOLE] * 3 + [_REAL] * 4  # of the native core


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of hits, ordered by the first, then the second; three arrays of one length.

    first, second: ranks on the page, first < second.
    similarity:    resemblance as estimated, 0..1.
    """

    first: Ranks
    second: Ranks
    similarity: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.first)

    def where(self, wanted: npt.NDArray[np.bool_]) -> Pairs:
        """The pairs marked True."""
        if wanted.all():
            return self
        at = np.flatnonzero(wanted)
        return Pairs(self.first.take(at), self.second.take(at), self.similarity.take(at))


@dataclass(frozen=True, eq=False)
class Rows:
    """The sketches of a page, checked, one after the other.

    values:  int32, ascending and distinct within a row, at most k of each row.
    offsets: row i is values[offsets[i]:offsets[i + 1]].
    k:       a row of k values is a sample of its document, a shorter one the whole of it.
    """

    values: Sketch
    offsets: Ranks
    k: int

    @cached_property
    def lengths(self) -> Ranks:
        """How many values each row has."""
        return np.diff(self.offsets)

    @property
    def largest(self) -> Ranks:
        """The largest value of each row, -1 for an empty one."""
        if not len(self.values):
            return np.full(len(self.lengths), -1)
        return np.where(self.lengths > 0, self.values[self.offsets[1:] - 1], np.int64(-1))

    @cached_property
    def table(self) -> Table:
        """The values as `counting` works on them."""
        return counting.lay_out(self.values, self.lengths, self.k)


def rows_of(sketches: Sequence[npt.ArrayLike] | Sketches, k: int) -> Rows:
    """Lay out and check the sketches of a page. Raises InvalidSketch naming the rank, ValueError for k below 1."""
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    if native.core and (found := native.core.rows(*_arrays(sketches), k)):
        return Rows(np.frombuffer(found[0], np.int32), np.frombuffer(found[1], np.int64), k)
    given, lengths = _laid_out(sketches)
    offsets = _offsets(lengths)
    _check(given, offsets)
    values = given.astype(np.int32, copy=False)
    if len(lengths) and lengths.max() > k:
        within = np.arange(len(values)) - np.repeat(offsets[:-1], lengths) < k
        values, offsets = values[within], _offsets(np.minimum(lengths, k))
    return Rows(values, offsets, k)


def leaders_of(
    sketches: Sequence[npt.ArrayLike] | Sketches, k: int, decision: Decision, old: int = 0, min_shingles: int = 0
) -> tuple[Ranks, npt.NDArray[np.float64]] | None:
    """The leaders of a page and the similarity to them, straight from its sketches; None when only numpy can tell.

    The first `old` hits are leaders whatever they share. min_shingles: as in CollapseOptions.
    """
    if not native.core or k < 1 or decision.measure != "kmv":
        return None
    found = native.core.leaders(*_arrays(sketches), k, (*decision.rule, min(min_shingles, k)), _weights(decision), old)
    return (np.frombuffer(found[0], np.int64), np.frombuffer(found[1])) if found else None


def resembling_pairs(rows: Rows, decision: Decision) -> Pairs:
    """All pairs of a page whose resemblance a decision accepts; see `estimators` for other measures."""
    if found := _native_pairs(rows, decision.rule, decision, brief=True):
        return Pairs(*found)
    counts = counting.count_shared(rows.table, decision.floor)
    pairs = _pairs(counts)
    if not len(pairs) or not decision.frequency_table:  # one bar for all, the floor
        return pairs
    return pairs.where(_accepted(rows, counts, pairs.similarity, decision, decision.frequency_table))


def overlapping_pairs(rows: Rows, decision: Decision, floor: float | None = None) -> tuple[Pairs, Overlaps]:
    """The pairs whose resemblance is at least `floor`, or the decision's own, with what it asks about them."""
    least = decision.floor if floor is None else floor
    if found := _native_pairs(rows, (least, 0.0, 1.0, 1.0, 0.0, 0.0), decision, brief=False):
        return Pairs(*found[:3]), Overlaps(*found[3:])
    counts = counting.count_shared(rows.table, least)
    return _pairs(counts), _overlaps(rows, counts, decision.frequency_table)


def _accepted(
    rows: Rows, counts: Counts, resemblance: Shares, decision: Decision, frequency_table: FrequencyTable
) -> npt.NDArray[np.bool_]:
    """Which pairs a decision accepts; those that bounds cannot tell are weighed."""
    accepted = np.zeros(len(resemblance), dtype=bool)
    if 2 * np.count_nonzero(resemblance >= _ALIKE) >= len(accepted):
        accepted = _surely_accepted(rows, counts, resemblance, decision, frequency_table)
        if accepted.all():
            return accepted
        unsure = np.flatnonzero(~accepted)
    elif len(accepted) > _FEW:
        unsure = np.flatnonzero(~_surely_refused(rows, counts, decision, frequency_table))
    else:
        return decision.accepts(_overlaps(rows, counts, frequency_table))
    rest = Counts(*(column.take(unsure) for column in counts))
    accepted[unsure] = decision.accepts(_overlaps(rows, rest, frequency_table))
    return accepted


def _surely_accepted(
    rows: Rows, counts: Counts, resemblance: Shares, decision: Decision, frequency_table: FrequencyTable
) -> npt.NDArray[np.bool_]:
    """Which pairs count whichever of the values that one of them holds are shared: nearly all copies."""
    most = counting.most_common(rows.table, counts, frequency_table)
    specificity = np.maximum(1 - most / counts.shared, 0)
    shortest = _sizes(rows).take(np.concatenate((counts.first, counts.second))).min()
    return decision.surely_accepts(resemblance, specificity, float(shortest))


def _surely_refused(
    rows: Rows, counts: Counts, decision: Decision, frequency_table: FrequencyTable
) -> npt.NDArray[np.bool_]:
    """Which pairs do not count wherever the common values of both stand: nearly all texts in one frame."""
    weights = counting.commonness(rows.table, counts, frequency_table, limited=False)
    if weights is None:
        return np.zeros(len(counts.first), dtype=bool)
    shared, left, right = numbers = np.array(counts[2:], np.float64)
    rare_shared, rare_left, rare_right = numbers - weights
    return decision.surely_refuses(
        shared, left + right - 2 * shared, rare_shared, rare_left - rare_shared, rare_right - rare_shared
    )


def _sizes(rows: Rows) -> Shares:
    """Shingles of each document, estimated; there are pairs."""
    return estimated_shingles(rows.lengths, rows.table[:, -1], rows.k)  # of a short row what fills it up is never read


def _overlaps(rows: Rows, counts: Counts, frequency_table: FrequencyTable | None) -> Overlaps:
    """What a decision asks about the pairs that were counted."""
    numbers = counts.shared, counts.left, counts.right
    sizes = _sizes(rows) if len(counts.first) else np.ones(len(rows.lengths))
    shorter = np.minimum(sizes.take(counts.first), sizes.take(counts.second))
    weights = counting.commonness(rows.table, counts, frequency_table) if frequency_table and len(shorter) else None
    rare = np.array(numbers, np.float64) if weights is None else np.array(numbers) - weights
    return Overlaps(*numbers, shorter, *rare)


def _native_pairs(rows: Rows, rule: Rule, decision: Decision, *, brief: bool) -> list[npt.NDArray[Any]] | None:
    """The pairs of the native core, as arrays; None when only numpy can tell."""
    if not native.core:
        return None
    found = native.core.pairs(rows.values, rows.offsets, rows.k, (*rule, 0), _weights(decision), brief)
    return [np.frombuffer(column, kind) for column, kind in zip(found, _COLUMNS, strict=False)] if found else None


def _weights(decision: Decision) -> bytes | None:
    """The table of common values as the native core takes it; of one that it did not make, what it refuses."""
    return (decision.frequency_table.native_table or b"") if decision.frequency_table else None


def _pairs(counts: Counts) -> Pairs:
    first, second, shared, left, right = counts
    return Pairs(first, second, shared / (left + right - shared))


def _arrays(sketches: Sequence[npt.ArrayLike] | Sketches) -> tuple[object, object]:
    """As the native core takes them."""
    return (sketches.values, sketches.offsets) if isinstance(sketches, Sketches) else (sketches, None)


def _laid_out(sketches: Sequence[npt.ArrayLike] | Sketches) -> tuple[npt.NDArray[np.integer], Ranks]:
    """All values, one sketch after the other, and how many each has."""
    if isinstance(sketches, Sketches):
        return sketches.values, np.diff(sketches.offsets)
    with suppress(TypeError, ValueError):  # rows of int32, as sketches are
        values: Sketch = np.concatenate(sketches, dtype=np.int32, casting="no")
        if values.ndim == 1:
            return values, _lengths(sketches)
    arrays = [np.asarray(sketch) for sketch in sketches]
    for rank, array in enumerate(arrays):
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise InvalidSketch(f"hit {rank} has shape {array.shape} and type {array.dtype}, not a row of integers")
    return np.concatenate([np.empty(0, np.int64), *(array.astype(np.int64) for array in arrays)]), _lengths(arrays)


def _lengths(sketches: Sequence[Any]) -> Ranks:
    return np.fromiter(map(len, sketches), np.int64, len(sketches))


def _offsets(lengths: Ranks) -> Ranks:
    """Where rows of some lengths start, one after the other, and where the last one ends."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _check(values: npt.NDArray[np.integer], offsets: Ranks) -> None:
    """Check all rows at once; the slow way only to say which row is wrong."""
    wrong = np.zeros(len(values) + 1, dtype=bool)
    np.less_equal(values[1:], values[:-1], out=wrong[1:-1])
    wrong[offsets] = False  # from one row to the next anything goes
    if not (wrong.any() or values.min(initial=0) < 0 or (values.dtype != np.int32 and values.max(initial=0) >= VALUES)):
        return
    for rank, (start, end) in enumerate(pairwise(offsets)):
        try:
            check_sketch(values[start:end])
        except InvalidSketch as error:
            raise InvalidSketch(f"hit {rank}: {error.args[0]}") from None
