"""A query on one state of an embedded index: reads its hits, in order, their documents and matched passages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any, Self

import numpy as np

from ndd_search.core.document_fields import text_of, value_of
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.paging.fill_page import Fetch, Fetched
from ndd_search.core.paging.record_schema import RecordSchema, presence
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import Lack, Sketch
from ndd_search.core.text.numbers import number_signature
from ndd_search.embedded.folder import engine_errors
from ndd_search.embedded.stored_document import StoredHit, document_of, searchable
from ndd_search.errors import importing

with importing("tantivy", "the embedded index", "tantivy", "embedded"):
    import tantivy

_MOST_ORDERED = 50_000  # hits that tantivy orders at once: it refuses 65,000
_PASSAGE = 200  # characters of a passage around the matched words


@dataclass(frozen=True, kw_only=True)
class Sort:
    """A field to order by: first texts, alphabetically, then numbers, and texts that hold one, by value."""

    field: str
    descending: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse "FIELD", "FIELD:asc" or "FIELD:desc". Raises ValueError for anything else."""
        name, _, direction = text.rpartition(":")
        if direction not in ("asc", "desc"):
            name, direction = text, "asc"
        if not name:
            raise ValueError(f'sort must be "FIELD", "FIELD:asc" or "FIELD:desc", got {text!r}')
        return cls(field=name, descending=direction == "desc")


@dataclass
class View:
    """A query on one state of the index: fetches hits, and reads their values (see stream.Reader).

    seconds: time spent in tantivy so far. sort: a field to order by instead of the score.
    items: compares hits by their fields; None to compare them by their sketches.
    """

    folder: Path
    searcher: tantivy.Searcher
    schema: tantivy.Schema
    query: tantivy.Query
    text: tuple[str, ...]
    recipe: Recipe
    frequency_table: FrequencyTable | None
    seconds: float = 0.0
    sort: Sort | None = None
    _documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    items: RecordSchema | None = None

    def fetch(self, request: Fetch) -> Fetched:
        began = perf_counter()
        if self.sort is None:
            hits, total = self._found(self.query, request)
        else:
            ids = self._in_order(self.sort, request.start + request.size)[request.start :]
            some = tantivy.Query.const_score_query(tantivy.Query.term_set_query(self.schema, "id", ids), 0.0)
            both = tantivy.Query.boolean_query([(tantivy.Occur.Must, self.query), (tantivy.Occur.Must, some)])
            by_id = {hit.id: hit for hit in self._found(both, Fetch(0, len(ids)))[0]}
            hits, total = [by_id[id] for id in ids], self._found(self.query, Fetch(0, 0))[1]
        self.seconds += perf_counter() - began
        return Fetched(hits, total)

    def _found(self, query: tantivy.Query, request: Fetch) -> tuple[list[StoredHit], int]:
        with engine_errors(self.folder):
            result = self.searcher.search(query, max(request.size, 1), offset=request.start)
            total: int = result.count  # type: ignore[attr-defined]  # missing from the package's stub
            return [self.stored(score, address) for score, address in result.hits[: request.size]], total

    def _in_order(self, sort: Sort, count: int) -> list[str]:
        """Return the ids of the first hits, ordered by a field; those without it come last.

        Raises ValueError if there are hits and no document has the field.
        """
        keys = self._keys(self.query, sort, count)
        if keys and keys[0]["value"] is None and self._keys(tantivy.Query.all_query(), sort, 1)[0]["value"] is None:
            raise ValueError(f"no document has the field {sort.field!r} to sort by")
        return [key["id"] for key in keys]

    def _keys(self, query: tantivy.Query, sort: Sort, count: int) -> list[dict[str, Any]]:
        """Return value and id of the first hits of a query, in order."""
        order = "desc" if sort.descending else "asc"
        value = {"field": f"order.{searchable(sort.field)}", "order": order}
        sources = [
            {"value": {"terms": {**value, "missing_bucket": True, "missing_order": "last"}}},
            {"id": {"terms": {"field": "id"}}},
        ]
        keys: list[dict[str, Any]] = []
        after: dict[str, Any] = {}
        while len(keys) < count:
            wanted = {"size": min(count - len(keys), _MOST_ORDERED), "sources": sources, **after}
            with engine_errors(self.folder):
                found = self.searcher.aggregate(query, {"hits": {"composite": wanted}})["hits"]
            keys += [bucket["key"] for bucket in found["buckets"]]
            if len(found["buckets"]) < wanted["size"]:
                break
            after = {"after": found["after_key"]}
        return keys

    def mark(self, hits: Sequence[dict[str, Any]], marks: tuple[str, str]) -> None:
        """Add to each hit, under "highlight", a passage of each text field with a matched word."""
        began = perf_counter()
        for number, name in enumerate(self.text):
            generator = tantivy.SnippetGenerator.create(self.searcher, self.query, self.schema, f"text{number}")
            generator.set_max_num_chars(_PASSAGE)
            for hit in hits:
                text = searchable(text_of(hit["_source"], [name]) or "")
                snippet = generator.snippet_from_doc(tantivy.Document(**{f"text{number}": [text]}))
                if ranges := [(match.start, match.end) for match in snippet.highlighted()]:
                    hit.setdefault("highlight", {})[name] = [marked(snippet.fragment(), ranges, marks)]
        self.seconds += perf_counter() - began

    def stored(self, score: float, address: tantivy.DocAddress) -> StoredHit:
        fields = self.searcher.doc(address)
        id, sketch = _first(fields, "id"), _first(fields, "sketch")
        return StoredHit(id, score, address.segment_ord, address.doc, sketch)

    def document(self, hit: StoredHit) -> dict[str, Any]:
        if hit.id not in self._documents:
            began = perf_counter()
            with engine_errors(self.folder):
                fields = self.searcher.doc(tantivy.DocAddress(hit.segment, hit.number))
                self._documents[hit.id] = document_of(_first(fields, "source"))
            self.seconds += perf_counter() - began
        return self._documents[hit.id]

    def sketches(self, hits: Sequence[StoredHit], ranks: Sequence[int]) -> list[Sketch | Lack]:
        if self.items is not None:
            return presence(hits, self, self.items)
        values = sketch_of(b"".join([hit.sketch for hit in hits]))
        ends = np.cumsum([0, *(len(hit.sketch) for hit in hits)]) // values.itemsize
        return [values[start:end] if start < end else Lack.EMPTY for start, end in pairwise(ends.tolist())]

    def identities(self, hits: Sequence[StoredHit], ranks: Sequence[int]) -> list[str]:
        return [hit.id for hit in hits]

    def value(self, hit: StoredHit, field: str) -> Any:
        return value_of(self.document(hit), field)

    def numbers(self, hit: StoredHit) -> int | None:
        return number_signature(self.text_of(hit) or "", self.recipe)  # the text is stored, so they need not be

    def text_of(self, hit: StoredHit) -> str | None:
        return text_of(self.document(hit), self.text)


def _first(fields: tantivy.Document, name: str) -> Any:
    return fields.get_first(name)  # all fields have one value


def sketch_of(stored: bytes) -> Sketch:
    return np.frombuffer(stored, "<i4").astype(np.int32, copy=False)


def marked(text: str, ranges: Iterable[tuple[int, int]], marks: tuple[str, str]) -> str:
    """Insert marks before and after ranges of a text, as one range where they touch.

    ranges: ascending, in bytes of UTF-8.
    """
    raw, pieces, done = text.encode(), [""], 0
    for start, end in ranges:
        if done == start and done:
            pieces.pop()
        else:
            pieces += [raw[done:start].decode(), marks[0]]
        pieces += [raw[start:end].decode(), marks[1]]
        done = end
    return "".join([*pieces, raw[done:].decode()])
