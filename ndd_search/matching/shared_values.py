"""What the sketches of a page share, counted with numpy; the native core does the same with a hash table.

A page is a table of numbers, shape (n, width): each row the ascending values of a sketch, filled up with numbers from
2**31 on that are all different, so that they meet nobody.

Two documents at least `floor` alike have a value in common already among the smallest of each: all but as many as they
must share, and one more. So only those are sorted; equal values stand together then, and show which pairs meet at all.
These are compared one by one, unless they are many (boilerplate, edits of one text): then what all pairs share is
counted at once, as a list of meetings or as the product of a small 0/1 matrix with itself, so no kind of page is slow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ndd_search.matching.frequency_table import FrequencyTable, Places, Shares
from ndd_search.matching.rows import Ranks, Rows, Table
from ndd_search.sketching.sketches import VALUES

Keys = npt.NDArray[np.unsignedinteger[Any]]
Numbers = npt.NDArray[np.integer[Any]]

_ROUNDING = 1e-9  # a resemblance of exactly the bar counts, whatever the rounding of bar * size
_LAST = np.uint32(VALUES - 1)
_CUT = 2**15  # values, up to which hardly two look alike when they are cut to fit 32 bits together with their row
_FEW_MEETINGS, _FEW_PAIRS = 2**14, 2**9  # are looked at one by one sooner than all at once, however few the rows are
_FEW_SUMS = 2**15  # are added pair by pair sooner than all at once
_MEETINGS_EACH, _PAIRS_EACH = 16, 4  # of each row are few, too, where there are many rows
_MANY_MEETINGS = 2**24  # take half a gigabyte
_TILE = 2**10  # rows that are counted at once with as many others
_OFTEN = 16  # times that rows are mentioned, each of them surely is
_BLOCK = 2**10  # pairs compared at a time: what that takes stays in the cache
_LOOKED_UP = 4_000_000  # values of given pairs looked up at a time
_FEW, _MANY = 2**18, 2**25  # multiplications: OpenBLAS starts threads above the first, and they pay above the second


class Counts(NamedTuple):
    """Pairs of rows, ordered by the first, then the second, and what they share; int64, one entry a pair.

    shared:      values both hold, at least 1.
    left, right: values of either up to the smaller limit of the two (see similarity).
    """

    first: Ranks
    second: Ranks
    shared: Ranks
    left: Ranks
    right: Ranks


def count_shared(table: Table, floor: float) -> Counts:
    """The pairs that share a value and resemble each other by `floor`."""
    count, width = table.shape
    # A pair shares at least floor * (values of either of the two), whichever of them ends first: see similarity.
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
    """How common the values of pairs are, 0..1 each (see FrequencyTable.shares), summed; None when no value is.

    Of those that both hold, and of those of either up to the limit, or of all of either; shape (3, len(pairs.first)).
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
    """How common the values that both rows of each pair hold are at most, summed: as much as all that one row holds."""
    few = len(pairs.first) < len(table)
    rows = table.take(pairs.first, axis=0) if few else table
    at, which = frequency_table.find(rows.view(np.int32))
    sums = np.bincount(at // table.shape[1], frequency_table.shares.take(which), len(rows)).astype(
        np.float64, copy=False
    )
    return sums if few else np.minimum(sums.take(pairs.first), sums.take(pairs.second))


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


def shared_sums(rows: Rows, first: Places, second: Places, weight: Shares | None = None) -> Shares:
    """For each pair, how many values both hold, or the weights (one for each of rows.values) of them, summed."""
    sums = np.zeros(len(first))
    for shared in shared_values(rows, first, second):
        sums += np.bincount(shared.pair, None if weight is None else weight[shared.left], len(first))
    return sums


def _sums_of_shared(holds: Shares, weights: Shares, first: Ranks, second: Ranks) -> Shares:
    """The weights of what both rows of each pair hold, summed. holds: 1 or 0, shape (rows, len(weights))."""
    weighed = holds * weights
    if len(first) * len(weights) <= _FEW_SUMS:
        sums: Shares = np.einsum("ij,ij->i", weighed.take(first, axis=0), holds.take(second, axis=0))
    else:
        sums = _product(weighed, holds).take(first * len(holds) + second)
    return sums


def compare(table: Table, codes: Numbers, floor: float) -> Counts:
    """Those of some pairs that resemble each other by `floor`. codes: first * rows + second."""
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
        wanted = np.flatnonzero(reach & (first < second))  # cut values of one row may look alike
        found.append(Counts(first[wanted], second[wanted], shared[wanted], left[wanted], right[wanted]))
    return found[0] if len(found) == 1 else Counts(*map(np.concatenate, zip(*found, strict=True)))


def _how_many(marked: npt.NDArray[np.bool_]) -> Ranks:
    """How many are True along the last axis; the sum of bool takes twice as long, and wider numbers longer."""
    wide = np.uint16 if marked.shape[-1] < 2**16 else np.uint32
    counted: npt.NDArray[Any] = np.add.reduce(marked.view(np.uint8), axis=-1, dtype=wide)
    return counted.astype(np.int64)


def _tile_by_tile(table: Table, floor: float) -> Counts:
    """Those of all pairs that resemble each other by `floor`; of a long table in pieces, so that they fit in memory."""
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
    """Counts of some rows of a table, as counts of the whole table."""
    return counts._replace(first=rows.take(counts.first), second=rows.take(counts.second))


def _all_at_once(table: Table, floor: float) -> Counts:
    """Those of all pairs that resemble each other by `floor`."""
    count = len(table)
    keys = _sort(table, np.uint64)
    owner, starts = _owners(keys, count).astype(np.int64), _starts(keys, count)
    if not len(starts):
        return Counts(starts, starts, starts, starts, starts)
    meetings = _meetings(owner, starts, count, 2 * count**2)
    if meetings is None:
        holds = _holders(owner, starts, count)
        shared = _product(holds, holds).astype(np.int64)  # exact, as float32 holds every whole number up to 2**24
    else:
        shared = np.bincount(meetings, minlength=count**2).reshape(count, count)
    left = _sizes_up_to_limits(table, keys, owner)
    rank = np.arange(count)
    wanted = np.flatnonzero(_reach(floor, shared, left + left.T) & (rank[:, None] < rank))
    first, second = np.divmod(wanted, count)
    return Counts(first, second, shared.ravel()[wanted], left.ravel()[wanted], left.T.ravel()[wanted])


def _reach(floor: float, shared: Ranks, both: Ranks) -> npt.NDArray[np.bool_]:
    """Whether pairs share anything, and resemble each other by `floor`. both: values up to the limit, of the two."""
    reach: npt.NDArray[np.bool_] = shared / np.maximum(both - shared, 1) >= floor - _ROUNDING
    return reach & (shared > 0)


def _sort(table: Table, kind: type[np.uint32 | np.uint64]) -> Keys:
    """All values, ascending, each with its row: value << bits of a row | row.

    In uint32 the high bits of the values go. Then some values look alike that are not.
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
    """The row of each value."""
    return keys & keys.dtype.type(2 ** _bits(count) - 1)


def _starts(keys: Keys, count: int) -> Ranks:
    """Places of the values that are the same as the next one."""
    return np.flatnonzero(keys[1:] ^ keys[:-1] < keys.dtype.type(2 ** _bits(count)))


def _meetings(owner: Numbers, starts: Ranks, count: int, most: int) -> Numbers | None:
    """Every meeting of two rows at a value, as first * count + second; None when there are more than `most`."""
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
    """The different ones of these meetings, ascending; None when there are more than `most`, or too many meetings."""
    meetings = _meetings(owner, starts, count, most_meetings)
    pairs = None if meetings is None else _distinct(meetings)
    return None if pairs is None or len(pairs) > most else pairs


def _holders(owner: Ranks, starts: Ranks, count: int) -> npt.NDArray[np.float32]:
    """Who holds what, of the values that several hold: 1 or 0, shape (count, different values)."""
    ends = np.append(np.flatnonzero(starts[1:] - starts[:-1] > 1), len(starts) - 1)
    value = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=-1))
    holds = np.zeros((len(ends), count), dtype=np.float32)
    holds.ravel()[value * count + owner[starts]] = 1
    holds[np.arange(len(ends)), owner[starts[ends] + 1]] = 1
    return holds.T


def _sizes_up_to_limits(table: Table, keys: Keys, owner: Ranks) -> Ranks:
    """How many values of row i are up to the smaller limit of it and row j, at [i, j]."""
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
    """Which of `count` rows are mentioned, ascending, and the place of each among them; any place for the others.

    All of them where so many are mentioned that looking would take longer.
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
    """In ascending order; np.unique takes ten times as long."""
    values = np.sort(values)
    different = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=different[1:])
    return values[different]


def _product(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """a @ b.T, in pieces so small that the library does not wake its threads for them, unless it is a lot."""
    rows, columns = a.shape
    step = rows if rows * len(b) * columns > _MANY else max(_FEW // max(len(b) * columns, 1), 1)
    return np.concatenate([a[start : start + step] @ b.T for start in range(0, rows, step)])
