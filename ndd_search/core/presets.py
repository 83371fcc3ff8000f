"""Recipes and options that go together: for common kinds of text, and those that a file holds.

    kind = ndd_search.preset("messages")
    actions = ndd_search.with_sketches(actions, "body", recipe=kind.recipe, numbers=kind.numbers)
    client = ndd_search.wrap(client, options=kind)

A preset equals the defaults where no other settings measured better. benchmarks/study/quality.md has the figures of
each preset on every labelled collection, and the command that reproduces them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ndd_search.core.options import CollapseOptions, collapse_options
from ndd_search.core.recipe import Recipe

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
        return self.options.numbers_must_match


Options = CollapseOptions | Preset


def chosen(
    options: Options | None, recipe: Recipe | str | None, changes: Mapping[str, Any]
) -> tuple[CollapseOptions, Recipe]:
    """Return the options of a call with its changes, and its recipe: the given one, else that of a preset.

    Logs a warning if the preset is meant for another recipe than the given one, because the same min_similarity means
    something else there. Raises TypeError or ValueError for what is none.
    """
    preset = options if isinstance(options, Preset) else Preset(CollapseOptions() if options is None else options)
    if not isinstance(preset.options, CollapseOptions):
        raise TypeError(f"options must be CollapseOptions or a preset, got {options!r}")
    used = Recipe.of(preset.recipe if recipe is None else recipe)
    if preset.recipe is not None and used != preset.recipe:
        message = "preset %s is meant for sketches of recipe %s, these are of %s: tune again, with ndd-search tune"
        log.warning(message, preset.name, preset.recipe.id, used.id)
    return collapse_options(preset.options, **changes), used


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
        options=CollapseOptions(numbers_must_match=True),
    ),
    Preset(
        name="messages",
        about="shingles of five characters, links dropped: messages have too few words for shingles of words",
        recipe=Recipe.characters(size=5, urls="drop"),
    ),
    Preset(
        recipe=Recipe(), name="chunks", about="the defaults: overlapping neighbours share too few words to be hidden"
    ),
)
PRESETS = {preset.name: preset for preset in _ALL}
