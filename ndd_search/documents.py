"""Reading the fields of documents, wherever they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
    """
    parts = [part for path in paths for part in _texts(value_of(document, path))]
    return "\n".join(parts) if parts else None


def _member(document: Any, name: str) -> Any:
    if isinstance(document, Mapping):
        return document.get(name, _ABSENT)
    return getattr(document, name, _ABSENT)


def _texts(value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, Mapping):
        value = [value[name] for name in sorted(value, key=str)]
    elif not isinstance(value, list | tuple):
        return [str(value)]
    return [part for one in value for part in _texts(one)]
