"""The sketches of a page, checked and laid out one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ndd_search import native
from ndd_search.core.immutable import cached_property
from ndd_search.core.sketching.estimate_similarity import check_sketch
from ndd_search.core.sketching.sketches import VALUES, Sketch, Sketches, core_arguments
from ndd_search.core.text.tokens import runs
from ndd_search.errors import InvalidSketch

Ranks = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Rows:
    """The checked sketches of a page, one after the other.

    values:  int32, ascending and distinct within a row, at most k in each row.
    offsets: int64, shape (n + 1,): row i is values[offsets[i]:offsets[i + 1]].
    k:       a row of k values is a sample of its document, a shorter row holds all of its values.
    """

    values: Sketch
    offsets: Ranks
    k: int

    @cached_property
    def lengths(self) -> Ranks:
        """Return the number of values of each row."""
        return np.diff(self.offsets)

    @property
    def largest(self) -> Ranks:
        """Return the largest value of each row, -1 for an empty one."""
        if not len(self.values):
            return np.full(len(self.lengths), -1)
        return np.where(self.lengths > 0, self.values[self.offsets[1:] - 1], np.int64(-1))

    @cached_property
    def whole(self) -> npt.NDArray[np.bool_]:
        """Return which rows hold all values of their documents, none of them as an odd and an even one."""
        twins = np.zeros(len(self.values) + 1, np.int64)
        np.equal(self.values[1:] >> 1, self.values[:-1] >> 1, out=twins[1:-1], casting="unsafe")
        twins[self.offsets] = 0  # the first value of a row is not compared with the row before it
        ends = np.concatenate(([0], np.cumsum(twins)))
        whole: npt.NDArray[np.bool_] = (self.lengths < self.k) & (ends[self.offsets[1:]] == ends[self.offsets[:-1]])
        return whole

    @cached_property
    def marked(self) -> npt.NDArray[np.bool_]:
        """Return which whole rows have odd values."""
        odd = np.concatenate(([0], np.cumsum(self.values & 1)))
        return self.whole & (odd[self.offsets[1:]] > odd[self.offsets[:-1]])


def rows_of(sketches: Sequence[npt.ArrayLike] | Sketches, k: int) -> Rows:
    """Check and lay out the sketches of a page. Raises InvalidSketch naming the rank, ValueError for k below 1."""
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    if native.core and (checked := native.core.rows(*core_arguments(sketches), k)):
        return Rows(np.frombuffer(checked[0], np.int32), np.frombuffer(checked[1], np.int64), k)
    unchecked, lengths = _concatenated(sketches)
    offsets = _offsets(lengths)
    _check(unchecked, offsets)
    values = unchecked.astype(np.int32, copy=False)
    if len(lengths) and lengths.max() > k:
        within = np.arange(len(values)) - np.repeat(offsets[:-1], lengths) < k
        values, offsets = values[within], _offsets(np.minimum(lengths, k))
    return Rows(values, offsets, k)


def unmarked(sketches: Sequence[npt.ArrayLike] | Sketches, k: int) -> Sketches:
    """Return sketches with even values only in those that hold all values of their documents.

    Raises InvalidSketch as rows_of does. Of a large collection, only the values of such sketches are copied more than
    once.
    """
    if not isinstance(sketches, Sketches):
        rows = rows_of(sketches, k)
        sketches = Sketches(rows.values, rows.offsets)
    lengths = np.diff(sketches.offsets)
    few = np.flatnonzero(lengths < k)
    if not len(few):
        return sketches
    places = runs(sketches.offsets[few], lengths[few])
    short = Rows(sketches.values[places], _offsets(lengths[few]), k)
    marks = short.values & np.repeat(short.whole, short.lengths)
    if not marks.any():
        return sketches
    values = sketches.values.copy()
    values[places] -= marks
    values.flags.writeable = False  # the core then reads it where it lies
    return Sketches(values, sketches.offsets)


def _concatenated(sketches: Sequence[npt.ArrayLike] | Sketches) -> tuple[npt.NDArray[np.integer], Ranks]:
    """Return all values, one sketch after the other, and the number of values of each, in arrays of our own."""
    sketches = list(sketches)  # of arrays that another thread changes, the lengths that are read here
    with suppress(TypeError, ValueError):  # the usual case: rows of int32
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
    """Return the start of each row, and the end of the last one."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _check(values: npt.NDArray[np.integer], offsets: Ranks) -> None:
    """Raise InvalidSketch naming the first wrong row. All rows are checked at once, and one by one only on an error."""
    wrong = np.zeros(len(values) + 1, dtype=bool)
    np.less_equal(values[1:], values[:-1], out=wrong[1:-1])
    wrong[offsets] = False  # the first value of a row is not compared with the row before it
    if not (wrong.any() or values.min(initial=0) < 0 or (values.dtype != np.int32 and values.max(initial=0) >= VALUES)):
        return
    for rank, (start, end) in enumerate(pairwise(offsets)):
        try:
            check_sketch(values[start:end])
        except InvalidSketch as error:
            raise InvalidSketch(f"hit {rank}: {error.args[0]}") from None
