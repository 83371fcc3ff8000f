"""Settings by pattern of index names: {"news-*": {"text": ["body"], "window": 200}, "logs-*": {"enabled": False}}.

The most specific pattern that matches an index wins: a name without `*` first, then the pattern with the most other
characters, then the one given first. Rules are not combined with each other; what a rule does not name is as for all
other indexes. A search is compared by the names that it uses, so an alias needs a pattern of its own.

A recipe named in a setting is its id, and for one with a key where the key is, as w3-k64-v4+env:NDD_KEY says. A key
itself is never part of a setting, which files, command lines and messages show.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ndd_search.core.immutable import cached_property
from ndd_search.core.options import Also, CollapseOptions, Enabled
from ndd_search.core.presets import OPTIONS, collapse_options, preset_of
from ndd_search.core.recipe import Recipe
from ndd_search.core.setting_values import (
    Field,
    Kind,
    Several,
    Text,
    Whole,
    YesNo,
    check_known,
    checked,
    kinds_of,
    setting,
)
from ndd_search.core.sketching.stored_sketch import KEYS

IndexSettings = Mapping[str, Mapping[str, Any]]  # settings by name, by pattern

_NO_NAME = re.compile(r"[?\[\],/\\\s]")
_MOST_TARGETS = 1000


def recipe_named(given: Recipe | str | None) -> Recipe:
    """Return the recipe of a setting, the default for None. Raises ValueError for another name, or without the key."""
    if not isinstance(given, str):
        return Recipe.of(given)
    name, keyed, where = given.partition("+")
    recipe = Recipe.parse(name)
    return recipe.with_key(_key(where)) if keyed else recipe


def _key(text: str) -> str:
    """Return the secret that "env:NAME" or "file:PATH" names. Raises ValueError if there is none."""
    kind, _, name = text.partition(":")
    if kind == "env" and name:
        if name not in os.environ:
            raise ValueError(f"the environment variable {name} is not set: it should hold the key of the recipe")
        return os.environ[name]
    if kind == "file" and name:
        try:
            return Path(name).read_text("utf-8").strip()
        except (OSError, UnicodeError) as error:
            raise ValueError(f"the key of the recipe cannot be read from {name}: {error}") from None
    raise ValueError("a key is named by env:NAME or file:PATH, as a key itself could be read where settings are shown")


@dataclass(frozen=True)
class OfRecipe(Kind):
    """A recipe, or its id and where its key is. missing: what None stands for."""

    missing: Recipe | None = None

    def check(self, name: str, value: Any) -> Recipe | None:
        return self.missing if value is None else recipe_named(value)

    def __str__(self) -> str:
        return "a recipe, or its id and where its key is"


@checked
@dataclass(frozen=True, kw_only=True)
class IndexRule:
    """The settings of the indexes that a pattern matches; beside these, every option of CollapseOptions, and `preset`.

    enabled: false leaves searches of these indexes alone; or which are collapsed beside those that rank, as in wrap.
    text:    the fields that hold the text: documents that are written to these indexes get a sketch of it. Without it,
             they get none.
    keys:    how many keys are stored beside each sketch, 0..64.
    numbers: whether the numbers of the text are stored, for the guard numbers.
    recipe:  of the sketches; by default that of the client.
    field:   the object that holds the sketch; by default that of the client.
    """

    options: CollapseOptions
    enabled: Any = setting(Enabled(), True)
    text: Sequence[str] = setting(Several(Field(), one=True), ())
    keys: int = setting(Whole(0, 64), KEYS)
    numbers: bool = setting(YesNo(), False)
    recipe: Recipe | None = setting(OfRecipe(), None)
    field: str | None = setting(Text(".+", "ndd"), None)

    @property
    def of_search(self) -> tuple[CollapseOptions, bool | tuple[Also, ...], Recipe | None, str | None]:
        """What searches of these indexes have to agree in, to be collapsed together."""
        return self.options, self.enabled, self.recipe, self.field


OWN = kinds_of(IndexRule)  # settings of a rule beside CollapseOptions


@dataclass(frozen=True)
class IndexRules:
    """Rules by their pattern, in the order given, and the rule of all other indexes."""

    rules: Mapping[str, IndexRule]
    others: IndexRule = IndexRule(options=CollapseOptions())

    @classmethod
    def of(
        cls,
        given: IndexSettings | None,
        options: CollapseOptions,
        recipe: Recipe | None = None,
        enabled: bool | tuple[Also, ...] = True,
    ) -> IndexRules:
        """Create from settings by pattern. Raises TypeError or ValueError.

        options, recipe, enabled: of all other indexes.
        """
        if not isinstance({} if given is None else given, Mapping):
            raise TypeError(f'indexes must map patterns of index names to settings, {{"news-*": {{}}}}, got {given!r}')
        others = IndexRule(options=options, recipe=recipe, enabled=enabled)
        return cls({pattern: _rule(pattern, settings, others) for pattern, settings in (given or {}).items()}, others)

    @property
    def field(self) -> str:
        """Return the object that holds the sketches of indexes without a pattern of their own."""
        return ("*" in self.rules and self.rules["*"].field) or "ndd"

    def pattern_of(self, name: str) -> str | None:
        """Return the pattern whose rule is that of an index, None if none matches its name."""
        return _pattern_of(self._patterns, name)

    def text_fields_of(self, name: str) -> Sequence[str]:
        """Return the fields of an index whose text its sketches are of; none if they are not known."""
        pattern = self.pattern_of(name)
        return () if pattern is None else self.rules[pattern].text

    def sketched_beside(self, target: str) -> list[str]:
        """Return the patterns of indexes that get sketches, none if one of them matches an index of a target."""
        patterns = [pattern for pattern, rule in self.rules.items() if rule.text]
        return patterns if patterns and not {*patterns} & {*_patterns_in(self._patterns, target)} else []

    def of_target(self, target: str) -> list[IndexRule]:
        """Return a rule for each of the different settings of the indexes that a search may read.

        target: as in a path, "/news,blogs" or "" for every index.
        """
        found: dict[Any, IndexRule] = {}
        for pattern in _patterns_in(self._patterns, target):
            rule = self.others if pattern is None else self.rules[pattern]
            found.setdefault(rule.of_search, rule)
        return list(found.values())

    @cached_property
    def _patterns(self) -> tuple[str, ...]:
        """The patterns, the most specific first."""
        return tuple(sorted(self.rules, key=lambda one: ("*" in one, one.count("*") - len(one))))


def _rule(pattern: str, settings: Any, others: IndexRule) -> IndexRule:
    if not isinstance(pattern, str) or not pattern or _NO_NAME.search(pattern):
        raise ValueError(f"a pattern of index names holds the characters of a name and *, got {pattern!r}")
    if not isinstance(settings, Mapping):
        raise TypeError(f"indexes {pattern!r}: settings by name are needed, got {settings!r}")
    with named(pattern):
        check_known(settings, [*OWN, *OPTIONS])
        own = {name: OWN[name].check(name, value) for name, value in settings.items() if name in OWN}
        if own.get("enabled") is True:
            del own["enabled"]  # as for all other indexes
        if (kind := settings.get("preset")) is not None:
            chosen = preset_of(kind)
            recipe = {} if chosen.recipe in (None, Recipe()) else {"recipe": chosen.recipe}
            own = {**recipe, **({"numbers": True} if chosen.numbers else {}), **own}
        changes = {name: value for name, value in settings.items() if name not in OWN}
        return replace(others, **own, options=collapse_options(others.options, **changes))


@contextmanager
def named(pattern: str) -> Iterator[None]:
    """Raise a TypeError or ValueError about the settings of a pattern with its name."""
    try:
        yield
    except (TypeError, ValueError) as error:
        wrong = TypeError if isinstance(error, TypeError) else ValueError  # an error of ours makes its own sentence
        raise wrong(f"indexes {pattern!r}: {error}") from None


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


def _meet(name: str, pattern: str) -> bool:
    """Return whether a name with `*` and a pattern match an index in common."""
    if "*" not in pattern:
        return fnmatchcase(pattern, name)
    (begin, end), (other, last) = ((one.partition("*")[0], one.rpartition("*")[2]) for one in (name, pattern))
    return (begin.startswith(other) or other.startswith(begin)) and (end.endswith(last) or last.endswith(end))
