"""Reading the fields of documents, wherever they come from."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from ndd_search.errors import InvalidDocument

_ABSENT = object()


def value_of(document: Any, path: str) -> Any:
    """What a document has under a name, None where it has nothing.

    document: a mapping, or any object with attributes. path: a name, or names joined by dots ("author.name"); a key
    that itself holds dots is found first. A list on the way gives the list of what its members have.
    """
    found = _member(document, path)
    if found is not _ABSENT:
        return found
    head, dot, rest = path.partition(".")
    inner = _member(document, head)
    if not dot or inner is _ABSENT:
        return None
    if isinstance(inner, list | tuple):
        return [value for value in (value_of(one, rest) for one in inner) if value is not None]
    return value_of(inner, rest)


def text_of(document: Any, paths: Sequence[str]) -> str | None:
    """The text of some fields, a line each, in the order of `paths`; None when the document has none of them.

    A list gives its members in their order, an object its values in the order of their names: engines return the
    members of an object in any order. Numbers and booleans are written as in JSON.
    Raises InvalidDocument for a value that holds itself.
    """
    parts = [part for path in paths for part in _texts(value_of(document, path))]
    return "\n".join(parts) if parts else None


def _member(document: Any, name: str) -> Any:
    if isinstance(document, Mapping):
        return document.get(name, _ABSENT)
    return getattr(document, name, _ABSENT)


def _texts(value: Any) -> Iterator[str]:
    """The texts in a value, however deep it is nested. Raises InvalidDocument for a value that holds itself."""
    rest: list[Iterator[Any]] = [iter([value])]
    holders: list[int] = []  # ids of what is read, from the outermost to the innermost, and the same as a set:
    held: set[int] = set()
    while rest:
        if (one := next(rest[-1], _ABSENT)) is _ABSENT:
            rest.pop()
            if holders:
                held.discard(holders.pop())
            continue
        if isinstance(one, np.generic | np.ndarray):
            one = one.tolist()
        if isinstance(one, Mapping | list | tuple):
            if id(one) in held:
                raise InvalidDocument("a document", "a value in it holds itself", "give it as JSON would hold it")
            rest.append(iter([one[name] for name in sorted(one, key=str)] if isinstance(one, Mapping) else one))
            holders.append(id(one))
            held.add(id(one))
        elif isinstance(one, str):
            yield one
        elif one is not None:
            yield _as_stored(one)


def _as_stored(value: Any) -> str:
    """A value as it reads once a client has written it as JSON and an engine has given it back."""
    if isinstance(value, datetime.date):  # or a datetime
        return value.isoformat()
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(float(value)) if isinstance(value, Decimal) else str(value)
