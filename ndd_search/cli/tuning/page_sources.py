"""Indexes whose result pages are compared: in a folder or on a server."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ndd_search.cli.tuning.compare_settings import FoundHit, ResultPage
from ndd_search.core.document_fields import text_of
from ndd_search.core.matching.document_frequency import count_document_frequency
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import sketch_many
from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.core.text.numbers import number_signature
from ndd_search.errors import InvalidDocument
from ndd_search.indexing.backfill import sample

if TYPE_CHECKING:
    from ndd_search.embedded.index import Index

Query = str | Mapping[str, Any]
_MOST_QUERIES = 300

# Keys of a search body that are removed: they ask for more than the first hits, or conflict with fetching them.
_LEFT_OUT = {"from", "aggs", "aggregations", "suggest", "highlight", "profile", "explain", "search_after", "pit", "ndd"}


def read_queries(lines: Iterable[str], report: Callable[[str], None]) -> list[Query]:
    """Read queries, one per line, each once: words, a search body, or {"query": words}; of more than 300, 300.

    report: called with a sentence for every line that starts with { and is not valid JSON.
    """
    queries: dict[str, Query] = {}
    for number, line in enumerate(lines, 1):
        words = line.strip()
        if words.startswith("{"):
            try:
                body = json.loads(words)
            except (ValueError, RecursionError) as error:
                report(f"line {number} is left out, it is not valid JSON: {error}")
                continue
            words_inside = body.get("query")
            queries[words] = words_inside if isinstance(words_inside, str) else body
        elif words:
            queries[words] = words
    found = list(queries.values())
    return found if len(found) <= _MOST_QUERIES else random.Random(0).sample(found, _MOST_QUERIES)


def shown(query: Query) -> str:
    """Return a query on one line."""
    return query if isinstance(query, str) else json.dumps(query, ensure_ascii=False)


@dataclass(frozen=True)
class FolderSource:
    """An embedded index. Sketches are computed again from the texts; they equal the stored ones."""

    index: Index

    @property
    def name(self) -> str:
        return str(self.index.path)

    @property
    def recipe(self) -> Recipe:
        return self.index.recipe

    @property
    def frequency_table(self) -> FrequencyTable | None:
        return self.index.frequency_table

    def search(self, query: Query, window: int) -> ResultPage:
        """Search for words. Raises InvalidDocument if the query is a search body."""
        if not isinstance(query, str):
            problem = "it is a search body, but an index in a folder is searched for words"
            raise InvalidDocument(f"query {shown(query)}", problem, "give words")
        response = self.index.search(query, size=window, window=window, max_window=window, mode="annotate")
        documents = [hit["_source"] for hit in response["hits"]["hits"]]
        texts = [text_of(document, self.index.meta.text) or "" for document in documents]
        sketches = sketch_many(texts, self.recipe)
        numbers = (partial(number_signature, text, self.recipe) for text in texts)
        hits = zip(response["hits"]["hits"], sketches, texts, documents, numbers, strict=True)
        return ResultPage(query, [FoundHit(hit["_id"], *others) for hit, *others in hits])


@dataclass(frozen=True)
class ServerSource:
    """An index on a server. name: shown to the user, without credentials. client: synchronous.

    fields: those whose text is shown, () for all.
    """

    name: str
    client: Any
    index: str
    recipe: Recipe
    field: SketchField
    fields: Sequence[str] = ()

    @property
    def frequency_table(self) -> FrequencyTable | None:
        """Count a frequency table from a sample of the index, as a backfill does."""
        sketches = self._decoded(sample(self.client, self.index, self.field, self.recipe))
        return count_document_frequency([sketch for sketch in sketches if not isinstance(sketch, str)], self.recipe)

    def search(self, query: Query, window: int) -> ResultPage:
        hits = self.client.search(index=self.index, body=self._body(query, window))["hits"]["hits"]
        page = []
        for hit, sketch in zip(hits, self._decoded(hits), strict=True):
            document = hit.get("_source") or {}
            ours = (self.field.name, self.field.keys)
            paths = self.fields or [name for name in document if name not in ours]
            numbers = partial(self.field.numbers_in, hit.get("fields") or {})
            page.append(FoundHit(hit["_id"], sketch, text_of(document, paths) or "", document, numbers))
        return ResultPage(shown(query), page)

    def _decoded(self, hits: Sequence[Mapping[str, Any]]) -> list[Any]:
        return list(self.field.decode(hits, self.recipe))

    def _body(self, query: Query, window: int) -> dict[str, Any]:
        if isinstance(query, str):
            words = {"query": re.sub(r"[^\w\s]", " ", query), **({"fields": list(self.fields)} if self.fields else {})}
            query = {"query": {"simple_query_string": words}}
        kept = {name: value for name, value in query.items() if name not in _LEFT_OUT}
        docvalues = [*self.field.read, self.field.numbers]
        return {**kept, "size": window, "_source": True, "docvalue_fields": docvalues}


Source = FolderSource | ServerSource
