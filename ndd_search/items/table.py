"""Records as columns of distinct values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ndd_search import native
from ndd_search.documents import value_of
from ndd_search.items.compare import Rareness
from ndd_search.items.fields import BadValue, Field
from ndd_search.items.values import is_absent

Places = npt.NDArray[np.int64]

UNKNOWN = Rareness({}, 0.005)  # of a field whose values nobody has counted
_LISTED = 1_000  # most common values of a field whose shares are kept
_ASSUMED = 200  # records that the assumption about unknown values counts for: three records tell nothing about shares
_EXAMPLES = 5
_BAD = -2  # the code of a value that cannot be read, while reading
_NEW = object()


class Raw(NamedTuple):
    """Values of a field as the core reads them.

    codes: of each record the place of its value in `distinct` (int64), -1 if it has none.
    """

    codes: bytes
    distinct: list[Any]


@dataclass(frozen=True, eq=False)
class Column:
    """The values of one field.

    codes:    of each record the place of its value in `values`, -1 if it is missing; int64.
    values:   distinct values as the field reads them.
    bad:      how many records had a value that could not be read. examples: sentences about the first of them.
    raw:      what was read, None if the core did not read it.
    """

    codes: Places
    values: Sequence[Any]
    bad: int
    examples: Sequence[str]
    raw: Raw | None

    def rareness(self, of: Field) -> Rareness:
        """Estimate the share of the records with this field that hold each part of its values."""
        held = np.bincount(self.codes[self.codes >= 0], minlength=len(self.values)).tolist()
        counts: Counter[str] = Counter()
        for value, count in zip(self.values, held, strict=True):
            for part in of.parts(value):
                counts[part] += count
        # A value that was never seen is about as common as others of its field: a country is not as rare as a surname.
        typical = int(np.median(list(counts.values()))) if counts else 1
        listed = [(part, count) for part, count in counts.most_common(_LISTED) if count != typical]
        total = int(sum(held)) + _ASSUMED

        def share(count: int) -> float:
            return (count + _ASSUMED * UNKNOWN.rest) / total

        return Rareness({part: share(count) for part, count in listed}, share(typical))


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


def read_table(
    fields: Mapping[str, Field],
    records: Iterable[Any],
    parsed: Mapping[str, dict[Any, Any]] | None = None,
    *,
    known: Table | None = None,
) -> Table:
    """Read the fields of records.

    parsed: what earlier tables have read, by field; it is added to.
    known:  a table of the same fields, which is returned if the records hold the same values.
    """
    held = records if isinstance(records, Sequence) else list(records)
    raws = _raw_values(fields, held)
    if known and known.records == len(held) and all(known.columns[name].raw == raws.get(name, ()) for name in fields):
        return known
    columns = {
        name: _column(of, name, held, None if parsed is None else parsed[name], raws.get(name))
        for name, of in fields.items()
    }
    return Table(columns, len(held))


def _raw_values(fields: Mapping[str, Field], records: Sequence[Any]) -> dict[str, Raw]:
    """Return the values that the core can read, by field."""
    paths = tuple({path: None for name, of in fields.items() for path in of.paths(name) if "." not in path})
    by_core = native.core.columns(records, paths) if native.core else None
    read = {path: Raw(*column) for path, column in zip(paths, by_core or (), strict=bool(by_core)) if column}
    of_fields = {name: [read.get(path) for path in of.paths(name)] for name, of in fields.items()}
    return {name: _together(raws) for name, raws in of_fields.items() if None not in raws}  # type: ignore[arg-type]


def _together(raws: Sequence[Raw]) -> Raw:
    """Return the values of one field, or tuples of the values in several."""
    if len(raws) == 1:
        return raws[0]
    places = [np.frombuffer(raw.codes, np.int64) for raw in raws]
    which, at = np.zeros(len(places[0]), np.int64), np.empty(0, np.int64)
    for raw, of in zip(raws, places, strict=True):
        key = which * (len(raw.distinct) + 1) + of + 1
        _, at, which = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(at)  # distinct values are in the order of the records
    which = np.argsort(order)[which]
    rows = (
        [None if code < 0 else raw.distinct[code] for code in of[at[order]].tolist()]
        for raw, of in zip(raws, places, strict=True)
    )
    return Raw(which.astype(np.int64).tobytes(), list(zip(*rows, strict=True)))


def _column(of: Field, name: str, records: Sequence[Any], parsed: dict[Any, Any] | None, raw: Raw | None) -> Column:
    """Read one field of all records. Equal values are parsed once.

    parsed: what earlier tables have read, by raw value, with a BadValue for one that cannot be read.
    raw:    the values as the core has read them.
    """
    keys, raws, places = _distinct(list(_raw(records, of.paths(name)))) if raw is None else _keyed(raw)
    values: dict[Any, int] = {}
    codes: list[int] = []
    examples: list[str] = []
    texts = all(type(one) is str for one in raws)
    for key, one, plain in zip(keys, raws, of.plain(raws) if texts else repeat(None), strict=texts):
        value = _NEW if parsed is None else parsed.get(key, _NEW)
        if value is _NEW:
            value = _parsed(of, name, one) if plain is None else plain
            if parsed is not None and (one is key or not _is_single(key)):
                parsed[key] = value
        if type(value) is BadValue:
            codes.append(_BAD)
            examples += [str(value)] * (len(examples) < _EXAMPLES)
        else:
            codes.append(-1 if value is None else values.setdefault(value, len(values)))
    found = np.array([*codes, -1])[places]
    return Column(np.maximum(found, -1), list(values), int((found == _BAD).sum()), examples, raw)


def _keyed(raw: Raw) -> tuple[Sequence[Any], Sequence[Any], Places]:
    """Return the same as _distinct of values that the core has read."""
    plain = not raw.distinct or type(raw.distinct[0]) is str
    return raw.distinct if plain else list(map(_key, raw.distinct)), raw.distinct, np.frombuffer(raw.codes, np.int64)


def _distinct(raws: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any], Places]:
    """Return keys of the distinct values, these values, and of each value the place of its key."""
    keys = [raw if type(raw) is str else _key(raw) for raw in raws]
    numbers: dict[Any, int] = {}
    places = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
    raw_of = dict(zip(reversed(keys), reversed(raws), strict=True))
    return list(numbers), [raw_of[key] for key in numbers], places


def _raw(records: Sequence[Any], paths: Sequence[str]) -> Iterable[Any]:
    """Return of each record the value in a field, or a tuple of the values in several."""
    if len(paths) > 1:
        return zip(*(_raw(records, [path]) for path in paths), strict=True)
    path = paths[0]
    if "." not in path and set(map(type, records)) == {dict}:
        return [record.get(path) for record in records]
    return [record[path] if type(record) is dict and path in record else value_of(record, path) for record in records]


def _key(raw: Any) -> Any:
    """Return a key that is equal for equal values of equal types only; an object of its own for a list or a mapping."""
    if isinstance(raw, tuple):
        return tuple(one if type(one) is str else _key(one) for one in raw)
    return (type(raw), raw) if raw is None or isinstance(raw, str | int | float) else object()


def _is_single(key: Any) -> bool:
    """Return whether a key is equal to no other."""
    return type(key) is object or (isinstance(key, tuple) and any(map(_is_single, key)))


def _parsed(of: Field, name: str, raw: Any) -> Any:
    try:
        if type(raw) is str:
            return of.parse([raw], name) if raw.strip() else None
        values = raw if isinstance(raw, tuple) and len(of.paths(name)) > 1 else (raw,)
        return of.parse([value for value in values if not is_absent(value)], name)
    except BadValue as error:
        return error.with_traceback(None)
