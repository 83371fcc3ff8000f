"""The sketches of a page to its similar pairs, without looking at pairs that share nothing.

Two documents at least `floor` alike have a value in common already among the smallest of each: all but as many as they
must share, and one more. So only those are sorted first; equal values stand together then, and documents that meet
nobody there leave. What the others share is counted in one of two ways: as a list of meetings, or, when many documents
share the same values (boilerplate, edits of one text), as the product of a small 0/1 matrix with itself, so that no
kind of page is slow. The native core, where there is one, does the same with a hash table.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ndd_search import native
from ndd_search.decision import CommonValues, Decision, Overlaps
from ndd_search.errors import InvalidSketch
from ndd_search.similarity import check_sketch, estimated_shingles
from ndd_search.sketch import VALUES, Sketch, Sketches

Ranks = npt.NDArray[np.int64]
Weights = npt.NDArray[np.int64]
Counts = tuple[Ranks, Ranks, Ranks, Ranks, Ranks, Weights]
_NO_RANKS = np.empty(0, np.int64)
_BINS = 2**16  # pairs of a page, up to which counting them all in a table beats sorting those that met
_OWNER = 2**32 - 1  # of a key, value << 32 | owner
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

    values:  int32, ascending and distinct within a row, at most k of each row.
    offsets: row i is values[offsets[i]:offsets[i + 1]].
    k:       a row of k values is a sample of its document, a shorter one the whole of it.
    """

    values: Sketch
    offsets: Ranks
    k: int

    @property
    def lengths(self) -> Ranks:
        """How many values each row has."""
        return np.diff(self.offsets)

    @property
    def largest(self) -> Ranks:
        """The largest value of each row, -1 for an empty one."""
        return np.where(self.lengths > 0, np.append(self.values, np.int32(-1))[self.offsets[1:] - 1], np.int64(-1))

    def of(self, hits: Ranks) -> tuple[Ranks, Rows]:
        """Where the values of some hits are, and their rows."""
        lengths = self.lengths[hits]
        ends = np.cumsum(lengths)
        places = np.arange(lengths.sum()) + np.repeat(self.offsets[hits] - ends + lengths, lengths)
        return places, Rows(self.values[places], np.concatenate(([0], ends)), self.k)


def rows_of(sketches: Sequence[npt.ArrayLike] | Sketches, k: int) -> Rows:
    """Lay out and check the sketches of a page. Raises InvalidSketch naming the rank, ValueError for k below 1."""
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    if native.core and (found := native.core.rows(*_arrays(sketches), k)):
        return Rows(np.frombuffer(found[0], np.int32), np.frombuffer(found[1], np.int64), k)
    given, lengths = _laid_out(sketches)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    _check(given, offsets)
    values = given.astype(np.int32, copy=False)
    if len(lengths) and lengths.max() > k:
        within = np.arange(len(values)) - np.repeat(offsets[:-1], lengths) < k
        values, offsets = values[within], np.concatenate(([0], np.cumsum(np.minimum(lengths, k))))
    return Rows(values, offsets, k)


def leaders_of(sketches: Sequence[npt.ArrayLike] | Sketches, k: int, min_similarity: float) -> Ranks | None:
    """The leaders of a page by plain resemblance, straight from its sketches; None when only numpy can tell."""
    found = native.core.leaders(*_arrays(sketches), k, min_similarity) if native.core and k >= 1 else None
    return None if found is None else np.frombuffer(found, np.int64).copy()


def similar_pairs(rows: Rows, decision: Decision) -> Pairs:
    """All pairs of a page that a decision accepts."""
    pairs, overlaps = overlapping_pairs(rows, decision)
    return pairs.where(decision.accepts(overlaps))


def resembling_pairs(rows: Rows, floor: float) -> Pairs:
    """All pairs of a page whose resemblance, in its KMV form (see similarity), is at least `floor`."""
    first, second, shared, left, right, _ = count_shared(rows, floor)
    return Pairs(first, second, shared / (left + right - shared))


def overlapping_pairs(rows: Rows, decision: Decision, floor: float | None = None) -> tuple[Pairs, Overlaps]:
    """The pairs whose resemblance is at least `floor`, or the decision's own, with what it asks about them."""
    least = decision.floor if floor is None else floor
    weights = None if decision.common is None else _weights(rows, decision.common)
    first, second, shared, left, right, commonness = count_shared(rows, least, weights)
    pairs = Pairs(first, second, shared / (left + right - shared))
    sizes = estimated_shingles(rows.lengths, rows.largest, rows.k)
    shorter = np.minimum(sizes[pairs.first], sizes[pairs.second])
    if weights is None:
        return pairs, Overlaps(shared, left, right, shorter, *(one.astype(np.float64) for one in (shared, left, right)))
    sums = np.concatenate(([0], np.cumsum(weights)))
    rare = [shared - commonness / _UNIT]
    for starts, numbers in ((rows.offsets[pairs.first], left), (rows.offsets[pairs.second], right)):
        rare.append(numbers - (sums[starts + numbers] - sums[starts]) / _UNIT)
    return pairs, Overlaps(shared, left, right, shorter, *rare)


def count_shared(rows: Rows, floor: float, weights: Weights | None = None) -> Counts:
    """first, second, shared, |A <= t| and |B <= t| (see similarity), and the sum of the weights of what is shared.

    Of the pairs that share a value and resemble each other by `floor`, ordered by the first, then the second.
    weights: whole numbers, one for each of rows.values, the same for equal values; None for zeros.
    """
    if native.core and (found := native.core.pairs(rows.values, rows.offsets, rows.k, floor, weights)):
        first, second, shared, left, right, weighed = (np.frombuffer(column, np.int64) for column in found)
        return first, second, shared, left, right, weighed
    return _count_shared(rows, floor, weights)


def _weights(rows: Rows, common: CommonValues) -> Weights:
    """How common each value is, 0 for a rare one to _UNIT for one in every document; whole, so that sums are exact."""
    return np.round((1 - common.rareness(rows.values)) * _UNIT).astype(np.int64)


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
            return values, np.array([len(sketch) for sketch in sketches])  # type: ignore[arg-type]
    arrays = [np.asarray(sketch) for sketch in sketches]
    for rank, array in enumerate(arrays):
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise InvalidSketch(f"hit {rank} has shape {array.shape} and type {array.dtype}, not a row of integers")
    lengths = np.fromiter(map(len, arrays), np.int64, len(arrays))
    return np.concatenate([np.empty(0, np.int64), *(array.astype(np.int64) for array in arrays)]), lengths


def _check(values: npt.NDArray[np.integer], offsets: Ranks) -> None:
    """Check all rows at once; the slow way only to say which row is wrong."""
    wrong = values[1:] <= values[:-1]
    starts = offsets[:-1][offsets[:-1] < offsets[1:]]  # from one row to the next anything goes
    wrong[starts[1:] - 1] = False
    ends = offsets[1:][offsets[:-1] < offsets[1:]] - 1
    if not wrong.any() and (values[starts] >= 0).all() and (values[ends] < VALUES).all():
        return
    for rank, (start, end) in enumerate(pairwise(offsets)):
        try:
            check_sketch(values[start:end])
        except InvalidSketch as error:
            raise InvalidSketch(f"hit {rank}: {error.args[0]}") from None


def _count_shared(rows: Rows, floor: float, weights: Weights | None) -> Counts:
    """count_shared with numpy."""
    # A pair shares at least floor * (values of either of the two), whichever of them ends first: see similarity.
    least = np.maximum(np.ceil((floor - 2 * _ROUNDING) * rows.lengths), 1).astype(np.int64)
    hits = _who_meet(rows, least)
    if not len(hits):
        return _NO_RANKS, _NO_RANKS, _NO_RANKS, _NO_RANKS, _NO_RANKS, _NO_RANKS
    places, some = rows.of(hits)
    code, shared, weighed = _shared_counts(some, least[hits], None if weights is None else weights[places])
    first, second = np.divmod(code, len(hits))
    may = np.flatnonzero(shared >= np.minimum(least[hits[first]], least[hits[second]]))
    first, second, shared, weighed = first[may], second[may], shared[may], weighed[may]
    left, right = _sizes_up_to_common_limit(some, first, second)
    wanted = np.flatnonzero(shared / (left + right - shared) >= floor - _ROUNDING)
    first, second = hits[first[wanted]], hits[second[wanted]]
    return first, second, shared[wanted], left[wanted], right[wanted], weighed[wanted]


def _who_meet(rows: Rows, least: Ranks) -> Ranks:
    """The hits that have a value in common with another one among the smallest of each, all but least - 1 of them."""
    heads = np.maximum(rows.lengths - least + 1, 0)
    among = np.arange(len(rows.values)) < np.repeat(rows.offsets[:-1] + heads, rows.lengths)
    keys = rows.values[among].astype(np.int64) << 32 | np.repeat(np.arange(len(heads)), heads)
    keys.sort()
    place = np.flatnonzero(_same_value(keys[1:], keys[:-1]))
    meets = np.zeros(len(heads), dtype=bool)
    meets[keys[place] & _OWNER] = meets[keys[place + 1] & _OWNER] = True
    return np.flatnonzero(meets)


def _shared_counts(rows: Rows, least: Ranks, weights: Weights | None) -> tuple[Ranks, Ranks, Weights]:
    """Pairs that may be similar, as first * n + second, ascending, what each shares, and what that weighs."""
    count = len(rows.lengths)
    keys = rows.values.astype(np.int64) << 32 | np.repeat(np.arange(count), rows.lengths)
    if weights is None:
        keys.sort()
    else:
        order = np.argsort(keys)
        keys, weights = keys[order], weights[order]
    same = _same_value(keys[1:], keys[:-1])
    sizes = np.diff(np.flatnonzero(~same), prepend=-1, append=len(same))
    if (sizes * (sizes - 1)).sum() <= max(4 * count * count, _BINS):
        return _count_by_meetings(keys, np.flatnonzero(same), count, weights)
    shared = np.flatnonzero(np.repeat(sizes, sizes) > 1)
    members = keys[shared] & _OWNER
    enough = np.bincount(members, minlength=count) >= least
    shared, members = shared[enough[members]], members[enough[members]]
    if not len(shared):
        return _NO_RANKS, _NO_RANKS, _NO_RANKS
    run = np.cumsum(np.diff(keys[shared] >> 32, prepend=-1) != 0) - 1
    return _count_by_matrix(run, members, count, None if weights is None else weights[shared])


def _same_value(keys: Ranks, others: Ranks) -> npt.NDArray[np.bool_]:
    """Whether two keys are of one value, whoever has it."""
    return keys ^ others <= _OWNER


def _count_by_meetings(keys: Ranks, place: Ranks, count: int, weights: Weights | None) -> tuple[Ranks, Ranks, Weights]:
    """List every meeting of two documents at a value, then count equal ones.

    keys: value << 32 | owner, ascending. place: of the keys that have the value of the next one.
    """
    meetings, weighed = [_NO_RANKS], [_NO_RANKS]
    owner = keys & _OWNER
    for apart in range(1, len(keys)):
        meetings.append(owner[place] * count + owner[place + apart])
        if weights is not None:
            weighed.append(weights[place])
        place = place[: np.searchsorted(place, len(keys) - apart - 1)]
        place = place[_same_value(keys[place], keys[place + apart + 1])]
        if not len(place):
            break
    codes = np.concatenate(meetings)
    weight = None if weights is None else np.concatenate(weighed)
    if count * count <= _BINS:
        counted = np.bincount(codes, minlength=1)
        found = np.flatnonzero(counted)
        sums = np.zeros(len(found)) if weight is None else np.bincount(codes, weight)[found]
        return found, counted[found], sums.astype(np.int64)
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    shared = np.diff(starts, append=len(codes))
    if weight is None or not len(codes):
        return codes[starts], shared, np.zeros(len(starts), np.int64)
    return codes[starts], shared, np.add.reduceat(weight[order], starts)


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
