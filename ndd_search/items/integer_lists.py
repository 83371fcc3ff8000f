"""Lists of integers in one array, and the distinct values of an array."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ndd_search.core.text.tokens import runs

Places = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Ragged(NamedTuple):
    """Lists of integers one after the other: list i is items[offsets[i]:offsets[i + 1]]."""

    items: Places
    offsets: Places

    @classmethod
    def of(cls, lists: Sequence[Collection[Any]], ids: Mapping[Any, int] | None = None) -> Ragged:
        """Return lists in one array. ids: the number of each item; None if the items are numbers."""
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        flat = chain.from_iterable(lists)
        items = np.fromiter(flat if ids is None else map(ids.__getitem__, flat), np.int64, int(lengths.sum()))
        return cls(items, np.concatenate(([0], np.cumsum(lengths))))

    def lengths(self, which: Places) -> Places:
        counts: Places = self.offsets[which + 1] - self.offsets[which]
        return counts

    def taken(self, which: Places) -> tuple[Places, Places]:
        """Return the items of some lists, and for each the place in `which` of its list."""
        counts = self.lengths(which)
        return self.items[runs(self.offsets[which], counts)], np.repeat(np.arange(len(which)), counts)


def distinct(keys: Places, bound: int) -> tuple[Places, Places | slice]:
    """Return the distinct keys, and for each key its place among them; the keys themselves if there are few copies.

    bound: above all keys.
    """
    if bound > len(keys):
        return keys, slice(None)
    present = np.zeros(bound, np.bool_)
    present[keys] = True
    return np.flatnonzero(present), (np.cumsum(present) - 1)[keys]
