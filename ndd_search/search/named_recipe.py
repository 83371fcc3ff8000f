"""A recipe named in a setting: its id, and for one with a key where the key is, as w3-k64-v4+env:NDD_KEY says.

A key itself is never part of a setting, which files, command lines and messages show.
"""

from __future__ import annotations

import os
from pathlib import Path

from ndd_search.core.recipe import Recipe


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
