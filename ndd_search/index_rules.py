"""Settings by pattern of index names: {"news-*": {"window": 200}, "logs-*": {"enabled": False}}.

The most specific pattern that matches an index wins: a name without `*` first, then the pattern with the most other
characters, then the one given first. Rules are not combined with each other; what a rule does not name is as for all
other indexes. A search is compared by the names that it uses, so an alias needs a pattern of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from typing import Any
from urllib.parse import unquote

from ndd_search.collapse_options import CollapseOptions, collapse_options
from ndd_search.recipe import Recipe

IndexSettings = Mapping[str, Mapping[str, Any]]  # settings by name, by pattern

OWN = ("enabled", "recipe", "field")  # settings of a rule beside CollapseOptions
_NO_NAME = re.compile(r"[?\[\],/\\\s]")
_MOST_TARGETS = 1000


@dataclass(frozen=True, kw_only=True)
class IndexRule:
    """The settings of the indexes that a pattern matches.

    options: how their hits are collapsed. enabled: False leaves their searches alone.
    recipe:  of their sketches, None for the client's. field: the object that holds them, None for the client's.
    """

    options: CollapseOptions
    enabled: bool = True
    recipe: Recipe | None = None
    field: str | None = None


@dataclass(frozen=True)
class IndexRules:
    """Rules by their pattern, in the order given."""

    rules: Mapping[str, IndexRule]

    @classmethod
    def of(
        cls, given: IndexSettings | None, options: CollapseOptions, before: IndexSettings | None = None
    ) -> IndexRules:
        """Create from settings by pattern. Raises TypeError or ValueError.

        options: of all other indexes. before: further settings, for patterns that are not given.
        """
        if not isinstance({} if given is None else given, Mapping):
            raise TypeError(f'indexes must map patterns of index names to settings, {{"news-*": {{}}}}, got {given!r}')
        every = {**(before or {}), **(given or {})}
        return cls({pattern: _rule(pattern, settings, options) for pattern, settings in every.items()})

    def pattern_of(self, name: str) -> str | None:
        """Return the pattern whose rule is that of an index, None if none matches its name."""
        return _pattern_of(self._patterns, name)

    def of_target(self, target: str) -> list[IndexRule | None]:
        """Return the different rules of the indexes that a search may read, None standing for those without a rule.

        target: as in a path, "/news,blogs" or "" for every index.
        """
        found: list[IndexRule | None] = []
        for pattern in _patterns_in(self._patterns, target):
            rule = None if pattern is None else self.rules[pattern]
            if rule not in found:
                found.append(rule)
        return found

    @cached_property
    def _patterns(self) -> tuple[str, ...]:
        """The patterns, the most specific first."""
        return tuple(sorted(self.rules, key=lambda one: ("*" in one, one.count("*") - len(one))))


def _rule(pattern: str, settings: Any, options: CollapseOptions) -> IndexRule:
    if not isinstance(pattern, str) or not pattern or _NO_NAME.search(pattern):
        raise ValueError(f"a pattern of index names holds the characters of a name and *, got {pattern!r}")
    if not isinstance(settings, Mapping):
        raise TypeError(f"indexes {pattern!r}: settings by name are needed, got {settings!r}")
    changes = {name: value for name, value in settings.items() if name not in OWN}
    enabled, recipe, field = (
        settings.get(name, default) for name, default in zip(OWN, (True, None, None), strict=True)
    )
    try:
        for name in changes:
            if near := get_close_matches(name, OWN, 1, 0.8):
                raise TypeError(f"unknown setting {name!r} (did you mean {near[0]}?)")
        if not isinstance(enabled, bool):
            raise TypeError(f"enabled must be true or false, got {enabled!r}")
        if field is not None and (not isinstance(field, str) or not field):
            raise ValueError(f"field must be the name of the object that holds the sketch, got {field!r}")
        known = None if recipe is None else Recipe.of(recipe)
        return IndexRule(options=collapse_options(options, **changes), enabled=enabled, recipe=known, field=field)
    except (TypeError, ValueError) as error:
        raise type(error)(f"indexes {pattern!r}: {error}") from None


@lru_cache(_MOST_TARGETS)
def _pattern_of(patterns: tuple[str, ...], name: str) -> str | None:
    return next((pattern for pattern in patterns if fnmatchcase(name, pattern)), None)


@lru_cache(_MOST_TARGETS)
def _patterns_in(patterns: tuple[str, ...], target: str) -> tuple[str | None, ...]:
    """Return the patterns that win for some index of a target. patterns: the most specific first."""
    found: list[str | None] = []
    for name in _names(target):
        if "*" not in name:
            found.append(_pattern_of(patterns, name))
            continue
        for pattern in patterns:
            if _meet(name, pattern):
                found.append(pattern)
            if fnmatchcase(name, pattern):  # every index of the name matches it, so no later pattern wins
                break
        else:
            found.append(None)
    return tuple(dict.fromkeys(found))


def _names(target: str) -> Iterable[str]:
    """Return the names in a target. A date in a name, <news-{now/d}>, may be any text; exclusions are left out."""
    for name in unquote(target.lstrip("/")).split(","):
        if name.startswith("<"):
            yield re.sub(r"\{.*\}", "*", name.strip("<>"))
        elif not name.startswith("-"):
            yield "*" if name in ("", "_all") else name


def _meet(first: str, second: str) -> bool:
    """Return whether two patterns match a name in common."""
    left, known = [(0, 0)], set[tuple[int, int]]()
    while left:
        place = left.pop()
        if place in known:
            continue
        known.add(place)
        i, j = place
        one, other = first[i : i + 1], second[j : j + 1]
        if not one and not other:
            return True
        if one == "*" or other == "*":
            left += [(i + 1, j)] if one else []
            left += [(i, j + 1)] if other else []
        elif one == other:
            left.append((i + 1, j + 1))
    return False
