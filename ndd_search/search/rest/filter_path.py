"""Applies the URL parameter `filter_path` to a response. It is not sent, because we need the parts that it drops."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

_GONE = object()


def filtered(value: Any, paths: str, always: str) -> Any:
    """Return the parts of a response that the paths select. A path that starts with "-" removes parts.

    paths:  dotted names separated by commas; "*" matches any part of a name, "**" any names. Lists are transparent.
    always: a path that is selected as well.
    """
    patterns = [path.strip().split(".") for path in paths.split(",") if path.strip()]
    wanted = [pattern for pattern in patterns if not pattern[0].startswith("-")]
    wanted += [always.split(".")] if wanted else []
    unwanted = [[pattern[0][1:], *pattern[1:]] for pattern in patterns if pattern[0].startswith("-")]
    if wanted:
        value = _parts(value, wanted, kept=True)
    if unwanted and value is not _GONE:
        value = _parts(value, unwanted, kept=False)
    return {} if value is _GONE else value


def _parts(value: Any, patterns: list[list[str]], kept: bool) -> Any:
    """Return the parts of a value that the patterns name (kept), or all others; _GONE if there are none to keep."""
    if any(not pattern or pattern == ["**"] for pattern in patterns):
        return value if kept else _GONE
    if isinstance(value, list):
        items = [item for item in (_parts(item, patterns, kept) for item in value) if item is not _GONE]
        return items if items or not kept else _GONE
    if not isinstance(value, dict):
        return _GONE if kept else value
    inner = {name: _parts(one, _after(name, patterns), kept) for name, one in value.items()}
    found = {name: one for name, one in inner.items() if one is not _GONE}
    return found if found or not kept else _GONE


def _after(name: str, patterns: list[list[str]]) -> list[list[str]]:
    """Return the rest of each pattern below a name, without the patterns that do not match it."""
    rest = []
    for pattern in patterns:
        if pattern and pattern[0] == "**":
            rest.append(pattern)
            rest += _after(name, [pattern[1:]])
        elif pattern and fnmatchcase(name, pattern[0]):
            rest.append(pattern[1:])
    return rest
