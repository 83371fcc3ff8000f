"""Sets of names as numbers, laid out as the rows of a page are."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ndd_search.matching.rows import Rows

WHOLE = 2**31  # as k: no set is that large, so every one is whole


def rows_of_sets(sets: Iterable[Iterable[int]], k: int = WHOLE) -> Rows:
    """Lay out sets of numbers in 0..2**31-1."""
    arrays = [np.sort(np.fromiter(one, np.int64)) for one in sets]
    offsets = np.concatenate(([0], np.cumsum([len(array) for array in arrays], dtype=np.int64)))
    return Rows(np.concatenate(arrays) if arrays else np.empty(0, np.int64), offsets, k)


def interned(bags: Iterable[Iterable[str]]) -> list[list[int]]:
    """Names to numbers, equal ones to equal ones."""
    numbers: dict[str, int] = {}
    return [[numbers.setdefault(name, len(numbers)) for name in bag] for bag in bags]
