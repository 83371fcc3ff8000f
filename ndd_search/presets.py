"""Recipes and options for common kinds of text.

    kind = ndd_search.preset("messages")
    actions = ndd_search.with_sketches(actions, "body", recipe=kind.recipe, numbers=kind.numbers)
    client = ndd_search.wrap(client, recipe=kind.recipe, options=kind.options)

A preset equals the defaults where no other settings measured better. docs/quality.md has the figures of each preset on
every labelled collection, and the command that reproduces them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ndd_search.collapse_options import CollapseOptions
from ndd_search.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class Preset:
    """Settings for one kind of text. about: the settings and the reason, in a sentence."""

    name: str
    about: str
    recipe: Recipe = field(default_factory=Recipe)
    options: CollapseOptions = field(default_factory=CollapseOptions)

    @property
    def numbers(self) -> bool:
        """Return whether the options need the numbers of the texts stored beside the sketches."""
        return self.options.numbers_must_match


_ALL = (
    Preset(name="news", about="the defaults: copies of agency texts keep most words, whatever frame a site adds"),
    Preset(name="web", about='the defaults; recipe.markup="html" where the field holds HTML'),
    Preset(
        name="products",
        about="the defaults, and the numbers must match: another size or version is another product",
        options=CollapseOptions(numbers_must_match=True),
    ),
    Preset(
        name="messages",
        about="shingles of five characters, links dropped: messages have too few words for shingles of words",
        recipe=Recipe.characters(size=5, urls="drop"),
    ),
    Preset(name="chunks", about="the defaults: overlapping neighbours share too few words to be hidden"),
)
PRESETS = {preset.name: preset for preset in _ALL}


def preset(name: str) -> Preset:
    """Return the preset of a name. Raises ValueError for an unknown name."""
    if name not in PRESETS:
        raise ValueError(f"there is no preset {name!r}: there are {', '.join(PRESETS)}")
    return PRESETS[name]
