"""One merged record for a group of records. Every value comes from one of them: none is invented.

A rule says which value of a field is kept; see RULES. Without one, the rule is that of the field's kind. Fields that
the schema does not name are merged by "frequent". Ties go to the longest value, then to the record that comes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from math import inf, isnan
from typing import Any

import numpy as np

from ndd_search.core.document_fields import value_of
from ndd_search.core.matching.guards import seconds_since_1970
from ndd_search.core.setting_values import nearest
from ndd_search.corpus.write_files import line_of
from ndd_search.errors import InvalidDocument
from ndd_search.items.compare_values import kilometres
from ndd_search.items.fields import BadValue, Field, Place
from ndd_search.items.parse_values import is_absent

Rules = Mapping[str, str]

RULES = {
    "frequent": "the value of most records",
    "longest": "the longest text",
    "first": "that of the first record that has one",
    "central": "the place or number with the smallest sum of distances to the others",
    "union": "a list of all values; that of a web address or a code, if there are several",
    "newest:FIELD": "that of the record with the latest time in FIELD",
    "oldest:FIELD": "that of the record with the earliest time in FIELD",
    "preferred:FIELD=a,b": "that of the first record whose FIELD is a, else b, else any",
}
_OF_KIND = {"text": "longest", "place": "central", "url": "union", "exact": "union"}
_ABOUT = "ndd"
_IDS = ("id", "_id")  # they are listed as members


class _Held:
    """A value of one record: `raw` as it is there, by path, and `read` as it is compared."""

    def __init__(self, place: int, raw: dict[str, Any], read: Any) -> None:
        self.place, self.raw, self.read = place, raw, read

    @property
    def length(self) -> int:
        return sum(len(str(value)) for value in self.raw.values())


def merge_group(
    fields: Mapping[str, Field], records: Sequence[Any], ids: Sequence[str], rules: Rules
) -> dict[str, Any]:
    """Return the merged record of a group, with its origin under "ndd".

    ndd.members: the ids of all records. ndd.from: of each field the id of the record whose value was kept; of a union
    each value with the ids of its records.
    ndd.conflicts: of each field on which records disagree, the values, each with the ids of its records.
    Raises InvalidDocument for a record with a field "ndd" that is no object, as stored sketches are.
    """
    for name, rule in rules.items():
        check_rule(name, rule)
    for record, id in zip(records, ids, strict=True):
        if not isinstance(value_of(record, _ABOUT), Mapping | None):
            what = f"it has a field {_ABOUT!r}, where a merged record tells its origin"
            raise InvalidDocument(f"record {id}", what, "rename the field")
    merged: dict[str, Any] = {}
    origin: dict[str, Any] = {}
    conflicts: dict[str, list[dict[str, Any]]] = {}
    for name, paths, field in _fields(fields, records):
        held = _held(name, paths, field, records)
        if not held:
            continue
        rule = rules.get(name, _OF_KIND.get(field.kind, "frequent") if field else "frequent")
        differ = len({one.read for one in held}) > 1
        if rule == "union" and (differ or name in rules):
            read_by = field if len(paths) == 1 else None
            united = {path: values for path in paths if (values := _union(held, path, name, read_by))}
            merged |= {path: [value for value, _ in values] for path, values in united.items()}
            origin[name] = [
                {"value": _shown(value), "records": [ids[place] for place in places]}
                for values in united.values()
                for value, places in values
            ]
        else:
            chosen = _chosen("frequent" if rule == "union" else rule, field, held, records)
            merged |= chosen.raw
            origin[name] = ids[chosen.place]
        if name not in _IDS and differ and (rule != "union" or name in rules):
            by_value: dict[str, list[str]] = {}
            for one in held:
                by_value.setdefault(", ".join(map(_shown, one.raw.values())), []).append(ids[one.place])
            conflicts[name] = [{"value": value, "records": of} for value, of in by_value.items()]
    return {**merged, _ABOUT: {"members": list(ids), "from": origin, "conflicts": conflicts}}


def check_rule(name: str, rule: str) -> None:
    """Raise ValueError for a rule that does not exist."""
    head, colon, rest = rule.partition(":")
    heads = {each.partition(":")[0]: ":" in each for each in RULES}
    fits = bool(rest) == bool(colon) == heads.get(head) and ("=" in rest or head != "preferred")
    if not fits:
        rules = "; ".join(f"{each}: {what}" for each, what in RULES.items())
        raise ValueError(f"{name}: {rule!r} is no rule{nearest(head, heads)}; rules are {rules}")


def _fields(fields: Mapping[str, Field], records: Sequence[Any]) -> list[tuple[str, tuple[str, ...], Field | None]]:
    """Return (name, paths, field) of the schema's fields, then of all other fields of the records."""
    known = [(name, field.paths(name), field) for name, field in fields.items()]
    read = {path for _, paths, _ in known for path in paths}
    others = dict.fromkeys(path for record in records if isinstance(record, Mapping) for path in _others(record, read))
    return [*known, *((path, (path,), None) for path in others if path != _ABOUT)]


def _others(record: Mapping[str, Any], read: Set[str], start: str = "") -> Iterator[str]:
    """Yield the paths of a record that are not in `read`; of an object with a path that is, those of its members."""
    for name, value in record.items():
        path = f"{start}{name}"
        if isinstance(value, Mapping) and any(one.startswith(f"{path}.") for one in read):
            yield from _others(value, read, f"{path}.")
        elif path not in read:
            yield path


def _held(name: str, paths: tuple[str, ...], field: Field | None, records: Sequence[Any]) -> list[_Held]:
    """Return the values of the records that have one; one that cannot be read is kept only if no other can."""
    good: list[_Held] = []
    bad: list[_Held] = []
    for place, record in enumerate(records):
        raw = {path: value for path in paths if not is_absent(value := value_of(record, path))}
        if not raw:
            continue
        try:
            read = field.parse(list(raw.values()), name) if field else _canonical(raw[name])
        except BadValue:
            read = None
        (bad if read is None else good).append(_Held(place, raw, _canonical(raw) if read is None else read))
    return good or bad


def _canonical(value: Any) -> str:
    return line_of(value, sort_keys=True)


def _shown(value: Any) -> str:
    line = line_of(value)
    return str(value) if line.startswith('"') else line  # texts, dates and other values that JSON has as texts


def _union(held: Sequence[_Held], path: str, name: str, field: Field | None) -> list[tuple[Any, dict[int, None]]]:
    """Return each value once, and the places of its records. field: reads values, to know which are equal."""
    found: dict[Any, tuple[Any, dict[int, None]]] = {}
    for one in held:
        value = one.raw.get(path, [])
        for member in value if isinstance(value, list | tuple) else [value]:
            try:
                key = (field.parse([member], name),) if field and field.kind in _OF_KIND else _canonical(member)
            except BadValue:
                key = _canonical(member)
            found.setdefault(key, (member, {}))[1][one.place] = None
    return list(found.values())


def _chosen(rule: str, field: Field | None, held: Sequence[_Held], records: Sequence[Any]) -> _Held:
    """Return the value that a rule keeps."""
    head, _, rest = rule.partition(":")
    counts = Counter(one.read for one in held)
    keys: dict[str, Callable[[_Held], float]] = {
        "frequent": lambda one: -counts[one.read],
        "longest": lambda one: -one.length,
        "first": lambda one: one.place,
    }
    if head == "central":
        far = _distances(field, held)
        keys["central"] = lambda one: far[held.index(one)]
    elif head in ("newest", "oldest"):
        sign = -1 if head == "newest" else 1
        keys[head] = lambda one: (
            inf if isnan(at := sign * seconds_since_1970(value_of(records[one.place], rest))) else at
        )
    elif head == "preferred":
        path, _, wanted = rest.partition("=")
        order = wanted.split(",")
        keys[head] = lambda one: [*order, found := str(value_of(records[one.place], path))].index(found)
    return min(held, key=lambda one: (keys[head](one), -counts[one.read], -one.length, one.place))


def _distances(field: Field | None, held: Sequence[_Held]) -> list[float]:
    """Return of each value the sum of its distances to the others. Their geometric median is robust to outliers."""
    try:
        values = np.array([one.read for one in held], np.float64)
    except (TypeError, ValueError):
        return [0.0] * len(held)
    if isinstance(field, Place) and values.ndim == 2:
        return [float(kilometres(np.broadcast_to(one, values.shape), values).sum()) for one in values]
    return np.abs(values[:, None] - values[None]).sum(axis=1).tolist() if values.ndim == 1 else [0.0] * len(held)
