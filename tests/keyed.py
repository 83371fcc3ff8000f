"""Indexes with keys, by which near-duplicates are found in a whole index."""

from __future__ import annotations

from typing import Any

import ndd_search as ndd
from ndd_search.search.rest.mapping import mapping_properties

TEXT = "Ministers agreed on Friday to cut emissions from steel works by a third before the end of the decade."
COPY = f"LONDON (Wire) - {TEXT}"
OTHER = "The home side scored twice in the last ten minutes to reach the final for the first time in forty years."
DOCUMENTS = [{"_id": "a", "body": TEXT}, {"_id": "b", "body": COPY}, {"_id": "c", "body": OTHER}]


def create(client: Any, index: str, documents: list[dict[str, Any]] = DOCUMENTS, **settings: Any) -> None:
    client.indices.create(index=index, body={"mappings": {"properties": mapping_properties()}})
    store(client, index, ndd.with_sketches(documents, "body", **{"keys": 8, **settings}))


def store(client: Any, index: str, actions: Any) -> list[dict[str, Any]]:
    """Index, as a bulk helper does; returns the documents."""
    stored = [dict(action) for action in actions]
    lines = [
        line
        for one in stored
        for line in ({"index": {"_index": index, "_id": one["_id"]}}, {k: v for k, v in one.items() if k != "_id"})
    ]
    if lines:
        assert not client.bulk(body=lines, refresh=True)["errors"]
    return stored
