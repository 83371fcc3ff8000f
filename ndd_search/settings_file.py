"""Settings in a file: what `ndd-search tune` writes, and what wrap, the embedded index and the command line read.

    version = 1
    recipe = "w3-k64-v1"      # whose sketches it is meant for; may be left out

    [collapse]                # CollapseOptions by name; what is not there keeps its default
    min_similarity = 0.62

    [tuned]                   # how it came about, for people; nothing reads it
    answers = 24

The same in JSON, if the name ends in .json. This is the only module that knows the format.
"""

from __future__ import annotations

import json
import logging
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ndd_search.collapse_options import CollapseOptions, collapse_options
from ndd_search.errors import InvalidSettings
from ndd_search.recipe import Recipe

VERSION = 1

log = logging.getLogger("ndd_search")

_MAIN = "min_similarity"  # what a file of settings is about, written even at its default
_HEAD = """\
# Settings of ndd_search: ndd_search.wrap(client, settings="{name}"), Index.open(folder, settings="{name}"),
# ndd-search search ... --settings {name}
"""


@dataclass(frozen=True)
class StoredSettings:
    """What a file says.

    options: how pages are collapsed. recipe: whose sketches they were tuned for, None for any.
    tuned:   how they came about: names and plain values, for people.
    """

    options: CollapseOptions = field(default_factory=CollapseOptions)
    recipe: Recipe | None = None
    tuned: Mapping[str, Any] = field(default_factory=dict)


def read_settings(path: str | os.PathLike[str], recipe: Recipe | None = None) -> StoredSettings:
    """Read a file.

    recipe: of the sketches that the settings are about to be used with; if it is not the one they were tuned for, a
    warning is logged: the same figure means something else there.
    Raises OSError, or InvalidSettings naming the file and what is wrong in it.
    """
    file = Path(path)
    found = _parsed(file)
    version = found.get("version")
    if isinstance(version, int) and version > VERSION:
        what = f"it was written by a newer version (settings version {version}, this one reads {VERSION})"
        raise InvalidSettings(file, what, "update ndd-search")
    if version != VERSION or isinstance(version, bool):
        raise InvalidSettings(file, f"its version is {version!r}", f"begin it with the line: version = {VERSION}")
    known = ("version", "recipe", "collapse", "tuned")
    if unknown := [name for name in found if name not in known]:
        raise InvalidSettings(file, f"it has an unknown key {unknown[0]!r}", f"the keys are {', '.join(known)}")
    stored = StoredSettings(_options(file, found), _recipe(file, found), _table(file, found, "tuned"))
    if recipe is not None and stored.recipe is not None and stored.recipe != recipe:
        message = "%s was tuned for sketches of recipe %s, these are of %s: tune again, with ndd-search tune"
        log.warning(message, file, stored.recipe.id, recipe.id)
    return stored


def write_settings(path: str | os.PathLike[str], settings: StoredSettings) -> None:
    """Write a file that read_settings reads: TOML, or JSON if its name ends in .json; defaults are left out.

    Replaces an older file at once, or not at all. Raises ValueError for options that no file can hold, OSError.
    """
    file = Path(path)
    if any(callable(wish) for wish in settings.options.keep):
        raise ValueError("keep holds a callable, which no file can hold: leave it out and give it in the program")
    given = {one.name: (getattr(settings.options, one.name), one.default) for one in fields(CollapseOptions)}
    value = {
        "version": VERSION,
        **({"recipe": settings.recipe.id} if settings.recipe else {}),
        "collapse": {name: value for name, (value, default) in given.items() if value != default or name == _MAIN},
        **({"tuned": dict(settings.tuned)} if settings.tuned else {}),
    }
    as_json = file.suffix.lower() == ".json"
    text = json.dumps(value, indent=2) + "\n" if as_json else _HEAD.format(name=file.name) + _toml(value)
    fresh = file.with_name(file.name + ".new")
    fresh.write_text(text, "utf-8")
    fresh.replace(file)


def _parsed(file: Path) -> dict[str, Any]:
    try:
        text = file.read_text("utf-8")
        found = json.loads(text) if file.suffix.lower() == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        kind = "JSON" if file.suffix.lower() == ".json" else "TOML"
        raise InvalidSettings(file, f"it is no {kind}: {error}", "correct it, or write it anew") from None
    if not isinstance(found, dict):
        raise InvalidSettings(file, f"it holds a {type(found).__name__}, not names and values", "write it anew")
    return found


def _options(file: Path, found: Mapping[str, Any]) -> CollapseOptions:
    changes = _table(file, found, "collapse")
    try:
        return collapse_options(**changes)
    except (TypeError, ValueError) as error:
        raise InvalidSettings(file, f"[collapse]: {error}", "correct it") from None


def _recipe(file: Path, found: Mapping[str, Any]) -> Recipe | None:
    if "recipe" not in found:
        return None
    try:
        return Recipe.parse(found["recipe"])
    except (TypeError, ValueError) as error:
        raise InvalidSettings(file, f"recipe: {error}", "correct it") from None


def _table(file: Path, found: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = found.get(name, {})
    if not isinstance(value, dict):
        raise InvalidSettings(file, f"{name} is {value!r}, not names and values", f"write them below [{name}]")
    return value


def _toml(table: Mapping[str, Any]) -> str:
    """Plain values first, then a section for each table; deeper ones do not occur."""
    lines = [f"{name} = {_toml_value(value)}" for name, value in table.items() if not isinstance(value, Mapping)]
    parts = ["\n".join(lines) + "\n"]
    parts += [f"\n[{name}]\n{_toml(value)}" for name, value in table.items() if isinstance(value, Mapping)]
    return "".join(parts)


def _toml_value(value: Any) -> str:
    """Texts, numbers, booleans and lists of them, which JSON writes as TOML wants them, but for three things."""
    text = repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)  # inf, not Infinity
    return text.encode("utf-8", "replace").decode().replace("\x7f", "\\u007f")
