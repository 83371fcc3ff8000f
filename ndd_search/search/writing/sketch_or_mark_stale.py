"""Adds sketches to the documents of bulk actions, or marks the stored ones stale. Nothing here does I/O.

A field of the user's own is never overwritten.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from ndd_search.core.document_fields import absent_fields, splits, text_of
from ndd_search.core.recipe import Recipe
from ndd_search.core.setting_values import fields_in
from ndd_search.core.sketching.sketches import Sketch, sketch
from ndd_search.core.sketching.stored_sketch import SketchField, are_keys, check_name, is_sketch_object
from ndd_search.core.text.numbers import number_signature
from ndd_search.errors import InvalidDocument
from ndd_search.search.index_rules import OWN
from ndd_search.search.writing.read_helper_actions import Action, touches

logger = logging.getLogger("ndd_search")

Fields = str | Sequence[str] | Mapping[str, str | Sequence[str]]
_LOOKED_AT = 10  # documents, among which a text field should be at least once
MOST_SKETCHES = 16  # per document: each is six fields of the mapping, and an index holds 1,000 by default


@dataclass
class IngestReport:
    """Counters. The sum of `sketched`, `stale` and `unchanged` may exceed `actions`: an action can hold two documents,
    and a document several sketches.

    actions:    actions read.
    sketched:   sketches stored.
    stale:      sketches marked as out of date.
    unchanged:  documents and actions that got no sketch, by reason.
    duplicates: documents that are near-duplicates. skipped: those of them that were left out.
    """

    actions: int = 0
    sketched: int = 0
    stale: int = 0
    unchanged: Counter[str] = field(default_factory=Counter)
    duplicates: int = 0
    skipped: int = 0


class Sketcher:
    """Adds sketches to documents, and counts them in `report`.

    fields: the text fields of each sketch, by the name under which it is stored.
    keys:   how many keys are stored beside each sketch, 0..64. numbers: whether the numbers of the text are stored.
    """

    def __init__(
        self,
        fields: Fields,
        field: str,
        recipe: Recipe | str | None,
        keys: int,
        numbers: bool,
    ) -> None:
        for name, value in (("keys", keys), ("numbers", numbers)):
            OWN[name].check(name, value)
        self.fields, self.recipe = chosen_fields(fields, field), Recipe.of(recipe)
        self.recipe.check_key()
        if self.recipe.method == "simhash" and 0 < keys < self.recipe.k:
            raise ValueError(f"keys must be at least 4 for simhash, got {keys}: fewer do not find all fingerprints")
        self.keys, self.numbers = keys, numbers
        self.first = next(iter(self.fields))
        sources = dict.fromkeys(chain.from_iterable(self.fields.values()))
        self._dotted = [head for source in sources for head, _ in [*splits(source), (source, "")] if "." in head]
        self._absent = list(sources) if len(sources) > 1 else []  # text fields that no document had so far
        self._looked_at = 0
        self.report = IngestReport()
        self._where = {name: SketchField(name) for name in self.fields}

    def add(self, action: Action) -> Sketch | None:
        """Put the sketches into the documents of an action.

        Returns the first sketch of a document that is indexed as a whole, None for every other action.
        Raises InvalidDocument if the field of a sketch or of its keys holds a value of the user's own.
        """
        self.report.actions += 1
        if not action.documents:
            self._pass(action, action.reason)
        first: Sketch | None = None
        for document, partial in action.documents:
            for name in self.fields:
                if partial:
                    self._update(action, document, name)
                    continue
                found = self._whole(action, document, name)
                if name == self.first and action.kind != "update":
                    first = found
        return first

    def changes_text(self, action: Action) -> bool:
        """Return whether an update may change the text of the first sketch."""
        sources = self.fields[self.first]
        given = [document for document, partial in action.documents if partial]
        return not given or any(touches(document, source) for document in given for source in sources)

    def _tell_dotted(self, action: Action, document: Mapping[str, Any]) -> None:
        """Warn once of a document with a key with dots, which an update with an object does not replace."""
        if found := [key for key in self._dotted if key in document]:
            self._dotted = []
            logger.warning(
                "%s holds text in the key %r: an update that holds it as an object leaves the key, and makes a sketch "
                "of the object alone; write objects, or run ndd-search backfill --recheck after such updates",
                _name(action),
                found[0],
            )

    def _tell_absent(self, document: Mapping[str, Any]) -> None:
        """Warn once of text fields that none of the first documents with a text has."""
        self._absent, self._looked_at = absent_fields(self._absent, [document]), self._looked_at + 1
        if self._absent and self._looked_at == _LOOKED_AT:
            absent, self._absent = ", ".join(self._absent), []
            logger.warning(
                "none of the first %d documents with a text has a field %s: check its name", _LOOKED_AT, absent
            )

    def _whole(self, action: Action, document: dict[str, Any], name: str) -> Sketch | None:
        """Add the sketch to a whole document. Without text, remove a sketch that the document came with."""
        self._tell_dotted(action, document)
        text = self._text(action, document, name)
        if self._absent and text is not None and name == self.first:
            self._tell_absent(document)
        found = None if text is None else self._sketch(action, text)
        where = self._where[name]
        carried = document.get(name)
        if found is None or text is None:
            if is_sketch_object(carried):
                self._drop(document, where)
            return None
        self._check(action, document, where)
        if not self.keys and is_sketch_object(carried):
            self._drop(document, where)
        document.update(self._parts(where, text, found))
        return found

    def _update(self, action: Action, document: dict[str, Any], name: str) -> None:
        """Recompute the sketch if an update holds the whole text, mark it stale if it holds a part of the text."""
        sources, where = self.fields[name], self._where[name]
        touched = [touches(document, source) for source in sources]
        if not any(touched):
            return
        self._check(action, document, where)
        known = all(one == "whole" for one in touched)
        try:
            text = (text_of(document, sources) or "") if known else None  # "" is an update that removes the text
        except Exception as error:
            self._pass(action, "unreadable", error)
            text = None
        found = None if text is None else self._sketch(action, text)
        if found is None or text is None:
            self.report.stale += 1
            parts = where.parts(None, self.recipe, self.keys)
        else:
            parts = self._parts(where, text, found)
        document.update({**parts, name: where.cleared(parts[name])})

    def _parts(self, where: SketchField, text: str, found: Sketch) -> dict[str, Any]:
        self.report.sketched += 1
        numbers = number_signature(text, self.recipe) if self.numbers else None
        return where.parts(found, self.recipe, self.keys, numbers, self.fields[where.name])

    def _drop(self, document: dict[str, Any], where: SketchField) -> None:
        document.pop(where.name, None)
        if are_keys(document.get(where.keys)):
            document.pop(where.keys, None)

    def _check(self, action: Action, document: Mapping[str, Any], where: SketchField) -> None:
        """Raise InvalidDocument if a field holds a value of the user's own. A removed sketch leaves a null."""
        for name, ours in ((where.name, is_sketch_object), (where.keys, are_keys)):
            if name == where.keys and not self.keys:
                continue
            value = document.get(name)
            if value is not None and not ours(value):
                what = f"its field {name!r} holds {_kind(value)} of your own, where its sketch would be stored"
                remedy = 'store sketches under another name, as in field="ndd_sketch", here and in every search'
                raise InvalidDocument(_name(action), what, remedy)

    def _text(self, action: Action, document: Mapping[str, Any], name: str) -> str | None:
        """Return the text to sketch, None if there is none."""
        try:
            text = text_of(document, self.fields[name])
        except Exception as error:  # one bad document does not stop the others
            self._pass(action, "unreadable", error)
            return None
        if text is None:
            self._pass(action, "no text")
        return text

    def _sketch(self, action: Action, text: str) -> Sketch | None:
        try:
            return sketch(text, self.recipe)
        except ImportError:  # MissingExtra, or a broken installation of an extra
            raise
        except Exception as error:
            self._pass(action, "unreadable", error)
            return None

    def _pass(self, action: Action, reason: str, error: Exception | None = None) -> None:
        self.report.unchanged[reason] += 1
        if reason not in ("no text", "unreadable"):
            return
        names = ", ".join(dict.fromkeys(chain.from_iterable(self.fields.values())))
        what = f"has no text in {names}" if error is None else f"cannot be sketched ({error!r})"
        action.unsketched.append(f"{_name(action)} {what}")
        if self.report.unchanged[reason] == 1:
            logger.warning("%s %s and gets no sketch; further ones are not named", _name(action), what)


def chosen_fields(fields: Fields, field: str) -> dict[str, tuple[str, ...]]:
    """Return the source fields of each sketch, by the name of its field. Raises ValueError for invalid names."""
    named = fields if isinstance(fields, Mapping) else {field: fields}
    chosen = {name: fields_in("fields", of) for name, of in named.items()}
    if not chosen or not all(chosen.values()):
        raise ValueError(f"fields must name at least one text field for each sketch, got {fields!r}")
    if len(chosen) > MOST_SKETCHES:
        raise ValueError(f"a document may have {MOST_SKETCHES} sketches, got {len(chosen)}: each adds to the mapping")
    for name, sources in chosen.items():
        check_name(name)
        for source in sources:
            if "*" in source:
                raise ValueError(f"{source!r} is a pattern: name each text field")
            if source.partition(".")[0] in chosen:
                raise ValueError(f"{source!r} is a field of the sketch itself ({', '.join(chosen)}), no text field")
    return chosen


def _name(action: Action) -> str:
    return f"document {action.content.get('_id', '(without _id)')}"


def _kind(value: Any) -> str:
    names = {str: "a text", bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names.get(type(value), f"a {type(value).__name__}")
