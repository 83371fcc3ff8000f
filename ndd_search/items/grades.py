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

from ndd_search import native
from ndd_search.items.compare_values import Comparer, Rareness
from ndd_search.items.fields import COMMON, Field
from ndd_search.items.integer_lists import Floats, Places, Ragged, distinct
from ndd_search.items.record_columns import UNKNOWN, Table

MISSING = -1
_RARITIES = len(COMMON) + 1
_TYPES = np.float32, np.int16  # of similarities and grades
Evidence = tuple[str, Floats, Floats]  # of a field a row of floats for each grade, and a bound of what later fields add


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


def full_agreement(field: Field, grades: npt.NDArray[np.int16]) -> npt.NDArray[np.bool_]:
    """Return which grades of a field are full agreement."""
    found: npt.NDArray[np.bool_] = (grades >= 0) & (grades < grade_count(field) // (len(field.edges) + 1))
    return found


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

    def comparer(self, name: str) -> Comparer:
        """Return what compares the values of a field."""
        if name not in self._comparers:
            self._comparers[name] = self.fields[name].comparer(
                self.table.columns[name].values, self.common.get(name, UNKNOWN)
            )
        return self._comparers[name]

    def tokens(self, *, across: bool) -> Mapping[str, Ragged]:
        """Return the tokens of the values of each field, numbered in the order in which they occur.

        across: see find_candidates.
        """
        number = itertools.count().__next__
        ids: defaultdict[str, defaultdict[Any, int]] = defaultdict(lambda: defaultdict(number))
        return {
            name: Ragged.of(self.comparer(name).tokens(across=across), ids[field.shares_tokens(name, across=across)])
            for name, field in self.fields.items()
        }

    def graded_by(self, name: str, first: Places, second: Places) -> tuple[Floats, Places]:
        """Return similarity and grade of pairs of records by one field, NaN and MISSING where either has no value."""
        field, column = self.fields[name], self.table.columns[name]
        a, b = column.codes[first], column.codes[second]
        similarity, grades = np.full(len(a), np.nan), np.full(len(a), MISSING)
        both = np.flatnonzero((a >= 0) & (b >= 0))
        a, b, count = a[both], b[both], len(column.values)
        if len(both):
            keys, which = distinct(np.minimum(a, b) * count + np.maximum(a, b), count**2)
            low, high = keys // count, keys % count
            found = self.comparer(name).compare(low, high)
            alike = np.where(low == high, 1.0, np.minimum(found.similarity, 1.0))
            similarity[both], grades[both] = alike[which], grade_of(field, alike, found.share)[which]
        return similarity, grades

    def screened(
        self, fields: Sequence[Evidence], first: Places, second: Places, shares: Floats, most: float
    ) -> tuple[Places, Mapping[str, tuple[npt.NDArray[Any], Places | npt.NDArray[Any]]]]:
        """Compare pairs of records by the fields that the core reads, in turn, until a pair is ruled out.

        shares, most: see native.Core.screened. Returns the places of the pairs that are left, and by field their
        similarities and grades.
        """
        stages = {
            name: (*rows, *(floats.ravel().view(np.int64) for floats in evidence))
            for name, *evidence in fields
            if (rows := self._core_rows(name))
        }
        if native.core and stages:
            pairs = np.ascontiguousarray(first), np.ascontiguousarray(second)
            if of := native.core.screened(*pairs, shares.view(np.int64), tuple(stages.values()), most, native.THREADS):
                left = np.flatnonzero(np.frombuffer(of[2], np.bool_))
                columns = [
                    np.frombuffer(*one).reshape(len(stages), -1)[:, left] for one in zip(of[:2], _TYPES, strict=True)
                ]
                return left, dict(zip(stages, zip(*columns, strict=True), strict=True))
        return np.arange(len(first)), {}

    def _core_rows(self, name: str) -> tuple[Any, ...] | None:
        """Return what the core compares records by a field with; None if it does not compare values of its kind."""
        field = self.fields[name]
        if not native.core or not field.compiled or (rows := self.comparer(name).rows) is None:
            return None
        return *rows, self.table.columns[name].codes, *_core_edges(field.edges, field.rare)


@cache
def _core_edges(edges: tuple[float, ...], rare: bool) -> tuple[Places, Places]:
    """Return the edges and the common shares that divide similarities into grades, as the core reads them."""
    return np.array(edges).view(np.int64), np.array(COMMON if rare else (), np.float64).view(np.int64)


def pattern_of(grades: npt.NDArray[np.int16]) -> Places:
    """Return of each pair the number of its row among the distinct rows of grades."""
    rows = np.ascontiguousarray(grades)
    packed = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    which: Places = np.unique(packed, return_inverse=True)[1].reshape(len(grades))
    return which
