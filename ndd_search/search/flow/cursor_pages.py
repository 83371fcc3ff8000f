"""Makes the page of a cursor from its hits, and the cursor of the next page. Nothing here sends requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ndd_search.core.paging.continued import ContinuedPage
from ndd_search.core.paging.cursor import Cursor
from ndd_search.core.paging.page import Page
from ndd_search.core.paging.stream import Stream
from ndd_search.search.flow.fetch_hits import reader_of
from ndd_search.search.flow.frequency_tables import new_state, with_table
from ndd_search.search.flow.page_answer import filter_body, unfiltered_body
from ndd_search.search.flow.plan import Plan
from ndd_search.search.flow.round_trips import RoundTrips
from ndd_search.search.flow.settings import Settings
from ndd_search.search.flow.state import State
from ndd_search.search.rest.answers import Hit
from ndd_search.search.rest.point_in_time import names_tiebreak, sorts


def begin(search: str, pit: str) -> Cursor:
    """Return the cursor before the first page. search: hash of the search. pit: id of its point in time."""
    return Cursor(search=search, pit=pit, after=[], ahead=0, pages=0)


class CursorPage(ContinuedPage):
    """One page of a search with a cursor. cursor: of this page."""

    def __init__(self, plan: Plan, settings: Settings, cursor: Cursor) -> None:
        most = int(settings.known.about(plan.search.target).window_limit)
        super().__init__(cursor, plan.search.size, plan.options, most)
        self._plan, self._settings = plan, settings

    def named(self, hit: Hit) -> tuple[str, str] | None:
        return (hit["_index"], hit["_id"]) if "_id" in hit else None

    def compared(self, hit: Hit) -> Mapping[str, Any] | None:
        reading, of_sketches = self._plan.reading, self._plan.sketch_reading
        names = {*reading.fields, *reading.stored} - {*of_sketches.fields, *of_sketches.stored}
        return {name: value for name, value in (hit.get("fields") or {}).items() if name in names} or None

    def state(self) -> State:
        """Return the state before the new hits of a page."""
        stream, cursor = replace(self.before(_hit_of), shown=self._plan.shown), self.cursor
        stored = with_table(State(table=cursor.table), self._plan, self._settings) if cursor.pages else None
        state = stored or new_state(self._plan, self._settings)
        state = replace(state, stream=stream, documents=dict(enumerate(stream.hits)))
        return replace(state, groups=cursor.unique, facets=cursor.facets, earlier=len(stream.hits))

    def page_of(self, state: State) -> Page:
        """Return the page of the hits fetched."""
        return self.page(state.stream, reader_of(state, self._settings))

    def answer(
        self, state: State, page: Page, pit: str, round_trips: RoundTrips
    ) -> tuple[dict[str, Any], Cursor | None]:
        """Return the answer without its cursor, and the next page's cursor, None if there is no next page."""
        stream = state.stream
        next_hit = self.next_hit(stream)
        after = stream.hits[next_hit - 1]["sort"] if next_hit and next_hit > self.start else self.cursor.after
        self._restore_sort(stream)
        body = unfiltered_body(self._plan, self._settings, state, page, round_trips.own_seconds, "off")
        total = body["hits"].pop("total", None)
        if total is not None and state.total is not None:
            total = state.total["value"] if isinstance(total, int) else state.total
        if (total := self.cursor.total if self.cursor.pages else total) is not None:
            body["hits"] = {"total": self._grown(total, page.info.kept, stream.exhausted), **body["hits"]}
        if next_hit is None:
            return body, None
        counted = {"total": total, "unique": body["ndd"]["unique"], "facets": state.facets}
        return body, self.following(stream, next_hit, pit=pit, after=after, table=state.table, **counted)

    def _grown(self, total: Any, kept: int, exhausted: bool) -> Any:
        """Return a total that grows with the pages, if that is asked for: of their hits and those in the window.

        total: of the first page. kept: number of hits with a place in the window.
        """
        if not self.options.ahead:
            return total
        count = self.cursor.shown + kept
        return count if isinstance(total, int) else {"value": count, "relation": "eq" if exhausted else "gte"}

    def with_cursor(self, body: dict[str, Any], token: str | None) -> dict[str, Any]:
        """Return an answer with the token of the next page, and with what the caller's `filter_path` leaves of it."""
        block = {**body["ndd"], "cursor": token, "page": self.cursor.pages + 1, "forgotten": self.cursor.forgotten}
        return filter_body({**body, "ndd": block}, self._plan.search)

    def _restore_sort(self, stream: Stream) -> None:
        """Remove the sort values that the caller did not ask for from the new hits, in place."""
        asked = sorts(self._plan.search)
        for hit in stream.hits[self.start :]:
            if not asked:
                del hit["sort"]
            elif not names_tiebreak(asked):
                hit["sort"] = hit["sort"][:-1]


def _hit_of(index: str, id: str, fields: Mapping[str, Any] | None) -> Hit:
    """Return a leader of an earlier page as a hit."""
    hit: Hit = {"_index": index, "_id": id}
    return {**hit, "fields": dict(fields)} if fields else hit
