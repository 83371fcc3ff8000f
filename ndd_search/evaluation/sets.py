"""Sets of numbers as the rows of a page, and names as numbers."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ndd_search.matching.rows import Rows

WHOLE = 2**31  # as k: larger than any set, so all sets count as complete


def rows_of_sets(sets: Iterable[Iterable[int]], k: int = WHOLE) -> Rows:
    """Build rows from sets of numbers in 0..2**31-1."""
    arrays = [np.sort(np.fromiter(values, np.int64)) for values in sets]
    offsets = np.concatenate(([0], np.cumsum([len(array) for array in arrays], dtype=np.int64)))
    return Rows(np.concatenate(arrays) if arrays else np.empty(0, np.int64), offsets, k)


def interned(bags: Iterable[Iterable[str]]) -> list[list[int]]:
    """Replace names by numbers; equal names have equal numbers."""
    numbers: dict[str, int] = {}
    return [[numbers.setdefault(name, len(numbers)) for name in bag] for bag in bags]
