"""What given pairs of sets share; many pairs at a time, the sets laid out as the rows of a page are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ndd_search.common_values import CommonValues
from ndd_search.decision import Overlaps
from ndd_search.evaluation.collection import Places
from ndd_search.pairs import Rows
from ndd_search.similarity import estimated_shingles
from ndd_search.sketches import VALUES

Shares = npt.NDArray[np.float64]

WHOLE = 2**31  # as k: no set is that large, so every one is whole
_AT_ONCE = 4_000_000  # values looked up at a time


@dataclass(frozen=True)
class Shared:
    """The values that pairs share, one entry each: which pair, and where in rows.values each of the two holds it."""

    pair: Places
    left: Places
    right: Places


def rows_of_sets(sets: Iterable[Iterable[int]], k: int = WHOLE) -> Rows:
    """Lay out sets of numbers in 0..2**31-1."""
    arrays = [np.sort(np.fromiter(one, np.int64)) for one in sets]
    offsets = np.concatenate(([0], np.cumsum([len(array) for array in arrays], dtype=np.int64)))
    return Rows(np.concatenate(arrays) if arrays else np.empty(0, np.int64), offsets, k)


def interned(bags: Iterable[Iterable[str]]) -> list[list[int]]:
    """Names to numbers, equal ones to equal ones."""
    numbers: dict[str, int] = {}
    return [[numbers.setdefault(name, len(numbers)) for name in bag] for bag in bags]


def shared_values(rows: Rows, first: Places, second: Places) -> Iterator[Shared]:
    """Every value of every pair that both of its sets hold, some pairs at a time."""
    owner = np.repeat(np.arange(len(rows.lengths)), rows.lengths)
    keys = owner * (VALUES + 1) + rows.values
    done = 0
    while done < len(first):
        sizes = np.cumsum(rows.lengths[first[done:]])
        stop = done + max(int(np.searchsorted(sizes, _AT_ONCE)), 1)
        lengths = rows.lengths[first[done:stop]]
        pair = np.repeat(np.arange(done, min(stop, len(first))), lengths)
        within = np.arange(len(pair)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        left = rows.offsets[first[pair]] + within
        wanted = second[pair] * (VALUES + 1) + rows.values[left]
        right = np.searchsorted(keys, wanted)
        there = np.append(keys, -1)[right] == wanted
        yield Shared(pair[there], left[there], right[there])
        done = stop


def shared_sums(rows: Rows, first: Places, second: Places, weight: Shares | None = None) -> Shares:
    """For each pair, how many values both hold, or the weights (one for each of rows.values) of them, summed."""
    sums = np.zeros(len(first))
    for shared in shared_values(rows, first, second):
        sums += np.bincount(shared.pair, None if weight is None else weight[shared.left], len(first))
    return sums


def overlaps(rows: Rows, first: Places, second: Places, common: CommonValues | None) -> Overlaps:
    """What a decision asks about given pairs; the same numbers as `pairs.overlapping_pairs` finds for a page."""
    limits = np.where(rows.lengths == rows.k, rows.largest, VALUES)
    limit = np.minimum(limits[first], limits[second])
    keys = np.repeat(np.arange(len(rows.lengths)), rows.lengths) * (VALUES + 1) + rows.values
    ends = [np.searchsorted(keys, one * (VALUES + 1) + limit, side="right") for one in (first, second)]
    rare = np.ones(len(rows.values)) if common is None else common.rareness(rows.values)
    sums = np.concatenate(([0.0], np.cumsum(rare)))
    sizes = estimated_shingles(rows.lengths, rows.largest, rows.k)
    return Overlaps(
        shared_sums(rows, first, second).astype(np.int64),
        ends[0] - rows.offsets[first],
        ends[1] - rows.offsets[second],
        np.minimum(sizes[first], sizes[second]),
        shared_sums(rows, first, second, rare),
        sums[ends[0]] - sums[rows.offsets[first]],
        sums[ends[1]] - sums[rows.offsets[second]],
    )
