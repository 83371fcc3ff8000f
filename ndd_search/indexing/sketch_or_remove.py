"""The jobs of a backfill: add the sketch of its text to each document, or remove the stored sketches.

Both use partial updates that name only our own fields. Writing whole documents back would send them through the ingest
pipelines of the index, and would drop fields that the engine keeps out of `_source`, such as vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ndd_search.core.document_fields import text_of, value_of
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.fits_text import fit, still_fit
from ndd_search.core.sketching.sketches import Sketch, sketch, sketch_many
from ndd_search.core.sketching.stored_sketch import (
    KEYS,
    MARKS,
    SketchField,
    are_keys,
    is_sketch_object,
    listed,
    sketch_in,
)
from ndd_search.core.text.numbers import number_signature
from ndd_search.indexing.concurrent_updates import Job
from ndd_search.indexing.index_facts import IndexFacts
from ndd_search.indexing.scan import Hits
from ndd_search.search.writing.sketch_or_mark_stale import SketchSettings


class SketchDocuments(Job):
    """Adds the sketch of its text to each document. compare: only if the stored one is not of its text."""

    def __init__(self, settings: SketchSettings, query: Mapping[str, Any], compare: bool = False) -> None:
        self._settings, self._query, self._compare = settings, query, compare
        self._where = settings.where

    @property
    def search(self) -> Mapping[str, Any]:
        """Fetches the whole `_source`: its numbers, its order of keys and our own fields decide what may be written."""
        stored = [*self._where.read, self._where.numbers] if self._compare else []
        return {"query": self._query, "_source": True, "docvalue_fields": stored}

    def changes(self, hits: Hits) -> Sequence[Mapping[str, Any] | str | None]:
        texts, new, fits = self._compared(hits)
        each = zip(hits, texts, new, fits, self._marks_fit(hits), strict=True)
        return [self._change(*one) for one in each]

    def all_fit(self, hits: Hits) -> bool:
        """Return whether the stored sketch of each document is that of its text."""
        return all(self._compared(hits)[2])

    def _compared(self, hits: Hits) -> tuple[list[str], Sequence[Sketch], list[bool]]:
        """Return the text of each document, its sketch, and whether the stored sketch is the same."""
        recipe = self._settings.recipe
        texts = [text_of(hit.get("_source", {}), self._settings.fields) or "" for hit in hits]
        known, new = self._where.decode(hits, recipe), sketch_many(texts, recipe)
        return texts, new, fit(known, new)

    def _marks_fit(self, hits: Hits) -> list[bool]:
        """Whether the marks of each document, if it has any, are of the text that it has."""
        sources = [hit.get("_source", {}) for hit in hits]
        judged = [value_of(source, f"{self._where.name}.judged") for source in sources]
        return still_fit([one if isinstance(one, str) else None for one in judged], sources)

    def _change(self, hit: Mapping[str, Any], text: str, new: Sketch, fits: bool, marks_fit: bool) -> Any:
        settings, where, source = self._settings, self._where, hit.get("_source", {})
        if name := settings.own_field(source) or next((key for key in source if key.startswith(f"{where.name}.")), ""):
            return f"its field {name} is not a sketch"
        before = source.get(where.name) or {}
        wants_numbers = settings.numbers or before.get("numbers") is not None
        numbers = number_signature(text, settings.recipe) if wants_numbers else None
        stored_keys = listed(source.get(where.keys)) if are_keys(source.get(where.keys)) else []
        # Stored keys must fit the new text, even if this run was not asked to store keys.
        kept_keys = max(len(stored_keys), KEYS) if stored_keys or source.get(where.keys) == [] else 0
        parts = where.parts(new, settings.recipe, settings.keys or kept_keys, numbers, settings.fields)
        if "smallest" in before:
            parts[where.name].setdefault("smallest", None)
        same = fits and all(parts[where.name].get(name) == before.get(name) for name in ("smallest", "text"))
        if self._compare and same and marks_fit:
            # If this run was not asked for numbers they may be unmapped: then compare with those in _source.
            known = where.numbers_in(hit.get("fields", {})) if settings.numbers else before.get("numbers")
            same_numbers = numbers in (None, known)
            if same_numbers and (not before or parts.get(where.keys, stored_keys) == stored_keys):
                return None
        marks = [name for name in MARKS if before.get(name) is not None]
        if marks and not (marks_fit and _is_sketch_of(text, before)):
            parts[where.name].update(dict.fromkeys(marks))  # they belong to another text
        # A value written before its field was mapped is already in _source, and must be written once more.
        return {"doc": parts, "detect_noop": False}


class RemoveSketches(Job):
    """Replaces stored sketches and their keys by null; fields of the user's are left as they are."""

    def __init__(self, where: SketchField, query: Mapping[str, Any], facts: IndexFacts) -> None:
        self._where, self._query = where, query
        kind = facts.mapping["properties"].get(where.name, {}).get("properties", {}).get("recipe", {}).get("type")
        self._stored = [self._where.recipe] if kind == "keyword" else []

    @property
    def search(self) -> Mapping[str, Any]:
        """Fetches the whole `_source`, because an update could change its numbers."""
        return {"query": self._query, "_source": True, "docvalue_fields": self._stored}

    def changes(self, hits: Hits) -> Sequence[Mapping[str, Any] | str | None]:
        return [self._change(hit) for hit in hits]

    def _change(self, hit: Mapping[str, Any]) -> Mapping[str, Any] | str:
        where, source = self._where, hit.get("_source", {})
        # If the mapping excludes the object from _source, decide by the doc value.
        stored = source.get(where.name) or {"recipe": next(iter(hit.get("fields", {}).get(where.recipe, [])), None)}
        if not is_sketch_object(stored):
            return f"its field {where.name} is not a sketch"
        names = [where.name, *([where.keys] if are_keys(source.get(where.keys)) and where.keys in source else [])]
        return {"doc": dict.fromkeys(names)}


def _is_sketch_of(text: str, stored: Mapping[str, Any]) -> bool:
    """Whether a stored object holds the sketch of this text, made with the recipe that it names, or no sketch."""
    if stored.get("recipe") is None:
        return True  # only marks, which `corpus mark` wrote for this text as far as is known
    try:
        recipe = Recipe.parse(stored["recipe"])
        recipe.check_key()
    except ValueError:  # it is STALE, or names a recipe of another version of this library, or one with another key
        return False
    values = sketch_in(stored, recipe.k)
    return values is not None and sketch(text, recipe).tolist() == values.tolist()
