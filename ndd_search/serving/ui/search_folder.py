"""Searches an index folder for the search page."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ndd_search.core.document_fields import text_of
from ndd_search.core.paging.collapse import collapse
from ndd_search.core.presets import collapse_options
from ndd_search.core.sketching.sketches import sketch
from ndd_search.embedded.index import Index
from ndd_search.serving.ui.searcher import (
    DATES,
    MARKS,
    MOST_SOURCES,
    SOURCES,
    Asked,
    Counts,
    Document,
    Found,
    Headers,
    Searcher,
    bounds,
    check_filters,
    chosen,
    months_or_years,
)

_SAMPLE = 200  # documents that are read to find the fields of source and date
_MOST_COUNTED = 2000  # documents in all values of the facets, of which the results are counted


class FolderSearcher(Searcher):
    """index: the folder. Facets count its fields of source and date (see searcher.SOURCES and DATES)."""

    syntax = (
        ("climate summit", "any of the words"),
        ("clim*", "words that begin so"),
        ('"climate summit"', "the words one after the other"),
        ("+climate -coal", "the first word, and not the second"),
        ("title:climate", "a word in one field"),
        ("price:[10 TO 20]", "a range of numbers or dates"),
        ("*", "every document"),
    )

    def __init__(self, index: Index) -> None:
        self._index = index
        self.name, self.text = index.path.name, index.meta.text
        sample = [name for document in index.sample(_SAMPLE) for name in document if name not in self.text]
        self._source, self._date = chosen(SOURCES, sample), chosen(DATES, sample)

    async def count(self, headers: Headers) -> int:
        return len(self._index)

    async def search(self, asked: Asked, headers: Headers) -> Found:
        return await asyncio.to_thread(self._search, asked)

    def _search(self, asked: Asked) -> Found:
        check_filters(asked, self._source, self._date)
        response = self._index.search(
            asked.q,
            size=asked.size,
            from_=asked.start,
            highlight=MARKS,
            where=self._where(asked),
            **dict(asked.options),
        )
        return self._with_facets(Found(response=response), asked) if asked.facets else Found(response=response)

    def _where(self, asked: Asked) -> str | None:
        words = [re.sub(r'[\\"]', " ", value) for value in asked.source]
        sources = [f'{self._source}:"{one}"' for one in words]
        periods = [f"{self._date}:[{first} TO {last}]" for first, last in map(bounds, asked.period)]
        return " ".join(f"+({' '.join(one)})" for one in (sources, periods) if one) or None

    def _with_facets(self, found: Found, asked: Asked) -> Found:
        """Count the values of a facet among all documents that the other filters leave, so that several can be chosen.

        The number of a value is that of the results with this value, unless there are too many documents.
        """
        by_source, by_date = replace(asked, source=()), replace(asked, period=())
        in_sources = self._documents(by_source, self._source, {"terms": {"size": MOST_SOURCES}}, "key")
        on_days = {"date_histogram": {"fixed_interval": "1d", "min_doc_count": 1}}
        days = self._documents(by_date, self._date, on_days, "key_as_string")
        sources: Counts = list(in_sources.items())
        names = months_or_years(day[:7] for day in days)
        periods: Counts = [(name, sum(days[day] for day in days if day.startswith(name))) for name in names]
        if not asked.is_deduplicated or sum(count for _, count in (*sources, *periods)) > _MOST_COUNTED:
            return replace(found, sources=sources, periods=periods)
        sources = [(one, self._results(replace(by_source, source=(one,)))) for one, _ in sources]
        periods = [(one, self._results(replace(by_date, period=(one,)))) for one, _ in periods]
        return replace(found, sources=sorted(sources, key=lambda one: -one[1]), periods=periods, counted="results")

    def _documents(self, asked: Asked, name: str, kind: Mapping[str, Mapping[str, Any]], key: str) -> Counter[str]:
        """Return the numbers of documents by the values of a field; {} without it, and if it does not hold dates."""
        wanted = {"values": {one: {"field": name, **settings} for one, settings in kind.items()}}
        counts: Counter[str] = Counter()
        with suppress(ValueError):  # other values than dates, or too many different days
            found = self._index.aggregate(asked.q, wanted, where=self._where(asked)) if name else {}
            for bucket in found.get("values", {}).get("buckets", ()):
                # A string that holds a number is counted as both. One without words cannot be searched for.
                if isinstance(bucket[key], str) and re.search(r"\w", bucket[key]):
                    counts[bucket[key]] += bucket["doc_count"]
        return counts

    def _results(self, asked: Asked) -> int:
        options = {**asked.options, "total": "groups"}
        response = self._index.search(asked.q, size=1, where=self._where(asked), **options)
        return int(response["hits"]["total"]["value"])

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
