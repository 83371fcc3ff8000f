"""Read the fields of documents: mappings, rows of databases, or objects with attributes."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

import numpy as np

from ndd_search.errors import InvalidDocument

_ABSENT = object()


def value_of(document: Any, path: str) -> Any:
    """Return the value of a field of a document, None if it has none.

    document: a mapping, a row of a database, or any object with attributes. path: a name, or names joined by dots
    ("author.name"). A key that is the whole path takes precedence, then keys of few names. For a list on the path, the
    values of its members are listed.
    """
    value = _member(document, path)
    if value is not _ABSENT:
        return value
    for head, rest in splits(path):
        inner = _member(document, head)
        if isinstance(inner, list | tuple):
            return [value for value in (value_of(member, rest) for member in inner) if value is not None]
        if inner is not _ABSENT and (value := value_of(inner, rest)) is not None:
            return value
    return None


def absent_fields(paths: Iterable[str], documents: Sequence[Any]) -> list[str]:
    """Return those fields that none of some documents has."""
    return [path for path in paths if all(value_of(document, path) is None for document in documents)]


def splits(path: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a path before and after each of its dots: keys may contain dots, too."""
    end = path.find(".")
    while end >= 0:
        yield path[:end], path[end + 1 :]
        end = path.find(".", end + 1)


def text_of(document: Any, paths: Sequence[str]) -> str | None:
    """Return the text of some fields, a line each, in the order of `paths`; None if the document has none of them.

    Keys with dots are read as parts of the objects of their paths, as engines do: {"a.b": ..., "a": {"c": ...}} as
    {"a": {"b": ..., "c": ...}}. If a document writes a path in both ways, both are read. Lists are read in order,
    objects in the order of their keys, because engines return keys in any order. Numbers and booleans are written as
    in JSON; NaN is no text. Raises InvalidDocument for a value that contains itself.
    """
    if (
        len(paths) == 1
        and type(document) is dict
        and "." not in paths[0]
        and type(value := document.get(paths[0])) is str
    ):
        return value  # the usual case, which is ten times as fast as what follows
    document = _nested(document)
    parts = [part for path in paths for value in _values(document, path) for part in _texts(value)]
    return "\n".join(parts) if parts else None


def is_missing(value: Any) -> bool:
    """Return whether a value is None, or NaN, NaT or NA, which data frames write where a value is missing."""
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return value is None or type(value).__name__ in ("NaTType", "NAType")


def as_mapping(document: Any) -> Any:
    """Return a row of a database as a mapping from its columns to their values; anything else as it is.

    A row has `keys` and is read by them, but it is no Mapping: sqlite3.Row, asyncpg.Record, a hit of Whoosh.
    """
    if isinstance(document, Mapping) or not _is_row(document):
        return document
    names = document.keys()
    return {name: document[name] for name in names}


def has_no_names(document: Any) -> bool:
    """Return whether a document has values without names, as the rows that many databases return by default."""
    return isinstance(document, list | tuple | bytes) and not hasattr(document, "_fields") and not _is_row(document)


def _is_row(document: Any) -> bool:
    return hasattr(type(document), "keys") and hasattr(type(document), "__getitem__")


def _member(document: Any, name: str) -> Any:
    if type(document) is dict or isinstance(document, Mapping):
        return document.get(name, _ABSENT)
    if _is_row(document):
        with suppress(LookupError, TypeError):  # elements of XML have `keys`, too
            return document[name]
    return getattr(document, name, _ABSENT)


def _nested(document: Any) -> Any:
    """Return an object with its keys with dots in the objects at their heads; anything else as it is.

    A part that is written in both ways is a list of both. A key stays as it is if there is a text at its head.
    """
    document = as_mapping(document)
    if not isinstance(document, Mapping):
        return document
    dotted = [key for key in document if isinstance(key, str) and "." in key]
    if not dotted:
        return document
    found, parts = dict(document), dict[str, dict[str, Any]]()
    for key in dotted:
        head, _, rest = key.partition(".")
        if all(key.split(".")) and not isinstance(document.get(head), str):
            parts.setdefault(head, {})[rest] = found.pop(key)
    for head, part in parts.items():
        found[head] = _joined(part, found[head]) if head in found else part
    return found


def _joined(part: dict[str, Any], value: Any) -> Any:
    """Return the value of a field with a part of it that is written beside it."""
    if not isinstance(value, Mapping):
        return [part, *_listed(value)]
    both = {name: [*_listed(part[name]), *_listed(value[name])] for name in part if name in value}
    return {**value, **part, **both}


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]


def _values(document: Any, path: str) -> Iterator[Any]:
    """Yield the values of a field in every way in which its path can be written. document: nested."""
    value = _member(document, path)
    if value is not _ABSENT:
        yield value
    for head, rest in splits(path):
        inner = _member(document, head)
        for member in inner if isinstance(inner, list | tuple) else [inner]:
            if member is not _ABSENT:
                yield from _values(_nested(member), rest)


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in a value, at any depth. Raises InvalidDocument for a value that contains itself."""
    stack: list[Iterator[Any]] = [iter([value])]
    ancestors: list[int] = []  # ids of the containers being read, the outermost first
    seen: set[int] = set()  # the same ids
    while stack:
        if (item := next(stack[-1], _ABSENT)) is _ABSENT:
            stack.pop()
            if ancestors:
                seen.discard(ancestors.pop())
            continue
        if isinstance(item, np.generic | np.ndarray):
            item = item.tolist()
        if not isinstance(item, str):
            item = as_mapping(item)
        if isinstance(item, Mapping | list | tuple):
            if id(item) in seen:
                raise InvalidDocument("a document", "a value in it contains itself", "give it as JSON would hold it")
            ancestors.append(id(item))
            seen.add(id(item))
            item = _nested(item)
            stack.append(iter([item[key] for key in sorted(item, key=str)] if isinstance(item, Mapping) else item))
        elif isinstance(item, str):
            yield item
        elif not is_missing(item):
            yield _as_stored(item)


def _as_stored(value: Any) -> str:
    """Return a value as it reads after a client has written it as JSON and an engine has returned it."""
    if isinstance(value, datetime.date):  # or a datetime
        return value.isoformat()
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(float(value)) if isinstance(value, Decimal) else str(value)
