"""Adds sketches to documents that are written through a wrapped client.

A search does not return the sketch, so a program that reads a document, changes it and saves it as a whole would lose
it. If the user has named the text fields of an index, the sketch is computed on each write. Nothing else of a request
changes: JSON text keeps its bytes, except for members that are added, replaced or removed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import unquote

from ndd_search.recipe import Recipe
from ndd_search.rest.request import Request
from ndd_search.writing.add_sketches import Sketcher
from ndd_search.writing.bulk_actions import open_action

_ONE = re.compile(r"/(?P<index>[^/]+)/(?P<kind>_doc|_create|_update)(?:/(?P<id>[^/]+))?/?")
_BULK = re.compile(r"(?:/(?P<index>[^/]+))?/_bulk/?")
_KINDS = {"_doc": "index", "_create": "create", "_update": "update"}
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()

Rules = Mapping[str, Any]


@dataclass(frozen=True)
class SketchedWrites:
    """Which documents get a sketch when they are written.

    rules: patterns of index names, each with its Sketcher; the first pattern that matches is used.
    """

    rules: tuple[tuple[str, Sketcher], ...] = ()

    @classmethod
    def of(cls, rules: Rules | None, field: str, recipe: Recipe) -> SketchedWrites:
        """Create from the rules of `ndd_search.wrap`. Raises TypeError or ValueError for invalid ones."""
        if rules is not None and not isinstance(rules, Mapping):
            raise TypeError(f'sketch must map index names to text fields, as in {{"news*": ["body"]}}, got {rules!r}')
        return cls(tuple((pattern, _sketcher(fields, field, recipe)) for pattern, fields in (rules or {}).items()))

    def __call__(self, request: Request) -> Request:
        """Return the request with sketches in its documents, the same object if there is nothing to add."""
        if not self.rules or request.method not in ("PUT", "POST") or request.body is None:
            return request
        if found := _BULK.fullmatch(request.path):
            body = self._bulk(request.body, found["index"])
        elif found := _ONE.fullmatch(request.path):
            body = self._one(request.body, _KINDS[found["kind"]], unquote(found["index"]), found["id"])
        else:
            return request
        return request if body is request.body else replace(request, body=body)

    def _bulk(self, body: Any, index: str | None) -> Any:
        """Return the body of a bulk request, as text or as a list of lines like the original."""
        default = None if index is None else unquote(index)
        if isinstance(body, str | bytes):
            end: Any = "\n" if isinstance(body, str) else b"\n"
            given = body.split(end)
            lines = list(self._lines(given, default))
            return body if all(map(_same, lines, given)) else end.join(lines)
        if not isinstance(body, list | tuple):
            return body
        lines = list(self._lines(body, default))
        return body if all(map(_same, lines, body)) else lines

    def _lines(self, lines: Sequence[Any], index: str | None) -> Iterator[Any]:
        """Yield each line of a bulk request. A document follows every header line except `delete`."""
        header: tuple[str, str | None, Any] | None = None
        for line in lines:
            if header is not None:
                kind, where, id = header
                header = None
                yield line if where is None else self._one(line, kind, where, id)
                continue
            action = _parsed(line)
            if isinstance(action, Mapping) and len(action) == 1:
                kind, about = next(iter(action.items()))
                about = about if isinstance(about, Mapping) else {}
                header = None if kind == "delete" else (kind, about.get("_index", index), about.get("_id"))
            yield line

    def _one(self, document: Any, kind: str, index: str, id: Any) -> Any:
        """Return a document, or the body of an update, with its sketch."""
        sketcher = next((sketcher for pattern, sketcher in self.rules if fnmatchcase(index, pattern)), None)
        parsed = _parsed(document)
        if sketcher is None or not isinstance(parsed, Mapping):
            return document
        name = {} if id is None else {"_id": id}
        action = open_action({"_op_type": kind, **name, "_source": parsed})
        sketcher.add(action)
        after = action.content["_source"]
        if after == parsed:
            return document
        if isinstance(document, str):
            return _rewritten(document, parsed, after)
        return _rewritten(document.decode(), parsed, after).encode() if isinstance(document, bytes) else after


def _sketcher(fields: Any, field: str, recipe: Recipe) -> Sketcher:
    """Create a sketcher from text fields, or from {"fields": [...], "keys": 8, "numbers": True}."""
    if not isinstance(fields, Mapping):
        return Sketcher(fields, field, recipe, 0, False)
    if unknown := fields.keys() - {"fields", "keys", "numbers"}:
        raise TypeError(f"sketch has no setting {min(unknown)!r}; it has fields, keys and numbers")
    return Sketcher(fields["fields"], field, recipe, fields.get("keys", 0), fields.get("numbers", False))


def _same(first: Any, second: Any) -> bool:
    return first is second


def _parsed(given: Any) -> Any:
    """Parse a line, None for invalid JSON: the engine reports the error."""
    if not isinstance(given, str | bytes):
        return given
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        return None


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
    return "{" + ",".join(kept) + "}"


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
