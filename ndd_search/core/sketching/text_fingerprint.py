"""Fingerprints of texts: they tell later whether a document still has the text that was judged.

A fingerprint is RECIPE:FIELDS:HASH, and so names all that is needed to make it again: the id of the recipe, the fields
with the text, and a hash of the sketch. Texts with equal sketches have equal fingerprints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import quote, unquote

from ndd_search.core.document_fields import text_of
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import Sketch, sketch_many

DIGITS = 16  # hexadecimal ones of the hash


def fingerprint(sketch: Sketch, recipe: Recipe, fields: Sequence[str]) -> str:
    """Return the fingerprint of a text, of which this is the sketch. fields: that held the text."""
    return f"{origin(recipe, fields)}{sha256(sketch.astype('<i4', copy=False).tobytes()).hexdigest()[:DIGITS]}"


def origin(recipe: Recipe, fields: Sequence[str]) -> str:
    """Return what a fingerprint begins with."""
    return f"{recipe.id}:{','.join(quote(name, safe='') for name in fields)}:"


def fields_of(fingerprint: str) -> list[str]:
    """Return the fields that held the text; none if this is no fingerprint."""
    _, _, rest = fingerprint.partition(":")
    names, colon, _ = rest.partition(":")
    return [unquote(name) for name in names.split(",")] if colon else []


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
