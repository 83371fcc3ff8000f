"""The sketch as a stored field: the only module that knows the wire format.

A document carries one object, by default under the name "ndd":

    "ndd": {"sketch": [17, 4711, ...], "recipe": "w3-k64-v1"}

`sketch` is an `integer` field with doc values and no index, `recipe` a `keyword`. A search reads both as doc values.
Three more are there only where they are asked for: `ndd.numbers`, the numbers of the text as one (see `numbers`),
mapped like a sketch; `ndd.duplicate_of`, the id of a document that was there first; and `ndd_keys`, the smallest values
as indexed terms, by which near-duplicates are found in a whole index. The keys stand beside the object, not in it: they
have no doc values, so a search for the doc values of `ndd.*` would fail on them.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

import numpy as np

from ndd_search.recipe import Recipe
from ndd_search.sketching.sketches import VALUES, Sketch

STALE = "stale"  # stands where the recipe id does, when the text has changed without the sketch; no recipe has this id

_KEY = re.compile("[0-9a-f]{8}")
_RECIPE = re.compile(r"[wcls]\d+-k\d+-v\d+(-\w+)*", re.ASCII)  # an id of any version of this library


@dataclass(frozen=True)
class SketchField:
    """Where in a document the sketch is. name: of the object; another name holds sketches of a second recipe."""

    name: str = "ndd"

    def __post_init__(self) -> None:
        if not self.name or not isinstance(self.name, str):
            raise ValueError(f"the object that holds the sketch needs a name, got {self.name!r}")

    @property
    def sketch(self) -> str:
        """The path of the values."""
        return f"{self.name}.sketch"

    @property
    def recipe(self) -> str:
        """The path of the recipe id."""
        return f"{self.name}.recipe"

    @property
    def numbers(self) -> str:
        """The path of the numbers of the text."""
        return f"{self.name}.numbers"

    @property
    def duplicate_of(self) -> str:
        """The path of the id of an earlier near-duplicate."""
        return f"{self.name}.duplicate_of"

    @property
    def keys(self) -> str:
        """The path of the keys."""
        return f"{self.name}_keys"

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of all that is stored."""
        return self.sketch, self.recipe, self.numbers, self.duplicate_of, self.keys

    def encode(self, sketch: Sketch, recipe: Recipe, numbers: int | None = None) -> dict[str, Any]:
        """What is stored under `name`, in plain lists and ints for any JSON writer. numbers: None stores none."""
        return {"sketch": sketch.tolist(), "recipe": recipe.id, **({} if numbers is None else {"numbers": numbers})}

    def parts(self, sketch: Sketch | None, recipe: Recipe, keys: int = 0, numbers: int | None = None) -> dict[str, Any]:
        """Everything a document gets, by top-level field: the object, and `keys` keys unless that is 0.

        None for a sketch says that the one which is stored no longer fits the text: readers take it as foreign, and a
        backfill makes a new one.
        """
        stored: dict[str, Any] = {"sketch": [], "recipe": STALE}
        if sketch is not None:
            stored = self.encode(sketch, recipe, numbers)
        return {self.name: stored, **({self.keys: keys_of(stored["sketch"], keys)} if keys else {})}

    def decode(self, fields: Sequence[Mapping[str, Any]], recipe: Recipe) -> list[Sketch | str]:
        """The sketch of each hit out of its doc values ({path: [values]}), or why there is none to compare.

        "missing": nothing stored, "empty": no values, "foreign": of another recipe, "malformed": not ascending
        distinct whole numbers in 0..2**31-1, or more than the recipe's k.
        """
        sketch, made_by, ours = self.sketch, self.recipe, [recipe.id]
        given = [one.get(sketch) for one in fields]
        lacking = [
            _lacking(values, one.get(made_by), ours, recipe.k) for values, one in zip(given, fields, strict=True)
        ]
        stored = [[] if reason or values is None else values for values, reason in zip(given, lacking, strict=True)]
        try:
            values = np.frombuffer(b"".join([_packer(len(one))(*one) for one in stored]), np.int32)
        except struct.error:  # somebody's value is no 32-bit number: take each hit by itself
            return [reason or _decoded(one) for one, reason in zip(stored, lacking, strict=True)]
        ends = np.cumsum(np.fromiter(map(len, stored), np.int64, len(stored)))
        wrong = np.concatenate((values[:1] < 0, values[1:] <= values[:-1]))  # at the first value of a hit: below 0
        first = ends[(ends > 0) & (ends < len(values))]
        wrong[first] = values[first] < 0
        some = bool(wrong.any())
        return [
            reason or ("malformed" if some and wrong[end - len(one) : end].any() else values[end - len(one) : end])
            for reason, one, end in zip(lacking, stored, ends.tolist(), strict=True)
        ]

    def numbers_in(self, fields: Mapping[str, Any]) -> int | None:
        """The stored numbers of a hit out of its doc values, None where there are none, or none that we stored."""
        match fields.get(self.numbers):
            case [int(number)] if 0 <= number < VALUES:
                return int(number)
        return None


def is_sketch_object(value: Any) -> bool:
    """Whether what a document has under the object's name was stored by this library, and is not a user's own value.

    It was, when it names a recipe (or STALE) and its sketch is a list of whole numbers. An engine that rebuilds
    `_source` out of doc values gives a list of one member as that member, and no empty list.
    """
    if not isinstance(value, Mapping) or not isinstance(made_by := value.get("recipe"), str):
        return False
    return _is_recipe(made_by) and all(type(one) is int for one in listed(value.get("sketch")))


def are_keys(value: Any) -> bool:
    """Whether what a document has under the name of the keys was stored by this library: 8 hexadecimal digits each."""
    return all(isinstance(one, str) and _KEY.fullmatch(one) for one in listed(value))


def listed(value: Any) -> list[Any]:
    """A value of a document as a list: engines take one value and a list of one for the same, None for no value."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def keys_of(values: Iterable[int], count: int) -> list[str]:
    """The `count` smallest of ascending values, as terms: 8 hexadecimal digits each."""
    return [format(value, "08x") for value in islice(values, count)]


def _is_recipe(value: Any) -> bool:
    """Whether a value is the id of a recipe or STALE, and no value of a user's own."""
    return isinstance(value, str) and (value == STALE or _RECIPE.fullmatch(value) is not None)


def _lacking(stored: Any, made_by: Any, recipe: list[str], k: int) -> str:
    if stored is None and not any(map(_is_recipe, listed(made_by))):
        return "missing"
    if made_by != recipe:
        return "foreign"
    if stored is None:
        return "empty"
    return "" if isinstance(stored, list) and 0 < len(stored) <= k else "malformed"


@cache
def _packer(length: int) -> Callable[..., bytes]:
    """Whole numbers of 32 bits to bytes, four times as fast as array or np.array; raises struct.error for others."""
    return struct.Struct(f"{length}i").pack


def _decoded(stored: list[Any]) -> Sketch | str:
    try:
        values = np.frombuffer(_packer(len(stored))(*stored), np.int32)
    except struct.error:
        return "malformed"
    return "malformed" if values[0] < 0 or (np.diff(values) <= 0).any() else values
