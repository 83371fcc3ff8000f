"""What given pairs of sketches share; `pairs` and `counting` find what pairs there are on a page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ndd_search.matching.decision import Overlaps
from ndd_search.matching.frequency_table import FrequencyTable, Places, Shares
from ndd_search.matching.pairs import Rows
from ndd_search.sketching.estimates import estimated_shingles
from ndd_search.sketching.sketches import VALUES

_AT_ONCE = 4_000_000  # values looked up at a time


@dataclass(frozen=True, eq=False)
class Shared:
    """The values that pairs share, one entry each: which pair, and where in rows.values each of the two holds it."""

    pair: Places
    left: Places
    right: Places


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


def overlaps(rows: Rows, first: Places, second: Places, frequency_table: FrequencyTable | None) -> Overlaps:
    """What a decision asks about given pairs; the same numbers as `pairs.overlapping_pairs` finds for a page."""
    limits = np.where(rows.lengths == rows.k, rows.largest, VALUES)
    limit = np.minimum(limits[first], limits[second])
    keys = np.repeat(np.arange(len(rows.lengths)), rows.lengths) * (VALUES + 1) + rows.values
    ends = [np.searchsorted(keys, one * (VALUES + 1) + limit, side="right") for one in (first, second)]
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
        idf,
        sums[ends[0]] - sums[rows.offsets[first]],
        sums[ends[1]] - sums[rows.offsets[second]],
    )
