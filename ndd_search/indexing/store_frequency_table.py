"""Counts the frequency table of an index, and stores it for every client of the index."""

from __future__ import annotations

from typing import Any

from ndd_search.core.matching.document_frequency import count_document_frequency
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.stored_sketch import SketchField, StoredSketches
from ndd_search.errors import IndexUnusable
from ndd_search.indexing.rate_and_retries import server_reason, status_of
from ndd_search.search.flow.choose_frequency_table import TABLES, document, document_id, named
from ndd_search.search.flow.learned_targets import MAX_RESULT_WINDOW
from ndd_search.search.rest.read_answer import window_limit
from ndd_search.search.rest.wider_requests import SAMPLE, sample_body, sketch_reading

# Hidden, so that searches of every index do not find it. No field is indexed: it is read by id.
_COMPANION = {
    "settings": {"index": {"hidden": True, "number_of_shards": 1, "auto_expand_replicas": "0-1"}},
    "mappings": {"dynamic": False},
}
_EXISTS = (400, 409)  # statuses of the creation of an index that exists


def store_frequency_table(client: Any, index: str, field: SketchField, recipe: Recipe) -> FrequencyTable | None:
    """Count the table of an index in a sample of 5,000 documents, and store it instead of the one that is there.

    client: synchronous, not wrapped or with collapsing switched off; with the right to read the index, and to create
    and write the companion index. index: the name that searches use. Returns None, and stores nothing, if no document
    has a sketch of the recipe. Raises IndexUnusable if the server does not store the table; other errors of the client
    pass through.
    """
    read = field.decode(sample(client, index, field, recipe), recipe)
    sketches = [one for one in read if not isinstance(one, str)]
    if not sketches:
        return None
    table = count_document_frequency(sketches, recipe)
    id, body = document_id(index, field, recipe.id), document(index, field, table)
    try:
        _create_companion(client)
        client.index(index=TABLES, id=id, body=body, refresh=True)
    except Exception as error:
        if status_of(error) is None:
            raise
        remedy = "clients count in the hits of each search; give backfill the rights to create and write this index"
        raise IndexUnusable(TABLES, f"the frequency table was not stored: {server_reason(error)}", remedy) from None
    return table


def sample(client: Any, index: str, field: SketchField, recipe: Recipe) -> list[dict[str, Any]]:
    """Return documents drawn at random."""
    stored = StoredSketches(field, recipe)
    body = sample_body(stored, min(SAMPLE, MAX_RESULT_WINDOW), sketch_reading(stored))
    try:
        found = client.search(index=named(index), body=body)["hits"]
    except Exception as error:
        if (most := window_limit(str(error))) is None:
            raise
        found = client.search(index=named(index), body={**body, "size": most})["hits"]
    return list(found["hits"])


def _create_companion(client: Any) -> None:
    try:
        client.indices.create(index=TABLES, body=_COMPANION)
    except Exception as error:
        if status_of(error) not in _EXISTS:
            raise
