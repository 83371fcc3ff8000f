"""Searches an index folder for the search page."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ndd_search.core.document_fields import text_of
from ndd_search.core.paging.collapse import collapse
from ndd_search.core.presets import collapse_options
from ndd_search.core.sketching.sketches import sketch
from ndd_search.embedded.index import Index
from ndd_search.serving.ui.searcher import (
    DATES,
    MOST_SOURCES,
    SOURCES,
    Asked,
    Document,
    Found,
    Headers,
    Searcher,
    bounds,
    check_filters,
    chosen,
)

_SAMPLE = 200  # documents that are read to find the fields of source and date


class FolderSearcher(Searcher):
    """index: the folder. Facets count its fields of source and date (see searcher.SOURCES and DATES)."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self.name, self.text = index.path.name, index.meta.text
        sample = [name for document in index.sample(_SAMPLE) for name in document if name not in self.text]
        self._source, self._date = chosen(SOURCES, sample), chosen(DATES, sample)

    async def search(self, asked: Asked, headers: Headers) -> Found:
        return await asyncio.to_thread(self._search, asked)

    def _search(self, asked: Asked) -> Found:
        where = self._where(asked)
        response = self._index.search(asked.q, size=asked.size, from_=asked.start, where=where, **dict(asked.options))
        sources, months = self._facets(asked.q, where) if asked.facets else ([], {})
        return Found(response=response, sources=sources, months=months, fields=(self._source, self._date))

    def _where(self, asked: Asked) -> str | None:
        check_filters(asked, self._source, self._date)
        parts = []
        if asked.source:
            words = asked.source.replace("\\", " ").replace('"', " ")
            parts.append(f'+{self._source}:"{words}"')
        if asked.period:
            first, last = bounds(asked.period)
            parts.append(f"+{self._date}:[{first} TO {last}]")
        return " ".join(parts) or None

    def _facets(self, q: str, where: str | None) -> tuple[list[tuple[str, int]], dict[str, int]]:
        wanted: dict[str, dict[str, Any]] = {}
        if self._source:
            wanted["sources"] = {"terms": {"field": self._source, "size": MOST_SOURCES}}
        if self._date:
            wanted["days"] = {"date_histogram": {"field": self._date, "fixed_interval": "1d", "min_doc_count": 1}}
        try:
            found = self._index.aggregate(q, wanted, where=where) if wanted else {}
        except ValueError:  # the field does not hold dates, or too many different days
            found = self._index.aggregate(q, {"sources": wanted["sources"]}, where=where) if self._source else {}
        months: Counter[str] = Counter()
        for bucket in found.get("days", {}).get("buckets", ()):
            months[str(bucket["key_as_string"])[:7]] += bucket["doc_count"]
        # A string that holds a number is counted as both.
        buckets = [one for one in found.get("sources", {}).get("buckets", ()) if isinstance(one["key"], str)]
        return [(one["key"], one["doc_count"]) for one in buckets], months

    async def documents(self, names: Sequence[tuple[str, str]], headers: Headers) -> list[Document]:
        """Read documents; the name of the index is not needed."""
        found = []
        for _, id in names:
            if (document := await asyncio.to_thread(self._index.get, id)) is not None:
                text = text_of(document, self.text) or ""
                hit = {"_index": self.name, "_id": id, "_source": document}
                found.append(Document(hit, sketch(text, self._index.recipe)))
        return found

    def verdict(self, pair: Sequence[Document], options: Mapping[str, Any]) -> str:
        """Explain the pair by the rules and the frequency table of the index."""
        page = collapse(
            [one.hit["_source"] for one in pair],
            text=self.text,
            recipe=self._index.recipe,
            frequency_table=self._index.frequency_table or False,
            options=collapse_options(self._index.options, **options),
        )
        explained = page.explain(1)
        if explained.leader == 0:
            return f"They count as near-duplicates: {explained.rule}."
        return f"They count as two results: {explained.rule.replace('hit 0', 'the first text')}."
