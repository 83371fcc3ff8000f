"""Compares the values of one field, many pairs at a time.

A comparer is made from the distinct values of a field. `compare(a, b)` takes places of values, and returns similarities
in 0..1; 1 is identical. `tokens` returns what near values share: the keys of candidate pairs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise, product
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ndd_search.core.matching.similar_pairs import overlaps
from ndd_search.core.matching.sketch_rows import rows_of
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import sketch_many
from ndd_search.errors import importing
from ndd_search.items.integer_lists import Floats, Places, Ragged
from ndd_search.items.parse_values import Date

with importing("rapidfuzz", "comparing records", "rapidfuzz", "items"):
    from rapidfuzz.distance import OSA

_RADIUS = 6371.0088  # km, the mean radius of the earth (IUGG)
_KM_A_DEGREE = _RADIUS * np.pi / 180
_FAR = 3  # times the usual distance, up to which two places surely share a token
_FINE = 1e9  # steps of a similarity that is rounded
_SHORT = 64  # times as long is the interval that near numbers share as the one that nearly equal ones do
_SHORT_CODE = 5  # letters of a code from which a slip is no other code
_MOST_SLIPS = 1_000  # pairs of codes, or of addresses, of two records; of longer lists, equal members only count
_END = 4  # letters of a longer code that are a token of their own
_PARTS = np.array([[0xFFFF0000], [0xFF00], [0xFF]])  # the bits of year, month and day: see Dates


class Compared(NamedTuple):
    """similarity: 0..1. share: of the records that hold the rarest value that both have in common; 1 if none."""

    similarity: Floats
    share: Floats


class Rareness(NamedTuple):
    """How many records hold the values of a field. shares: of the most common ones. rest: of any other, also unseen."""

    shares: Mapping[str, float]
    rest: float

    def of(self, values: Iterable[str]) -> Floats:
        return np.array([self.shares.get(value, self.rest) for value in values], np.float64)


CoreRows = tuple[int, tuple[npt.NDArray[Any], ...]]  # the kind of some values and their rows: native.Core.screened


class Comparer(Protocol):
    """The distinct values of one field."""

    @property
    def rows(self) -> CoreRows | None:
        """What the core reads; None if it does not compare values of this kind."""

    def tokens(self, *, across: bool) -> list[Collection[Any]]:
        """Return the tokens of each value, which differ from one another. across: see find_candidates."""

    def compare(self, first: Places, second: Places) -> Compared:
        """Compare pairs of values, given by their places."""


def _plain(similarity: Floats) -> Compared:
    return Compared(np.clip(similarity, 0.0, 1.0), np.ones(len(similarity)))


def letters_of(texts: Sequence[str]) -> tuple[npt.NDArray[np.int32], Places]:
    """Return the letters of texts one after the other, and where each text begins and the last one ends."""
    letters = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.int32)
    return letters, np.cumsum([0, *map(len, texts)], dtype=np.int64)


class Texts:
    """Longer texts: resemblance of their sketches."""

    rows = None

    def __init__(self, values: Sequence[str], recipe: Recipe) -> None:
        self._rows = rows_of(sketch_many(values, recipe), recipe.k)

    def tokens(self, *, across: bool) -> list[Collection[Any]]:
        ends = self._rows.offsets.tolist()
        values = self._rows.values.tolist()
        return [values[start:end][:16] for start, end in pairwise(ends)]

    def compare(self, first: Places, second: Places) -> Compared:
        found = overlaps(self._rows, np.minimum(first, second), np.maximum(first, second), None)
        return _plain(np.where(first == second, 1.0, found.resemblance))


class Globe:
    """Places: 1 at the same place, 0.5 at `km` kilometres, 0.25 at three times as much, and so on."""

    def __init__(self, values: Sequence[tuple[float, float]], km: float) -> None:
        self._places, self._km = np.array(values, np.float64).reshape(-1, 2), km

    @cached_property
    def rows(self) -> CoreRows:
        radians = np.radians(self._places)
        rows = np.concatenate((radians, np.cos(radians[:, :1])), axis=1)
        return 4, (rows.ravel().view(np.int64), np.array([self._km], np.float64).view(np.int64))

    def tokens(self, *, across: bool) -> list[Collection[Any]]:
        return [dict.fromkeys(corners) for corners in corner_tokens(self._places, _FAR * self._km).tolist()]

    def compare(self, first: Places, second: Places) -> Compared:
        similarity = 1 / (1 + kilometres(self._places[first], self._places[second]) / self._km)
        return _plain(np.rint(similarity * _FINE) / _FINE)  # the sine of the core may differ in the last digit


def kilometres(first: Floats, second: Floats) -> Floats:
    """Return great-circle distances of places, each (latitude, longitude) in degrees, shape (n, 2) -> (n,)."""
    one, two = np.radians(first), np.radians(second)
    half = (two - one) / 2
    chord = np.sin(half[:, 0]) ** 2 + np.cos(one[:, 0]) * np.cos(two[:, 0]) * np.sin(half[:, 1]) ** 2
    distance: Floats = 2 * _RADIUS * np.arcsin(np.sqrt(np.clip(chord, 0, 1)))
    return distance


def corner_tokens(places: Floats, km: float) -> npt.NDArray[np.int64]:
    """Return four tokens of each place, shape (n, 4). Places at most `km` apart share at least one.

    The globe is divided into cells whose sides are at least `km` long, as geohash does. A token is a corner of a cell:
    cells that are equal or neighbours have a corner in common, so four corners replace the cell and its eight
    neighbours. Columns are wider in rows near the poles, and the first column follows the last one at +-180 degrees.
    All corners at a pole are one token.
    """
    rows = max(int(180 * _KM_A_DEGREE / km), 1)
    row = np.minimum(((places[:, 0] + 90) / 180 * rows).astype(np.int64), rows - 1)
    tokens = []
    for line in (row, row + 1):
        # Places that share this line are at most one row nearer to a pole than it. There, `km` spans this many degrees.
        nearest_pole = np.radians(np.minimum(np.abs(line / rows * 180 - 90) + 180 / rows, 90))
        span = 2 * np.arcsin(np.minimum(np.sin(km / 2 / _RADIUS) / np.maximum(np.cos(nearest_pole), 1e-12), 1))
        columns = np.maximum((2 * np.pi / span).astype(np.int64), 1)
        column = np.minimum(((places[:, 1] + 180) / 360 * columns).astype(np.int64), columns - 1)
        for side in (0, 1):
            tokens.append(line << 32 | (column + side) % columns)
    return np.stack(tokens, axis=1)


class Numbers:
    """Numbers: 1 if equal, 0.5 where they differ by the tolerance, 0.25 at three times as much, and so on."""

    def __init__(self, values: Sequence[float], tolerance: float, within: float) -> None:
        self._values, self._tolerance, self._within = np.array(values, np.float64), tolerance, within

    @cached_property
    def rows(self) -> CoreRows:
        return 3, (self._values.view(np.int64), np.array([self._tolerance, self._within], np.float64).view(np.int64))

    def tokens(self, *, across: bool) -> list[Collection[Any]]:
        """Return numbers of intervals, of which near values share one, and of short ones for those nearly equal."""
        size = np.maximum(np.abs(self._values) * self._tolerance, self._within)
        step = np.exp2(np.ceil(np.log2(np.maximum(size, 1e-9)))) * 2
        steps = np.stack((step, step / _SHORT)[: 1 + across], axis=1)
        low = np.floor(self._values[:, None] / steps)
        return [
            [(s, n + more) for s, n in zip(*of, strict=True) for more in (0, 1)]
            for of in zip(steps.tolist(), low.tolist(), strict=True)
        ]

    def compare(self, first: Places, second: Places) -> Compared:
        a, b = self._values[first], self._values[second]
        allowed = np.maximum(np.maximum(np.abs(a), np.abs(b)) * self._tolerance, self._within)
        return _plain(1 / (1 + np.abs(a - b) / np.maximum(allowed, 1e-12)))


class Dates:
    """Dates, of which parts may be unknown. See `compare` for the steps of their similarity."""

    def __init__(self, values: Sequence[Date]) -> None:
        self._dates = np.array(values, np.int64).reshape(-1, 3)
        # Eight decimal digits of 4 bits: four of the year, two of the month, two of the day.
        digits = self._dates[:, [0, 0, 0, 0, 1, 1, 2, 2]] // [1000, 100, 10, 1, 10, 1, 10, 1] % 10
        self._digits: Places = digits @ (1 << np.arange(28, -1, -4))

    @cached_property
    def rows(self) -> CoreRows:
        return 1, (np.stack((self._dates[:, 0], self._digits), axis=1).ravel(),)

    def tokens(self, *, across: bool) -> list[Collection[Any]]:
        return [
            ((y, m, d), ("ym", y, m), ("y", y), *((("yd", y, d), ("md", min(m, d), max(m, d))) if d else ()))
            for y, m, d in self._dates.tolist()
        ]

    def compare(self, first: Places, second: Places) -> Compared:
        """1 equal; 0.95 year and month equal, a day unknown; 0.9 day and month swapped; 0.8 one digit differs, or two
        neighbours are swapped; 0.75 two parts equal; 0.6 only the year is known and equal; 0.5 day and month equal, the
        year is not; 0.4 the year equal; 0.2 a year apart; else 0.
        """
        one, other = self._digits[first], self._digits[second]
        differ = one ^ other
        has = (one & _PARTS > 0) & (other & _PARTS > 0)
        same_year, same_month, same_day = (differ & _PARTS == 0) & has
        whole, (_, has_month, has_day) = has.all(axis=0), has
        places = (differ | differ >> 1 | differ >> 2 | differ >> 3) & 0x11111111  # a bit for each digit that differs
        last = (places & -places) * 15
        wrong = differ & last
        neighbours = (differ == wrong * 17) & ((one ^ one >> 4) & last == wrong)
        similarity = np.zeros(len(one))
        for step, holds in (
            (0.2, np.abs(self._dates[first, 0] - self._dates[second, 0]) == 1),
            (0.4, same_year),
            (0.5, same_month & same_day),
            (0.6, same_year & ~has_month),
            (0.75, same_year & (same_month | same_day)),
            (0.8, whole & ((differ == wrong) | neighbours)),
            (0.9, whole & same_year & ((one ^ other >> 8) & 0xFF == 0) & ((one >> 8 ^ other) & 0xFF == 0)),
            (0.95, same_year & same_month & ~has_day),
            (1.0, differ == 0),
        ):
            similarity[holds] = step
        return _plain(similarity)


class Sets:
    """Sets of values: the share of values in common (Jaccard). A single value is a set of one."""

    def __init__(self, values: Sequence[frozenset[str]], rareness: Rareness) -> None:
        self._values = [sorted(value) for value in values]
        ids: dict[str, int] = {}
        self._members = Ragged.of([sorted([ids.setdefault(one, len(ids)) for one in value]) for value in self._values])
        self._share, self._names = rareness.of(ids), list(ids)

    @cached_property
    def rows(self) -> CoreRows:
        return 2, (*self._members, self._share.view(np.int64), *self._letters)

    @property
    def _letters(self) -> tuple[npt.NDArray[np.int32], Places]:
        return np.empty(0, np.int32), np.empty(0, np.int64)

    def tokens(self, *, across: bool) -> list[Collection[Any]]:
        return list(self._values)

    def compare(self, first: Places, second: Places) -> Compared:
        a, of_a = self._members.taken(first)
        b, of_b = self._members.taken(second)
        size = len(self._share) + 1
        shared = np.intersect1d(of_a * size + a, of_b * size + b, assume_unique=True)
        of = shared // size
        common = np.bincount(of, minlength=len(first))
        share = np.ones(len(first))
        np.minimum.at(share, of, self._share[shared % size])
        union = self._members.lengths(first) + self._members.lengths(second) - common
        return Compared(common / np.maximum(union, 1), share)


class Codes(Sets):
    """Sets of codes: 0.5 to 1 if they have one in common, 0.25 if one differs by a slip from one of the other, else 0.

    slips: whether slips are looked for; else a code that differs by one is another code.
    """

    def __init__(self, values: Sequence[frozenset[str]], rareness: Rareness, slips: bool) -> None:
        super().__init__(values, rareness)
        self._slips = slips

    @property
    def _letters(self) -> tuple[npt.NDArray[np.int32], Places]:
        return letters_of(self._names if self._slips else [""] * len(self._names))

    def tokens(self, *, across: bool) -> list[Collection[Any]]:
        if not self._slips:
            return super().tokens(across=across)
        return [dict.fromkeys(token for code in value for token in _ends_of(code)) for value in self._values]

    def compare(self, first: Places, second: Places) -> Compared:
        jaccard, share = super().compare(first, second)
        similarity = np.where(jaccard > 0, 0.5 + jaccard / 2, 0.0)
        for place in np.flatnonzero(jaccard == 0).tolist() if self._slips else ():
            one, other = self._values[first[place]], self._values[second[place]]
            if len(one) * len(other) <= _MOST_SLIPS:
                similarity[place] = 0.25 * any(_is_slip(*codes) for codes in product(one, other))
        return Compared(similarity, share)


def _ends_of(code: str) -> tuple[str, ...]:
    """Return a code, and of one with enough letters its beginning and its end: a slip changes one of them."""
    return (code, f"{code[:_END]}…", f"…{code[-_END:]}") if len(code) >= _SHORT_CODE else (code,)


def _is_slip(one: str, other: str) -> bool:
    """Return whether codes differ by a letter that is wrong, missing or too many, or by two neighbours swapped."""
    return min(len(one), len(other)) >= _SHORT_CODE and OSA.distance(one, other, score_cutoff=1) == 1


class Urls:
    """Web addresses, the two most alike of lists: 1 if equal, 0.5 to 0.9 on one host by how paths begin, else 0."""

    rows = None

    def __init__(self, values: Sequence[frozenset[tuple[str, str]]], rareness: Rareness) -> None:
        self._values = [frozenset((host, *path.split("/")) for host, path in value) for value in values]
        self._sites, self._rareness = values, rareness

    def tokens(self, *, across: bool) -> list[Collection[Any]]:
        return [dict.fromkeys(token for one in sorted(value) for token in (one, one[0])) for value in self._sites]

    def compare(self, first: Places, second: Places) -> Compared:
        similarity, share = np.zeros(len(first)), np.ones(len(first))
        for place, (i, j) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
            one, other = self._values[i], self._values[j]
            alike = [(1.0, host) for host, *_ in one & other]
            if not alike and len(one) * len(other) <= _MOST_SLIPS:
                alike = [(_paths_alike(path, way), path[0]) for path, way in product(one, other) if path[0] == way[0]]
            if alike:
                similarity[place] = max(alike)[0]
                share[place] = self._rareness.of(host for one, host in alike if one == similarity[place]).min()
        return Compared(similarity, share)


def _paths_alike(one: Sequence[str], other: Sequence[str]) -> float:
    """Return the similarity of two addresses that differ: the host, what stands before the first slash, and steps."""
    path, way = one[2:], other[2:]
    common = next((n for n, (a, b) in enumerate(zip(path, way, strict=False)) if a != b), min(len(path), len(way)))
    return 0.5 + 0.4 * common / max(len(path), len(way), 1)
