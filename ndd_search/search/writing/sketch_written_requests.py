"""Adds sketches to documents that are written through a wrapped client.

A search does not return the sketch, so a program that reads a document, changes it and saves it as a whole would lose
it. If the user has named the text fields of an index, the sketch is computed on each write. A document of any other
index that comes with the sketch of an earlier text, as `get` returned it, gets that of its text. Nothing else of a
request changes: JSON text keeps its bytes, except for members that are added, replaced or removed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.stored_sketch import (
    SketchField,
    StoredSketches,
    are_keys,
    fields_in_text,
    is_sketch_object,
    listed,
)
from ndd_search.errors import InvalidDocument
from ndd_search.search.index_rules import IndexRule, IndexRules, named
from ndd_search.search.rest.read_request import Request
from ndd_search.search.writing.sketch_or_mark_stale import Action, Sketcher, open_action

_ONE = re.compile(r"/(?P<index>[^/]+)/(?P<kind>_doc|_create|_update)(?:/(?P<id>[^/]+))?/?")
_BULK = re.compile(r"(?:/(?P<index>[^/]+))?/_bulk/?")
_KINDS = {"_doc": "index", "_create": "create", "_update": "update"}
_SPACE = re.compile(r"[\ufeff \t\n\r]*")  # with the mark that may begin a text
_TEXT_OR_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*+"?)|/\*.*?(?:\*/|\Z)|//[^\n\r]*', re.DOTALL)
_DECODER = json.JSONDecoder()

Tell = Callable[[str], object]


def _nobody(why: str) -> None:
    """Take no notice of a document without a sketch, which the Sketcher counts and logs."""


@dataclass(frozen=True)
class SketchedWrites:
    """Which documents get a sketch when they are written.

    rules: patterns of index names, each with its Sketcher. indexes: says which pattern is that of an index.
    carried: where documents of other indexes may bring a sketch, and its recipe.
    """

    rules: tuple[tuple[str, Sketcher], ...] = ()
    indexes: IndexRules = field(default_factory=lambda: IndexRules({}))
    carried: StoredSketches = field(default_factory=lambda: StoredSketches(SketchField(), Recipe()))

    @classmethod
    def of(cls, indexes: IndexRules, carried: StoredSketches | None = None) -> SketchedWrites:
        """Create from the rules that name text fields. Raises TypeError or ValueError for fields that cannot be."""
        sketched = {pattern: rule for pattern, rule in indexes.rules.items() if rule.text}
        rules = tuple((pattern, _sketcher(pattern, rule)) for pattern, rule in sketched.items())
        return cls(rules, indexes, carried or StoredSketches(SketchField(), Recipe()))

    def __call__(self, request: Request, lines: WrittenLines | None = None) -> Request:
        """Return the request with sketches in its documents, the same object if there is nothing to add.

        lines: of the request, as `lines_of` returns them; None for new ones.
        """
        lines = lines or self.lines_of(request.path)
        if lines is None or request.method not in ("PUT", "POST") or request.body is None:
            return request
        body = self._bulk(request.body, lines) if _BULK.fullmatch(request.path) else lines(request.body)
        return request if body is request.body else replace(request, body=body)

    def lines_of(self, path: str, unmapped: Mapping[str, str] | None = None) -> WrittenLines | None:
        """Return what adds sketches to the lines of a write, None for the path of any other request.

        A request that is no bulk has one line, its document. unmapped: why documents of an index get no sketch.
        """
        lines = WrittenLines(self, None, unmapped or {})
        if found := _ONE.fullmatch(path):
            lines.header = _KINDS[found["kind"]], unquote(found["index"]), found["id"] and unquote(found["id"])
        elif found := _BULK.fullmatch(path):
            lines.index = found["index"] and unquote(found["index"])
        else:
            return None
        return lines

    def concerns(self, method: str, path: str) -> bool:
        """Return whether a request may hold documents that get a sketch: a bulk, or one for an index with a rule."""
        if not self.rules or method not in ("PUT", "POST"):
            return False
        index = (_ONE.fullmatch(path) or {"index": None})["index"]
        return bool(_BULK.fullmatch(path)) or (index is not None and bool(self.field_of(unquote(index))))

    def field_of(self, index: str) -> str:
        """Return the field that holds the sketches of an index, "" if its documents get none."""
        sketcher = self._rule(index)
        return "" if sketcher is None else sketcher.where.name

    def _bulk(self, body: Any, lines: WrittenLines) -> Any:
        """Return the body of a bulk request, as text or as a list like the original, whose texts may hold lines."""
        if isinstance(body, str | bytes):
            end: Any = "\n" if isinstance(body, str) else b"\n"
            given = body.split(end)
            after = [lines(line) for line in given[:-1]] + [given[-1] and lines(given[-1])]  # an end begins no line
            return body if all(map(_same, after, given)) else end.join(after)
        if isinstance(body, Mapping) or not isinstance(body, Iterable):
            return body
        given = list(body)
        after = [self._bulk(line, lines) if line and isinstance(line, str | bytes) else lines(line) for line in given]
        return body if isinstance(body, list | tuple) and all(map(_same, after, given)) else after

    def _rule(self, index: str) -> Sketcher | None:
        pattern = self.indexes.pattern_of(index)
        return next((sketcher for name, sketcher in self.rules if name == pattern), None)

    def sketched(self, document: Any, kind: str, index: str, id: Any, tell: Tell = _nobody) -> Any:
        """Return a document, or the body of an update, with its sketch.

        tell: called with the reason if it has no text, or a text that cannot be sketched.
        Raises InvalidDocument for text that an engine may read, though it is no JSON or nests too deep, and what
        Sketcher.add raises.
        """
        sketcher = self._rule(index)
        if sketcher is None and not self._may_carry(document):
            return document
        if isinstance(document, bytes):
            encoding = json.detect_encoding(document)  # by which json.loads reads it
            try:
                text = document.decode(encoding, "surrogatepass")
            except UnicodeDecodeError:
                return document
            after = self.sketched(text, kind, index, id, tell)
            return document if after is text else after.encode(encoding, "surrogatepass")
        which = "(without _id)" if id is None else id
        try:
            parsed, oddity = _parsed(document) if isinstance(document, str) else (document, "")
            if isinstance(parsed, Mapping) and oddity and sketcher is not None:
                raise InvalidDocument(f"document {which}", oddity, "send it as plain JSON")
            after = self._with_sketch(parsed, kind, id, sketcher, tell) if isinstance(parsed, Mapping) else parsed
            if after is parsed:
                return document
            return _rewritten(document, parsed, after) if isinstance(document, str) else after
        except RecursionError:
            raise InvalidDocument(f"document {which}", "it nests too deep", "store its inner part as text") from None

    def _with_sketch(self, document: Mapping[str, Any], kind: str, id: Any, rule: Sketcher | None, tell: Tell) -> Any:
        """Return what `sketched` returns for a mapping, the same object if its sketches stay. rule: of its index."""
        action = open_action({"_op_type": kind, **({} if id is None else {"_id": id}), "_source": document})
        carried = self._values_in(action)
        if (sketcher := rule or self._of_carried(action)) is None:
            return document
        sketcher.add(action)
        if action.unsketched:
            tell(action.unsketched[0])
        after = action.content["_source"]
        return document if after == document or (rule is None and self._values_in(action) == carried) else after

    def _may_carry(self, document: Any) -> bool:
        """Return whether a document, as JSON or not, may come with a stored sketch."""
        name = self.carried.field.name
        if isinstance(document, str):
            return f'"{name}"' in document
        if isinstance(document, bytes):
            return f'"{name}"'.encode() in document
        parts = (document, document.get("doc"), document.get("upsert")) if isinstance(document, Mapping) else ()
        return any(isinstance(part, Mapping) and name in part for part in parts)

    def _values_in(self, action: Action) -> list[Any]:
        """Return the values of the sketch that each document of an action has, None for none."""
        stored = [document.get(self.carried.field.name) for document, _ in action.documents]
        return [one.get("sketch") if isinstance(one, Mapping) else None for one in stored]

    def _of_carried(self, action: Action) -> Sketcher | None:
        """Return what makes the sketch that a document came with, None if there is none that names its text."""
        where, known = self.carried.field, self.carried.recipe
        for document, _ in action.documents:
            stored, keys = document.get(where.name), document.get(where.keys)
            if not isinstance(stored, Mapping) or not is_sketch_object(stored) or not are_keys(keys):
                continue
            if isinstance(text := stored.get("text"), str):
                numbered = stored.get("numbers") is not None
                with suppress(ValueError):  # it is stale, of another version, or of another key
                    recipe = known if stored["recipe"] == known.id else Recipe.parse(stored["recipe"])
                    kept = {"field": where.name, "keys": len(listed(keys)), "numbers": numbered}
                    return Sketcher(fields=fields_in_text(text), recipe=recipe, **kept)
        return None


class WrittenLines:
    """Adds sketches to the lines of one write, given one by one in their order.

    index: of documents whose header line names none. unmapped: why documents of an index get none.
    header: of the document that follows, None if a header line follows. indexes: of the documents so far.
    """

    def __init__(self, writes: SketchedWrites, index: str | None, unmapped: Mapping[str, str]) -> None:
        self._writes, self.index, self.unmapped = writes, index, dict(unmapped)
        self.header: tuple[str, str | None, Any] | None = None
        self.indexes: set[str] = set()

    def __call__(self, line: Any, tell: Tell = _nobody) -> Any:
        """Return a line with its sketch, the same object if there is nothing to add. tell: as in `sketched`.

        A document follows every header line except `delete`, even if it is empty. Raises what SketchedWrites.sketched
        raises; the next line is then read as usual.
        """
        if self.header is not None:
            (kind, index, id), self.header = self.header, None
            if index is None:
                return line
            if index in self.unmapped:
                tell(self.unmapped[index])
                return line
            self.indexes.add(index)
            return self._writes.sketched(line, kind, index, id, tell)
        action = line
        if isinstance(line, str | bytes):
            with suppress(RecursionError):  # the engine refuses it
                action, _ = _parsed(line if isinstance(line, str) else line.decode("utf-8-sig", "replace"))
        if isinstance(action, Mapping) and action:
            kind, about = next(iter(action.items()))  # OpenSearch reads the first key, Elasticsearch refuses others
            about = about if isinstance(about, Mapping) else {}
            if kind != "delete":
                index = about.get("_index")  # null is no name, and a number is the name that it is written as
                named = str(index) if isinstance(index, str | int) else self.index if index is None else None
                self.header = kind, named, about.get("_id")
        return line

    @property
    def following(self) -> str | None:
        """The index with a rule of the document that follows, None if another line follows."""
        index = None if self.header is None else self.header[1]
        return index if index is not None and self._writes.field_of(index) else None

    def skip(self) -> bool:
        """Pass over a line that is not read. Returns whether it is a document that should have got a sketch."""
        follows, self.header = self.following is not None, None
        return follows


def _sketcher(pattern: str, rule: IndexRule) -> Sketcher:
    stored = {"field": rule.field or "ndd", "keys": rule.keys, "numbers": rule.numbers}
    with named(pattern):
        return Sketcher(fields=rule.text, recipe=rule.recipe, **stored)


def _same(first: Any, second: Any) -> bool:
    return first is second


def _parsed(text: str) -> tuple[Any, str]:
    """Return the value of JSON, and what the text has that JSON has not, and that engines read over in some places.

    The value is None for other invalid JSON: the engine reports the error. Raises RecursionError if it nests too deep.
    """
    found: tuple[Any, str] = None, ""
    plain = _TEXT_OR_COMMENT.sub(lambda match: match[1] or " ", text) if "/" in text else text
    for one, oddity in ((text, ""), (plain, "it holds comments")):
        with suppress(ValueError):
            value, end = _DECODER.raw_decode(one, _after_space(one, 0))
            if _after_space(one, end) == len(one):
                return value, oddity
            found = value, "it goes on after its end"
    return found


def _rewritten(text: str, before: Mapping[str, Any], after: Mapping[str, Any], start: int = 0) -> str:
    """Return the JSON of the changed object `after`, with the original text of every unchanged member."""
    kept = []
    for name, first, value, end in _members(text, start):
        if name not in after:
            continue
        if after[name] == before[name]:
            kept.append(text[first:end])
        elif isinstance(before[name], Mapping) and isinstance(after[name], Mapping):
            kept.append(text[first:value] + _rewritten(text, before[name], after[name], value))
        else:
            kept.append(text[first:value] + json.dumps(after[name]))
    kept += [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in after.items() if name not in before]
    space = "" if start else text[len(text.rstrip()) :]  # behind the whole
    return text[start : _after_space(text, start)] + "{" + ",".join(kept) + "}" + space


def _members(text: str, start: int) -> Iterator[tuple[str, int, int, int]]:
    """Yield the members of a JSON object: the name, the start of the name, the start and the end of the value."""
    place = _after_space(text, _after_space(text, start) + 1)
    while text[place] != "}":
        name, end = _DECODER.raw_decode(text, place)
        value = _after_space(text, _after_space(text, end) + 1)
        _, stop = _DECODER.raw_decode(text, value)
        yield name, place, value, stop
        place = _after_space(text, stop)
        if text[place] == ",":
            place = _after_space(text, place + 1)


def _after_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return found.end() if found else place
