"""Records as columns of distinct values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ndd_search.items.compare import Rareness
from ndd_search.items.fields import BadValue, Field

Places = npt.NDArray[np.int64]

UNKNOWN = Rareness({}, 0.005)  # of a field whose values nobody has counted
_LISTED = 1_000  # most common values of a field whose shares are kept
_ASSUMED = 200  # records that the assumption about unknown values counts for: three records tell nothing about shares
_EXAMPLES = 5
_BAD = -2  # the code of a value that cannot be read, while reading


@dataclass(frozen=True, eq=False)
class Column:
    """The values of one field.

    codes:    of each record the place of its value in `values`, -1 if it is missing; int64.
    values:   distinct values as the field reads them.
    bad:      how many records had a value that could not be read. examples: sentences about the first of them.
    """

    codes: Places
    values: Sequence[Any]
    bad: int
    examples: Sequence[str]

    def rareness(self, of: Field) -> Rareness:
        """Estimate the share of the records with this field that hold each part of its values."""
        held = np.bincount(self.codes[self.codes >= 0], minlength=len(self.values)).tolist()
        counts: Counter[str] = Counter()
        for value, count in zip(self.values, held, strict=True):
            for part in of.parts(value):
                counts[part] += count
        listed = [(part, count) for part, count in counts.most_common(_LISTED) if count > 1]
        rest = listed[-1][1] if len(listed) == _LISTED else 1

        total = int(sum(held)) + _ASSUMED

        def share(count: int) -> float:
            return (count + _ASSUMED * UNKNOWN.rest) / total

        return Rareness({part: share(count) for part, count in listed}, share(rest))


@dataclass(frozen=True, eq=False)
class Table:
    """The columns of some records, by field. records: how many there are."""

    columns: Mapping[str, Column]
    records: int

    def rareness(self, fields: Mapping[str, Field]) -> dict[str, Rareness]:
        """Count the values of the fields whose rareness matters."""
        return {name: self.columns[name].rareness(field) for name, field in fields.items() if field.rare}

    @property
    def bad(self) -> dict[str, int]:
        """How many values of each field could not be read, where there were any; they count as missing."""
        return {name: column.bad for name, column in self.columns.items() if column.bad}


class _Reading:
    """Reads one field of record after record. Equal texts are parsed once."""

    def __init__(self, of: Field, name: str) -> None:
        self.codes: list[int] = []
        self.values: dict[Any, int] = {}
        self.bad = 0
        self.examples: list[str] = []
        self._of, self._name = of, name
        self._known: dict[tuple[Any, ...], int] = {}

    def add(self, record: Any) -> None:
        raw = self._of.raw(record, self._name)
        simple = all(isinstance(value, str | int | float) for value in raw)
        key = tuple((type(value), value) for value in raw) if simple else None
        code = self._known.get(key) if key is not None else None
        if code is None:
            code = self._parsed(raw)
            if key is not None:
                self._known[key] = code
        if code == _BAD:
            self.bad += 1
        self.codes.append(max(code, -1))

    def _parsed(self, raw: list[Any]) -> int:
        try:
            value = self._of.parse(raw, self._name)
        except BadValue as error:
            if len(self.examples) < _EXAMPLES:
                self.examples.append(str(error))
            return _BAD
        return -1 if value is None else self.values.setdefault(value, len(self.values))


def read_table(fields: Mapping[str, Field], records: Iterable[Any]) -> Table:
    """Read the fields of records, which may be an iterator."""
    readings = {name: _Reading(of, name) for name, of in fields.items()}
    count = 0
    for record in records:
        count += 1
        for reading in readings.values():
            reading.add(record)
    columns = {
        name: Column(np.array(one.codes, np.int64), list(one.values), one.bad, one.examples)
        for name, one in readings.items()
    }
    return Table(columns, count)
