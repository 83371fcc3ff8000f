"""Recipes and options by kind of text.

    kind = ndd_search.preset("messages")
    actions = ndd_search.with_sketches(actions, "body", recipe=kind.recipe, numbers=kind.numbers)
    client = ndd_search.wrap(client, recipe=kind.recipe, options=kind.options)

Where no other settings were found to be better than the defaults, a preset is the defaults: docs/quality.md has the
figures of each on every labelled collection, and the command that makes them again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ndd_search.collapse_options import CollapseOptions
from ndd_search.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class Preset:
    """Settings for one kind of text. about: what they are and why, in a sentence."""

    name: str
    about: str
    recipe: Recipe = field(default_factory=Recipe)
    options: CollapseOptions = field(default_factory=CollapseOptions)

    @property
    def numbers(self) -> bool:
        """Whether the numbers of the texts have to be stored beside the sketches."""
        return self.options.numbers_must_match


_ALL = (
    Preset(name="news", about="the defaults: agency copies keep most words, whatever a site puts around them"),
    Preset(name="web", about='the defaults; recipe.markup="html" where the field holds HTML'),
    Preset(
        name="products",
        about="the defaults, and the numbers must match: sizes and versions make another product",
        options=CollapseOptions(numbers_must_match=True),
    ),
    Preset(
        name="messages",
        about="runs of five characters without links: a few words are too few for runs of words",
        recipe=Recipe.characters(size=5, urls="drop"),
    ),
    Preset(name="chunks", about="the defaults: neighbours that repeat some words of each other stay apart"),
)
PRESETS = {preset.name: preset for preset in _ALL}


def preset(name: str) -> Preset:
    """The preset of a name. Raises ValueError for an unknown one."""
    if name not in PRESETS:
        raise ValueError(f"there is no preset {name!r}: there are {', '.join(PRESETS)}")
    return PRESETS[name]
