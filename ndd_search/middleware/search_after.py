"""Collapses the pages of a caller who pages with `search_after`, with or without a point in time of their own.

    "ndd": {"search_after": true}                         the first page; its `ndd.search_after` is a token
    "search_after": [...], "ndd": {"search_after": token}  the next page; None instead of a token ends the search

The token holds what was shown, as that of a cursor does, and where the pages so far have ended: this is further down
than the last hit shown. The caller's own point in time stays theirs: it is neither opened nor closed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ndd_search.collapse_options import CollapseOptions
from ndd_search.errors import CursorUnusable
from ndd_search.middleware.cursor_pages import CursorPage, begin
from ndd_search.middleware.cursor_search import CursorSearch, checked_cursor, hash_of, obstacle, read_continued
from ndd_search.middleware.page_answer import filter_body
from ndd_search.middleware.plan import Plan, Replan, plan_of
from ndd_search.middleware.sending import Asking, Flow, RoundTrips
from ndd_search.middleware.settings import Settings
from ndd_search.middleware.state import State
from ndd_search.paging.cache import cache_key
from ndd_search.paging.cursor import Cursor
from ndd_search.paging.page import Page
from ndd_search.paging.stream import Stream
from ndd_search.paging.windows import Fetch
from ndd_search.rest.answers import Answer
from ndd_search.rest.point_in_time import continued, sorts
from ndd_search.rest.request import Request, Search, is_search, option_in

_THEIRS = ("search_after", "pit")
_REMEDY = "see docs/paging.md, search_after"


def search_after(request: Request, settings: Settings, changes: Mapping[str, Any] | None) -> SearchAfter | None:
    """Return how to answer a search whose pages are collapsed across `search_after`, None for any other request.

    changes: options of the surrounding `ndd_search.options`; None leaves every search alone.
    Raises CursorUnusable if its pages cannot be, TypeError or ValueError for invalid options.
    """
    given = option_in(request, "search_after")
    if changes is None or given is None or given is False or not is_search(request):
        return None
    if given is not True and not isinstance(given, str):
        raise TypeError(f'"search_after" in "ndd" must be true or the token of the page before, got {given!r}')
    theirs = {name: request.body[name] for name in _THEIRS if name in request.body}
    after = theirs.get("search_after")
    if isinstance(after, str | bytes | Mapping) or not isinstance(after, Iterable | None):  # a DSL has lists of its own
        raise TypeError(f'"search_after" must be a list, the sort values of a hit, got {after!r}')
    rest = {name: value for name, value in request.body.items() if name not in theirs}
    search, options, settings = read_continued(replace(request, body=rest), "search_after", settings, changes)
    obstacles = {
        "a search without a sort": not sorts(search),
        'members="all"': options.members == "all",
        '"seen"': "seen" in search.changes,
        '"experiment"': "experiment" in search.changes,
        "a comparison by items": settings.items is not None,
    }
    if reason := next((name for name, present in obstacles.items() if present), "") or obstacle(search, options):
        raise CursorUnusable(request.path, f"{reason} cannot be collapsed across search_after", _REMEDY)
    own = cache_key("search_after", hash_of(search, options, settings)).hex()
    cursor = begin(own, "") if given is True else checked_cursor(given, own, request.path, options, settings)
    return SearchAfter(search, options, settings, cursor, theirs)


class SearchAfterPage(CursorPage):
    """One page of such a search."""

    def answer(
        self, state: State, page: Page, pit: str, round_trips: RoundTrips
    ) -> tuple[dict[str, Any], Cursor | None]:
        """Return the answer without its token, and where the next page continues."""
        body, following = super().answer(state, page, pit, round_trips)
        if following is None:
            return body, None
        hits, stream = body["hits"]["hits"], state.stream
        last = hits[-1]["sort"] if hits else self._cursor.last
        end = len(stream.hits) - following.ahead
        shown = set(zip(following.leaders.indexes, following.leaders.ids, strict=True))
        again = sum((hit["_index"], hit["_id"]) in shown for hit in stream.hits[end:])  # the next page fetches them too
        return body, replace(following, last=last, ahead=following.ahead - again)

    def with_cursor(self, body: dict[str, Any], token: str | None) -> dict[str, Any]:
        """Return an answer with the token of the next page, and with what the caller's `filter_path` leaves of it."""
        facts = {"search_after": token, "page": self._cursor.pages + 1, "forgotten": self._cursor.forgotten}
        return filter_body({**body, "ndd": {**body["ndd"], **facts}}, self._plan.search)

    def _next_hit(self, stream: Stream, unshown: int) -> int:
        """Return an index whose hit has other sort values than the hit before, as engines continue with greater ones.

        If the hit at `unshown` was not examined, it is taken to differ unless the two hits before it are equal.
        """
        values, last = [hit.get("sort") for hit in stream.hits], unshown - 1
        compared = unshown if unshown < len(values) else last - 1
        is_end = unshown == self._known or (stream.exhausted and unshown == len(values))
        if is_end or compared < self._known or values[compared] != values[last]:
            return unshown
        first = _first_like(values, last)
        if first <= self._known:
            raise _tied(self._plan.search.request.path)
        return first

    def _restore_sort(self, stream: Stream) -> None:
        """Leave the sort values as they are: the caller continues with them."""


class SearchAfter(CursorSearch):
    """The requests for one page. theirs: the caller's own "search_after" and "pit", those that were given."""

    _pages = SearchAfterPage

    def __init__(
        self, search: Search, options: CollapseOptions, settings: Settings, cursor: Cursor, theirs: Mapping[str, Any]
    ) -> None:
        super().__init__(search, options, settings, cursor)
        self._cursor, self._theirs = cursor, theirs
        self._tied = False  # whether no further request can continue after the last answer

    def flow(self) -> Flow:
        """Make the page, and return the answer with the token of the next one."""
        plan = plan_of(self.search, self.options, self.settings, may_split=False)
        after, cursor = self._theirs.get("search_after"), self._cursor
        if after is not None and after != cursor.last:  # another place than the pages so far have reached
            cursor = replace(cursor, after=list(after), ahead=0, last=after)
        while True:
            try:
                return (yield from self._page(plan, cursor))
            except Replan as other:
                plan = other.plan

    def _request(self, plan: Plan, pit: str, after: list[Any], size: int, first: bool) -> Request:
        if self._tied:
            raise _tied(self.path)
        (request,) = plan.requests(Fetch(0, size), first)
        if after and not first:  # the first request counts hits as the caller wants
            request = continued(request, after, self.settings.family)
        pit_given = {name: self._theirs[name] for name in ("pit",) if name in self._theirs}
        params = {**request.params, "allow_partial_search_results": "false"}  # hits of a missing shard would be lost
        if pit_given and "preference" not in self.search.request.params:
            del params["preference"]  # a point in time has its own copies of shards
        body = {**request.body, **pit_given, **({"search_after": after} if after else {})}
        return replace(request, body=body, params=params)

    def _continued(self, answer: Answer, pit: str, after: list[Any]) -> tuple[str, list[Any]]:
        """Return the sort values with which the next request continues: hits that share the last ones come again."""
        values: list[Any] = [hit.get("sort") for hit in answer.hits]
        if not all(isinstance(one, list) for one in values):
            raise CursorUnusable(self.path, "the hits have no sort values", "name a sort")
        start = _first_like(values, len(values) - 1) if values else 0
        self._tied = bool(values) and not start
        return pit, values[start - 1] if start else after

    def _counts(self, plan: Plan) -> bool:
        return "pit" not in self._theirs and super()._counts(plan)  # its path names no index to sample

    def _close(self, pit: str) -> Asking[None]:
        """Leave the point in time open: it is the caller's."""
        yield from ()


def _first_like(values: Sequence[Any], at: int) -> int:
    """Return the index of the first of the adjacent sort values that equal those at an index."""
    while at and values[at - 1] == values[at]:
        at -= 1
    return at


def _tied(path: str) -> CursorUnusable:
    problem = "all hits of a page have the same sort values, so search_after cannot continue after them"
    return CursorUnusable(path, problem, "end the sort with a field that differs between documents")
