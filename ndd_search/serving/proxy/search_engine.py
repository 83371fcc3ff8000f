"""Searches an engine for the search page (`serving.ui`). The engine sees its caller's credentials."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from ndd_search.reports.side_by_side import MOST_SHOWN
from ndd_search.search.flow.intercept_requests import Driver
from ndd_search.search.rest.read_answer import Answer, reason_of
from ndd_search.search.rest.read_request import Request
from ndd_search.serving.proxy.upstream import Upstream, sent
from ndd_search.serving.proxy.wire_format import Raw
from ndd_search.serving.ui.searcher import (
    DATES,
    MARKS,
    MOST_SOURCES,
    SOURCES,
    Asked,
    Counted,
    Document,
    Found,
    Headers,
    Searcher,
    SearchFailed,
    bounds,
    check_filters,
    chosen,
    months_or_years,
)
from ndd_search.serving.ui.shown_texts import PASSAGE, TITLES

_NO_HEADERS: Mapping[str, str] = {}
# How each engine names the characters of a field that it reads to mark words in it.
_MARKED = {"elasticsearch": "max_analyzed_offset", "opensearch": "max_analyzer_offset"}
_BOOLEAN = re.compile(r"\S\s+(?:AND|OR|NOT)\s+\S|^NOT\s")
_FIELD = re.compile(r"(?<!\S)[A-Za-z_][\w.]*:(?=\S)")


class UpstreamSearcher(Searcher):
    """Searches an engine through the proxy's own connections, with the rights of the caller.

    driver: collapses the searches. index: what is searched, as in a URL. headers: sent with every request, as
    Authorization. Raises ValueError if `index` names no index.
    """

    text: tuple[str, ...] = ()
    syntax = (
        ("climate summit", "any of the words"),
        ('"climate summit"', "the words one after the other"),
        ("+climate +summit", "both words"),
        ("climate -coal", "the first word, and not the second"),
        ("clim*", "words that begin so"),
    )

    def __init__(
        self, driver: Driver, upstream: Upstream, index: str, headers: Mapping[str, str] = _NO_HEADERS
    ) -> None:
        self.name, self._driver, self._upstream, self._headers = index, driver, upstream, headers
        self._path = f"/{checked_target(index)}"

    async def close(self) -> None:
        await self._upstream.close()

    async def count(self, headers: Headers) -> int:
        body = {"size": 0, "track_total_hits": True}
        answer = await self._send(Request("POST", f"{self._path}/_search", {}, headers, body))
        return int(self._body(answer)["hits"]["total"]["value"])

    async def search(self, asked: Asked, headers: Headers) -> Found:
        """Search, after a request for the names of the fields that facets are made of.

        The values of a field that the search filters by are counted by one more search without this filter.
        """
        needed = asked.facets or asked.source or asked.period
        source, moment = await self._fields(headers) if needed else ("", "")
        check_filters(asked, source, moment)
        facets = {"source": _sources(source), "period": _periods(moment)} if asked.facets else {}
        filtered = [name for name in facets if getattr(asked, name)]
        here = {name: one for of, own in facets.items() if of not in filtered for name, one in own.items()}
        response = await self._collapsed(asked, here, source, moment, headers)
        if response.get("_shards", {}).get("total") == 0:
            raise SearchFailed(HTTPStatus.NOT_FOUND, f"no index matches {self.name}")
        answers = [response]
        for name in filtered:
            without: dict[str, Any] = {name: ()}
            asked_of_all = replace(asked, start=0, size=1, **without)
            answers.append(await self._collapsed(asked_of_all, facets[name], source, moment, headers))
        counts = {name: dict(counted) for one in answers for name, counted in _counts(one).items()}
        dated = {**counts.get("months", {}), **counts.get("years", {})}
        return Found(
            response=response,
            sources=list(counts.get("sources", {}).items()),
            periods=[(one, dated[one]) for one in months_or_years(counts.get("months", {}))],
            counted=_counted(answers),
            notes=_slips(asked.q),
        )

    async def _collapsed(
        self, asked: Asked, facets: Mapping[str, Any], source: str, moment: str, headers: Headers
    ) -> dict[str, Any]:
        """Return a page with some facets. source, moment: names of the fields, "" if there is none."""
        body = _body(asked, source, moment)
        body["highlight"][_MARKED[await self._upstream.family({**headers, **self._headers})]] = MOST_SHOWN
        if facets:
            body |= {"aggs": facets}
            if asked.is_deduplicated:
                body["ndd"] = {**asked.options, "facets": list(facets)}
        request = Request("POST", f"{self._path}/_search", {}, headers, body)
        return self._body(await self._driver.handle_async(request, self._send))

    async def _fields(self, headers: Headers) -> tuple[str, str]:
        """Return the names of the fields of source and date, "" if the index has none that can be counted."""
        keywords = [name for one in SOURCES for name in (one, f"{one}.keyword")]
        params = {"fields": ",".join((*keywords, *DATES)), "ignore_unavailable": "true"}
        found = self._body(await self._send(Request("GET", f"{self._path}/_field_caps", params, headers, None)))
        kinds = {
            name: {kind for kind, facts in kinds.items() if facts.get("aggregatable")}
            for name, kinds in found.get("fields", {}).items()
        }
        return (
            chosen(keywords, (name for name, kind in kinds.items() if kind in ({"keyword"}, {"constant_keyword"}))),
            chosen(DATES, (name for name, kind in kinds.items() if kind and kind <= {"date", "date_nanos"})),
        )

    async def documents(self, names: Sequence[tuple[str, str]], headers: Headers) -> list[Document]:
        """Search for documents by id, in the indexes of the page only. Raises ValueError if a name lacks its index."""
        if not all(index for index, _ in names):
            raise ValueError("the URL of a document needs its index: open the document from a page of results")
        field, recipe = self._driver.settings.sketch_field, self._driver.settings.recipe
        indexes, ids = ([*{name[part] for name in names}] for part in (0, 1))
        body = {
            "query": {"bool": {"filter": [{"ids": {"values": ids}}, {"terms": {"_index": indexes}}]}},
            "size": len(ids) * len(indexes),
            "docvalue_fields": list(field.read),
            "_source": {"excludes": [field.name, field.keys]},
        }
        answer = await self._send(Request("POST", f"{self._path}/_search", {}, headers, body))
        hits = {(hit["_index"], hit["_id"]): hit for hit in self._body(answer)["hits"]["hits"]}
        found = [hits[name] for name in names if name in hits]
        sketches = field.decode(found, recipe)
        return [Document(hit, None if isinstance(one, str) else one) for hit, one in zip(found, sketches, strict=True)]

    def verdict(self, pair: Sequence[Document], options: Mapping[str, Any]) -> str:
        """Return "": the frequency table that decides belongs to a whole search."""
        return ""

    async def _send(self, request: Request) -> Answer:
        return await sent(self._upstream, replace(request, headers={**request.headers, **self._headers}))

    def _body(self, answer: Answer) -> dict[str, Any]:
        if answer.ok and isinstance(answer.body, dict):
            return answer.body
        status = HTTPStatus.BAD_GATEWAY if answer.ok else answer.status
        headers = answer.raw.headers if isinstance(answer.raw, Raw) else []
        challenge = next((value.decode("latin-1") for name, value in headers if name == b"www-authenticate"), "")
        raise SearchFailed(status, reason_of(answer.body), challenge)


def checked_target(index: str) -> str:
    """Return the names of indexes, encoded for a path. Raises ValueError for what is not a list of names."""
    names = index.split(",")
    if not all(names) or any(name.startswith(("_", ".")) and name != "_all" for name in names):
        raise ValueError(f"the search page needs the name of an index, several names, or a pattern, got {index!r}")
    return quote(index, safe=",*:")


def _slips(q: str) -> list[str]:
    """Return what an engine reads in another way than it was meant, with the right form."""
    notes = []
    if _BOOLEAN.search(q):
        right = re.sub(r"\s*\bOR\b\s*", " | ", re.sub(r"\s*\b(?:AND )?NOT\s+", " -", q))
        right = re.sub(r"(\S+)\s+AND\s+", r"\1 +", right).strip()
        right = f"+{right}" if " +" in right and not right.startswith(("+", "-")) else right
        notes.append(f"AND, OR and NOT are words like others here: write {right}")
    if field := _FIELD.search(q):
        notes.append(f"all fields are searched here, and {field[0]} is read as a word: leave it out")
    if q.count('"') % 2:
        notes.append(f'a phrase has no end: write {q}"')
    return notes


def _sources(field: str) -> dict[str, Any]:
    return {"sources": {"terms": {"field": field, "size": MOST_SOURCES}}} if field else {}


def _periods(field: str) -> dict[str, Any]:
    """Return facets by month and by year: a group in two months is one in their year."""
    return {
        name: {"date_histogram": {"field": field, "calendar_interval": name[:-1], "format": form, "min_doc_count": 1}}
        for name, form in (("months", "yyyy-MM"), ("years", "yyyy"))
        if field
    }


def _body(asked: Asked, source: str, moment: str) -> dict[str, Any]:
    """Return the body of a search. source, moment: names of the fields, "" if there is none."""
    filters: list[dict[str, Any]] = []
    if asked.source:
        filters.append({"terms": {source: list(asked.source)}})
    if asked.period:
        limits = [{"gte": first, "lte": last, "format": "yyyy-MM-dd"} for first, last in map(bounds, asked.period)]
        # Engines take the end of the last day.
        filters.append({"bool": {"should": [{"range": {moment: one}} for one in limits]}})
    typed = {"simple_query_string": {"query": asked.q, "lenient": True}}
    whole, best = {"number_of_fragments": 0}, {"number_of_fragments": 1, "fragment_size": PASSAGE, "order": "score"}
    before, after = MARKS
    return {
        "query": {"bool": {"must": [typed], "filter": filters}} if filters else typed,
        "from": asked.start,
        "size": asked.size,
        "highlight": {
            "fields": [{"*": best}, *({name: whole} for name in TITLES)],  # of several for one field the last counts
            "pre_tags": [before],
            "post_tags": [after],
        },
        "ndd": dict(asked.options) or True,
    }


def _counts(response: Mapping[str, Any]) -> dict[str, list[tuple[str, int]]]:
    """Return the numbers by the values of each facet."""
    return {
        name: [(str(one.get("key_as_string", one["key"])), one["doc_count"]) for one in found["buckets"]]
        for name, found in response.get("aggregations", {}).items()
    }


def _counted(responses: Sequence[Mapping[str, Any]]) -> Counted:
    """Return what the numbers of facets count."""
    blocks = [response.get("ndd") or {} for response in responses if response.get("aggregations")]
    if not blocks or not all(block.get("facets") for block in blocks):
        return "documents"
    buckets = [bucket for block in blocks for facet in block["facets"].values() for bucket in facet["buckets"]]
    return "results" if all(bucket["relation"] == "eq" for bucket in buckets) else "estimates"
