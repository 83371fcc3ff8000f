"""Count the values that sketches share, with numpy: of all pairs of a page, or of given pairs.

The native core counts those of a page with a hash table. Here all values of a page are sorted, so that equal ones are
neighbours, and each two of them are a meeting of two rows: a pair meets once for each value that it shares. Values that
many rows hold would meet too often: a product of matrices counts them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ndd_search.core.matching.frequency_table import FrequencyTable, Places, Shares
from ndd_search.core.matching.sketch_rows import Ranks, Rows
from ndd_search.core.sketching.sketches import VALUES
from ndd_search.core.text.tokens import runs

_AT_ONCE = 2**20  # meetings
_MANY = 8  # a value that more than one of so many rows holds is counted by a product, of which a row has 8 * k at most
_PAIRS = 2**20  # that a product counts at a time: their counts take 16 MB
_LOOKED_UP = 4_000_000  # values of given pairs looked up at a time


def count_shared(rows: Rows, table: FrequencyTable | None) -> tuple[Ranks, Ranks, Ranks, Shares]:
    """Return the pairs of rows that share a value, ordered by the first, then the second.

    Also the number of values that they share, and the sum of the idf of these, which is 1 without a table.
    """
    count = len(rows.lengths)
    bits = max(count, 1).bit_length()
    keys = np.sort(rows.values.astype(np.int64) << bits | np.repeat(np.arange(count), rows.lengths))
    values, owner = keys >> bits, keys & ((1 << bits) - 1)
    starts = np.flatnonzero(np.diff(values, prepend=-1))
    held = np.diff(starts, append=len(keys))
    many = _MANY * held > count
    of_many = np.repeat(many, held)
    holds = np.zeros((int(many.sum()), count))
    holds[np.repeat(np.arange(len(holds)), held[many]), owner[of_many]] = 1
    after = np.where(of_many, 0, np.repeat(starts + held, held) - np.arange(len(keys)) - 1)
    met = np.flatnonzero(after)
    idf = None if table is None else table.idf(values)
    weighted = holds if idf is None else holds * idf[starts[many], None]
    found: list[tuple[Ranks, Shares, Shares]] = [(np.empty(0, np.int64), np.empty(0), np.empty(0))]
    step = max(min(_PAIRS // max(count, 1), count), 1)
    for start in range(0, count, step):
        mine = met if step >= count else met[owner[met] // step == start // step]
        parts = [_by_product(start, step, holds, weighted)] if len(holds) else []
        for second, which in partners(mine + 1, after[mine]):
            first = mine[which]
            ones = np.ones(len(first))
            parts.append((owner[first] * count + owner[second], ones, ones if idf is None else idf[first]))
        if parts:
            pairs, shared, rare = (np.concatenate(column) for column in zip(*parts, strict=True))
            pairs, which = np.unique(pairs, return_inverse=True)
            shared, rare = (np.bincount(which, one).astype(np.float64, copy=False) for one in (shared, rare))
            found.append((pairs, shared, rare))
    pairs, shared, rare = (np.concatenate(column) for column in zip(*found, strict=True))
    return pairs // max(count, 1), pairs % max(count, 1), shared.astype(np.int64), rare


def _by_product(start: int, step: int, holds: Shares, weighted: Shares) -> tuple[Ranks, Shares, Shares]:
    """Return pairs with one of `step` rows, as first * rows + second, their shared values, and the sum of the weights.

    holds: 1 where a row holds a value, shape (values, rows). weighted: the same with the weight of the value.
    """
    some = holds[:, start : start + step].T
    shared = np.triu(some @ holds, start + 1).ravel()
    pairs = np.flatnonzero(shared)
    rare = shared if weighted is holds else (some @ weighted).ravel()
    return pairs + start * holds.shape[1], shared[pairs], rare[pairs]


def partners(begin: Ranks, count: Ranks) -> Iterator[tuple[Ranks, Ranks]]:
    """Pairs of positions (first, second), a block at a time: position i with begin[i] to begin[i] + count[i] - 1."""
    ends = np.cumsum(count)
    start = 0
    while start < len(count):
        stop = max(int(np.searchsorted(ends, (ends[start - 1] if start else 0) + _AT_ONCE)), start + 1)
        chosen = count[start:stop]
        yield runs(begin[start:stop], chosen), np.repeat(np.arange(start, stop), chosen)
        start = stop


@dataclass(frozen=True, eq=False)
class Shared:
    """Shared values of pairs, one entry each: the index of the pair, and the positions of the value in rows.values."""

    pair: Places
    left: Places
    right: Places


def shared_values(rows: Rows, first: Places, second: Places) -> Iterator[Shared]:
    """Yield the shared values of given pairs, some pairs at a time."""
    owner = np.repeat(np.arange(len(rows.lengths)), rows.lengths)
    keys = owner * (VALUES + 1) + rows.values
    done = 0
    while done < len(first):
        sizes = np.cumsum(rows.lengths[first[done:]])
        stop = done + max(int(np.searchsorted(sizes, _LOOKED_UP)), 1)
        lengths = rows.lengths[first[done:stop]]
        pair = np.repeat(np.arange(done, min(stop, len(first))), lengths)
        left = runs(rows.offsets[first[done:stop]], lengths)
        wanted = second[pair] * (VALUES + 1) + rows.values[left]
        right = np.searchsorted(keys, wanted)
        there = np.append(keys, -1)[right] == wanted
        yield Shared(pair[there], left[there], right[there])
        done = stop
