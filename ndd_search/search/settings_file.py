"""Presets in files: `ndd-search tune` writes one; wrap, an index folder and the command line read it.

recipe = "w3-k64-v4"      # of the sketches the settings were tuned for; optional

[collapse]                # CollapseOptions by name; the others keep their defaults
min_similarity = 0.62

[indexes."news-*"]        # other settings for the indexes of a pattern (see index_rules)
text = ["title", "body"]
window = 200

[tuned]                   # how the settings were found; informational only
answers = 24
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ndd_search.atomic_file import replace_file
from ndd_search.core.options import KINDS
from ndd_search.core.presets import PRESETS, Preset, collapse_options, preset_of
from ndd_search.core.setting_values import Kind, Text, check_known
from ndd_search.errors import InvalidSettings, importing
from ndd_search.search.index_rules import IndexRules, recipe_named

TABLES = ("collapse", "indexes")  # of every file of settings

_MAIN = "min_similarity"  # written even at its default: it is the setting that tune is run for
_HEAD = """\
# A preset of ndd_search: preset=ndd_search.preset("{name}") in wrap, collapse and Index.open,
# ndd-search search ... --preset {name}
"""


def preset(name: str | os.PathLike[str]) -> Preset:
    """Return the preset of a name, or the one that a file holds: a path that ends in .toml.

    Raises ValueError for an unknown name; OSError, or InvalidSettings naming the file and the problem.
    """
    if not isinstance(name, str | os.PathLike):
        raise TypeError(f"a preset has a name, or the path of a file, got {name!r}")
    is_file = str(name) not in PRESETS and Path(name).suffix.lower() == ".toml"
    return read_preset(name) if is_file else preset_of(str(name))


def read_preset(path: str | os.PathLike[str]) -> Preset:
    """Read the preset that a file holds. Raises OSError, or InvalidSettings naming the file and the problem."""
    file = Path(path)
    content = read_settings(file, {"recipe": Text()}, (*TABLES, "tuned"))
    changes, indexes = content.get("collapse", {}), content.get("indexes", {})
    with _named(file, "[collapse]: "):
        options = collapse_options(**changes)
    with _named(file):
        IndexRules.of(indexes, options)
        recipe = recipe_named(content["recipe"]) if "recipe" in content else None
    return Preset(options, recipe, content.get("tuned", {}), indexes, str(path))


def write_preset(path: str | os.PathLike[str], settings: Preset) -> None:
    """Write a file that read_preset reads. Defaults are left out.

    The file is replaced atomically. Raises ValueError for options that a file cannot hold, OSError.
    """
    if any(callable(criterion) for criterion in settings.options.keep):
        raise ValueError("keep holds a callable, which no file can hold: leave it out and give it in the program")
    main = {_MAIN: settings.options.min_similarity}
    value = {
        "recipe": settings.recipe and settings.recipe.id,
        "collapse": {name: {**settings.changes, **main}[name] for name in KINDS if name in settings.changes | main},
        "indexes": settings.indexes,
        "tuned": settings.tuned,
    }
    write_toml(Path(path), {name: one for name, one in value.items() if one}, _HEAD.format(name=Path(path).name))


def replaceable(file: Path) -> Preset:
    """Return the settings in a file, none if there is no file. Raises InvalidSettings for any other file, OSError."""
    if not file.exists() or not file.stat().st_size:
        return Preset()
    try:
        return read_preset(file)
    except InvalidSettings as error:
        problem = f"it exists and holds no settings that this version reads ({error.args[1]})"
        raise InvalidSettings(file, problem, "name another file, or remove this one") from None


def read_settings(file: Path, kinds: Mapping[str, Kind], tables: tuple[str, ...]) -> dict[str, Any]:
    """Return the content of a file of settings of some kinds and of tables, whose content is not looked at.

    Raises InvalidSettings for another name, or a value that is not of its kind, OSError.
    """
    content = read_toml(file)
    with _named(file):
        check_known(content, [*kinds, *tables], KINDS, "below [collapse]")
        for name, value in content.items():
            if name in kinds:
                kinds[name].check(name, value)
            elif not isinstance(value, Mapping):
                raise TypeError(f"{name} is {value!r}, not names and values: write them below [{name}]")
    return content


@contextmanager
def _named(file: Path, about: str = "") -> Iterator[None]:
    """Raise what settings are refused with as InvalidSettings. about: which part of the file they are in."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise InvalidSettings(file, f"{about}{error}", "correct it") from None


def read_toml(file: Path) -> dict[str, Any]:
    """Return the names and values of a TOML file. Raises InvalidSettings, OSError."""
    try:
        return tomllib.loads(file.read_text("utf-8-sig"))  # editors on Windows write the mark
    except (ValueError, RecursionError) as error:
        raise InvalidSettings(file, f"it is not valid TOML: {error}", "correct it, or write it anew") from None


def check_toml(file: Path) -> None:
    """Raise ValueError for a name that says that a file holds something other than TOML."""
    if file.suffix.lower() != ".toml":
        raise ValueError(f"{file}: settings are read from .toml files: give it such a name")


def write_toml(file: Path, content: Mapping[str, Any], head: str) -> None:
    """Replace a file by names and values as TOML. head: comments at its beginning."""
    with importing("tomli_w", "writing settings", "tomli-w", "cli"):
        import tomli_w
    replace_file(file, head + tomli_w.dumps(content).encode("utf-8", "replace").decode())
