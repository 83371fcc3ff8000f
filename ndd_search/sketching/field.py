"""The stored form of a sketch. Only this module knows the format.

A document carries one object, by default under the name "ndd":

    "ndd": {"sketch": [17, 4711, ...], "recipe": "w3-k64-v1"}

`sketch` is an `integer` field with doc values and no index, `recipe` a `keyword`. A search reads both as doc values.
Further fields are optional: `ndd.numbers`, the number signature of the text (see `text.numbers`), mapped like the
sketch; `ndd.duplicate_of`, the id of an earlier near-duplicate; `ndd.group`, equal in all documents of a group; and
`ndd_keys`, the smallest values as indexed terms, which find near-duplicates in a whole index. The keys are outside the
object because they have no doc values: a search for the doc values of `ndd.*` would fail on them.
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
from ndd_search.sketching.sketches import VALUES, Lack, Sketch

# Names under which the object says what the document is a copy of. They belong to one text: `corpus mark` writes the
# last three.
MARKS = ("duplicate_of", "group", "group_size", "leads")
STALE = "stale"  # stored as the recipe id if the text has changed and the sketch has not; no recipe has this id

_KEY = re.compile("[0-9a-f]{8}")
_RECIPE = re.compile(r"[wcls]\d+-k\d+-v\d+(-\w+)*", re.ASCII)  # an id of any version of this library


@dataclass(frozen=True)
class SketchField:
    """The place of the sketch in a document. name: of the object; sketches of a second recipe use another name."""

    name: str = "ndd"

    def __post_init__(self) -> None:
        if not self.name or not isinstance(self.name, str):
            raise ValueError(f"the object that holds the sketch needs a name, got {self.name!r}")

    @property
    def sketch(self) -> str:
        """Return the path of the values."""
        return f"{self.name}.sketch"

    @property
    def recipe(self) -> str:
        """Return the path of the recipe id."""
        return f"{self.name}.recipe"

    @property
    def numbers(self) -> str:
        """Return the path of the number signature."""
        return f"{self.name}.numbers"

    @property
    def duplicate_of(self) -> str:
        """Return the path of the id of an earlier near-duplicate."""
        return f"{self.name}.duplicate_of"

    @property
    def keys(self) -> str:
        """Return the path of the keys."""
        return f"{self.name}_keys"

    @property
    def paths(self) -> tuple[str, ...]:
        """Return all paths."""
        return self.sketch, self.recipe, self.numbers, self.duplicate_of, self.keys

    def encode(self, sketch: Sketch, recipe: Recipe, numbers: int | None = None) -> dict[str, Any]:
        """Return the object stored under `name`, in lists and ints for any JSON writer. numbers: None stores none."""
        return {"sketch": sketch.tolist(), "recipe": recipe.id, **({} if numbers is None else {"numbers": numbers})}

    def parts(self, sketch: Sketch | None, recipe: Recipe, keys: int = 0, numbers: int | None = None) -> dict[str, Any]:
        """Return all fields that are added to a document: the object, and `keys` keys unless that is 0.

        sketch: None marks the stored sketch as stale: readers treat it as foreign, and a backfill replaces it.
        """
        stored: dict[str, Any] = {"sketch": [], "recipe": STALE}
        if sketch is not None:
            stored = self.encode(sketch, recipe, numbers)
        return {self.name: stored, **({self.keys: keys_of(stored["sketch"], keys)} if keys else {})}

    def decode(self, fields: Sequence[Mapping[str, Any]], recipe: Recipe) -> list[Sketch | Lack]:
        """The sketch of each hit from its doc values ({path: [values]}), or why there is none to compare."""
        sketch_path, recipe_path, expected = self.sketch, self.recipe, [recipe.id]
        lists: list[Any] = [hit.get(sketch_path) for hit in fields]
        lacking = [
            _lack(stored, hit.get(recipe_path), expected, recipe.k) for stored, hit in zip(lists, fields, strict=True)
        ]
        lists = [[] if lack or stored is None else stored for stored, lack in zip(lists, lacking, strict=True)]
        try:
            values = np.frombuffer(b"".join([_packer(len(stored))(*stored) for stored in lists]), np.int32)
        except struct.error:  # a value of some hit is no 32-bit integer: decode each hit by itself
            return [lack or _decoded(stored) for stored, lack in zip(lists, lacking, strict=True)]
        ends = np.cumsum(np.fromiter(map(len, lists), np.int64, len(lists)))
        wrong = np.concatenate((values[:1] < 0, values[1:] <= values[:-1]))
        first = ends[(ends > 0) & (ends < len(values))]
        wrong[first] = values[first] < 0  # the first value of a hit is not compared with the hit before it
        some = bool(wrong.any())
        return [
            lack
            or (Lack.MALFORMED if some and wrong[end - len(stored) : end].any() else values[end - len(stored) : end])
            for lack, stored, end in zip(lacking, lists, ends.tolist(), strict=True)
        ]

    def numbers_in(self, fields: Mapping[str, Any]) -> int | None:
        """Return the stored number signature of a hit from its doc values, None if there is no valid one."""
        match fields.get(self.numbers):
            case [int(number)] if 0 <= number < VALUES:
                return int(number)
        return None


def is_sketch_object(value: Any) -> bool:
    """Return whether a value under the object's name was stored by this library rather than by the user.

    It was if it names a recipe (or STALE) and its sketch is a list of integers. Engines that rebuild `_source` from doc
    values return a list of one member as that member, and omit an empty list.
    """
    if not isinstance(value, Mapping) or not isinstance(made_by := value.get("recipe"), str):
        return False
    return _is_recipe(made_by) and all(type(one) is int for one in listed(value.get("sketch")))


def are_keys(value: Any) -> bool:
    """Return whether a value under the name of the keys was stored by this library: 8 hexadecimal digits each."""
    return all(isinstance(key, str) and _KEY.fullmatch(key) for key in listed(value))


def listed(value: Any) -> list[Any]:
    """Return a value of a document as a list. Engines treat a single value as a list of one, and null as no value."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def keys_of(values: Iterable[int], count: int) -> list[str]:
    """Return the first `count` of ascending values as terms of 8 hexadecimal digits."""
    return [format(value, "08x") for value in islice(values, count)]


def _is_recipe(value: Any) -> bool:
    """Return whether a value is the id of a recipe or STALE, not a value of the user's own."""
    return isinstance(value, str) and (value == STALE or _RECIPE.fullmatch(value) is not None)


def _lack(stored: Any, recipe: Any, expected: list[str], k: int) -> Lack | None:
    """Why a hit has no sketch, None where `stored` may be one. recipe, expected: doc values, lists of one id."""
    if stored is None and not any(map(_is_recipe, listed(recipe))):
        return Lack.MISSING
    if recipe != expected:
        return Lack.FOREIGN
    if stored is None:
        return Lack.EMPTY
    return None if isinstance(stored, list) and 0 < len(stored) <= k else Lack.MALFORMED


@cache
def _packer(length: int) -> Callable[..., bytes]:
    """Return a function from 32-bit integers to bytes, four times as fast as np.array. It raises struct.error."""
    return struct.Struct(f"{length}i").pack


def _decoded(stored: list[Any]) -> Sketch | Lack:
    try:
        values = np.frombuffer(_packer(len(stored))(*stored), np.int32)
    except struct.error:
        return Lack.MALFORMED
    return Lack.MALFORMED if values[0] < 0 or (np.diff(values) <= 0).any() else values
