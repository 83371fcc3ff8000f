"""Makes the page of a cursor from its hits, and the cursor of the next page. Nothing here sends requests.

The leaders of earlier pages stand before the new hits in the stream, so that the same code assigns leaders to these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ndd_search.core.matching.keys import reads_keys
from ndd_search.core.paging.cursor import Cursor, Leaders
from ndd_search.core.paging.fill_page import count_places, first_window
from ndd_search.core.paging.layout import places_of
from ndd_search.core.paging.page import Page, slice_page
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


def state_of(cursor: Cursor, plan: Plan, settings: Settings) -> State:
    """Return the state before the new hits of a page: a stream of the leaders that earlier pages have shown.

    A leader of whose group several hits were shown stands there as often, so that no more than max_per_group are shown.
    """
    leaders = cursor.leaders
    again = [place for place, shown in enumerate(leaders.shown) for _ in range(shown - 1)]
    hits = [_hit_of(*one) for one in zip(leaders.indexes, leaders.ids, leaders.fields, strict=True)]
    hits += [dict(hits[place]) for place in again]
    count = len(hits)
    stream = Stream(
        hits=tuple(hits),
        sketches=(*leaders.sketches, *(np.empty(0, np.int32) for _ in again)),
        lacking=("",) * count,
        ranks=np.arange(count),
        leader=np.array([*range(len(leaders)), *again], np.int64),
        similarity=np.ones(count),
        shown=plan.shown,
        fetched=count,
    )
    stored = with_table(State(table=cursor.table), plan, settings) if cursor.pages else None
    state = replace(stored or new_state(plan, settings), stream=stream, documents=dict(enumerate(hits)))
    return replace(state, groups=cursor.unique, facets=cursor.facets, earlier=count)


class CursorPage:
    """One page of a search with a cursor. cursor: of this page."""

    def __init__(self, plan: Plan, settings: Settings, cursor: Cursor) -> None:
        self._plan, self._settings, self._cursor = plan, settings, cursor
        self._size = plan.search.size
        self._known = sum(cursor.leaders.shown)  # hits of the stream that earlier pages have shown

    @property
    def first_window(self) -> int:
        """The number of hits to fetch first: a window that holds the page, and whatever was examined ahead of it."""
        wanted = max(first_window(self._size + 1, self._plan.options), self._cursor.ahead)
        return min(wanted, self._most)

    @property
    def _most(self) -> int:
        """The most hits that one request may fetch."""
        return int(self._settings.known.about(self._plan.search.target).window_limit)

    def missing(self, state: State) -> int:
        """Return how many hits to fetch next: 0 once it is known whether a hit follows the page."""
        options, stream = self._plan.options, state.stream
        fetched = stream.fetched - self._known
        if stream.exhausted or count_places(stream, stream.fetched, options) - self._known > self._size:
            return 0
        return max(0, min(fetched, options.max_window - fetched, self._most))

    @property
    def start(self) -> int:
        """The place of the page in the stream."""
        return self._known

    def page(self, state: State) -> Page:
        """Return the page of the hits fetched."""
        return self._page(state, self._places(state.stream))

    def answer(
        self, state: State, page: Page, pit: str, round_trips: RoundTrips
    ) -> tuple[dict[str, Any], Cursor | None]:
        """Return the answer without its cursor, and the next page's cursor, None if there is no next page."""
        stream = state.stream
        places = self._places(stream)
        shown, left = places[: self._size], places[self._size :]  # left: for the next page
        next_hit = left[0] if left else len(stream.hits)
        after = stream.hits[next_hit - 1]["sort"] if next_hit > self._known else self._cursor.after
        self._restore_sort(stream)
        body = unfiltered_body(self._plan, self._settings, state, page, round_trips.own_seconds, "off")
        total = body["hits"].get("total")
        if total is not None and state.total is not None:
            total = state.total["value"] if isinstance(total, int) else state.total
        if (total := self._cursor.total if self._cursor.pages else total) is None:
            body["hits"].pop("total", None)
        else:
            body["hits"]["total"] = self._grown(total, len(places), stream.exhausted)
        if stream.exhausted and not left:
            return body, None
        leaders = self._leaders(stream, shown)
        following = replace(
            self._cursor,
            pit=pit,
            after=after,
            ahead=len(stream.hits) - next_hit,
            pages=self._cursor.pages + 1,
            leaders=leaders,
            shown=self._cursor.shown + len(shown),
            total=total,
            unique=body["ndd"]["unique"],
            facets=state.facets,
            table=state.table,
        )
        return body, following.bounded()

    def _grown(self, total: Any, places: int, exhausted: bool) -> Any:
        """Return a total that grows with the pages, if that is asked for: of their hits and those in the window.

        total: of the first page. places: of the hits in the window.
        """
        if not self._plan.options.ahead:
            return total
        count = self._cursor.shown + places
        return count if isinstance(total, int) else {"value": count, "relation": "eq" if exhausted else "gte"}

    def with_cursor(self, body: dict[str, Any], token: str | None) -> dict[str, Any]:
        """Return an answer with the token of the next page, and with what the caller's `filter_path` leaves of it."""
        block = {**body["ndd"], "cursor": token, "page": self._cursor.pages + 1, "forgotten": self._cursor.forgotten}
        return filter_body({**body, "ndd": block}, self._plan.search)

    def _places(self, stream: Stream) -> list[int]:
        """Return the places of the new hits that may be shown."""
        return [place for place in places_of(stream, self._plan.options) if place >= self._known]

    def _page(self, state: State, places: list[int]) -> Page:
        """Return the page. Its facts are about the new hits alone. places: of all new hits that may be shown."""
        stream, known, options = state.stream, self._known, self._plan.options
        whole = max(1, stream.fetched)
        one_window = replace(options, window=whole, max_window=whole)
        page = slice_page(stream, known, self._size, reader_of(state, self._settings), one_window)
        new = len(stream.hits) - known
        info = replace(
            page.info,
            examined=new,
            kept=len(places),
            hidden=new - len(places),
            capped=not stream.exhausted and new >= options.max_window,
            unique=None if self._cursor.pages else page.info.unique,  # that of the first page is in the state
            late=self._late(stream, set(places)),
            seen=tuple(
                (int(stream.ranks[index]), item, alike)
                for index, item, alike in stream.seen
                if index >= known + self._cursor.ahead
            ),
        )
        return replace(page, info=info)

    def _late(self, stream: Stream, places: set[int]) -> tuple[tuple[int, int, float], ...]:
        """Return the hidden hits whose leader an earlier page has shown, unless an earlier page has named them."""
        ranks = stream.ranks.tolist()
        return tuple(
            (ranks[index], ranks[stream.leader[index]], float(stream.similarity[index]))
            for index in range(self._known + self._cursor.ahead, len(stream.hits))
            if stream.leader[index] < self._known and index not in places
        )

    def _leaders(self, stream: Stream, shown: list[int]) -> Leaders:
        """Return the leaders of all hits shown so far, without those that came without an id.

        shown: the places that this page has shown.
        """
        old, counts = self._cursor.leaders, Counter(stream.leader[shown].tolist())
        by_keys = reads_keys(self._plan.options)  # else nothing joins a hit without a sketch
        named = [place for place in shown if stream.leader[place] == place and "_id" in stream.hits[place]]
        new = [place for place in named if by_keys or len(stream.sketches[place])]
        if self._plan.options.max_per_group == 1 or self._plan.options.mode == "annotate":
            counts = Counter(dict.fromkeys(new, 1))  # no further hit of these groups has a place, or every one has
        hits = [stream.hits[place] for place in new]
        return Leaders(
            indexes=(*old.indexes, *(hit["_index"] for hit in hits)),
            ids=(*old.ids, *(hit["_id"] for hit in hits)),
            sketches=(*old.sketches, *(stream.sketches[place] for place in new)),
            fields=(*old.fields, *map(self._compared, hits)),
            shown=(*(shown + counts[place] for place, shown in enumerate(old.shown)), *(counts[one] for one in new)),
        )

    def _compared(self, hit: Hit) -> dict[str, Any] | None:
        """Return the fields of a hit that guards compare, None if it has none."""
        reading, of_sketches = self._plan.reading, self._plan.sketch_reading
        names = {*reading.fields, *reading.stored} - {*of_sketches.fields, *of_sketches.stored}
        return {name: value for name, value in (hit.get("fields") or {}).items() if name in names} or None

    def _restore_sort(self, stream: Stream) -> None:
        """Remove the sort values that the caller did not ask for from the new hits, in place."""
        asked = sorts(self._plan.search)
        for hit in stream.hits[self._known :]:
            if not asked:
                del hit["sort"]
            elif not names_tiebreak(asked):
                hit["sort"] = hit["sort"][:-1]


def _hit_of(index: str, id: str, fields: Mapping[str, Any] | None) -> Hit:
    """Return a leader of an earlier page as a hit."""
    hit: Hit = {"_index": index, "_id": id}
    return {**hit, "fields": dict(fields)} if fields else hit
