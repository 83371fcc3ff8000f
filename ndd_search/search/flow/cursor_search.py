"""Carries out a search with a cursor: pages over a point in time, each continuing where the one before ended.

    "ndd": {"cursor": true}       the first page; its `ndd.cursor` is a token
    "ndd": {"cursor": token}      the next page; None instead of a token ends the search

A page fetches a window of hits after the last one that earlier pages have dealt with, and compares them with the
leaders that earlier pages have shown. A hit's leader never depends on later hits, so the pages together are the stream
that one window over all hits would give.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from http import HTTPStatus
from typing import Any

from ndd_search.core.options import CollapseOptions
from ndd_search.core.paging.cache import cache_key
from ndd_search.core.paging.cursor import Cursor, cursor_of, token_of
from ndd_search.core.paging.cursor_page import ContinuedPage, check_has_end, whole
from ndd_search.core.paging.fill_page import Fetch
from ndd_search.core.paging.page import Page
from ndd_search.core.paging.stream import Stream
from ndd_search.core.sketching.stored_sketch import listed
from ndd_search.errors import CursorExpired, CursorUnusable
from ndd_search.search.flow.carry_out_search import Conversation, steps_of, unfiltered_body
from ndd_search.search.flow.choose_frequency_table import learn_frequency_table, new_state, table_in, with_table
from ndd_search.search.flow.client_settings import Settings, options_and_others
from ndd_search.search.flow.engines_own_page import WIDER, no_sketch
from ndd_search.search.flow.fetch_hits import reader_of, sketches_in, with_more_hits
from ndd_search.search.flow.plan import (
    AskAnew,
    Plan,
    Step,
    ask_anew_if_learned,
    has_random_scores,
    plan_of,
    planned_anew,
)
from ndd_search.search.flow.round_trips import LATE, REFUSED, Asking, Finished, Flow, RoundTrips, joined, trouble
from ndd_search.search.flow.search_state import LISTED, State
from ndd_search.search.rest.point_in_time import closed, id_in, in_a_row, in_pit, opened, rounds
from ndd_search.search.rest.read_answer import Answer, Hit
from ndd_search.search.rest.read_request import Request, Search, is_search, option_in, read_search

# Options that may differ between the pages of a cursor; and `keep`, which may hold callables.
_OF_A_PAGE = ("window", "max_window", "keep")
NO_POINT = "the engine opens no further point in time: the page has no cursor, use from and size for the next one"
# What an engine says if it has freed a point in time, or a node that held a part of one has left.
_LOST = (
    *("No search context", "search_context_missing", "no node found for id", "Node not connected"),
    *("node_not_connected", "node_disconnected", "connect_transport", "node_closed"),
)
_ONE_BY_ONE = ("collapse", "rescore", "terminate_after", "knn", "retriever", "sub_searches")


def cursor_search(request: Request, settings: Settings, changes: Mapping[str, Any] | None) -> Flow | None:
    """Return how to answer a search that asks for a cursor, None for any other request.

    changes: options of the surrounding `ndd_search.options`; None leaves every search alone.
    Raises CursorUnusable if it cannot have one, TypeError or ValueError for invalid options.
    """
    given = option_in(request, "cursor")
    if changes is None or given is None or given is False or not is_search(request):
        return None
    if given is not True and not isinstance(given, str):
        raise TypeError(f'"cursor" must be true or the token of the page before, got {given!r}')
    search = read_search(request)
    if search is None:
        raise CursorUnusable(request.path, "this search is left alone", "see docs/wrapping.md, what is left alone")
    settings = settings.of_target(request.path, asked=True) or settings
    changes = {name: value for name, value in {**changes, **search.changes}.items() if name != "cursor"}
    options, others = options_and_others(settings.options, changes)
    if reason := _obstacle(search):
        raise CursorUnusable(request.path, f"{reason} cannot be continued by a cursor", "use from and size")
    check_has_end(request.path, options)
    own = _hash_of(search, options, settings)
    cursor = None if given is True else _checked_cursor(given, own, request.path, options, settings)
    steps = steps_of(options, others, settings, has_cursor=True)
    shown = replace(options, total="hits") if options.total == "groups" else options  # else the window is the result
    talk = CursorSearch(search, shown, settings, steps, own, cursor)
    return talk.flow() if cursor else _or_without(talk, options, others)


def _or_without(talk: CursorSearch, options: CollapseOptions, others: Mapping[str, Any]) -> Flow:
    """Make the first page in a point in time that is opened for it, or without one if the engine holds too many."""
    search, settings = talk.search, talk.settings
    try:
        if (yield from talk.opened()):
            return (yield from talk.flow())
    except Finished as end:
        return end.answer
    steps = steps_of(options, others, settings)
    answer = yield from Conversation(search, options, settings, steps, remember=False).made()
    if not answer.ok or not isinstance(answer.body, dict):
        return answer
    block = answer.body.get("ndd", {})
    reasons = joined(settings.tell(search.request.path, NO_POINT), block.get("degraded"))
    told = {"degraded": reasons, "cursor": None, "page": 1}
    return replace(answer, body=search.filtered({**answer.body, "ndd": {**block, **told}}))


def _checked_cursor(token: str, own: str, path: str, options: CollapseOptions, settings: Settings) -> Cursor:
    """Return the cursor of a token. own: hash of the search that it is sent with. path: of that request.

    Raises CursorUnusable for a token that is damaged, or that no page of this search gave this caller.
    """
    cursor = cursor_of(token, settings.cursor_key)
    if cursor.search != _bound(own, cursor.pit):
        problem = "the token belongs to another search, or to another caller"
        raise CursorUnusable(path, problem, "send the same query, sort, options and credentials with every page")
    is_signed = settings.cursor_key is not None
    by_fields = options.reads_keys or settings.items is not None
    if not is_signed and not cursor.leaders.fit(settings.recipe.k, options.max_per_group, by_fields):
        raise CursorUnusable(path, "the token is not one that a page gave", "begin again with a new one")
    return cursor


class CursorSearch:
    """The requests for one page of a search with a cursor.

    steps: what it has beside its page. own: hash of the search. cursor: None for the first page.
    """

    def __init__(
        self, search: Search, options: CollapseOptions, settings: Settings, steps: Sequence[Step], own: str,
        cursor: Cursor | None,
    ) -> None:  # fmt: skip
        self.search, self.options, self.settings, self.steps = search, options, settings, steps
        self.cursor, self._own = cursor, own
        self._pit = "" if cursor is None else cursor.pit
        self._outside = RoundTrips(settings.time_budget)
        self._round_trips = self._outside.moved(lambda one: in_pit(one, self._pit, settings.cursor_keep_alive))

    def opened(self) -> Asking[bool]:
        """Open a point in time. Returns False if the engine allows no more of them; raises Finished for an error."""
        request = opened(self.search, self.settings.family, self.settings.cursor_keep_alive)
        (opening,) = yield from self._outside.needed([request], {HTTPStatus.TOO_MANY_REQUESTS})
        if not opening.ok:
            return False
        if (pit := id_in(opening.body)) is None:
            raise CursorUnusable(self.search.request.path, "no point in time was opened", "use from and size")
        self._pit = pit
        return True

    def flow(self) -> Flow:
        """Make the page, and return the answer with the cursor of the next one. The point in time is open."""
        plan = replace(plan_of(self.search, self.options, self.settings), is_split=False)
        pit = self._pit
        cursor = self.cursor or Cursor(search=_bound(self._own, pit), pit=pit, after=[], ahead=0, pages=0)
        try:
            while True:
                try:
                    for step in self.steps:
                        plan = yield from step.planned(plan, self._round_trips)
                    answer = yield from self._page(plan, cursor)
                    break
                except Finished as end:
                    answer = end.answer
                    break
                except AskAnew as refused:
                    plan = planned_anew(plan, refused)  # unless something was learned, no request goes beside the first
        except Exception:
            if self.cursor is None:
                yield from self._close()
            raise
        if self.cursor is None and not answer.ok:
            yield from self._close()
        return answer

    def _page(self, plan: Plan, cursor: Cursor) -> Flow:
        """Fetch the hits of a page, and return the answer."""
        page = CursorPage(plan, cursor)
        plan = replace(plan, search=replace(plan.search, start=page.start))
        reason = ""
        for size in (page.first_window, plan.search.size):  # the hits that the caller asks for decide
            answer, *others = yield from self._first_answers(plan, cursor, size)
            if answer.whole:
                break
            reason = LATE if answer.status == HTTPStatus.REQUEST_TIMEOUT else WIDER + answer.reason
        after = self._continued(answer, cursor.after)
        sketches = sketches_in(answer, plan)
        sketched = any(not isinstance(one, str) for one in sketches)
        if sketched:
            yield from learn_frequency_table(plan, self._outside)
        state = page.state()
        state = with_more_hits(state, plan, [answer], sketches, Fetch(state.stream.fetched, size))
        state = state.stop(reason) if reason else state
        if sketched and not self.settings.known.about(self.search.target).sketched:
            self.settings.known.learn(self.search.target, sketched=True)  # further requests exclude the field
        for step in self.steps if not cursor.pages else ():
            state = yield from step.after_first_trip(state, plan, self._round_trips, others)
        while not state.stopped and (size := page.missing(state.stream)):
            request = self._request(plan, after, size, first=False)
            (answer,) = yield from self._round_trips.later([request])
            if reason := trouble([answer], like=Answer(state.envelope)):
                ask_anew_if_learned(plan, answer.complaint)
                state = state.stop(reason)
                break
            after = self._continued(answer, after)
            state = with_more_hits(state, plan, [answer], sketches_in(answer, plan), Fetch(state.stream.fetched, size))
        for step in self.steps:
            state = yield from step.after_hits(state, plan, self._round_trips)
        made, examined = page.page_of(state), replace(plan, options=whole(state.stream, plan.options))
        for step in self.steps:
            state, made = yield from step.with_page(state, made, examined, self._round_trips)
        bare = {"missing"} == set(state.stream.lacking) and self.settings.items is None and not plan.options.reads_keys
        lacks = no_sketch(self.settings, plan.search.request.path) if bare else ""
        state = replace(state, degraded=joined(state.degraded, lacks))
        body, next_cursor = page.answer(state, made, self._pit, self._round_trips)
        body["ndd"]["warnings"] += [lacks] if bare else []
        for step in self.steps:
            body = step.with_answer(body, state, plan)
        if next_cursor is None and self.cursor is None:  # else the last pages may be asked for again
            yield from self._close()
        token = None
        if next_cursor is not None:
            next_cursor = replace(next_cursor, search=_bound(self._own, next_cursor.pit))
            token = token_of(next_cursor, self.settings.cursor_key)
        return Answer(page.with_cursor(body, token), raw=state.raw)

    def _first_answers(self, plan: Plan, cursor: Cursor, size: int) -> Asking[list[Answer]]:
        """Make the first trip, on the first page with the requests of steps. Their answers follow that to our own.

        That one is whole, unless it is for a longer list than the caller's page, which the time budget may end.
        Raises CursorExpired, AskAnew, Finished, and the client's own errors.
        """
        is_wider = size > plan.search.size
        beside = [] if cursor.pages else [request for step in self.steps for request in step.beside(plan)]
        requests = [self._request(plan, cursor.after, size, first=True), *beside]
        trips = self._round_trips
        try:
            answers = yield from (
                trips.first(requests, False) if is_wider else trips.needed(requests, REFUSED if beside else ())
            )
        except Finished as end:
            self._explain(end.answer.complaint, plan, None)
            raise
        except Exception as error:
            self._explain(f"{error} {getattr(error, 'info', '')}", plan, error)
            raise
        if not answers[0].whole:
            self._explain(answers[0].complaint, plan, None)
            if beside:
                raise AskAnew
            if not is_wider:
                problem = "the engine's answer is partial, so hits would be lost"
                raise CursorUnusable(self.search.request.path, problem, "send the request again with the same cursor")
        return answers

    def _explain(self, complaint: str, plan: Plan, error: Exception | None) -> None:
        """Raise the error for a complaint of the engine about a point in time, or AskAnew. Returns for any other."""
        path = self.search.request.path
        if any(sign in complaint for sign in _LOST):
            remedy = "begin again with a new cursor"
            raise CursorExpired(path, "the engine no longer holds the point in time of the cursor", remedy) from error
        if "No mapping found for [_shard_doc]" in complaint:
            raise CursorUnusable(path, "the engine has no _shard_doc", "use OpenSearch 3.3 or later") from error
        ask_anew_if_learned(plan, complaint)

    def _request(self, plan: Plan, after: list[Any], size: int, first: bool) -> Request:
        (request,) = plan.requests(Fetch(0, size), first)
        return in_a_row(request, self.search, after or None, self.settings.family)

    def _continued(self, answer: Answer, after: list[Any]) -> list[Any]:
        """Return the sort values with which the next request continues, and keep the id of the point in time."""
        named = answer.body.pop("pit_id", self._pit)
        self._pit = named if isinstance(named, str) else self._pit
        if not all(isinstance(hit.get("sort"), list) for hit in answer.hits):
            raise CursorUnusable(self.search.request.path, "the hits have no sort values", "use from and size")
        if answer.hits and "suggest" in self.search.body and not listed(self.search.body.get("sort") or None):
            for hit in answer.hits:
                hit["_score"] = hit["sort"][0]
            answer.body["hits"]["max_score"] = None if after else answer.hits[0]["_score"]
        return answer.hits[-1]["sort"] if answer.hits else after

    def _close(self) -> Asking[None]:
        """Close the point in time. If that fails, the engine closes it when its time is over."""
        with suppress(Exception):
            yield closed(self.search.request, self.settings.family, self._pit)


class CursorPage(ContinuedPage):
    """One page of a search with a cursor. cursor: of this page."""

    def __init__(self, plan: Plan, cursor: Cursor) -> None:
        super().__init__(cursor, plan.search.size, plan.options, plan.window_limit)
        self._plan = plan
        self.by_fields |= plan.settings.items is not None

    def named(self, hit: Hit) -> tuple[str, str] | None:
        return (hit["_index"], hit["_id"]) if "_id" in hit else None

    def compared(self, hit: Hit) -> Mapping[str, Any] | None:
        reading, of_sketches = self._plan.reading, self._plan.sketch_reading
        names = {*reading.fields, *reading.stored} - {*of_sketches.fields, *of_sketches.stored}
        found = hit.get("fields") or {}  # values of nested documents have the name of these
        return {one: found[one] for one in found if any(f"{name}.".startswith(f"{one}.") for name in names)} or None

    def state(self) -> State:
        """Return the state before the new hits of a page."""
        stream, cursor = replace(self.before(_hit_of), shown=self._plan.shown), self.cursor
        stored = with_table(State(table=cursor.table), self._plan) if cursor.pages else None
        state = stored or new_state(self._plan)
        if state.table == LISTED:
            state = replace(state, frequency_table=table_in(cursor.listed, self._plan.settings.recipe.id))
        state = replace(state, stream=stream, documents=dict(enumerate(stream.hits)))
        return replace(state, groups=cursor.unique, facets=cursor.facets, before=cursor.shown)

    def page_of(self, state: State) -> Page:
        """Return the page of the hits fetched."""
        return self.page(state.stream, reader_of(state, self._plan))

    def answer(
        self, state: State, page: Page, pit: str, round_trips: RoundTrips
    ) -> tuple[dict[str, Any], Cursor | None]:
        """Return the answer without its cursor, and the next page's cursor, None if there is no next page."""
        stream = state.stream
        next_hit = self.next_hit(stream)
        after = stream.hits[next_hit - 1]["sort"] if next_hit and next_hit > self.start else self.cursor.after
        self._restore_sort(stream)
        told = page.with_hits(state.documents)
        body = unfiltered_body(self._plan, state, told, round_trips.own_seconds, "off")
        total = body["hits"].pop("total", None)
        if total is not None and state.total is not None:
            total = state.total["value"] if isinstance(total, int) else state.total
        if (total := self.cursor.total if self.cursor.pages else total) is not None:
            body["hits"] = {"total": self._grown(total, page.info.kept, stream.exhausted), **body["hits"]}
        if next_hit is None:
            return body, None
        counted = {"total": total, "unique": body["ndd"]["unique"], "facets": state.facets}
        table = state.frequency_table
        counted["listed"] = table.to_dict() if table is not None and state.table == LISTED else None
        return body, self.following(stream, page, next_hit, pit=pit, after=after, table=state.table, **counted)

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
        return self._plan.search.filtered({**body, "ndd": block})

    def _restore_sort(self, stream: Stream) -> None:
        """Remove the sort values that the caller did not ask for from the new hits, in place."""
        asked = listed(self._plan.search.body.get("sort") or None)
        for hit in stream.hits[self.start :]:
            if not asked:
                del hit["sort"]
            else:
                hit["sort"] = hit["sort"][: len(asked)]


def _hit_of(index: str, id: str, fields: Mapping[str, Any] | None) -> Hit:
    """Return a leader of an earlier page as a hit."""
    hit: Hit = {"_index": index, "_id": id}
    return {**hit, "fields": dict(fields)} if fields else hit


def _obstacle(search: Search) -> str:
    """Return what prevents a cursor, "" if nothing does."""
    obstacles = {
        '"from"': search.start > 0,
        **{f'"{name}"': name in search.body for name in _ONE_BY_ONE},
        "a search with a limit of candidates": search.limits.bounded,
        "random_score without a seed": has_random_scores(search.body),
        'a sort whose "format" rounds its values': rounds(search),
    }
    return next((name for name, present in obstacles.items() if present), "")


def _hash_of(search: Search, options: CollapseOptions, settings: Settings) -> str:
    """Return the hash of a search and its caller, equal for all its pages in every process.

    Options with their default value are left out, so that a version with more options continues the cursor.
    """
    body = {name: value for name, value in search.body.items() if name not in ("from", "size")}
    params = {name: value for name, value in search.request.params.items() if name not in ("from", "size")}
    default = type(options)()
    keep = tuple("a callable" if callable(one) else one for one in options.keep)
    of_stream = {
        one.name: repr(value)
        for one in fields(options)
        if one.name not in _OF_A_PAGE and (value := getattr(options, one.name)) != getattr(default, one.name)
    }
    recipe = settings.items.id if settings.items else settings.recipe.id, settings.sketch_field.name
    return cache_key("cursor", search.caller, search.request.path, params, body, of_stream, keep, recipe).hex()


def _bound(own: str, pit: str) -> str:
    """Return the hash that binds a point in time to a search: a token with that of another one fits no search."""
    return cache_key("in", own, pit).hex()
