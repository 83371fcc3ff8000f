"""The values that settings and options take: their kinds, how they are read, and how they are checked.

A setting is declared once, with its kind: `window: int = setting(Whole(1), 100)`. The kind checks a value wherever it
is given, and reads it from a word of the command line or the environment. A class of settings is `checked` when it is
created. Each error names the setting, the values it allows, and the value given.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import wraps
from inspect import signature
from itertools import islice
from operator import index
from typing import Any, TypeVar

Settings = TypeVar("Settings")

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
DURATION = r"\d+(?:\.\d+)?(?:ms|s|m|h|d|w)"
_ROWS = 'frame.to_dict("records") of pandas, frame.to_dicts() of polars, table.to_pylist() of pyarrow'
_YES_AND_NO = {"true": True, "yes": True, "1": True, "on": True, "false": False, "no": False, "0": False, "off": False}

_MEANS = {  # the name of an option for another word
    "latest": "newest", "earliest": "oldest", "largest": "highest", "biggest": "highest", "smallest": "lowest",
    "cheapest": "lowest", "threshold": "min_similarity", "top_n": "size", "top_k": "size",
}  # fmt: skip


class Kind:
    """One kind of values."""

    def check(self, name: str, value: Any) -> Any:
        """Return a value as it is kept. Raises TypeError or ValueError, which name the setting."""
        raise NotImplementedError

    def read(self, name: str, text: str) -> Any:
        """Return the value that a word stands for. Raises TypeError or ValueError, which name the setting."""
        return self.check(name, text)

    def __str__(self) -> str:
        """Return the values in a few words, for the reference."""
        return (type(self).__doc__ or "").rstrip(".")


@dataclass(frozen=True)
class Text(Kind):
    """A text. pattern: of all of it, "" for any text. example: one that it matches."""

    pattern: str = ""
    example: str = ""

    def check(self, name: str, value: Any) -> str:
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a text, got {value!r}")
        if self.pattern and not re.fullmatch(self.pattern, value):
            raise ValueError(f'{name} must be like "{self.example}", got {value!r}')
        return value

    def __str__(self) -> str:
        return f'a text like "{self.example}"' if self.example else "text"


@dataclass(frozen=True)
class OneOf(Kind):
    """One of some words."""

    words: tuple[str, ...]

    def check(self, name: str, value: Any) -> Any:
        check_one_of(name, value, self.words)
        return value

    def __str__(self) -> str:
        return ", ".join(f"`{word}`" for word in self.words)


class YesNo(Kind):
    """true, false."""

    def check(self, name: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise TypeError(f"{name} must be true or false, got {value!r}")
        return value

    def read(self, name: str, text: str) -> bool:
        if (word := text.strip().lower()) not in _YES_AND_NO:
            raise ValueError(f"{name} must be true or false, got {text!r}")
        return _YES_AND_NO[word]


@dataclass(frozen=True)
class Whole(Kind):
    """A whole number of at least `least`, and at most `most`."""

    least: int
    most: int | None = None

    def check(self, name: str, value: Any) -> int:
        check_whole(name, value, self.least, self.most)
        return index(value)

    def __str__(self) -> str:
        return f"a whole number in {self.least}..{'' if self.most is None else self.most}"

    def read(self, name: str, text: str) -> Any:
        return self.check(name, _number(int, text))


class Seconds(Kind):
    """seconds, above 0; None for no limit."""

    def check(self, name: str, value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError(f"{name} must be a number of seconds, got {value!r}")
        if not value > 0:
            raise ValueError(f"{name} must be above 0 seconds, got {value}")
        return value

    def read(self, name: str, text: str) -> Any:
        return self.check(name, _number(float, text))


@dataclass(frozen=True)
class Several(Kind):
    """A list of values of one kind, kept as a tuple. one: whether one value may stand for a list of it.

    most: values there may be, None for any number.
    """

    kind: Kind
    one: bool = False
    most: int | None = None

    def check(self, name: str, value: Any) -> tuple[Any, ...]:
        if self.one and isinstance(value, str):
            value = (value,)
        if isinstance(value, str | Mapping) or not isinstance(value, Collection):
            remedy = f": write [{value!r}]" if isinstance(value, str) else ""
            raise TypeError(f"{name} must be a list, got {value!r}{remedy}")
        if self.most is not None and len(value) > self.most:
            raise ValueError(f"{name} must be at most {self.most} values, got {len(value)}")
        return tuple(self.kind.check(name, each) for each in value)

    def read(self, name: str, text: str) -> tuple[Any, ...]:
        return tuple(self.kind.read(name, word.strip()) for word in text.split(","))

    def __str__(self) -> str:
        return f"{self.kind}, or a list of these" if self.one else f"a list of {self.kind}"


class Field(Kind):
    """a field, dotted for one inside another."""

    def check(self, name: str, value: Any) -> str:
        if not isinstance(value, str):
            raise TypeError(f"{name} must name fields, got {value!r}")
        if not value:
            raise ValueError(f"{name} must name fields, and a field has no empty name")
        return value


_FIELDS = Several(Field(), one=True)


def setting(kind: Kind, default: Any) -> Any:
    """Return a field of a dataclass whose values are of a kind."""
    return field(default=default, metadata={"kind": kind})


def checked(settings: type[Settings]) -> type[Settings]:
    """Let a dataclass check what it is created with: names first, then values, then what its `__post_init__` does.

    A TypeError for an unknown name tells the nearest one. Each value is kept as its kind keeps it, but for the default.
    """
    create, check = settings.__init__, getattr(settings, "__post_init__", None)
    names = [name for name in signature(create).parameters if name != "self"]
    declared = [one for one in fields(settings) if "kind" in one.metadata]  # type: ignore[arg-type]

    def keep_values(self: Any) -> None:
        for one in declared:
            if (value := getattr(self, one.name)) is not one.default:
                object.__setattr__(self, one.name, one.metadata["kind"].check(one.name, value))

    @wraps(create)
    def created(self: Any, **given: Any) -> None:
        check_known(given, names)
        create(self, **given)
        if check is None:
            keep_values(self)

    def post_init(self: Any, *arguments: Any) -> None:
        keep_values(self)
        check(self, *arguments)  # type: ignore[misc]

    settings.__init__ = created  # type: ignore[method-assign]
    if check is not None:
        settings.__post_init__ = post_init  # type: ignore[attr-defined]
    return settings


def kinds_of(settings: Any) -> dict[str, Kind]:
    """Return the kind of each setting of a dataclass, by name."""
    return {each.name: each.metadata["kind"] for each in fields(settings) if "kind" in each.metadata}


def read_named(name: str, text: str, kinds: Mapping[str, Kind]) -> Any:
    """Return what a text stands for as the value of a setting. Raises ValueError, also for an unknown name."""
    try:
        check_known([name], kinds)
        return kinds[name].read(name, text)
    except TypeError as error:
        raise ValueError(str(error)) from None


def seconds_of(duration: str) -> float:
    """Return the seconds of a text like DURATION."""
    number = duration.rstrip("mshdw")
    return float(number) * _SECONDS[duration[len(number) :]]


def _number(kind: type[int | float], text: str) -> Any:
    """Return the number that a text is, the text itself if it is none: the check then names it."""
    try:
        return kind(text)
    except ValueError:
        return text


def check_page(size: int, from_: int) -> None:
    """Raise TypeError unless both are integers (of any integer type), ValueError if one is below 0."""
    check_whole("size", size, 0)
    check_whole("from_", from_, 0)


def hits_in(name: str, given: Any, most: int | None = None) -> list[Any]:
    """Return hits as a new list, at most `most` of them. Raises TypeError for what is not several hits."""
    is_answer = isinstance(getattr(given, "body", given), Mapping)
    check_no_table(name, given)
    if is_answer or isinstance(given, str | bytes) or not isinstance(given, Iterable):
        remedy = ': of an engine\'s answer pass answer["hits"]["hits"]' if is_answer else ""
        raise TypeError(f"{name} must be a list of hits, got one {type(given).__name__}{remedy}")
    return list(islice(given, most))


def check_no_table(name: str, given: Any) -> None:
    """Raise TypeError for a table, which would be read by columns."""
    if not callable(getattr(given, "columns", callable)):
        raise TypeError(f"{name} must be a list, got one {type(given).__name__}: pass its rows, as {_ROWS}")


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
            near = f" (it belongs {where})" if name in elsewhere else nearest(name, [*names, *elsewhere])
            near = near if nearest(name, names) == near else near.replace("?", f" {where}?")
            raise TypeError(f"unknown option {name!r}{near}: the options are {', '.join(names)}")


def check_whole(name: str, value: Any, least: int, most: int | None = None) -> None:
    if isinstance(value, bool) or not hasattr(value, "__index__"):  # isinstance with a protocol takes ten times as long
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    if index(value) < least or (most is not None and index(value) > most):
        raise ValueError(f"{name} must be {f'at least {least}' if most is None else f'{least}..{most}'}, got {value}")


def fields_in(name: str, given: object) -> tuple[str, ...]:
    """Return fields that are given as one name or several. Raises TypeError or ValueError for anything else."""
    return _FIELDS.check(name, given)


def check_share(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number in 0..1, got {value!r}")
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be in 0..1, got {value}")
