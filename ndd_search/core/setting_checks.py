"""Checks of settings. Each error names the setting, the values it allows, and the value given."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from operator import index
from typing import Any

_MEANS = {  # the name of an option for another word
    "latest": "newest", "earliest": "oldest", "largest": "highest", "biggest": "highest", "smallest": "lowest",
    "cheapest": "lowest",
}  # fmt: skip


def check_page(size: int, from_: int) -> None:
    """Raise TypeError unless both are integers (of any integer type), ValueError if one is below 0."""
    check_whole("size", size, 0)
    check_whole("from_", from_, 0)


def hits_in(name: str, given: Iterable[Any]) -> list[Any]:
    """Return hits as a new list. Raises TypeError for what is not several hits."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise TypeError(f"{name} must be a list of hits, got one {type(given).__name__}")
    return list(given)


def check_one_of(name: str, value: object, allowed: Collection[str]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}{nearest(value, allowed)}")


def nearest(given: object, words: Collection[str]) -> str:
    """Return " (did you mean WORD?)" with the word that means the same, or is most like; "" for one of them."""
    word = str(given).lower()
    means = _MEANS.get(word)
    near = [means] if means in words else get_close_matches(word, words, 1)
    return f" (did you mean {near[0]}?)" if near and near[0] != given else ""


def check_known(given: Iterable[str], names: Collection[str], elsewhere: Collection[str] = (), where: str = "") -> None:
    """Raise TypeError if a name of an option is none of `names`.

    elsewhere: names of options that belong to another place, which `where` tells.
    """
    for name in given:
        if name not in names:
            near = nearest(name, [*names, *elsewhere])
            near = near if nearest(name, names) == near else near.replace("?", f" {where}?")
            raise TypeError(f"unknown option {name!r}{near}: the options are {', '.join(names)}")


def check_whole(name: str, value: Any, least: int, most: int | None = None) -> None:
    if isinstance(value, bool) or not hasattr(value, "__index__"):  # isinstance with a protocol takes ten times as long
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    if index(value) < least or (most is not None and index(value) > most):
        raise ValueError(f"{name} must be {f'at least {least}' if most is None else f'{least}..{most}'}, got {value}")


def check_names(name: str, *fields: object) -> None:
    if wrong := [field for field in fields if not isinstance(field, str)]:
        raise TypeError(f"{name} must name fields, got {wrong[0]!r}")


def check_share(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number in 0..1, got {value!r}")
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be in 0..1, got {value}")
