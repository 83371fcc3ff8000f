"""Tells whether what is stored with a document, its sketch or the mark of its group, is of the text that it has.

A writer that knows nothing of sketches changes a text and leaves its sketch. Sketching the text anew tells. Writes,
pages, doctor and backfill ask here.

A mark has a fingerprint, RECIPE:FIELDS:HASH, which names all that is needed to make it again: the id of the recipe, the
fields with the text, and a hash of the sketch. Texts with equal sketches have equal fingerprints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import numpy as np

from ndd_search.core.document_fields import text_of, value_of
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import Lack, Sketch, Sketches, or_empty, sketch_batch, sketch_many
from ndd_search.core.sketching.stored_sketch import fields_in_text, fields_text

DIGITS = 16  # hexadecimal ones of the hash
_MOST = 2**18  # characters of the texts of a page that are sketched again: a millisecond


def fit(stored: Sequence[Sketch | Lack], right: Sequence[Sketch]) -> list[bool]:
    """Return for each stored sketch whether it is that of the text: Lack.EMPTY of one without shingles.

    Any other lack fits no text. right: the sketches of the texts.
    """
    return [
        one is Lack.EMPTY and not len(of_text) if isinstance(one, Lack) else one.tobytes() == of_text.tobytes()
        for one, of_text in zip(stored, right, strict=True)
    ]


def misfits(
    stored: Sequence[Sketch | Lack],
    order: Sequence[int],
    texts_at: Callable[[Sequence[int]], Iterable[str | None]],
    recipe: Recipe,
) -> dict[int, Sketch | Lack]:
    """Return the sketch that the text of some documents has, by their place, where another one is stored.

    stored: of all documents. order: the places to compare, until their texts have 262,144 characters.
    texts_at: returns the texts of the documents at some places, None for one that is not known in full.
    """
    if not isinstance(stored, Sketches):
        order = [at for at in order if not isinstance(one := stored[at], Lack) or one is Lack.EMPTY]
    left, places, texts = _MOST, list[int](), list[str]()
    for place, text in zip(order, texts_at(order), strict=True):
        if text is not None and len(text) <= left:
            places.append(place)
            texts.append(text)
            left -= len(text)
    right = sketch_batch(texts, recipe) if texts else Sketches.joined([])
    if isinstance(stored, Sketches) and stored.taken(np.array(places, np.int64)).equal(right):  # the usual case
        return {}
    fits = fit([stored[place] for place in places], right)
    return {at: or_empty(right[i]) for i, at in enumerate(places) if not fits[i]}


def sketched_texts(sources: Iterable[Any], name: str) -> list[str | None]:
    """Return the text of each `_source` that the sketch in it is of, None unless each of its fields holds one text.

    A search may leave a field out, and an engine that rebuilds `_source` returns lists in another order.
    name: of the object with the sketch.
    """
    texts, known = list[str | None](), dict[str, list[str]]()
    for source in sources:
        stored = source.get(name) if source else None
        named = stored.get("text") if isinstance(stored, dict) else None
        if not isinstance(named, str):
            texts.append(None)
            continue
        if (fields := known.get(named)) is None:
            fields = known[named] = fields_in_text(named)
        if len(fields) == 1 and type(text := source.get(fields[0])) is str and "." not in fields[0]:
            texts.append(text)
        else:
            is_whole = all(isinstance(value_of(source, one), str) for one in fields)
            texts.append(text_of(source, fields) if is_whole else None)
    return texts


def fingerprint(sketch: Sketch, recipe: Recipe, fields: Sequence[str]) -> str:
    """Return the fingerprint of a text, of which this is the sketch. fields: that held the text."""
    return f"{origin(recipe, fields)}{sha256(sketch.astype('<i4', copy=False).tobytes()).hexdigest()[:DIGITS]}"


def origin(recipe: Recipe, fields: Sequence[str]) -> str:
    """Return what a fingerprint begins with."""
    return f"{recipe.id}:{fields_text(fields)}:"


def fields_of(fingerprint: str) -> list[str]:
    """Return the fields that held the text; none if this is no fingerprint."""
    _, _, rest = fingerprint.partition(":")
    names, colon, _ = rest.partition(":")
    return fields_in_text(names) if colon else []


def still_fit(fingerprints: Sequence[str | None], documents: Sequence[Mapping[str, Any]]) -> list[bool]:
    """Return for each document whether its text has the fingerprint; True where there is none to compare with.

    What is no fingerprint, or of a recipe that this version does not know, fits no text.
    """
    fits = [not one for one in fingerprints]
    places: dict[str, list[int]] = {}
    for place, one in enumerate(fingerprints):
        if one:
            places.setdefault(one.rpartition(":")[0], []).append(place)
    for start, of_one_origin in places.items():
        try:
            recipe = Recipe.parse(start.partition(":")[0])
        except ValueError:
            continue
        fields = fields_of(f"{start}:")
        texts = [text_of(documents[place], fields) or "" for place in of_one_origin]
        for place, sketch in zip(of_one_origin, sketch_many(texts, recipe), strict=True):
            fits[place] = fingerprint(sketch, recipe, fields) == fingerprints[place]
    return fits
