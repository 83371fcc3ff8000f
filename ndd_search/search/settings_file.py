"""Presets in files: `ndd-search tune` writes one; wrap, an index folder and the command line read it.

    version = 1
    recipe = "w3-k64-v4"      # of the sketches the settings were tuned for; optional

    [collapse]                # CollapseOptions by name; the others keep their defaults
    min_similarity = 0.62

    [indexes."news-*"]        # other settings for the indexes of a pattern (see index_rules)
    text = ["title", "body"]
    window = 200

    [tuned]                   # how the settings were found; informational only
    answers = 24

A name that ends in .json selects the same structure in JSON. Only this module knows the format.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from ndd_search.atomic_file import replace_file
from ndd_search.core.options import KINDS, CollapseOptions
from ndd_search.core.presets import PRESETS, Preset, collapse_options, preset_of
from ndd_search.core.setting_values import check_known
from ndd_search.errors import InvalidSettings
from ndd_search.search.index_rules import IndexRules, recipe_named

VERSION = 1

_MAIN = "min_similarity"  # written even at its default: it is the setting that tune is run for
_HEAD = """\
# A preset of ndd_search: preset=ndd_search.preset("{name}") in wrap, collapse and Index.open,
# ndd-search search ... --preset {name}
"""


def preset(name: str | os.PathLike[str]) -> Preset:
    """Return the preset of a name, or the one that a file holds: a path that ends in .toml or .json.

    Raises ValueError for an unknown name; OSError, or InvalidSettings naming the file and the problem.
    """
    if not isinstance(name, str | os.PathLike):
        raise TypeError(f"a preset has a name, or the path of a file, got {name!r}")
    is_file = str(name) not in PRESETS and Path(name).suffix.lower() in (".toml", ".json")
    return read_preset(name) if is_file else preset_of(str(name))


def read_preset(path: str | os.PathLike[str]) -> Preset:
    """Read the preset that a file holds. Raises OSError, or InvalidSettings naming the file and the problem."""
    file = Path(path)
    content = parse_file(file)
    version = content.get("version")
    if isinstance(version, int) and version > VERSION:
        what = f"it was written by a newer version (settings version {version}, this one reads {VERSION})"
        raise InvalidSettings(file, what, "update ndd-search")
    if version != VERSION or isinstance(version, bool):
        raise InvalidSettings(file, f"its version is {version!r}", f"begin it with the line: version = {VERSION}")
    with _named(file):
        check_known(content, ("version", "recipe", "collapse", "indexes", "tuned"), KINDS, "below [collapse]")
    changes, indexes = _table(file, content, "collapse"), _table(file, content, "indexes")
    with _named(file, "[collapse]: "):
        options = collapse_options(**changes)
    with _named(file):
        IndexRules.of(indexes, options)
    with _named(file, "recipe: "):
        recipe = recipe_named(content["recipe"]) if "recipe" in content else None
    return Preset(options, recipe, _table(file, content, "tuned"), indexes, str(path))


@contextmanager
def _named(file: Path, about: str = "") -> Iterator[None]:
    """Raise what settings are refused with as InvalidSettings. about: which part of the file they are in."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise InvalidSettings(file, f"{about}{error}", "correct it") from None


def write_preset(path: str | os.PathLike[str], settings: Preset) -> None:
    """Write a file that read_preset reads: TOML, or JSON if its name ends in .json. Defaults are left out.

    The file is replaced atomically. Raises ValueError for options that a file cannot hold, OSError.
    """
    file = Path(path)
    if any(callable(criterion) for criterion in settings.options.keep):
        raise ValueError("keep holds a callable, which no file can hold: leave it out and give it in the program")
    options = {
        option.name: (getattr(settings.options, option.name), getattr(CollapseOptions(), option.name))
        for option in fields(CollapseOptions)
    }
    value = {
        "version": VERSION,
        **({"recipe": settings.recipe.id} if settings.recipe else {}),
        "collapse": {name: value for name, (value, default) in options.items() if value != default or name == _MAIN},
        **({"indexes": {name: dict(rule) for name, rule in settings.indexes.items()}} if settings.indexes else {}),
        **({"tuned": dict(settings.tuned)} if settings.tuned else {}),
    }
    as_json = file.suffix.lower() == ".json"
    text = json.dumps(value, indent=2) + "\n" if as_json else _HEAD.format(name=file.name) + to_toml(value)
    replace_file(file, text)


def check_replaceable(file: Path) -> None:
    """Raise InvalidSettings if a file exists and holds something other than settings. Raises OSError."""
    if not file.exists() or not file.stat().st_size:
        return
    try:
        read_preset(file)
    except InvalidSettings as error:
        problem = f"it exists and holds no settings that this version reads ({error.args[1]})"
        raise InvalidSettings(file, problem, "name another file, or remove this one") from None


def parse_file(file: Path) -> dict[str, Any]:
    """Return the names and values of a TOML or JSON file. Raises InvalidSettings, OSError."""
    kind = "JSON" if file.suffix.lower() == ".json" else "TOML"
    try:
        text = file.read_text("utf-8-sig")  # editors on Windows write the mark
        content = json.loads(text, object_pairs_hook=_members) if kind == "JSON" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidSettings(file, f"it is not valid {kind}: {error}", "correct it, or write it anew") from None
    if not isinstance(content, dict):
        raise InvalidSettings(file, f"it holds a {type(content).__name__}, not names and values", "write it anew")
    return content


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of a JSON object. Raises ValueError for a name that stands there twice, as TOML does."""
    members = dict(pairs)
    if twice := [name for number, (name, _) in enumerate(pairs) if name in dict(pairs[:number])]:
        raise ValueError(f"an object names {twice[0]!r} twice")
    return members


def _table(file: Path, content: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = content.get(name, {})
    if not isinstance(value, dict):
        raise InvalidSettings(file, f"{name} is {value!r}, not names and values", f"write them below [{name}]")
    return value


def to_toml(table: Mapping[str, Any], path: str = "") -> str:
    """Return a table in TOML: plain values first, then a section for each table in it. path: of its own section."""
    plain = {name: value for name, value in table.items() if not isinstance(value, Mapping)}
    parts = [f"\n[{path}]\n"] if path and (plain or not table) else []
    parts += [f"{_toml_key(name)} = {_toml_value(value)}\n" for name, value in plain.items()]
    for name, value in table.items():
        if isinstance(value, Mapping):
            parts.append(to_toml(value, f"{path}.{_toml_key(name)}" if path else _toml_key(name)))
    return "".join(parts)


def _toml_key(name: str) -> str:
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else _toml_value(name)


def _toml_value(value: Any) -> str:
    """Return a text, number, boolean or list in TOML: as in JSON, except inf and nan, lone surrogates and DEL."""
    if value is None:
        raise ValueError("TOML has no null, which a rule holds: save to a file whose name ends in .json")
    text = repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)  # inf, not Infinity
    return text.encode("utf-8", "replace").decode().replace("\x7f", "\\u007f")
