"""The stored form of a sketch. Only this module knows the format.

A document carries one object, by default under the name "ndd":

    "ndd": {"sketch": [17, 4711, ...], "smallest": 17, "recipe": "w3-k64-v4", "text": "title,body"}

`sketch` is an `integer` field with doc values and no index, `recipe` a `keyword`. A search reads both as doc values.
`smallest` is the first value again: engines sort a result by it for a sample, ten times as fast as by a field of 64
values a document. `text`, a `keyword`, names the fields that were sketched: whoever holds the document can tell whether
its sketch is still that of its text (see `fits_text`).
Further fields are optional: `ndd.numbers`, the number signature of the text (see `text.numbers`), mapped like the
sketch; `ndd.group`, equal in all documents of a group; and
`ndd_keys`, the smallest values as indexed terms, which find near-duplicates in a whole index. The keys are outside the
object because they have no doc values: a search for the doc values of `ndd.*` would fail on them.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from itertools import islice
from typing import Any
from urllib.parse import quote, unquote

import numpy as np

from ndd_search import native
from ndd_search.core.immutable import cached_property
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import VALUES, Lack, Sketch, Sketches, or_empty

# Names under which `corpus mark` stores what group the document belongs to. They belong to one text, of which `judged`
# is the fingerprint, or "".
MARKS = {"group": str, "group_size": int, "leads": bool, "judged": str}
_NEVER_SHOWN = {"sketch", "smallest", "recipe", "text", "numbers", "judged"}  # names in the object
KEYS = 8  # keys that are stored with a sketch, unless another number is given
STALE = "stale"  # stored as the recipe id if the text has changed and the sketch has not; no recipe has this id

_KEY = re.compile("[0-9a-f]{8}")
_NO_VALUES = np.empty(0, np.int32)
_MALFORMED, _FOREIGN, _NOTHING = -1, -2, -3  # counts of values; see native.StoredValues
_LACKS = {0: Lack.EMPTY, _MALFORMED: Lack.MALFORMED, _FOREIGN: Lack.FOREIGN, _NOTHING: Lack.MISSING}
_RECIPE = re.compile(r"[wcls]\d+-k\d+-v\d+(-\w+)*", re.ASCII)  # an id of any version of this library


def _path(form: str) -> Any:
    return field(init=False, repr=False, compare=False, metadata={"path": form})


def check_name(name: object) -> None:
    """Raise ValueError for what cannot be the name of the object that holds a sketch."""
    if not isinstance(name, str) or not name or "." in name or name.startswith("_"):
        raise ValueError(f"a sketch needs a top-level name without dots or a leading underscore, got {name!r}")


@dataclass(frozen=True)
class SketchField:
    """The place of the sketch in a document.

    name:   of the object; sketches of a second recipe use another name.
    sketch: path of the values. smallest: of the smallest one.
    recipe: path of the recipe id. text: of the names of the fields that were sketched.
    numbers: of the number signature. keys: of the keys.
    """

    name: str = "ndd"
    sketch: str = _path("{}.sketch")
    recipe: str = _path("{}.recipe")
    text: str = _path("{}.text")
    smallest: str = _path("{}.smallest")
    numbers: str = _path("{}.numbers")
    keys: str = _path("{}_keys")

    def __post_init__(self) -> None:
        check_name(self.name)
        for one in fields(self):
            if form := one.metadata.get("path"):
                object.__setattr__(self, one.name, form.format(self.name))

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """Return all paths."""
        return *self.read, self.text, self.smallest, self.numbers, self.keys

    @cached_property
    def read(self) -> tuple[str, ...]:
        """Return the paths whose doc values `decode` reads."""
        return self.sketch, self.recipe

    @cached_property
    def stored(self) -> tuple[str, ...]:
        """Return the paths of which every object that this library has written holds one."""
        return *self.read, f"{self.name}.group"

    def encode(
        self, sketch: Sketch, recipe: Recipe, numbers: int | None = None, text: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Return the object stored under `name`, in plain values for any JSON writer.

        numbers: None stores none. text: the fields that were sketched; () stores none.
        """
        stored = {**self._values(sketch), "recipe": recipe.id, **({"text": fields_text(text)} if text else {})}
        return stored if numbers is None else {**stored, "numbers": numbers}

    def parts(
        self,
        sketch: Sketch | None,
        recipe: Recipe,
        keys: int = 0,
        numbers: int | None = None,
        text: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Return all fields that are added to a document: the object, and `keys` keys unless that is 0.

        sketch: None marks the stored sketch as stale: readers treat it as foreign, and a backfill replaces it.
        numbers, text: as in `encode`.
        """
        if sketch is None:
            sketch, stored = _NO_VALUES, {**self._values(_NO_VALUES), "recipe": STALE}
        else:
            stored = self.encode(sketch, recipe, numbers, text)
        return {self.name: stored, **({self.keys: keys_of(sketch.tolist(), keys)} if keys else {})}

    def cleared(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        """Return an object for a partial update: the engine merges it into the stored one, whose values it replaces."""
        return {**dict.fromkeys(("sketch", "smallest", "text", "numbers", *MARKS)), **stored}

    def remove_from(self, sources: Iterable[Any]) -> None:
        """Remove the sketch and what is stored with it from the `_source` of documents, in place.

        The marks of `corpus mark` stay, and so does a field of the user's own with our name.
        """
        for source in sources:
            stored = source.get(self.name) if isinstance(source, dict) else None
            if not isinstance(stored, dict) or not isinstance(id := stored.get("recipe"), str) or not _is_recipe(id):
                continue
            if stored.keys() <= _NEVER_SHOWN:
                del source[self.name]
            else:
                cleared = {name for name in MARKS if stored.get(name, "") is None}
                source[self.name] = {key: stored[key] for key in stored if key not in _NEVER_SHOWN | cleared}
                if not source[self.name]:
                    del source[self.name]
            if self.keys in source and are_keys(source[self.keys], stored.get("smallest")):
                del source[self.keys]

    def _values(self, sketch: Sketch) -> dict[str, Any]:
        """Return the values, and the smallest one, which an empty sketch lacks."""
        return {"sketch": sketch.tolist(), **({"smallest": int(sketch[0])} if len(sketch) else {})}

    def decode(
        self, hits: Sequence[Mapping[str, Any]], recipe: Recipe, cuts: Cuts | None = None
    ) -> Sequence[Sketch | Lack]:
        """The sketch of each hit from its doc values ("fields": {path: [values]}), or why there is none to compare.

        cuts: sketches in whose place hits have numbers; those that are found again are counted there, and taken out.
        Returns Sketches if every hit has a sketch, else a list.
        """
        given, names = list(hits), (self.sketch, self.recipe, recipe.id)
        cuts = cuts or Cuts()
        if native.core and (
            read := native.core.stored_sketches(given, names, recipe.k, (cuts.values, cuts.offsets, cuts.found))
        ):
            cuts.found = read[3]
            found = _sketches_from(read)
        else:
            found = [self._read(hit, recipe) for hit in given]
        if isinstance(found, Sketches):
            return found
        sketches = [one for one in found if not isinstance(one, Lack)]
        if len(sketches) == len(found) > 0:
            return Sketches(np.concatenate(sketches), np.cumsum([0, *map(len, sketches)]))
        return [self._lack(hit) if one is Lack.MISSING else one for hit, one in zip(given, found, strict=True)]

    def _read(self, hit: Mapping[str, Any], recipe: Recipe) -> Sketch | Lack:
        """Return the sketch of a hit from its doc values, or why there is none."""
        fields = hit.get("fields") or {}
        stored = fields.get(self.sketch)
        if fields.get(self.recipe) != [recipe.id]:
            return Lack.MISSING if stored is None else Lack.FOREIGN
        values = _values_of(stored, recipe.k)
        return Lack.MALFORMED if values is None else or_empty(values)

    def _lack(self, hit: Mapping[str, Any]) -> Lack:
        """Why a hit has no values."""
        named = listed((hit.get("fields") or {}).get(self.recipe))
        return Lack.FOREIGN if any(isinstance(one, str) and _is_recipe(one) for one in named) else Lack.MISSING

    def has_values(self, fields: Mapping[str, Any] | None) -> bool:
        """Return whether the doc values of a hit have the values of a sketch."""
        return fields is not None and self.sketch in fields

    def numbers_in(self, fields: Mapping[str, Any]) -> int | None:
        """Return the stored number signature of a hit from its doc values, None if there is no valid one."""
        match fields.get(self.numbers):
            case [int(number)] if 0 <= number < VALUES:
                return int(number)
        return None


@dataclass
class Cuts:
    """The sketches that were read out of an answer before it was parsed; in their place hits have their numbers.

    values:  int32, as bytes. offsets: int64, as bytes: sketch i has values[offsets[i]:offsets[i + 1]].
    found:   how many of them, in their order, hits have named.
    """

    values: bytes = b""
    offsets: bytes = b""
    found: int = 0

    @property
    def are_all_found(self) -> bool:
        """Whether the hits have named all of them."""
        return self.found == len(self.offsets) // 8 - 1


@dataclass(frozen=True)
class StoredSketches:
    """The sketches of one recipe in one field."""

    field: SketchField
    recipe: Recipe


def _sketches_from(read: native.StoredValues) -> Sequence[Sketch | Lack]:
    """Return the sketch of each hit, or why it has none.

    Returns Sketches if every hit has a sketch, else a list.
    """
    values = np.frombuffer(read[0], np.int32)
    if read[2] is not None:
        return Sketches(values, np.frombuffer(read[2], np.int64))
    found: list[Sketch | Lack] = []
    start = 0
    for count in np.frombuffer(read[1] or b"", np.int64).tolist():
        found.append(values[start : start + count] if count > 0 else _LACKS[count])
        start += max(count, 0)
    return found


def is_sketch_object(value: Any) -> bool:
    """Return whether a value under the object's name was stored by this library rather than by the user.

    It was if it names a recipe (or STALE) and its sketch is a list of integers; or if it holds just the marks
    that `corpus mark` writes. Engines that rebuild `_source` from doc values return a list of one member as that
    member, and omit an empty list.
    """
    if not isinstance(value, Mapping):
        return False
    if value.keys() == MARKS.keys():
        return holds_marks(value) or all(mark is None for mark in value.values())  # None after their removal
    made_by = value.get("recipe")
    if not isinstance(made_by, str) or not _is_recipe(made_by):
        return False
    return all(type(one) is int for one in listed(value.get("sketch")))


def holds_marks(stored: Mapping[str, Any]) -> bool:
    """Return whether an object holds all marks of a group in the form in which `corpus mark` writes them."""
    return all(type(stored.get(name)) is kind for name, kind in MARKS.items()) and stored["group_size"] > 0


def sketch_in(stored: Mapping[str, Any], k: int) -> Sketch | None:
    """Return the values of an object in a document's `_source`, None if it has no sketch of at most k values."""
    found = listed(stored.get("sketch"))
    return _values_of(found, k) if found else None


def fields_text(fields: Sequence[str]) -> str:
    """Return the names of text fields as one text."""
    return ",".join(quote(name, safe="") for name in fields)


def fields_in_text(text: str) -> list[str]:
    """Return the names in what `fields_text` returned."""
    return [unquote(name) for name in text.split(",")]


def are_keys(value: Any, smallest: Any = None) -> bool:
    """Return whether a value under the name of the keys was stored by this library: 8 hexadecimal digits each.

    smallest: of the sketch beside it. Keys that begin with it are ours, so the others need not be read.
    """
    keys = listed(value)
    if type(smallest) is int and keys[:1] == keys_of([smallest], 1):
        return True
    return all(isinstance(key, str) and _KEY.fullmatch(key) for key in keys)


def listed(value: Any) -> list[Any]:
    """Return a value of a document as a list. Engines treat a single value as a list of one, and null as no value."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def keys_of(values: Iterable[int], count: int) -> list[str]:
    """Return the first `count` of ascending values as terms of 8 hexadecimal digits."""
    return [format(value, "08x") for value in islice(values, count)]


@lru_cache
def _is_recipe(text: str) -> bool:
    """Return whether a text is the id of a recipe or STALE, not a value of the user's own."""
    return text == STALE or _RECIPE.fullmatch(text) is not None


def _values_of(stored: Any, k: int) -> Sketch | None:
    """Return the values of a stored sketch, None if they are no sketch of at most k values. stored: None for none."""
    if stored is None:
        return _NO_VALUES
    if not isinstance(stored, list) or not 1 <= len(stored) <= k:
        return None
    try:
        values = np.frombuffer(struct.pack(f"={len(stored)}i", *stored), np.int32)
    except struct.error:
        return None
    return values if values[0] >= 0 and (values[1:] > values[:-1]).all() else None
