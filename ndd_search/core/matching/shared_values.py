"""Count the values that sketches share, with numpy: of all pairs of a page, or of given pairs.

The native core does the same for pages with a hash table. A page is a table, see `rows.lay_out`.

Candidate pairs are found by prefix filtering. Two sketches with a resemblance of at least `floor` share at least
`least` values, so they have a common value among all but the least - 1 largest values of each. Only these are sorted;
then equal values are adjacent and give the candidate pairs. Candidates are compared one by one. If there are too many
(boilerplate, edits of one text), the shared values of all pairs are counted at once: as a list of meetings (two rows
with an equal value), or as the product of a 0/1 matrix with its transpose.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ndd_search.core.matching.frequency_table import FrequencyTable, Places, Shares
from ndd_search.core.matching.sketch_rows import Ranks, Rows, Table
from ndd_search.core.sketching.sketches import VALUES

Keys = npt.NDArray[np.unsignedinteger[Any]]
Numbers = npt.NDArray[np.integer[Any]]

_ROUNDING = 1e-9  # tolerance, so that rounding cannot reject a resemblance that equals the bar
_LAST = np.uint32(VALUES - 1)
_CUT = 2**15  # values: up to so many, value and row are packed into 32 bits; cutting the values causes few collisions
_FEW_MEETINGS, _FEW_PAIRS = 2**14, 2**9  # up to so many, comparing one by one is faster, however few the rows are
_FEW_SUMS = 2**15  # up to so many, adding pair by pair is faster
_MEETINGS_EACH, _PAIRS_EACH = 16, 4  # the same for many rows: limits for each row
_MANY_MEETINGS = 2**24  # this list takes half a gigabyte
_TILE = 2**10  # rows of a tile; two tiles are counted at once
_OFTEN = 16  # mentions for each row, above which all rows are assumed to be mentioned
_BLOCK = 2**10  # pairs compared at a time: their arrays fit the cache
_LOOKED_UP = 4_000_000  # values of given pairs looked up at a time
_FEW, _MANY = 2**18, 2**25  # multiplications: OpenBLAS starts threads above _FEW; they are worth it above _MANY


class Counts(NamedTuple):
    """Pairs of rows, ordered by the first, then the second, with counts; int64, one entry a pair.

    shared:      number of values that both contain, at least 1.
    left, right: number of values of each up to the limit t (see `sketching.estimates`).
    """

    first: Ranks
    second: Ranks
    shared: Ranks
    left: Ranks
    right: Ranks


def count_shared(table: Table, floor: float) -> Counts:
    """Return the pairs that share a value and have a resemblance of at least `floor`."""
    count, width = table.shape
    # A pair shares at least floor * (number of values up to t) of each of the two.
    least = max(ceil((floor - 2 * _ROUNDING) * width), 1)
    smallest = table[:, : width - least + 1]
    keys = _sort(smallest, np.uint32 if smallest.size <= _CUT else np.uint64)
    starts = _starts(keys, count)
    if not len(starts):
        return Counts(starts, starts, starts, starts, starts)
    owner = _owners(keys, count)
    few_meetings, few_pairs = max(_FEW_MEETINGS, _MEETINGS_EACH * count), max(_FEW_PAIRS, _PAIRS_EACH * count)
    codes = _pairs_that_meet(owner, starts, count, few_meetings, few_pairs)
    if codes is None:
        crowd, _ = _mentioned(count, owner[starts], owner[starts + 1])
        most = min(2 * len(crowd) ** 2, _MANY_MEETINGS)
        codes = _pairs_that_meet(owner, starts, count, most, len(crowd) ** 2 // 8)
        if codes is None:
            found = _tile_by_tile(table[crowd], floor)
            return found._replace(first=crowd[found.first], second=crowd[found.second])
    return compare(table, codes, floor)


def commonness(table: Table, pairs: Counts, frequency_table: FrequencyTable, *, limited: bool = True) -> Shares | None:
    """Return sums of the weights of values (see FrequencyTable.shares), None if the table contains none of them.

    Shape (3, len(pairs.first)): of the shared values, and of the left and right values; of these up to the limit t if
    `limited`, else of all.
    """
    hits, place = _mentioned(len(table), pairs.first, pairs.second)
    at, which = frequency_table.find(table.take(hits, axis=0).view(np.int32))
    if not len(at):
        return None
    width, shares = table.shape[1], frequency_table.shares
    by_place = np.zeros((len(hits), width))
    by_place.ravel()[at] = shares.take(which)
    sums: Shares = by_place.cumsum(axis=1) if limited else by_place.sum(axis=1)
    different, column = _mentioned(len(frequency_table.values), which)
    holds = np.zeros((len(hits), len(different)))
    holds.ravel()[at // width * len(different) + column.take(which)] = 1
    first, second = place.take(pairs.first), place.take(pairs.second)
    found = np.empty((3, len(first)))
    found[0] = _sums_of_shared(holds, shares.take(different), first, second)
    for side, rows, values in ((1, first, pairs.left), (2, second, pairs.right)):
        found[side] = sums.take(rows * width + (values - 1) if limited else rows)
    return found


def most_common(table: Table, pairs: Counts, frequency_table: FrequencyTable) -> Shares:
    """Return an upper bound of the weights of the shared values of each pair: the sum over all values of one row."""
    few = len(pairs.first) < len(table)
    rows = table.take(pairs.first, axis=0) if few else table
    at, which = frequency_table.find(rows.view(np.int32))
    sums = np.bincount(at // table.shape[1], frequency_table.shares.take(which), len(rows)).astype(
        np.float64, copy=False
    )
    return sums if few else np.minimum(sums.take(pairs.first), sums.take(pairs.second))


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
        within = np.arange(len(pair)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        left = rows.offsets[first[pair]] + within
        wanted = second[pair] * (VALUES + 1) + rows.values[left]
        right = np.searchsorted(keys, wanted)
        there = np.append(keys, -1)[right] == wanted
        yield Shared(pair[there], left[there], right[there])
        done = stop


def _sums_of_shared(holds: Shares, weights: Shares, first: Ranks, second: Ranks) -> Shares:
    """Return the sum of the weights of the shared values of each pair. holds: 1 or 0, shape (rows, len(weights))."""
    weighed = holds * weights
    if len(first) * len(weights) <= _FEW_SUMS:
        sums: Shares = np.einsum("ij,ij->i", weighed.take(first, axis=0), holds.take(second, axis=0))
    else:
        sums = _product(weighed, holds).take(first * len(holds) + second)
    return sums


def compare(table: Table, codes: Numbers, floor: float) -> Counts:
    """Return those of given pairs with a resemblance of at least `floor`. codes: first * number of rows + second."""
    found = []
    for start in range(0, len(codes), _BLOCK):
        first, second = rows = np.array(np.divmod(codes[start : start + _BLOCK], len(table)), np.int64)
        sides = table.take(rows.T, axis=0)
        limits = np.minimum(np.minimum(sides[:, 0, -1], sides[:, 1, -1]), _LAST)
        left, right = _how_many(sides <= limits[:, None, None]).T
        both = sides.reshape(len(sides), -1)
        both.sort(axis=1)
        shared = _how_many(both[:, 1:] == both[:, :-1])
        reach = _reach(floor, shared, left + right)
        wanted = np.flatnonzero(reach & (first < second))  # cut values can make a row meet itself
        found.append(Counts(first[wanted], second[wanted], shared[wanted], left[wanted], right[wanted]))
    return found[0] if len(found) == 1 else Counts(*map(np.concatenate, zip(*found, strict=True)))


def _how_many(marked: npt.NDArray[np.bool_]) -> Ranks:
    """Return the number of True along the last axis, twice as fast as the sum of bool."""
    wide = np.uint16 if marked.shape[-1] < 2**16 else np.uint32
    counted: npt.NDArray[Any] = np.add.reduce(marked.view(np.uint8), axis=-1, dtype=wide)
    return counted.astype(np.int64)


def _tile_by_tile(table: Table, floor: float) -> Counts:
    """Return those of all pairs with a resemblance of at least `floor`, two tiles at a time to bound the memory."""
    if len(table) <= 2 * _TILE:
        return _all_at_once(table, floor)
    tiles = [np.arange(start, min(start + _TILE, len(table))) for start in range(0, len(table), _TILE)]
    found = []
    for number, upper in enumerate(tiles):
        found.append(_within(_all_at_once(table[upper], floor), upper))
        for lower in tiles[number + 1 :]:
            rows = np.concatenate((upper, lower))
            counts = _all_at_once(table[rows], floor)
            across = np.flatnonzero((counts.first < len(upper)) & (counts.second >= len(upper)))
            found.append(_within(Counts(*(column.take(across) for column in counts)), rows))
    joined = Counts(*map(np.concatenate, zip(*found, strict=True)))
    order = np.lexsort((joined.second, joined.first))
    return Counts(*(column.take(order) for column in joined))


def _within(counts: Counts, rows: Ranks) -> Counts:
    """Return counts of some rows of a table as counts of the whole table."""
    return counts._replace(first=rows.take(counts.first), second=rows.take(counts.second))


def _all_at_once(table: Table, floor: float) -> Counts:
    """Return those of all pairs with a resemblance of at least `floor`."""
    count = len(table)
    keys = _sort(table, np.uint64)
    owner, starts = _owners(keys, count).astype(np.int64), _starts(keys, count)
    if not len(starts):
        return Counts(starts, starts, starts, starts, starts)
    meetings = _meetings(owner, starts, count, 2 * count**2)
    if meetings is None:
        holds = _holders(owner, starts, count)
        shared = _product(holds, holds).astype(np.int64)  # exact, as float32 holds every integer up to 2**24
    else:
        shared = np.bincount(meetings, minlength=count**2).reshape(count, count)
    left = _sizes_up_to_limits(table, keys, owner)
    rank = np.arange(count)
    wanted = np.flatnonzero(_reach(floor, shared, left + left.T) & (rank[:, None] < rank))
    first, second = np.divmod(wanted, count)
    return Counts(first, second, shared.ravel()[wanted], left.ravel()[wanted], left.T.ravel()[wanted])


def _reach(floor: float, shared: Ranks, both: Ranks) -> npt.NDArray[np.bool_]:
    """Return which pairs share a value and have a resemblance of at least `floor`. both: values of both up to t."""
    reach: npt.NDArray[np.bool_] = shared / np.maximum(both - shared, 1) >= floor - _ROUNDING
    return reach & (shared > 0)


def _sort(table: Table, kind: type[np.uint32 | np.uint64]) -> Keys:
    """Return all values with their rows, ascending: value << bits of a row | row.

    In uint32 the high bits of the values are lost, so that different values can look equal.
    """
    count = len(table)
    keys: npt.NDArray[Any] = table.astype(kind)
    keys <<= kind(_bits(count))
    keys |= np.arange(count, dtype=kind)[:, None]
    keys = keys.ravel()
    keys.sort()
    return keys


def _bits(count: int) -> int:
    return max(count - 1, 1).bit_length()


def _owners(keys: Keys, count: int) -> Keys:
    """Return the row of each value."""
    return keys & keys.dtype.type(2 ** _bits(count) - 1)


def _starts(keys: Keys, count: int) -> Ranks:
    """Return the positions of values that equal the next one."""
    return np.flatnonzero(keys[1:] ^ keys[:-1] < keys.dtype.type(2 ** _bits(count)))


def _meetings(owner: Numbers, starts: Ranks, count: int, most: int) -> Numbers | None:
    """Return each two rows with an equal value as first * count + second; None if there are more than `most`."""
    earlier, later, number = [starts], [starts + 1], len(starts)
    while len(earlier[-1]) and number <= most:
        apart = len(earlier)
        earlier.append(starts[:-apart][starts[apart:] - starts[:-apart] == apart])
        later.append(earlier[-1] + (apart + 1))
        number += len(earlier[-1])
    if number > most:
        return None
    codes = owner[np.concatenate(earlier)]
    codes *= codes.dtype.type(count)
    codes += owner[np.concatenate(later)]
    return codes


def _pairs_that_meet(owner: Numbers, starts: Ranks, count: int, most_meetings: int, most: int) -> Numbers | None:
    """Return the distinct pairs that meet, ascending; None if there are more than `most`, or too many meetings."""
    meetings = _meetings(owner, starts, count, most_meetings)
    pairs = None if meetings is None else _distinct(meetings)
    return None if pairs is None or len(pairs) > most else pairs


def _holders(owner: Ranks, starts: Ranks, count: int) -> npt.NDArray[np.float32]:
    """Return which rows contain which values, for values of several rows: 1 or 0, shape (count, distinct values)."""
    ends = np.append(np.flatnonzero(starts[1:] - starts[:-1] > 1), len(starts) - 1)
    value = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=-1))
    holds = np.zeros((len(ends), count), dtype=np.float32)
    holds.ravel()[value * count + owner[starts]] = 1
    holds[np.arange(len(ends)), owner[starts[ends] + 1]] = 1
    return holds.T


def _sizes_up_to_limits(table: Table, keys: Keys, owner: Ranks) -> Ranks:
    """Return at [i, j] the number of values of row i up to the limit t of rows i and j."""
    count = len(table)
    limits = np.minimum(table[:, -1], _LAST).astype(np.uint64)
    ends = np.searchsorted(keys, limits + np.uint64(1) << np.uint64(_bits(count)))
    order = np.argsort(ends)
    part = np.repeat(np.arange(count + 1), np.diff(ends[order], prepend=0, append=len(keys)))
    sizes = np.empty((count, count), np.int64)
    inside = np.bincount(part * count + owner, minlength=(count + 1) * count).reshape(-1, count)
    sizes[order] = inside[:-1].cumsum(axis=0)
    return np.minimum(sizes.T, sizes.diagonal()[:, None])


def _mentioned(count: int, *who: Numbers) -> tuple[Ranks, Ranks]:
    """Return which of `count` rows are mentioned, ascending, and the position of each row among them.

    The position of other rows is arbitrary. If there are more than _OFTEN mentions for each row, all rows are returned.
    """
    if sum(map(len, who)) > _OFTEN * count:
        return np.arange(count), np.arange(count)
    there = np.zeros(count, dtype=bool)
    for rows in who:
        there[rows] = True
    mentioned = np.flatnonzero(there)
    place = np.empty(count, np.int64)
    place[mentioned] = np.arange(len(mentioned))
    return mentioned, place


def _distinct(values: Numbers) -> Numbers:
    """Return the distinct values, ascending, ten times as fast as np.unique."""
    values = np.sort(values)
    different = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=different[1:])
    return values[different]


def _product(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a @ b.T, in pieces below the size at which OpenBLAS starts threads, unless threads are worth it."""
    rows, columns = a.shape
    step = rows if rows * len(b) * columns > _MANY else max(_FEW // max(len(b) * columns, 1), 1)
    return np.concatenate([a[start : start + step] @ b.T for start in range(0, rows, step)])
