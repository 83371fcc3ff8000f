"""The sketches of a page to its similar pairs, without looking at pairs that share nothing.

All values of the page are sorted once; equal values stand together then, and only documents that meet in such a run
can be similar. Documents that share too few values to reach the bar with anybody leave first. What is left is counted
in one of two ways: as a list of meetings, or, when many documents share the same values (boilerplate, edits of one
text), as the product of a small 0/1 matrix with itself, so that no kind of page is slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ndd_search.decision import CommonValues, Decision, Overlaps
from ndd_search.errors import InvalidSketch
from ndd_search.similarity import check_sketch, estimated_shingles
from ndd_search.sketch import VALUES, Sketches

Ranks = npt.NDArray[np.int64]
Weights = npt.NDArray[np.int64]
_NO_RANKS = np.empty(0, np.int64)
_BINS = 2**16  # pairs of a page, up to which counting them all in a table beats sorting those that met
_UNIT = 2**20  # of a weight
_ROUNDING = 1e-9  # a resemblance of exactly the bar counts, whatever the rounding of bar * size
_FEW, _MANY = 2**18, 2**25  # multiplications: OpenBLAS starts threads above the first, and they pay above the second


@dataclass(frozen=True)
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
        return Pairs(self.first[wanted], self.second[wanted], self.similarity[wanted])


@dataclass(frozen=True)
class Rows:
    """The sketches of a page, checked, one after the other.

    values:  int64, ascending and distinct within a row, at most k of each row.
    offsets: row i is values[offsets[i]:offsets[i + 1]].
    k:       a row of k values is a sample of its document, a shorter one the whole of it.
    """

    values: npt.NDArray[np.int64]
    offsets: Ranks
    k: int

    @property
    def lengths(self) -> Ranks:
        """How many values each row has."""
        return np.diff(self.offsets)

    @property
    def largest(self) -> npt.NDArray[np.int64]:
        """The largest value of each row, -1 for an empty one."""
        return np.where(self.lengths > 0, np.append(self.values, -1)[self.offsets[1:] - 1], -1)


def rows_of(sketches: Sequence[npt.ArrayLike] | Sketches, k: int) -> Rows:
    """Lay out and check the sketches of a page. Raises InvalidSketch naming the rank, ValueError for k below 1."""
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    if isinstance(sketches, Sketches):
        values, lengths = sketches.values.astype(np.int64), np.diff(sketches.offsets)
    else:
        arrays = [np.asarray(sketch) for sketch in sketches]
        for rank, array in enumerate(arrays):
            if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
                raise InvalidSketch(f"hit {rank} has shape {array.shape} and type {array.dtype}, not a row of integers")
        lengths = np.fromiter(map(len, arrays), np.int64, len(arrays))
        values = np.concatenate(arrays).astype(np.int64) if arrays else np.empty(0, np.int64)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    _check(values, offsets)
    if len(lengths) and lengths.max() > k:
        within = np.arange(len(values)) - np.repeat(offsets[:-1], lengths) < k
        values, offsets = values[within], np.concatenate(([0], np.cumsum(np.minimum(lengths, k))))
    return Rows(values, offsets, k)


def similar_pairs(rows: Rows, decision: Decision) -> Pairs:
    """All pairs of a page that a decision accepts."""
    pairs, overlaps = overlapping_pairs(rows, decision)
    return pairs.where(decision.accepts(overlaps))


def overlapping_pairs(rows: Rows, decision: Decision, floor: float | None = None) -> tuple[Pairs, Overlaps]:
    """The pairs whose resemblance is at least `floor`, or the decision's own, with what it asks about them."""
    least = decision.floor if floor is None else floor
    weights = None if decision.common is None else _weights(rows, decision.common)
    first, second, shared, left, right, commonness = count_shared(rows, least, weights)
    similarity = shared / (left + right - shared)
    wanted = np.flatnonzero(similarity >= least - _ROUNDING)
    pairs = Pairs(first[wanted], second[wanted], similarity[wanted])
    shared, left, right, commonness = shared[wanted], left[wanted], right[wanted], commonness[wanted]
    sizes = estimated_shingles(rows.lengths, rows.largest, rows.k)
    shorter = np.minimum(sizes[pairs.first], sizes[pairs.second])
    if weights is None:
        return pairs, Overlaps(shared, left, right, shorter, *(one.astype(np.float64) for one in (shared, left, right)))
    sums = np.concatenate(([0], np.cumsum(weights)))
    rare = [shared - commonness / _UNIT]
    for starts, numbers in ((rows.offsets[pairs.first], left), (rows.offsets[pairs.second], right)):
        rare.append(numbers - (sums[starts + numbers] - sums[starts]) / _UNIT)
    return pairs, Overlaps(shared, left, right, shorter, *rare)


def count_shared(
    rows: Rows, floor: float, weights: Weights | None
) -> tuple[Ranks, Ranks, Ranks, Ranks, Ranks, Weights]:
    """first, second, shared, |A <= t| and |B <= t| (see similarity), and the sum of the weights of what is shared.

    Every pair that may resemble by `floor` is there, ordered by the first, then the second; others may be missing.
    weights: whole numbers, one for each of rows.values, the same for equal values; None for zeros.
    """
    code, shared, weighed = _shared_counts(rows, floor, weights)
    first, second = np.divmod(code, max(len(rows.lengths), 1))
    return first, second, shared, *_sizes_up_to_common_limit(rows, first, second), weighed


def _weights(rows: Rows, common: CommonValues) -> Weights:
    """How common each value is, 0 for a rare one to _UNIT for one in every document; whole, so that sums are exact."""
    return np.round((1 - common.rareness(rows.values)) * _UNIT).astype(np.int64)


def _check(values: npt.NDArray[np.int64], offsets: Ranks) -> None:
    """Check all rows at once; the slow way only to say which row is wrong."""
    steps = np.diff(values) > 0
    steps[offsets[(offsets > 0) & (offsets < len(values))] - 1] = True  # from one row to the next anything goes
    if steps.all() and (not len(values) or (values.min() >= 0 and values.max() < VALUES)):
        return
    for rank, (start, end) in enumerate(pairwise(offsets)):
        try:
            check_sketch(values[start:end])
        except InvalidSketch as error:
            raise InvalidSketch(f"hit {rank}: {error.args[0]}") from None


def _shared_counts(rows: Rows, floor: float, weights: Weights | None) -> tuple[Ranks, Ranks, Weights]:
    """Pairs that may reach the floor, as first * n + second, ascending, what each shares, and what that weighs."""
    count = len(rows.lengths)
    owner = np.repeat(np.arange(count, dtype=np.uint64), rows.lengths)
    keys = rows.values.astype(np.uint64) << np.uint64(32) | owner
    if weights is None:
        keys = np.sort(keys)
    else:
        order = np.argsort(keys)
        keys, weights = keys[order], weights[order]
    chosen = np.flatnonzero(_shared(keys >> np.uint64(32)))
    members = (keys[chosen] & np.uint64(0xFFFFFFFF)).astype(np.int64)
    # A pair shares at least floor * (values of either of the two), whichever of them ends first: see similarity.
    enough = np.bincount(members, minlength=count) >= floor * rows.lengths - _ROUNDING
    chosen, members = chosen[enough[members]], members[enough[members]]
    if not len(chosen):
        return _NO_RANKS, _NO_RANKS, _NO_RANKS
    run = np.cumsum(np.diff(keys[chosen] >> np.uint64(32), prepend=keys[chosen[0]] >> np.uint64(32)) != 0)
    weigh = None if weights is None else weights[chosen]
    sizes = np.bincount(run)
    if (sizes * (sizes - 1)).sum() > 4 * count * count:
        return _count_by_matrix(run, members, count, weigh)
    return _count_by_meetings(run, members, count, weigh)


def _shared(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Mark the entries of a sorted array that equal a neighbour."""
    marks = np.zeros(len(values) + 1, dtype=bool)
    marks[1:-1] = values[1:] == values[:-1]
    return marks[1:] | marks[:-1]


def _count_by_meetings(run: Ranks, members: Ranks, count: int, weigh: Weights | None) -> tuple[Ranks, Ranks, Weights]:
    """List every meeting of two documents in a run, then count equal ones."""
    meetings, weights = [_NO_RANKS], [_NO_RANKS]
    place = np.arange(len(run) - 1)
    for apart in range(1, len(run)):
        place = place[run[place] == run[place + apart]]
        if not len(place):
            break
        meetings.append(members[place] * count + members[place + apart])
        weights.append(_NO_RANKS if weigh is None else weigh[place])
        place = place[: np.searchsorted(place, len(run) - 1 - apart)]
    codes = np.concatenate(meetings)
    if count * count <= _BINS:
        counted = np.bincount(codes, minlength=1)
        found = np.flatnonzero(counted)
        weighed = None if weigh is None else np.bincount(codes, np.concatenate(weights))[found].astype(np.int64)
        return found, counted[found], np.zeros(len(found), np.int64) if weighed is None else weighed
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    shared = np.diff(starts, append=len(codes))
    if weigh is None or not len(codes):
        return codes[starts], shared, np.zeros(len(starts), np.int64)
    return codes[starts], shared, np.add.reduceat(np.concatenate(weights)[order], starts)


def _count_by_matrix(run: Ranks, members: Ranks, count: int, weigh: Weights | None) -> tuple[Ranks, Ranks, Weights]:
    """Count the meetings of all pairs at once; exact, as float32 holds every whole number up to 2**24."""
    present = np.zeros(count, dtype=bool)
    present[members] = True
    who = np.flatnonzero(present)
    place = np.cumsum(present) - 1
    holds = np.zeros((len(who), int(run[-1]) + 1), dtype=np.float32)
    holds[place[members], run] = 1
    shared = np.triu(_product(holds, holds), 1)
    first, second = np.nonzero(shared)
    weighed = np.zeros(len(first), np.int64)
    if weigh is not None and weigh.any():
        of_run = np.zeros(holds.shape[1])
        of_run[run] = weigh
        heavy = np.flatnonzero(of_run)
        part = holds[:, heavy].astype(np.float64)
        weighed = _product(part * of_run[heavy], part)[first, second].astype(np.int64)
    return who[first] * count + who[second], shared[first, second].astype(np.int64), weighed


def _product(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """a @ b.T, in pieces so small that the library does not wake its threads for them, unless it is a lot."""
    rows, columns = a.shape
    step = rows if rows * len(b) * columns > _MANY else max(_FEW // (len(b) * columns), 1)
    return np.concatenate([a[start : start + step] @ b.T for start in range(0, rows, step)])


def _sizes_up_to_common_limit(rows: Rows, first: Ranks, second: Ranks) -> tuple[Ranks, Ranks]:
    """|A <= t| and |B <= t| of each pair, t being the smaller of the largest values of full sketches."""
    limits = np.where(rows.lengths == rows.k, rows.largest, VALUES)
    limit = np.minimum(limits[first], limits[second])
    ascending = rows.values + np.repeat(np.arange(len(rows.lengths)), rows.lengths) * (VALUES + 1)
    sizes = []
    for members in (first, second):
        ends = np.searchsorted(ascending, members * (VALUES + 1) + limit, side="right")
        sizes.append(ends - rows.offsets[members])
    return sizes[0], sizes[1]
