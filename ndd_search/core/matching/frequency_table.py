"""The frequency table: sketch values that many documents of an index contain, and the idf of any value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from math import isfinite, log
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ndd_search import native
from ndd_search.core.immutable import cached_property
from ndd_search.core.sketching.sketches import VALUES

Shares = npt.NDArray[np.float64]
Places = npt.NDArray[np.integer[Any]]

SAMPLE = 10_000  # documents counted at most: more do not improve the table, and a sample has few copies
HANDFUL = 3  # documents that may share a value before it is common: a name, a quotation, a saying

UNIT = 2**20  # the weight of a value that all documents contain


@dataclass(frozen=True, eq=False)
class FrequencyTable:
    """The sketch values that more than `handful` documents of an index contain: frames, templates and phrases.

    documents: number of documents counted, at least 0; copies count less (see `document_frequency`).
    values:    int32, ascending.
    counts:    float64, the document frequency of each value, above `handful`.
    recipe:    the id of the recipe of the sketches.
    handful:   HANDFUL, except in measurements of its effect.
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
        """Return ln(N / df) / ln(N / handful) of each value: 1 up to a df of `handful`, 0 if all documents contain it.

        Same shape as values. In steps of 1 / UNIT, so that sums are exact.
        """
        wanted = np.asarray(values)
        idf = np.ones(wanted.shape)
        at, which = self.find(wanted)
        idf.ravel()[at] = 1 - self.weights[which] / UNIT
        return idf

    def find(self, values: npt.NDArray[np.integer[Any]]) -> tuple[Places, Places]:
        """Return which values the table contains: their positions in values.ravel(), and in the table."""
        if not len(self.values):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        wanted = values.ravel()
        place = np.searchsorted(self.values[:-1], wanted)
        at = np.flatnonzero(self.values[place] == wanted)
        return at, place[at]

    @cached_property
    def weights(self) -> npt.NDArray[np.int64]:
        """Return 1 - idf of each value in units of 1 / UNIT, 0..UNIT; integers, so that sums are exact."""
        if not self.telling:
            return np.zeros(len(self.values), np.int64)
        idf = np.log(self.documents / self.counts) / log(self.documents / self.handful)
        return np.round((1 - idf) * UNIT).astype(np.int64)

    @cached_property
    def native_table(self) -> bytes | None:
        """Return the hash table of weights for the native core; None without the core."""
        return native.core.common_table(self.values, self.weights) if native.core else None

    @cached_property
    def digest(self) -> str:
        """Return a short hash that differs for different tables."""
        table = self.values.tobytes() + self.counts.tobytes()
        return blake2b(table, digest_size=8, key=str(self.documents).encode()).hexdigest()

    @property
    def telling(self) -> bool:
        """Return whether enough documents were counted to tell common values from rare ones."""
        return self.documents > self.handful

    def to_dict(self) -> dict[str, Any]:
        """Return the table for any JSON writer; a few thousand values at most for an index of text pages."""
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
        """Return the table that to_dict wrote. Raises ValueError if it has another version or is damaged."""
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


def table_of(given: object) -> FrequencyTable | None:
    """Return the table that an argument is, None for True and False. Raises TypeError for anything else."""
    if not isinstance(given, bool | FrequencyTable):
        raise TypeError(f"frequency_table must be true, false or a FrequencyTable, got {given!r}")
    return None if isinstance(given, bool) else given
