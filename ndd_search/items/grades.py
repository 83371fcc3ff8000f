"""Grades of agreement: what the comparison of two records says field by field."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ndd_search.items.compare_values import Comparer, Rareness
from ndd_search.items.fields import COMMON, Field
from ndd_search.items.integer_lists import Floats, Places, Ragged, distinct
from ndd_search.items.record_columns import UNKNOWN, Table

MISSING = -1
_RARITIES = len(COMMON) + 1
CoreStage = tuple[int, tuple[npt.NDArray[Any], ...], Places, Places, Places]  # the first rows of native.Core.screened
_AT_ONCE = 1 << 18  # pairs compared at a time, which bounds memory


@dataclass(frozen=True, eq=False)
class Graded:
    """Compared pairs; a column for each field of the schema.

    similarity: 0..1, NaN where either record has no value; float32, shape (n, fields).
    grades:     see `grade_count`, MISSING where either record has no value; int16, shape (n, fields).
    """

    similarity: npt.NDArray[np.float32]
    grades: npt.NDArray[np.int16]

    def __len__(self) -> int:
        return len(self.grades)


def grade_count(field: Field) -> int:
    """Return how many grades a field has: one more than edges, each divided by rareness if that counts."""
    return (len(field.edges) + 1) * (_RARITIES if field.rare else 1)


def grade_of(field: Field, similarity: Floats, share: Floats) -> Places:
    """Return the grade of each comparison; 0 is full agreement, common values before rare ones."""
    steps = len(field.edges) - np.searchsorted(np.array(field.edges[::-1]), similarity, "right")
    return steps * _RARITIES + np.searchsorted(-np.array(COMMON), -share, "left") if field.rare else steps


def default_evidence(field: Field) -> Floats:
    """Return the log odds of each grade before anything is learnt."""
    evidence = np.array(field.evidence)
    if not field.rare:
        return evidence
    by_rareness = np.array([-1.5, 0.0, 1.0])
    return np.where(evidence[:, None] > 0, np.maximum(evidence[:, None] + by_rareness, 0), evidence[:, None]).ravel()


class Comparison:
    """Compares records of a table."""

    def __init__(self, fields: Mapping[str, Field], table: Table, common: Mapping[str, Rareness]) -> None:
        self.fields, self.table, self.common = fields, table, common
        self._comparers: dict[str, Comparer] = {}
        self._tokens: dict[str, Ragged] = {}

    def comparer(self, name: str) -> Comparer:
        """Return what compares the values of a field."""
        if name not in self._comparers:
            self._comparers[name] = self.comparer_of(name, self.table.columns[name].values)
        return self._comparers[name]

    def tokens(self, name: str) -> Ragged:
        """Return the tokens of the values of a field, numbered in the order in which they occur."""
        if name not in self._tokens:
            ids: defaultdict[object, int] = defaultdict(itertools.count().__next__)
            self._tokens[name] = Ragged.of(self.comparer(name).tokens(), ids)
        return self._tokens[name]

    def comparer_of(self, name: str, values: Sequence[Any]) -> Comparer:
        """Return what compares some of the values of a field."""
        return self.fields[name].comparer(values, self.common.get(name, UNKNOWN))

    def graded(self, first: Places, second: Places) -> Graded:
        """Compare pairs of records, given by their places."""
        similarity = np.empty((len(first), len(self.fields)), np.float32)
        grades = np.empty((len(first), len(self.fields)), np.int16)
        for start in range(0, len(first), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            for place, name in enumerate(self.fields):
                similarity[some, place], grades[some, place] = self.graded_by(name, first[some], second[some])
        return Graded(similarity, grades)

    def graded_by(self, name: str, first: Places, second: Places) -> tuple[Floats, Places]:
        """Return similarity and grade of pairs by one field."""
        column = self.table.columns[name]
        count = len(column.values)
        codes = column.codes[first], column.codes[second]
        return graded_values(self.fields[name], self.comparer(name), count, *codes)

    def core_rows(self, name: str) -> CoreStage | None:
        """Return what the core compares records by a field with; None if it does not compare values of its kind."""
        field = self.fields[name]
        if not field.compiled or (rows := self.comparer(name).rows) is None:
            return None
        return *rows, self.table.columns[name].codes, *_core_edges(field.edges, field.rare)


@cache
def _core_edges(edges: tuple[float, ...], rare: bool) -> tuple[Places, Places]:
    """Return the edges and the common shares that divide similarities into grades, as the core reads them."""
    return np.array(edges).view(np.int64), np.array(COMMON if rare else (), np.float64).view(np.int64)


def graded_values(field: Field, comparer: Comparer, count: int, a: Places, b: Places) -> tuple[Floats, Places]:
    """Return similarity and grade of pairs of values, NaN and MISSING where either is -1. count: of values."""
    has = (a >= 0) & (b >= 0)
    if has.all():
        return _compared(field, comparer, count, a, b)
    both = np.flatnonzero(has)
    similarity, grades = np.full(len(a), np.nan), np.full(len(a), MISSING)
    if len(both):
        similarity[both], grades[both] = _compared(field, comparer, count, a[both], b[both])
    return similarity, grades


def _compared(field: Field, comparer: Comparer, count: int, a: Places, b: Places) -> tuple[Floats, Places]:
    """Return similarity and grade of pairs of values, each of them compared once."""
    keys, which = distinct(np.minimum(a, b) * count + np.maximum(a, b), count**2)
    low, high = keys // count, keys % count
    found = comparer.compare(low, high)
    similarity = np.where(low == high, 1.0, np.minimum(found.similarity, 1.0))
    return similarity[which], grade_of(field, similarity, found.share)[which]


def pattern_of(grades: npt.NDArray[np.int16]) -> Places:
    """Return of each pair the number of its row among the distinct rows of grades."""
    rows = np.ascontiguousarray(grades)
    packed = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    which: Places = np.unique(packed, return_inverse=True)[1].reshape(len(grades))
    return which
