"""The sketch values that many documents of an index hold, and how rare that makes any value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from math import isfinite, log
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ndd_search import native
from ndd_search.sketching.sketches import VALUES

Shares = npt.NDArray[np.float64]
Places = npt.NDArray[np.integer[Any]]

SAMPLE = 10_000  # most documents behind a table: more say nothing new, and clusters of copies stay rare in a sample
HANDFUL = 3  # different documents that may share a value before it is common: a name, a quotation, a saying

UNIT = 2**20  # of a weight
_LOW_BITS = 2**16 - 1
_SEVERAL = -1  # values have these low bits


@dataclass(frozen=True, eq=False)
class FrequencyTable:
    """The sketch values that more than a handful of documents of an index hold: its frames, templates and phrases.

    documents: how many documents were counted, at least 0; of copies fewer than there are (see census).
    values:    int32, ascending.
    counts:    float64, in how many of those documents each value is; all above `handful`.
    recipe:    the id of the recipe of the sketches.
    handful:   HANDFUL, unless to measure what it does.
    """

    version = 2  # of the stored form

    documents: float
    values: npt.NDArray[np.int32]
    counts: Shares
    recipe: str
    handful: int = HANDFUL

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FrequencyTable):
            return NotImplemented
        return self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[str, str, int]:
        return self.digest, self.recipe, self.handful

    def idf(self, values: npt.ArrayLike) -> Shares:
        """How rare each value is: 1 for one that at most a handful of documents hold, falling to 0 for one in all.

        That is ln(N / df) as a share of ln(N / handful). Same shape as values.
        """
        wanted = np.asarray(values)
        rare = np.ones(wanted.shape)
        at, which = self.find(wanted)
        rare.ravel()[at] = self._own_idf[which]
        return rare

    def find(self, values: npt.NDArray[np.integer[Any]]) -> tuple[Places, Places]:
        """Which of some values the table holds: their places in values.ravel(), and those in the table."""
        if not len(self.values):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        wanted = values.ravel()
        low = wanted & _LOW_BITS
        at = np.flatnonzero(self._filter.take(low))  # most values of a page end here
        wanted = wanted.take(at)
        place = self._slots.take(low.take(at))
        several = np.flatnonzero(place == _SEVERAL)
        if len(several):
            place[several] = np.searchsorted(self.values[:-1], wanted[several])
        there = self.values.take(place) == wanted
        return at[there], place[there]

    @cached_property
    def weights(self) -> npt.NDArray[np.int64]:
        """How common each value is, 0 for a rare one to UNIT for one in all of them; whole, so that sums are exact."""
        return np.round((1 - self._own_idf) * UNIT).astype(np.int64)

    @cached_property
    def shares(self) -> Shares:
        """The weights as shares, 0..1, whose sums are exact all the same: UNIT is a power of two."""
        return self.weights / UNIT

    @cached_property
    def native_table(self) -> bytes | None:
        """The weights of all values, as the native core looks them up; None without it."""
        return native.core.common_table(self.values, self.weights) if native.core else None

    @cached_property
    def _own_idf(self) -> Shares:
        """How rare each value of the table is."""
        if not self.telling:
            return np.ones(len(self.values))
        return np.log(self.documents / self.counts) / log(self.documents / self.handful)

    @cached_property
    def _slots(self) -> npt.NDArray[np.int32]:
        """For all low bits that a value may have, the place of the one that has them; the last where none has."""
        low = self.values & _LOW_BITS
        slots = np.full(_LOW_BITS + 1, len(self.values) - 1, np.int32)
        slots[low] = np.arange(len(low))
        slots[np.bincount(low, minlength=len(slots)) > 1] = _SEVERAL
        return slots

    @cached_property
    def _filter(self) -> npt.NDArray[np.bool_]:
        """For all low bits that a value may have, whether one has them: so small that it stays in the cache."""
        there = np.zeros(_LOW_BITS + 1, dtype=bool)
        there[self.values & _LOW_BITS] = True
        return there

    @cached_property
    def digest(self) -> str:
        """What tells this table from another one, in a few bytes."""
        table = self.values.tobytes() + self.counts.tobytes()
        return blake2b(table, digest_size=8, key=str(self.documents).encode()).hexdigest()

    @property
    def telling(self) -> bool:
        """Whether enough documents were counted to tell common from rare at all."""
        return self.documents > self.handful

    def to_dict(self) -> dict[str, Any]:
        """The table for any JSON writer: at most a few thousand values of 4 + 4 bytes for an index of text pages."""
        return {
            "version": self.version,
            "recipe": self.recipe,
            "documents": self.documents,
            "handful": self.handful,
            "values": self.values.tolist(),
            "counts": self.counts.tolist(),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """The table that to_dict wrote. Raises ValueError for one of another version, or damaged."""
        if stored.get("version") != cls.version:
            raise ValueError(f"a table of common values has version {cls.version}, got {stored.get('version')!r}")
        values, counts = np.asarray(stored["values"], np.int64), np.asarray(stored["counts"], np.float64)
        documents, handful = stored["documents"], stored["handful"]
        whole = values.shape == counts.shape == (len(values),) and isfinite(documents)
        if not whole or (np.diff(values, prepend=-1) <= 0).any() or (values >= VALUES).any():
            raise ValueError("the table of common values is damaged: count it again")
        if not ((counts > handful) & (counts <= documents)).all():
            raise ValueError("the table of common values is damaged: a count is out of range; count it again")
        return cls(documents, values.astype(np.int32), counts, str(stored["recipe"]), handful)
