"""Counts the frequency table of an index and stores it for every client of the index (see middleware.stored_table)."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ndd_search.errors import IndexUnusable
from ndd_search.indexing.retry import status_of
from ndd_search.matching.document_frequency import count_document_frequency
from ndd_search.matching.frequency_table import FrequencyTable
from ndd_search.middleware.learned import MAX_RESULT_WINDOW
from ndd_search.middleware.scope import options
from ndd_search.middleware.stored_table import (
    COMPANION,
    TABLES,
    StoredTable,
    document,
    document_id,
    named,
    read_document,
    view_of,
)
from ndd_search.recipe import Recipe
from ndd_search.rest.answers import window_limit
from ndd_search.rest.wider_requests import SAMPLE, sample_body
from ndd_search.sketching.field import SketchField

_EXISTS = (400, 409)  # statuses of the creation of an index that exists


@dataclass(frozen=True, kw_only=True)
class TableCount:
    """A count of the frequency table of an index.

    index:  the name that searches use: an index, alias, data stream, pattern, or several joined by commas.
    recipe, field: of the sketches.
    tables: name of the companion index, which is created if it does not exist.
    now:    seconds since 1970.
    """

    index: str
    recipe: Recipe = dataclasses.field(default_factory=Recipe)
    field: str = "ndd"
    tables: str = TABLES
    now: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        object.__setattr__(self, "recipe", Recipe.of(self.recipe))

    def run(self, client: Any) -> FrequencyTable:
        """Count the table in a sample of 5,000 documents, and store it instead of the one that is there.

        client: synchronous, with the right to read the index, and to create and write the companion index.
        Raises IndexUnusable if there is no such index, or none of its documents has a sketch of the recipe. Errors of
        the client pass unchanged.
        """
        with options(enabled=False):
            hits, total = self._sample(client)
            sketches = SketchField(self.field).decode([hit.get("fields", {}) for hit in hits], self.recipe)
            found = [one for one in sketches if not isinstance(one, str)]
            if not found:
                problem = f"none of its documents has a sketch of recipe {self.recipe.id} in {self.field}"
                raise IndexUnusable(self.index, problem, "run ndd-search backfill, or name the recipe and the field")
            table = count_document_frequency(found, self.recipe)
            self._store(client, StoredTable(table, view_of(hits, total), self.now()))
        return table

    def stored(self, client: Any) -> StoredTable | None:
        """Return the table that is stored for the index, None if there is none of this recipe and version."""
        body = {"query": {"ids": {"values": [self._id]}}, "size": 1}
        with options(enabled=False):
            found = client.search(index=self.tables, body=body, ignore_unavailable=True)["hits"]["hits"]
        return read_document(found[0], self.recipe.id) if found else None

    @property
    def _id(self) -> str:
        return document_id(self.index, SketchField(self.field), self.recipe.id)

    def _sample(self, client: Any) -> tuple[list[dict[str, Any]], int]:
        body = {**sample_body(SketchField(self.field), self.recipe, SAMPLE), "track_total_hits": True}
        try:
            found = self._search(client, {**body, "size": min(SAMPLE, MAX_RESULT_WINDOW)})
        except Exception as error:
            if status_of(error) == 404:
                raise IndexUnusable(self.index, "there is no such index", "GET _cat/indices lists them") from None
            if (most := window_limit(str(error))) is None:
                raise
            found = self._search(client, {**body, "size": most})
        return list(found["hits"]), int(found["total"]["value"])

    def _search(self, client: Any, body: dict[str, Any]) -> Any:
        return client.search(index=named(self.index), body=body)["hits"]

    def _store(self, client: Any, table: StoredTable) -> None:
        try:
            client.indices.create(index=self.tables, body=COMPANION)
        except Exception as error:
            if status_of(error) not in _EXISTS:
                raise
        line = {"index": {"_index": self.tables, "_id": self._id}}
        written = client.bulk(body=[line, document(self.index, SketchField(self.field), table)], refresh=True)
        if written["errors"]:
            reason = written["items"][0]["index"]["error"]["reason"]
            raise IndexUnusable(self.tables, f"the table was not stored: {reason}", "check the index and its rights")
