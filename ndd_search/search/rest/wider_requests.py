"""Builds the wider requests that are sent instead of a search, and further requests for the same target.

The caller's dicts are never changed; changed parts are copied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import quote

from ndd_search.core.immutable import dataclass
from ndd_search.core.sketching.stored_sketch import SketchField, StoredSketches
from ndd_search.search.rest.candidate_limits import raised
from ndd_search.search.rest.hide_sketches import exclude_sketch, is_named
from ndd_search.search.rest.read_request import WHICH_INDEXES, Request, Search
from ndd_search.search.rest.search_body import names_of

_FIRST_ROUND_ONLY = ("aggs", "aggregations", "suggest", "profile")
_LOOK = 2.0  # seconds to wait at most for mappings


@dataclass(frozen=True)
class Reading:
    """What is read of each hit besides what the user requests.

    stored:   fields whose doc values are read.
    fields:   fields read from documents, which the engine has to decompress.
    sketched: whether the target is known to hold sketches; the request then excludes them from `_source`.
    sketches: those that are read, None if hits are compared by other fields.
    """

    stored: tuple[str, ...]
    fields: tuple[str, ...] = ()
    sketched: bool = True
    sketches: StoredSketches | None = None

    def and_of(self, stored: Sequence[str], fields: Sequence[str]) -> Reading:
        """Return a reading with more fields."""
        return replace(self, stored=(*self.stored, *stored), fields=(*self.fields, *fields))


def sketch_reading(sketches: StoredSketches, text: bool = False, sketched: bool = True) -> Reading:
    """Return how sketches are read. text: whether the recipe is mapped as text, which has no doc values."""
    field = sketches.field
    if text:
        return Reading((field.sketch,), (field.recipe,), sketched, sketches)
    return Reading(field.read, (), sketched, sketches)


def widened(
    search: Search, start: int, size: int, field: SketchField, reading: Reading, *, first: bool = True
) -> Request:
    """Return the request for hits [start, start + size) and what we read. Only the first one has aggregations etc."""
    body = dict(search.body)
    params = {
        name: value for name, value in search.request.params.items() if name not in ("size", "from", "filter_path")
    }
    body["from"], body["size"] = start, size
    in_url = names_of(params.get("docvalue_fields"))
    body["docvalue_fields"] = _completed(body.get("docvalue_fields", []), reading.stored, in_url)
    if reading.fields and (added := fields_added(search, reading)):
        body["fields"] = _completed(body.get("fields", []), added)
    if reading.sketched:
        exclude_sketch(body, params, field)
    if search.limits.bounded:
        body.update(raised(search.body, start + size, search.limits)[0])
    if not first:
        for key in _FIRST_ROUND_ONLY:
            body.pop(key, None)
        params.pop("track_total_hits", None)
        body["track_total_hits"] = False
    if "preference" not in params:
        params["preference"] = search.preference
    shown = {*reading.fields, *asked_for(search, field, field.read)}
    return search.request.asking(body, params, reading.sketches if shown.isdisjoint(field.read) else None)


def any_sketch(search: Search, field: SketchField) -> Request:
    """Return a request that finds one document with a sketch in the target."""
    return beside(search, {"size": 1, "query": stored_sketch(field), "_source": False})


def stored_sketch(field: SketchField) -> dict[str, Any]:
    """Return the query for documents with the values of a sketch."""
    return {"bool": {"filter": [{"exists": {"field": field.sketch}}]}}


def beside(search: Search, body: Mapping[str, Any]) -> Request:
    """Return a request of our own for the same target."""
    params = {name: value for name, value in search.request.params.items() if name in WHICH_INDEXES}
    return replace(search.request, method="POST", body=body, params=params)


def mappings(indexes: str, field: str, headers: Mapping[str, str]) -> Request:
    """Return a request for what `mapping.faults_in` reads, of the field that holds sketches.

    indexes: as in a path, "/news,blogs". headers: of the caller's request.
    """
    stored = (field, SketchField(field).keys)
    parts = ["mappings.enabled", "mappings._source", *(f"mappings.properties.{path}" for path in stored)]
    parts.append("settings.index.uuid")  # each index has one
    return Request("GET", indexes, {"filter_path": ",".join(f"*.{part}" for part in parts)}, headers, None, _LOOK)


def new_index(name: str, headers: Mapping[str, str]) -> Request:
    """Return a request for the mapping that an index of this name would get from a template that is no legacy one."""
    path = f"/_index_template/_simulate_index/{quote(name, safe='')}"
    return Request("POST", path, {"filter_path": "template"}, headers, None, _LOOK)


def legacy_templates(headers: Mapping[str, str]) -> Request:
    """Return a request for the patterns and mappings of all legacy templates."""
    return Request("GET", "/_template", {"filter_path": "*.index_patterns,*.mappings"}, headers, None, _LOOK)


def asked_for(search: Search, field: SketchField, paths: Sequence[str]) -> set[str]:
    """Return those fields that the user requested. A pattern that matches everything does not count for our fields."""
    return {
        path
        for pattern in search.wanted_fields
        for path in paths
        if fnmatchcase(path, pattern) and (path not in field.paths or is_named(pattern, field))
    }


def fields_added(search: Search, reading: Reading) -> list[str]:
    known = [*names_of(search.body.get("fields")), *asked_otherwise(search, reading.fields)]
    return [name for name in reading.fields if not any(fnmatchcase(name, one) for one in known)]


def asked_otherwise(search: Search, names: Sequence[str]) -> list[str]:
    """Return those of these fields that the caller requests as doc values, or in a format, such as the year of a date.

    An engine returns a field once in `fields`, so such a request excludes ours for the value in the document.
    """
    fields, params = search.body.get("fields"), search.request.params
    listed = fields if isinstance(fields, list | tuple) else []
    formats = [one for one in listed if isinstance(one, Mapping) and one.get("format") is not None]
    asked = names_of(search.body.get("docvalue_fields")) + names_of(params.get("docvalue_fields")) + names_of(formats)
    return [name for name in names if any(fnmatchcase(name, one) for one in asked)]


def _completed(given: Any, wanted: Sequence[str], elsewhere: Sequence[str] = ()) -> Any:
    """Return the user's fields with those we need, each once: engines may return the values of a repeated field twice.

    Anything but a list is returned unchanged, so that the engine refuses it.
    """
    if not isinstance(given, list | tuple):
        return given
    if not given and not elsewhere:
        return list(wanted)
    patterns = names_of(given) + list(elsewhere)
    return [*given, *(name for name in wanted if not any(fnmatchcase(name, one) for one in patterns))]
