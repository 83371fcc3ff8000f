"""Finds the documents of a whole index that are one thing with a record, by the values of its fields.

The engine looks for documents with near values in any field, and ranks those first that share rare words and many
values. The best of them are compared by the schema. The index needs no preparation but its mapping.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ndd_search.core.paging.record_schema import (
    Near,
    NearNumber,
    NearPlace,
    NearText,
    RecordSchema,
    probability_of,
    ranges_near,
)
from ndd_search.core.paging.records_of_one_thing import Candidate, Found, check_numbers, one_thing
from ndd_search.errors import IndexUnusable
from ndd_search.search.flow.options_context import options
from ndd_search.search.rest.read_answer import value_in

_TEXTS = {"text", "match_only_text", "search_as_you_type", "annotated_text"}
_NUMBERS = {"byte", "short", "integer", "long", "unsigned_long", "half_float", "float", "double", "scaled_float"}
_VALUES = _NUMBERS | {"keyword", "constant_keyword", "wildcard", "date", "date_nanos", "boolean", "ip", "version"}
_MOST_WORDS = 100  # of a text that are looked for; the engines bound the clauses of a query
_FUZZY = 0.5  # weight of a misspelt word, beside 1 for the word itself

Types = Mapping[str, set[str]]  # of each mapped field


def find_records(
    client: Any,
    index: str,
    record: Any,
    items: RecordSchema,
    size: int,
    *,
    examined: int = 100,
    min_similarity: float | str = "auto",
) -> list[Candidate]:
    """Return the documents that are one thing with a record, the most probable first: see find_duplicates.

    Raises IndexUnusable if the engine can search none of the fields of the record.
    """
    check_numbers(size, examined)
    bar = probability_of(min_similarity)
    if not isinstance(record, Mapping):
        raise TypeError(f"with items, the document must be a mapping with its fields, got {type(record).__name__}")
    if not (near := items.near(record)):
        return []
    body = {
        "size": max(examined, size),
        "_source": list(items.paths),
        "fields": list(items.paths),
        "track_total_hits": False,
    }
    with options(enabled=False):  # a wrapped client would collapse the duplicates
        clauses = clauses_of(near, _types(client, index, near))
        if not clauses:
            searched = ", ".join(dict.fromkeys(one.path for one in near))
            raise IndexUnusable(index, f"it has no index on {searched}", "map these fields, or name others in items")
        query = {"bool": {"should": clauses, "minimum_should_match": 1}}
        hits = client.search(index=index, body={"query": query, **body})["hits"]["hits"]
    found = [Found(hit["_id"], hit["_index"], {path: value_in(hit, path) for path in items.paths}) for hit in hits]
    return one_thing(record, found, items, bar)[:size]


def _types(client: Any, index: str, near: Sequence[Near]) -> Types:
    """Return the types of the fields that are looked for, in any of the indexes."""
    paths = dict.fromkeys(path for one in near for path in (one.path, *_inner(one.path)))
    fields = client.field_caps(index=index, fields=list(paths))["fields"]
    return {path: {kind for kind, of in kinds.items() if of.get("searchable")} for path, kinds in fields.items()}


def _inner(path: str) -> tuple[str, str]:
    """Return the fields of a place that is mapped as an object."""
    return f"{path}.lat", f"{path}.lon"


def clauses_of(near: Sequence[Near], types: Types) -> list[dict[str, Any]]:
    """Return the clauses of a query, of which a candidate has to match one."""
    return [clause for one in near for clause in _clauses(one, types)]


def _clauses(near: Near, types: Types) -> list[dict[str, Any]]:
    kinds = types.get(near.path, set())
    if isinstance(near, NearText):
        words = " ".join(near.text.split()[:_MOST_WORDS]) if kinds & _TEXTS else near.text
        exact = [{"match": {near.path: {"query": words, "lenient": True}}}] if kinds & (_TEXTS | _VALUES) else []
        fuzzy = {"query": words, "fuzziness": "AUTO", "prefix_length": 1, "boost": _FUZZY}
        return [*exact, {"match": {near.path: fuzzy}}] if near.fuzzy and kinds and kinds <= _TEXTS else exact
    if isinstance(near, NearNumber):
        return [_constant({"range": {near.path: {"gte": near.low, "lte": near.high}}})] if kinds & _NUMBERS else []
    return _place_clauses(near, kinds, types)


def _place_clauses(near: NearPlace, kinds: set[str], types: Types) -> list[dict[str, Any]]:
    if kinds == {"geo_point"}:
        at = {"lat": near.latitude, "lon": near.longitude}
        return [_constant({"geo_distance": {"distance": f"{near.km}km", "ignore_unmapped": True, near.path: at}})]
    return clauses_of(ranges_near(near.latitude, near.longitude, near.km, *_inner(near.path)), types)


def _constant(query: dict[str, Any]) -> dict[str, Any]:
    return {"constant_score": {"filter": query}}
