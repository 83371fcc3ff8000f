"""The frequency table that all clients of an index share: a document in a small companion index.

The companion index (TABLES by default) holds one document for each searched name, sketch field and recipe. Clients read
it with one request. They use its table only if they see about the same documents as the one who counted it (see
`counted_table`), so whoever may read the companion index learns which sketch values are common, and no document or id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

from ndd_search.matching.frequency_table import FrequencyTable
from ndd_search.middleware.learned import View
from ndd_search.paging.cache import cache_key
from ndd_search.rest.answers import Answer, Hit
from ndd_search.rest.request import Request
from ndd_search.sketching.field import SketchField

TABLES = "ndd-tables"
VERSION = 1  # of the document
HEAD = 32  # documents of a sample by which the views of two callers are compared
# Hidden, so that searches of every index do not find it. No field is indexed: it is read by id.
COMPANION = {
    "settings": {"index": {"hidden": True, "number_of_shards": 1, "auto_expand_replicas": "0-1"}},
    "mappings": {"dynamic": False},
}
_MALFORMED = (KeyError, TypeError, ValueError, AttributeError, OverflowError)


@dataclass(frozen=True)
class StoredTable:
    """A stored table. view: the documents it was counted in. counted: seconds since 1970.

    place: _seq_no and _primary_term of its document, None if the engine did not return them.
    """

    frequency_table: FrequencyTable
    view: View
    counted: float
    place: tuple[int, int] | None = None


def document_id(target: str, field: SketchField, recipe: str) -> str:
    """Return the id of the document for a searched name: an index, alias, pattern, or several joined by commas."""
    return cache_key("table", named(target), field.name, recipe).hex()


def named(target: str) -> str:
    """Return a searched name in one form. target: as in a path, "/news,blogs" or "news,blogs"; "" for every index."""
    names = sorted(filter(None, unquote(target.lstrip("/")).split(",")))
    return ",".join(names) or "_all"


def document(target: str, field: SketchField, table: StoredTable) -> dict[str, Any]:
    """Return the document that stores a table."""
    return {
        "version": VERSION,
        "target": named(target),
        "field": field.name,
        "counted": table.counted,
        "digest": table.frequency_table.digest,
        "table": table.frequency_table.to_dict(),
        "view": {"first": sorted(table.view.first), "total": table.view.total},
    }


def read_document(hit: Mapping[str, Any], recipe: str) -> StoredTable | None:
    """Return the table of a document, None if it has another version or recipe, or is damaged."""
    try:
        stored = hit["_source"]
        if stored["version"] != VERSION:
            return None
        table = FrequencyTable.from_dict(stored["table"])
        if table.recipe != recipe or table.digest != stored["digest"]:
            return None
        view = View(frozenset(map(str, stored["view"]["first"])), int(stored["view"]["total"]))
        place = (int(hit["_seq_no"]), int(hit["_primary_term"])) if "_seq_no" in hit else None
        return StoredTable(table, view, float(stored["counted"]), place)
    except _MALFORMED:
        return None


def view_of(hits: list[Hit], total: int | None) -> View:
    """Return the view of a caller whose sample begins with these hits. Ids are hashed."""
    first = frozenset(cache_key(hit["_index"], hit["_id"]).hex() for hit in hits[:HEAD])
    return View(first, len(hits) if total is None else total)


def reading(like: Request, index: str, id: str) -> Request:
    """Return the request for a document, None of whose answers is an error of a missing index. like: of the caller."""
    body = {"query": {"ids": {"values": [id]}}, "size": 1, "seq_no_primary_term": True}
    params = {"ignore_unavailable": "true", "allow_no_indices": "true"}
    return replace(like, method="POST", path=f"/{index}/_search", params=params, body=body)


def is_missing(found: Answer) -> bool:
    """Return whether the companion index does not exist, or is not visible for the caller."""
    return found.has_hits and not (found.body.get("_shards") or {}).get("total")


def creating(like: Request, index: str) -> Request:
    """Return the request that creates the companion index."""
    return replace(like, method="PUT", path=f"/{index}", params={}, body=COMPANION)


def writing(like: Request, index: str, id: str, body: Mapping[str, Any], place: tuple[int, int] | None) -> Request:
    """Return the request that stores a document. It fails with 409 if the document has changed since `place`."""
    unchanged = {"op_type": "create"} if place is None else {"if_seq_no": str(place[0])}
    if place is not None:
        unchanged["if_primary_term"] = str(place[1])
    params = {"refresh": "true", **unchanged}
    return replace(like, method="PUT", path=f"/{index}/_doc/{id}", params=params, body=body)
