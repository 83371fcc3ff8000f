"""Makes the HTML of the search page. Every value is escaped by the templates."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from time import perf_counter
from typing import Any
from urllib.parse import urlencode, urlsplit

from ndd_search.core.document_fields import value_of
from ndd_search.core.sketching.estimate_similarity import Estimate, estimate_resemblance
from ndd_search.core.text.printable import many, safe
from ndd_search.errors import importing
from ndd_search.reports.side_by_side import MOST_SHOWN, Piece, Wording, compared
from ndd_search.search.rest.info_and_copies import info
from ndd_search.search.rest.write_response import DUPLICATE_OF, INNER, SIMILARITY
from ndd_search.serving.ui.page_url import SIZE, State
from ndd_search.serving.ui.searcher import (
    DATES,
    SOURCES,
    Asked,
    Document,
    Found,
    Headers,
    Hit,
    Searcher,
    SearchFailed,
    chosen,
)
from ndd_search.serving.ui.shown_texts import Texts, moment, reason, shortened, telling_words, texts_of

with importing("jinja2", "the search page", "jinja2", "proxy"):
    from jinja2 import Environment, PackageLoader, StrictUndefined

_MOST_LISTED = 20  # near-duplicates of one result that are listed


@dataclass(frozen=True)
class Result:
    """A result, or one of its near-duplicates, as it is shown.

    rank: from 1, 0 for a result that has no number. url: of its own page.
    similarity: to the result that stands for it, None for a leader. reason: what both texts share; compared: URL of
    their comparison; "" for a leader, and if the leader is elsewhere.
    duplicates: those that are listed; unlisted: how many more there are.
    """

    rank: int
    texts: Texts
    source: str
    date: str
    url: str
    similarity: float | None = None
    reason: str = ""
    compared: str = ""
    duplicates: tuple[Result, ...] = ()
    unlisted: int = 0


class Pages:
    """searcher: what is searched."""

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher
        loader = PackageLoader("ndd_search.serving.ui", "page")
        self._templates = Environment(
            loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        self._templates.globals |= {"index": searcher.name, "syntax": searcher.syntax}
        self._templates.filters |= {"one_line": safe, "moment": moment, "many": many}

    async def search(self, state: State, headers: Headers) -> bytes:
        """Return a page of results; without a query, the empty search page. Raises SearchFailed."""
        if not state.q:
            count = await self._searcher.count(headers)
            return self._html("search.html", state=state, title=self._searcher.name, found=None, count=count)
        asked = Asked(
            q=state.q,
            source=state.source,
            period=state.period,
            start=(state.page - 1) * SIZE,
            size=SIZE,
            options=state.options,
            facets=True,
        )
        began = perf_counter()
        found = await self._searcher.search(asked, headers)
        seconds = perf_counter() - began
        is_empty = state.page == 1 and not found.response["hits"]["hits"]
        count = await self._searcher.count(headers) if is_empty else 0
        return await asyncio.to_thread(self._results_page, state, found, seconds, count)

    def _results_page(self, state: State, found: Found, seconds: float, count: int) -> bytes:
        """seconds: that the search took. count: of all documents, where nothing was found."""
        told, hits = info(found.response), found.response["hits"]["hits"]
        ndd = told.block if told.collapsed else None
        return self._html(
            "search.html",
            title=f"{shortened(safe(state.q[:200]), 60)} · {self._searcher.name}",
            state=state,
            found=found,
            ndd=ndd,
            seconds=seconds,
            problems=found.problems,
            results=self._results(hits, state),
            summary=_summary(ndd, state, sum(bool(_leader(hit)) for hit in hits)) if ndd and hits else "",
            attempts=_attempts(state),
            count=count,
            more=len(hits) == SIZE and not (ndd and ndd["exhausted"] and ndd["kept"] <= state.page * SIZE),
        )

    async def document(self, given: Mapping[str, str], headers: Headers) -> bytes:
        """Return the page of one document, or of two side by side. Raises SearchFailed, ValueError."""
        state = State.parse(given.get("back", ""))
        names = [(given.get(f"{side}_index", ""), given[side]) for side in ("a", "b") if given.get(side)]
        if not names:
            raise ValueError("the URL of a document needs its id: open the document from a page of results")
        found = await self._searcher.documents(names, headers)
        if len(found) < len(set(names)):
            raise SearchFailed(HTTPStatus.NOT_FOUND, "the document is not in the index any more: search again")
        copies = await self._copies(found[0].hit, state, headers) if len(found) == 1 else []
        return await asyncio.to_thread(self._document_page, found, state, copies)

    async def _copies(self, hit: Hit, state: State, headers: Headers) -> list[Result]:
        """Return the near-duplicates of a document: its group in a search for its own words."""
        wording = self._wording(hit)
        asked = Asked(q=telling_words(wording.text), size=SIZE, options=replace(state, order="deduplicated").options)
        if not asked.q:
            return []
        found = await self._searcher.search(asked, headers)
        groups = [[one, *_copies_of(one)] for one in found.response["hits"]["hits"]]
        group = next((group for group in groups if _name(hit) in map(_name, group)), [])
        others = [one for one in group if _name(one) != _name(hit)][:_MOST_LISTED]
        made = await asyncio.to_thread(lambda: [self._result(0, one, state, (hit, wording)) for one in others])
        return [one if _name(group[0]) == _name(hit) else replace(one, similarity=None) for one in made]

    def _document_page(self, found: Sequence[Document], state: State, copies: Sequence[Result]) -> bytes:
        shown, pair = [self._whole(one) for one in found], None
        title = shown[0]["title"]
        if len(found) == 2:
            wording = compared(*(Wording(one["text"]) for one in shown))
            shown[0]["pieces"], shown[1]["pieces"] = wording.left, wording.right
            options = replace(state, order="deduplicated").options
            verdict = self._searcher.verdict(found, options)
            pair = {"wording": wording, "estimate": _estimated(found), "verdict": verdict}
            title = f"{title}, compared"
        return self._html("document.html", title=title, state=state, documents=shown, pair=pair, copies=copies)

    def failed(self, status: int, sentence: str) -> bytes:
        """Return a page that says what went wrong."""
        title = HTTPStatus(status).phrase if status in set(HTTPStatus) else f"Error {status}"
        return self._html("failed.html", title=title, status=status, sentence=safe(sentence[:2000]))

    def _html(self, template: str, **values: Any) -> bytes:
        return self._templates.get_template(template).render(values).encode("utf-8", "replace")

    def _whole(self, document: Document) -> dict[str, Any]:
        source = document.hit.get("_source") or {}
        texts = texts_of(document.hit, self._searcher.text)
        title, text = texts.name, texts.text
        others = {name: safe(str(value)[:300]) for name, value in source.items() if not isinstance(value, dict | list)}
        links = [value for value in others.values() if _is_web_address(value)]
        id, date = safe(str(document.hit["_id"])[:300]), _shown(source, chosen(DATES, source))
        told = (title, text, id, date, *links[:1])
        return {
            "id": id,
            "date": date,
            "title": title,
            "text": text,
            "pieces": [Piece(text)],
            "most": MOST_SHOWN if len(text) >= MOST_SHOWN else 0,
            "link": links[0] if links else "",
            "facts": {name: value for name, value in others.items() if len(value) < 80 and value not in told},
        }

    def _results(self, hits: Sequence[Hit], state: State) -> list[Result]:
        results = []
        for rank, hit in enumerate(hits, (state.page - 1) * SIZE + 1):
            copies = _copies_of(hit)
            leader = (hit, self._wording(hit)) if copies else None
            listed = tuple(self._result(0, copy, state, leader) for copy in copies[:_MOST_LISTED])
            result = self._single(rank, hit, hits, state)
            results.append(replace(result, duplicates=listed, unlisted=len(copies) - len(listed)))
        return results

    def _single(self, rank: int, hit: Hit, hits: Sequence[Hit], state: State) -> Result:
        """Return a hit that stands in a list by itself; its leader may be among the hits."""
        leader = next((one for one in hits if one["_id"] == _leader(hit)), None) if _leader(hit) else None
        return self._result(rank, hit, state, None if leader is None else (leader, self._wording(leader)))

    def _wording(self, hit: Hit) -> Wording:
        return Wording(texts_of(hit, self._searcher.text).text)

    def _result(self, rank: int, hit: Hit, state: State, leader: tuple[Hit, Wording] | None) -> Result:
        """leader: the hit that stands for this one, with its words."""
        document, fields = hit.get("_source") or {}, hit.get("fields") or {}
        texts = texts_of(hit, self._searcher.text)
        source, date = (_shown(document, chosen(names, document)) for names in (SOURCES, DATES))
        back = state.url(page=state.page)[1:]
        result = Result(
            rank,
            texts,
            source,
            date,
            _url({"a_index": hit["_index"], "a": hit["_id"], "back": back}),
            fields[SIMILARITY][0] if SIMILARITY in fields else None,
        )
        if leader is None:
            return result
        above, wording = leader
        pair = {"a_index": above["_index"], "a": above["_id"], "b_index": hit["_index"], "b": hit["_id"], "back": back}
        return replace(result, reason=reason(wording, Wording(texts.text)), compared=_url(pair))


def _shown(document: Mapping[str, Any], name: str) -> str:
    """Return the value of a field on one line, "" if there is none."""
    value = value_of(document, name) if name else None
    return "" if value is None or isinstance(value, dict) else safe(str(value)[:100])


def _copies_of(hit: Hit) -> list[Hit]:
    found: list[Hit] = hit.get("inner_hits", {}).get(INNER, {}).get("hits", {}).get("hits", [])
    return found


def _name(hit: Hit) -> tuple[str, str]:
    return hit["_index"], hit["_id"]


def _leader(hit: Hit) -> str:
    return str((hit.get("fields") or {}).get(DUPLICATE_OF, [""])[0])


def _url(parameters: Mapping[str, str]) -> str:
    return f"document?{urlencode(parameters, errors='replace')}"


def _is_web_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and " " not in text


def _estimated(pair: Sequence[Document]) -> Estimate | None:
    left, right = pair[0].sketch, pair[1].sketch
    if left is None or right is None or not len(left) or not len(right):
        return None
    return estimate_resemblance(left, right, max(len(left), len(right)))


def _summary(ndd: Mapping[str, Any], state: State, repeated: int) -> str:
    """Return what became of the hits. repeated: how many hits of this page are near-duplicates of others."""
    examined, hidden = many(ndd["examined"], "hit"), ndd["hidden"]
    if state.order == "engine":
        hide = f"{ndd['would_hide']:,} of the {examined} compared would be hidden, {repeated} of them on this page"
        return f"Nothing is hidden here. Deduplicated, {hide}."
    if ndd["examined"] == 1:
        return "1 hit was found: there is nothing to compare it with."
    if not hidden:
        return f"{examined} were compared; none repeats another."
    are = "is" if hidden == 1 else "are"
    return (
        f"{examined} were compared: {many(hidden, 'near-duplicate')} {are} hidden under {many(ndd['kept'], 'result')}."
    )


def _attempts(state: State) -> list[tuple[str, str]]:
    """Return what to try when nothing was found, with its URL."""
    attempts = []
    if state.source or state.period:
        attempts.append(("search without the filters", state.url(source=(), period=())))
    words = " ".join(re.findall(r"[^\W_]+", re.sub(r"\b(?:AND|OR|NOT|TO)\b|[\w.@]+:", " ", state.q)))
    if words and words != state.q:
        attempts.append((f"search for any of the words: {words}", state.url(q=words)))
    return attempts
