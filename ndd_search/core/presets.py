"""Recipes and options that go together: for common kinds of text, and those that a file holds.

    client = ndd_search.wrap(client, indexes={"posts-*": {"text": ["body"], "preset": "messages"}})
    page = ndd_search.collapse(posts, preset="messages", size=20)

A preset changes only the options, and the recipe, for which other values than the defaults measured better.
`python -m benchmarks.study FOLDER... --presets` measures each preset on labelled collections.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, TypedDict

from ndd_search.core.immutable import cached_property
from ndd_search.core.options import KINDS, CollapseOptions, Keep, Members, Mode, Total
from ndd_search.core.recipe import Recipe
from ndd_search.core.setting_values import Kind, check_known, nearest

log = logging.getLogger("ndd_search")


@dataclass(frozen=True)
class Preset:
    """A recipe, and how pages of its sketches are collapsed.

    recipe:  of the sketches; None in a file that names none: any.
    indexes: other settings for the indexes of a pattern; wrapped clients and the proxy use them.
    tuned:   how the settings of a file were found: names and plain values, informational only.
    name:    of the preset, or of its file. about: the settings and the reason, in a sentence.
    """

    options: CollapseOptions = field(default_factory=CollapseOptions)
    recipe: Recipe | None = None
    tuned: Mapping[str, Any] = field(default_factory=dict)
    indexes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    name: str = field(default="", compare=False)
    about: str = field(default="", compare=False)

    @property
    def numbers(self) -> bool:
        """Return whether the options need the numbers of the texts stored beside the sketches."""
        return self.options.same_numbers

    @cached_property
    def changes(self) -> dict[str, Any]:
        """The options that differ from the defaults, by name."""
        values = {name: getattr(self.options, name) for name in KINDS}
        return {name: value for name, value in values.items() if value != getattr(_DEFAULTS, name)}


class CollapseChanges(TypedDict, total=False):
    """CollapseOptions as keyword arguments, for type checkers."""

    min_similarity: float | str
    mode: Mode
    window: int
    max_window: int
    max_per_group: int
    members: Members
    keep: Sequence[Keep]
    guards: Sequence[str]
    group_by: Sequence[str]
    origins: Sequence[str]
    max_per: Sequence[str]
    total: Total
    facets: Sequence[str]
    preset: str | Preset


def collapse_options(base: CollapseOptions | None = None, **changes: Any) -> CollapseOptions:
    """Return `base` (the defaults when None) with what a preset sets, then with single options changed.

    preset: its name, or a Preset. Raises TypeError or ValueError for an unknown option or preset.
    """
    if not changes:
        return base or _DEFAULTS
    check_known(changes, OPTIONS)
    if (given := changes.pop("preset", None)) is not None:
        changes = {**preset_of(given).changes, **changes}
    base = base or _DEFAULTS
    parts = [part for value in changes.values() for part in (value if type(value) is tuple else (value,))]
    plain = {str, bool, int, float}.issuperset(map(type, parts))
    # Searches repeat a few combinations. Callers could change what a callable of these options holds.
    if plain and not any(map(callable, base.keep)):
        return _changed(base, tuple((name, type(value), value) for name, value in changes.items()))
    return replace(base, **changes)


_DEFAULTS, _NONE = CollapseOptions(), Preset()  # made once: each checks all its options


@lru_cache(1024)
def _changed(base: CollapseOptions, changes: tuple[tuple[str, type, Any], ...]) -> CollapseOptions:
    return replace(base, **{name: value for name, _, value in changes})


def chosen(
    options: CollapseOptions | None, recipe: Recipe | str | None, changes: Mapping[str, Any]
) -> tuple[CollapseOptions, Recipe]:
    """Return the options of a call with its changes, and its recipe: the given one, else that of a preset in `changes`.

    Logs a warning if the preset is meant for another recipe than the given one, because the same min_similarity means
    something else there. Raises TypeError or ValueError for what is none.
    """
    if options is not None and not isinstance(options, CollapseOptions):
        raise TypeError(f'options must be CollapseOptions, got {options!r}: a preset is given as preset="messages"')
    preset = preset_of(given) if (given := changes.get("preset")) is not None else _NONE
    used = Recipe.of(preset.recipe if recipe is None else recipe)
    if told := unfit_preset(changes, used):
        log.warning(told)
    return collapse_options(options, **changes), used


def unfit_preset(changes: Mapping[str, Any], recipe: Recipe) -> str:
    """Return a warning if a preset in `changes` is meant for sketches of another recipe than the given, else ""."""
    preset = preset_of(given) if (given := changes.get("preset")) is not None else _NONE
    if preset.recipe in (None, recipe):
        return ""
    return (
        f"preset {preset.name} is meant for sketches of recipe {preset.recipe.id}, these are of {recipe.id}: use that "
        "recipe, or tune again"
    )


def preset_of(given: str | Preset) -> Preset:
    """Return the preset of a name; a preset is returned as it is. Raises TypeError, ValueError for an unknown name."""
    if isinstance(given, Preset):
        return given
    if not isinstance(given, str):
        raise TypeError(f"a preset has a name, or is read from a file by ndd_search.preset, got {given!r}")
    if given not in PRESETS:
        known = f"there are {', '.join(PRESETS)}, and files that end in .toml, read by ndd_search.preset"
        raise ValueError(f"there is no preset {given!r}{nearest(given, PRESETS)}: {known}")
    return PRESETS[given]


class _OfPreset(Kind):
    """A preset."""

    def check(self, name: str, value: Any) -> Preset:
        return preset_of(value)

    def __str__(self) -> str:
        return f"a name ({', '.join(f'`{name}`' for name in PRESETS)}), or what `ndd.preset(FILE)` returns"


OPTIONS: dict[str, Kind] = {**KINDS, "preset": _OfPreset()}  # what CollapseChanges declares for type checkers

_ALL = (
    Preset(
        recipe=Recipe(),
        name="news",
        about="the defaults: copies of a brief or a page are joined whatever their number, dateline, source or frame",
    ),
    Preset(recipe=Recipe(), name="web", about='the defaults; recipe.markup="html" where the field holds HTML'),
    Preset(
        name="products",
        about="the defaults, and the numbers must match: another size or version is another product",
        recipe=Recipe(),
        options=CollapseOptions(guards=("numbers",)),
    ),
    Preset(
        name="messages",
        about="shingles of five characters, links dropped, and a bar of 0.45: a few words of a message may differ",
        recipe=Recipe.characters(size=5, urls="drop"),
        options=CollapseOptions(min_similarity=0.45),
    ),
)
PRESETS = {preset.name: preset for preset in _ALL}
