"""The URL parameter `filter_path`, applied to a response here because its parts are needed before they are dropped."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

_GONE = object()


def filtered(value: Any, paths: str, always: str) -> Any:
    """The parts of a response that the paths name; a path with "-" in front names parts to leave out.

    paths:  dotted names with commas; "*" stands for any part of a name, "**" for any names. Lists are looked through.
    always: a path that is named besides.
    """
    patterns = [path.strip().split(".") for path in paths.split(",") if path.strip()]
    wanted = [pattern for pattern in patterns if not pattern[0].startswith("-")]
    wanted += [always.split(".")] if wanted else []
    unwanted = [[pattern[0][1:], *pattern[1:]] for pattern in patterns if pattern[0].startswith("-")]
    if wanted:
        value = _kept(value, wanted)
    if unwanted and value is not _GONE:
        value = _left(value, unwanted)
    return {} if value is _GONE else value


def _kept(value: Any, patterns: list[list[str]]) -> Any:
    if any(not pattern or pattern == ["**"] for pattern in patterns):
        return value
    if isinstance(value, list):
        found = [one for one in (_kept(one, patterns) for one in value) if one is not _GONE]
        return found or _GONE
    if not isinstance(value, dict):
        return _GONE
    kept = {name: _kept(inner, _after(name, patterns)) for name, inner in value.items()}
    kept = {name: inner for name, inner in kept.items() if inner is not _GONE}
    return kept or _GONE


def _left(value: Any, patterns: list[list[str]]) -> Any:
    if any(not pattern or pattern == ["**"] for pattern in patterns):
        return _GONE
    if isinstance(value, list):
        return [one for one in (_left(one, patterns) for one in value) if one is not _GONE]
    if not isinstance(value, dict):
        return value
    left = {name: _left(inner, _after(name, patterns)) for name, inner in value.items()}
    return {name: inner for name, inner in left.items() if inner is not _GONE}


def _after(name: str, patterns: list[list[str]]) -> list[list[str]]:
    """What is left of each pattern below a name; a pattern that does not match the name goes."""
    rest = []
    for pattern in patterns:
        if pattern and pattern[0] == "**":
            rest.append(pattern)
            rest += _after(name, [pattern[1:]])
        elif pattern and fnmatchcase(name, pattern[0]):
            rest.append(pattern[1:])
    return rest
