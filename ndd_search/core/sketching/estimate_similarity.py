"""Estimates of the similarity of two documents from their sketches.

With A and B the two sketches, t the smaller of their largest values (infinite for a sketch of fewer than k values,
which is the whole document), c the number of values they share:

    resemblance  c / (|A <= t| + |B <= t| - c)       the KMV form: Bar-Yossef et al. 2002, Beyer et al. 2007
    containment  c / min(|A <= t|, |B <= t|)

Both are exact if neither sketch is full. Broder's estimate, the share of common values among the k smallest of the
union (Broder 1997, "On the resemblance and containment of documents"), uses fewer values and has a larger error;
`benchmarks/estimators.py` measures both.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from ndd_search.core.sketching.sketches import VALUES
from ndd_search.errors import InvalidSketch


@dataclass(frozen=True)
class Estimate:
    """A similarity in 0..1 with its standard error, which is 0 if the value is exact."""

    value: float
    standard_error: float


def resemblance(a: npt.ArrayLike, b: npt.ArrayLike, k: int) -> float:
    """Estimate the Jaccard coefficient of two documents from their sketches.

    a, b: ascending distinct values in 0..2**31-1, made with one recipe, shape (at most the recipe's k,).
    k:    the recipe's k, or a smaller one: the first k values of a sketch are the sketch of that k.
    Returns a share in 0..1, 1 for identical sketches. Two empty sketches give 0.0, because a document without shingles
    has no duplicates. Raises InvalidSketch, and ValueError for k below 1.
    """
    return estimate_resemblance(a, b, k).value


def containment(a: npt.ArrayLike, b: npt.ArrayLike, k: int) -> float:
    """Estimate the share of the smaller document's shingles found in the larger, 0..1; arguments as in resemblance.

    Both documents are sampled at the same rate, so only k / n values of a document n times smaller are compared.
    """
    return estimate_containment(a, b, k).value


def estimate_resemblance(a: npt.ArrayLike, b: npt.ArrayLike, k: int) -> Estimate:
    """Return the resemblance of two sketches with its standard error; arguments as in resemblance."""
    shared, left, right, exact = _overlap(a, b, k)
    union = left + right - shared
    return _estimate(shared, union, exact)


def estimate_containment(a: npt.ArrayLike, b: npt.ArrayLike, k: int) -> Estimate:
    """Return the containment of two sketches with its standard error; arguments as in resemblance."""
    shared, left, right, exact = _overlap(a, b, k)
    return _estimate(shared, min(left, right), exact)


def standard_error(resemblance: float, k: int) -> float:
    """Return sqrt(J * (1 - J) / k), the standard error of an estimated resemblance J from full sketches."""
    return sqrt(resemblance * (1 - resemblance) / k)


def estimated_shingles(length: npt.ArrayLike, largest: npt.ArrayLike, k: int) -> npt.NDArray[np.float64]:
    """Estimate the number of distinct shingles of documents (Bar-Yossef et al. 2002).

    length: number of values in each sketch; largest: the largest value of each, same shape.
    Exact below k values, else (k - 1) * 2**31 / (largest + 1).
    """
    length, largest = np.asarray(length), np.asarray(largest, dtype=np.float64)
    return np.where(length < k, length, max(k - 1, 1) * VALUES / (np.maximum(largest, 0) + 1))


def check_sketch(values: npt.NDArray[np.integer]) -> None:
    """Raise InvalidSketch unless the values are ascending, distinct and in 0..2**31-1."""
    if not len(values):
        return
    if values[0] < 0 or values[-1] >= VALUES:
        raise InvalidSketch(f"a value is outside 0..2**31-1: {values[0] if values[0] < 0 else values[-1]}")
    steps = np.diff(values)
    if (steps <= 0).any():
        at = int((steps <= 0).argmax())
        raise InvalidSketch(f"value {at + 1} ({values[at + 1]}) does not come after the one before it ({values[at]})")


def checked_sketch(values: npt.ArrayLike, k: int) -> npt.NDArray[np.int64]:
    """Return the first k values of a sketch given as any array-like. Raises InvalidSketch, or ValueError if k < 1."""
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InvalidSketch(f"it has shape {array.shape} and type {array.dtype}, not one row of integers")
    array = array.astype(np.int64)
    check_sketch(array)
    return array[:k]


def _overlap(a: npt.ArrayLike, b: npt.ArrayLike, k: int) -> tuple[int, int, int, bool]:
    """Return the number of shared values, of values of each up to t, and whether both sketches are whole documents."""
    first, second = checked_sketch(a, k), checked_sketch(b, k)
    limits = [int(values[-1]) for values in (first, second) if len(values) == k]
    limit = min(limits, default=VALUES)
    shared = len(np.intersect1d(first, second, assume_unique=True))
    left, right = (int(np.searchsorted(values, limit, side="right")) for values in (first, second))
    return shared, left, right, not limits


def _estimate(shared: int, of: int, exact: bool) -> Estimate:
    if of == 0:
        return Estimate(0.0, 0.0)
    value = shared / of
    return Estimate(value, 0.0 if exact else standard_error(value, of))
