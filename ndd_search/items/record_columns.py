"""Records as columns of distinct values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import nsmallest
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from ndd_search.core.document_fields import value_of
from ndd_search.items.compare_values import Rareness
from ndd_search.items.fields import BadValue, Field
from ndd_search.items.integer_lists import Places
from ndd_search.items.parse_values import is_absent

UNKNOWN = Rareness({}, 0.005)  # of a field whose values nobody has counted
_LISTED = 1_000  # most common values of a field whose shares are kept
_ASSUMED = 200  # records that the assumption about unknown values counts for: three records tell nothing about shares
_BAD = -2  # the code of a value that cannot be read, while reading
_ODD = 0x9E3779B97F4A7C15  # multiplies a number of 64 bits before the next one is added


@dataclass(frozen=True, eq=False)
class Column:
    """The values of one field.

    codes:    of each record the place of its value in `values`, -1 if it is missing; int64.
    values:   distinct values as the field reads them.
    unread:   whether the value of each record could not be read. example: a sentence about the first of them, or "".
    """

    codes: Places
    values: Sequence[Any]
    unread: npt.NDArray[np.bool_]
    example: str

    def rareness(self, of: Field) -> Rareness:
        """Estimate the share of the records with this field that hold each part of its values."""
        held = np.bincount(self.codes[self.codes >= 0], minlength=len(self.values)).tolist()
        counts: Counter[str] = Counter()
        for value, count in zip(self.values, held, strict=True):
            for part in of.parts(value):
                counts[part] += count
        typical = int(np.median(list(counts.values()))) if counts else 1
        most = nsmallest(_LISTED, counts.items(), key=lambda one: (-one[1], one[0]))
        total = int((self.codes >= 0).sum()) + _ASSUMED

        def share(count: int) -> float:
            return (count + _ASSUMED * UNKNOWN.rest) / total

        # A value that was never seen is about as common as others of its field: a country is not as rare as a surname.
        return Rareness({part: share(count) for part, count in most if count != typical}, share(typical))


@dataclass(frozen=True, eq=False)
class Table:
    """The columns of some records, by field. records: how many there are."""

    columns: Mapping[str, Column]
    records: int

    def rareness(self, fields: Mapping[str, Field]) -> dict[str, Rareness]:
        """Count the values of the fields whose rareness matters."""
        return {name: self.columns[name].rareness(field) for name, field in fields.items() if field.rare}

    @cached_property
    def keys(self) -> npt.NDArray[np.uint64]:
        """A number of each record that depends on its values only."""
        keys = np.zeros(self.records, np.uint64)
        for column in self.columns.values():
            keys = keys * np.uint64(_ODD) + np.append(_numbers(column.values), np.uint64(0))[column.codes]
        return keys

    def pair_keys(self, first: Places, second: Places) -> npt.NDArray[np.uint64]:
        """Return a number of each pair of records that depends on their values only, in whichever order."""
        low, high = np.sort(np.stack((self.keys[first], self.keys[second])), axis=0)
        keys: npt.NDArray[np.uint64] = low * np.uint64(_ODD) + high
        return keys

    @cached_property
    def order(self) -> Places:
        """The places of the records in an order that depends on their values only."""
        return np.argsort(self.keys, kind="stable")

    def in_order_of_values(self) -> Table:
        """Return the records in `order`, and the values of each column in an order that depends on them only."""
        columns = {}
        for name, column in self.columns.items():
            by_number = np.argsort(_numbers(column.values), kind="stable")
            codes = np.append(np.argsort(by_number), -1)[column.codes[self.order]]
            values = [column.values[code] for code in by_number.tolist()]
            columns[name] = Column(codes, values, column.unread[self.order], column.example)
        return Table(columns, self.records)

    @property
    def bad(self) -> dict[str, int]:
        """How many values of each field could not be read, where there were any; they count as missing."""
        return {name: int(column.unread.sum()) for name, column in self.columns.items() if column.unread.any()}


def _numbers(values: Sequence[Any]) -> npt.NDArray[np.uint64]:
    """Return a number of each value that is the same in every process."""
    texts = (repr(sorted(value) if isinstance(value, frozenset) else value) for value in values)
    return np.fromiter((crc32(text.encode(errors="surrogatepass")) + 1 for text in texts), np.uint64, len(values))


def read_table(fields: Mapping[str, Field], records: Iterable[Any]) -> Table:
    """Read the fields of records."""
    held = records if isinstance(records, Sequence) else list(records)
    columns = {}
    for name, of in fields.items():
        given = [_raw(held, path) for path in of.paths(name)]
        columns[name] = _column(of, name, given[0] if len(given) == 1 else list(zip(*given, strict=True)))
    return Table(columns, len(held))


def _column(of: Field, name: str, given: Sequence[Any]) -> Column:
    """Parse the values of a field, each distinct one once."""
    keys = [value if type(value) is str else _key(value) for value in given]
    values: dict[Any, int] = {}
    code: dict[Any, int] = {}
    example = ""
    for key, raw in dict(zip(keys, given, strict=True)).items():
        try:
            value = _parsed(of, name, raw)
            code[key] = -1 if value is None else values.setdefault(value, len(values))
        except BadValue as error:
            code[key], example = _BAD, example or str(error)
    found = np.fromiter(map(code.__getitem__, keys), np.int64, len(keys))
    return Column(np.maximum(found, -1), list(values), found == _BAD, example)


def _raw(records: Sequence[Any], path: str) -> list[Any]:
    """Return the value of each record in a field."""
    if "." not in path and set(map(type, records)) == {dict}:
        return [record.get(path) for record in records]
    return [record[path] if type(record) is dict and path in record else value_of(record, path) for record in records]


def _key(raw: Any) -> Any:
    """Return a key that is equal for equal values of equal types only; an object of its own for a list or a mapping."""
    if isinstance(raw, tuple):
        return tuple(one if type(one) is str else _key(one) for one in raw)
    return (type(raw), raw) if raw is None or isinstance(raw, str | int | float) else object()


def _parsed(of: Field, name: str, raw: Any) -> Any:
    if type(raw) is str:
        return of.parse([raw], name)
    values = raw if isinstance(raw, tuple) and len(of.paths(name)) > 1 else (raw,)
    return of.parse([value for value in values if not is_absent(value)], name)
