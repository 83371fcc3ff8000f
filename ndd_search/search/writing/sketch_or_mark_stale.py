"""Adds sketches to the documents in actions of the bulk helpers, or marks the stored ones stale. Nothing here does I/O.

A field of the user's own is never overwritten.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ndd_search.core.document_fields import absent_fields, splits, text_of
from ndd_search.core.recipe import Recipe
from ndd_search.core.setting_values import Field, Several, checked, setting
from ndd_search.core.sketching.sketches import Sketch, sketch
from ndd_search.core.sketching.stored_sketch import KEYS, SketchField, are_keys, check_name, is_sketch_object
from ndd_search.core.text.numbers import number_signature
from ndd_search.errors import InvalidDocument
from ndd_search.search.index_rules import OWN, OfRecipe

logger = logging.getLogger("ndd_search")

_NAMED = 20  # fields of a document without text that the log names

_LOOKED_AT = 10  # documents, among which a text field should be at least once


@dataclass
class IngestReport:
    """Counters. The sum of `sketched`, `stale` and `unchanged` may exceed `actions`: an action can hold two documents.

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


@checked
@dataclass(frozen=True, kw_only=True)
class SketchSettings:
    """What is sketched of documents, and what is stored with the sketch.

    fields: the text fields, joined in this order. recipe: of the sketches. field: the object that holds the sketch.
    keys:   how many keys are stored beside the sketch, 0..64. numbers: whether the numbers of the text are stored.
    """

    fields: Sequence[str] = setting(Several(Field(), one=True), ())
    recipe: Recipe = setting(OfRecipe(Recipe()), Recipe())
    field: str = "ndd"
    keys: int = setting(OWN["keys"], KEYS)
    numbers: bool = setting(OWN["numbers"], False)

    def __post_init__(self) -> None:
        if self.fields:  # without, sketches are only removed
            self.recipe.check_key()
        check_name(self.field)
        object.__setattr__(self, "fields", tuple(dict.fromkeys(self.fields)))
        for source in self.fields:
            if "*" in source:
                raise ValueError(f"{source!r} is a pattern: name each text field")
            if source.partition(".")[0] == self.field:
                raise ValueError(f"{source!r} is a field of the sketch itself ({self.field}), no text field")
        if self.recipe.method == "simhash" and 0 < self.keys < self.recipe.k:
            raise ValueError(
                f"keys must be at least 4 for simhash, got {self.keys}: fewer do not find all fingerprints"
            )

    @property
    def where(self) -> SketchField:
        return SketchField(self.field)

    def own_field(self, document: Mapping[str, Any]) -> str:
        """Return the name of a field of the user's that a sketch would overwrite, "" if there is none.

        A removed sketch leaves a null.
        """
        where = self.where
        if (stored := document.get(where.name)) is not None and not is_sketch_object(stored):
            return where.name
        return where.keys if self.keys and not are_keys(document.get(where.keys)) else ""


class Sketcher:
    """Adds sketches to documents, and counts them in `report`. settings: of SketchSettings."""

    def __init__(self, **settings: Any) -> None:
        self.settings = SketchSettings(**settings)
        self.where, fields = self.settings.where, self.settings.fields
        if not fields:
            raise ValueError("fields must name at least one text field")
        self._dotted = [head for source in fields for head, _ in [*splits(source), (source, "")] if "." in head]
        self._absent = list(fields) if len(fields) > 1 else []  # text fields that no document had so far
        self._looked_at = 0
        self.report = IngestReport()

    def add(self, action: Action) -> Sketch | None:
        """Put the sketches into the documents of an action.

        Returns the sketch of a document that is indexed as a whole, None for every other action.
        Raises InvalidDocument if the field of a sketch or of its keys holds a value of the user's own.
        """
        self.report.actions += 1
        if not action.documents:
            self._pass(action, action.reason)
        found: Sketch | None = None
        for document, partial in action.documents:
            if partial:
                self._update(action, document)
            else:
                found = self._whole(action, document)
        return None if action.kind == "update" else found

    def changes_text(self, action: Action) -> bool:
        """Return whether an update may change the text of the sketch."""
        given = [document for document, partial in action.documents if partial]
        return not given or any(touches(document, source) for document in given for source in self.settings.fields)

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

    def _whole(self, action: Action, document: dict[str, Any]) -> Sketch | None:
        """Add the sketch to a whole document. Without text, remove a sketch that the document came with."""
        self._tell_dotted(action, document)
        text = self._text(action, document)
        if self._absent and text is not None:
            self._tell_absent(document)
        found = None if text is None else self._sketch(action, text)
        if found is not None:
            self._check(action, document)
        if (found is None or not self.settings.keys) and is_sketch_object(document.get(self.where.name)):
            self._drop(document)
        if found is not None and text is not None:
            document.update(self._parts(text, found))
        return found

    def _update(self, action: Action, document: dict[str, Any]) -> None:
        """Recompute the sketch if an update holds the whole text, mark it stale if it holds a part of the text."""
        where, touched = self.where, [touches(document, source) for source in self.settings.fields]
        if not any(touched):
            return
        self._check(action, document)
        known = all(one == "whole" for one in touched)
        try:
            text = (
                (text_of(document, self.settings.fields) or "") if known else None
            )  # "" is an update that removes the text
        except Exception as error:
            self._pass(action, "unreadable", error)
            text = None
        found = None if text is None else self._sketch(action, text)
        if found is None or text is None:
            self.report.stale += 1
            parts = where.parts(None, self.settings.recipe, self.settings.keys)
        else:
            parts = self._parts(text, found)
        document.update({**parts, where.name: where.cleared(parts[where.name])})

    def _parts(self, text: str, found: Sketch) -> dict[str, Any]:
        self.report.sketched += 1
        numbers = number_signature(text, self.settings.recipe) if self.settings.numbers else None
        return self.where.parts(found, self.settings.recipe, self.settings.keys, numbers, self.settings.fields)

    def _drop(self, document: dict[str, Any]) -> None:
        document.pop(self.where.name, None)
        if are_keys(document.get(self.where.keys)):
            document.pop(self.where.keys, None)

    def _check(self, action: Action, document: Mapping[str, Any]) -> None:
        """Raise InvalidDocument if a field holds a value of the user's own."""
        if name := self.settings.own_field(document):
            what = f"its field {name!r} holds {_kind(document[name])} of your own, where its sketch would be stored"
            remedy = 'store sketches under another name, as in field="ndd_sketch", here and in every search'
            raise InvalidDocument(_name(action), what, remedy)

    def _text(self, action: Action, document: Mapping[str, Any]) -> str | None:
        """Return the text to sketch, None if there is none."""
        try:
            text = text_of(document, self.settings.fields)
        except Exception as error:  # one bad document does not stop the others
            self._pass(action, "unreadable", error)
            return None
        if text is None:
            self._pass(action, "no text")
        return text

    def _sketch(self, action: Action, text: str) -> Sketch | None:
        try:
            return sketch(text, self.settings.recipe)
        except ImportError:  # MissingExtra, or a broken installation of an extra
            raise
        except Exception as error:
            self._pass(action, "unreadable", error)
            return None

    def _pass(self, action: Action, reason: str, error: Exception | None = None) -> None:
        self.report.unchanged[reason] += 1
        if reason not in ("no text", "unreadable"):
            return
        what = (
            f"has no text in {', '.join(self.settings.fields)}" if error is None else f"cannot be sketched ({error!r})"
        )
        action.unsketched.append(f"{_name(action)} {what}")
        if self.report.unchanged[reason] == 1:
            names = [name for part, _ in action.documents for name in map(str, part) if name[:1] != "_"]
            told = "%s %s and gets no sketch (its fields: %s); further ones are not named"
            logger.warning(told, _name(action), what, ", ".join(names[:_NAMED]))


def _name(action: Action) -> str:
    return f"document {action.content.get('_id', '(without _id)')}"


def _kind(value: Any) -> str:
    names = {str: "a text", bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names.get(type(value), f"a {type(value).__name__}")


@dataclass(frozen=True)
class Action:
    """One action.

    content:   what the helper gets: a mapping copied down to its documents; anything else unchanged.
    kind:      its operation, "" for anything but a mapping.
    documents: in the copy, each with whether it is a partial document. Their values are not copied.
    reason:    why there are no documents, in a word.
    unsketched: filled by the Sketcher: why a document got no sketch, a sentence for each.
    """

    content: Any
    kind: str = ""
    documents: tuple[tuple[dict[str, Any], bool], ...] = ()
    reason: str = ""
    unsketched: list[str] = field(default_factory=list)


def open_action(action: Any) -> Action:
    """Copy an action and find the documents in it."""
    if not isinstance(action, Mapping):
        return Action(action, reason="raw" if isinstance(action, str | bytes) else "not a document")
    content = dict(action)
    kind = content.get("_op_type", "index")
    if kind in ("index", "create"):
        document = _copied(content, "_source") if "_source" in content else content
        if document is None:
            return Action(content, kind, reason="raw")
        return Action(content, kind, ((document, False),))
    if kind != "update":
        return Action(content, str(kind), reason="delete" if kind == "delete" else "unknown operation")
    body = _copied(content, "_source") or content  # a _source that is no mapping filters the response
    found = [(part, name == "doc") for name in ("doc", "upsert") if (part := _copied(body, name)) is not None]
    reason = "" if found else "script" if "script" in body else "not a document"
    return Action(content, kind, tuple(found), reason)


def touches(document: Mapping[str, Any], source: str) -> str:
    """Return how a partial document changes a field: "whole" sets or clears it, "part" changes a part, "" nothing.

    A key with dots changes a part, also {"a.b": ...} of "a": the engine stores it beside an object of the same path,
    and reads both.
    """
    found = {"part" for key in document if isinstance(key, str) and key.startswith(f"{source}.")}
    for head, rest in [(source, ""), *splits(source)]:
        if head in document:
            inner = document[head]
            within = touches(inner, rest) if rest and isinstance(inner, Mapping) else "whole"
            is_part = "." in head or (not rest and isinstance(inner, Mapping))
            found.add("part" if within and is_part else within)
    return "part" if "part" in found else "whole" if "whole" in found else ""


def _copied(holder: dict[str, Any], name: str) -> dict[str, Any] | None:
    """Replace a mapping by a copy and return the copy, None if there is no mapping of that name."""
    found = holder.get(name)
    if not isinstance(found, Mapping):
        return None
    holder[name] = dict(found)
    copied: dict[str, Any] = holder[name]
    return copied
