"""Compare the content of an index with what it should hold."""

from __future__ import annotations

from typing import Any

import ndd_search as ndd
from ndd_search.core.document_fields import text_of
from ndd_search.core.sketching import sketch_many
from ndd_search.core.sketching.stored_sketch import SketchField

FIELDS = ["title", "text"]  # of the labelled collections
RECIPE = ndd.Recipe()


def stored(client: Any, index: str) -> dict[str, dict[str, Any]]:
    """Return every hit of an index by id, with its source and doc values."""
    client.indices.refresh(index=index)
    body = {"size": 10_000, "docvalue_fields": SketchField().read, "query": {"match_all": {}}}
    return {hit["_id"]: hit for hit in client.search(index=index, body=body)["hits"]["hits"]}


def check(client: Any, index: str, expected: dict[str, dict[str, Any]]) -> None:
    """Assert that every document is stored, unchanged except for the sketch, with the sketch of its text."""
    hits = stored(client, index)
    left = {key: {name: value for name, value in hit["_source"].items() if name != "ndd"} for key, hit in hits.items()}
    for key, document in left.items():
        if "ndd_keys" not in expected.get(key, ()):
            document.pop("ndd_keys", None)
    assert left == expected
    found = SketchField().decode(list(hits.values()), RECIPE)
    texts = [text_of(hit["_source"], FIELDS) or "" for hit in hits.values()]
    for key, one, made in zip(hits, found, sketch_many(texts, RECIPE), strict=True):
        assert (one if isinstance(one, str) else one.tolist()) == (made.tolist() or "empty"), f"document {key}"
