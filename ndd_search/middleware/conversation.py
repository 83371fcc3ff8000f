"""Carries out one search as a generator that yields requests and is sent answers. Nothing here does I/O.

An exception of the client is thrown into the generator where its request was yielded. On the first request it passes
through unchanged. Later it ends the fetching of hits, and the caller gets the page made of the hits fetched so far.
A search follows a plan (see `plan`). An answer of the engine may show that another plan is needed: then the search
continues with that one.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from ndd_search.collapse_options import CollapseOptions, collapse_options
from ndd_search.errors import CursorUnusable
from ndd_search.immutable import cached_property
from ndd_search.middleware.add_answers import reader_of
from ndd_search.middleware.explain import explained_ids, with_explanations
from ndd_search.middleware.extras import Extras
from ndd_search.middleware.facet_count import with_facets
from ndd_search.middleware.fallbacks import NO_DOCUMENTS, own_request
from ndd_search.middleware.fetch_hits import HitFetcher
from ndd_search.middleware.fetch_strategies import DoesNotFit, Timings, goes_together
from ndd_search.middleware.page_answer import filter_body, unfiltered_body
from ndd_search.middleware.page_memory import Moment
from ndd_search.middleware.plan import Plan, Replan, narrowed, plan_of
from ndd_search.middleware.scope import NOT_OPTIONS
from ndd_search.middleware.sending import Asking, Flow, RoundTrips, Waiting
from ndd_search.middleware.settings import Settings
from ndd_search.middleware.state import LISTED, State
from ndd_search.middleware.tables import with_table_of_stream
from ndd_search.middleware.unsketched import peeked
from ndd_search.middleware.whole_groups import WholeGroups
from ndd_search.paging.cache import hash_of_json
from ndd_search.paging.page import Page, slice_page
from ndd_search.rest.answers import Answer, Hit
from ndd_search.rest.request import Piped, Request, Search, read_search
from ndd_search.rest.source_filter import SketchFilter


def conversation(
    request: Request, settings: Settings, changes: Mapping[str, Any] | None, pipeline: Piped = ""
) -> Conversation | None:
    """Return how to answer a request, None if it is left alone.

    changes: options of the surrounding `ndd_search.options`; None leaves every search alone.
    pipeline: "safe" for one that may be collapsed after its search pipeline, "reorders" if that reorders each answer.
    Raises TypeError or ValueError for invalid options.
    """
    if changes is None or (search := read_search(request, pipeline)) is None:
        return None
    if (own_settings := settings.of_target(request.path, asked=bool(search.changes))) is None:
        return None
    changes = {**changes, **search.changes}
    extras = {name: changes.pop(name) for name in NOT_OPTIONS if name in changes}
    for name in ("cursor", "search_after"):  # a search of its own with one of them is no conversation
        if (given := changes.pop(name, None)) is not None and given is not False:
            raise CursorUnusable(request.path, f'a search in an _msearch cannot have "{name}"', "send it on its own")
    options = collapse_options(own_settings.options, **changes)
    if explained_ids(extras.get("explain")):  # the hits need their ids
        options = replace(options, strategy="one_phase")
    if search.limits.apart and not goes_together(search.request):
        search = search.as_found
    if not search.is_collapsed(options):
        return None
    learned, of_caller = own_settings.known.facts(search.target, search.target_of_caller)
    wanted, limit = search.start + search.size, learned.window_limit
    if wanted > limit or own_settings.clock() < of_caller.bypass_until:
        return None  # beyond max_result_window, where the engine's own error is due; or a target without sketches
    most = min(options.max_window, limit, max(search.limit or limit, wanted))
    if search.one_window and options.total == "groups":  # max_window candidates cost too much, so groups are estimated
        options = replace(options, total="estimate")
    return Conversation(search, narrowed(options, most), own_settings, Extras.of(extras, own_settings))


class Conversation:
    """The requests for one search, and the answer for its caller."""

    def __init__(self, search: Search, options: CollapseOptions, settings: Settings, extras: Extras) -> None:
        self.search, self.options, self.settings, self.extras = search, options, settings, extras
        self._round_trips = RoundTrips(settings.time_budget)
        self._remember = extras.remember and settings.cache is not None
        self.key: bytes | None = None
        if self._remember and not any(map(callable, options.keep)):
            experiment = extras.experiment
            divided = () if experiment is None else (experiment.name, experiment.arm)
            self.key = self._make_key(options.as_text, search.start, search.size, *divided)

    @property
    def path(self) -> str:
        """The path of the request."""
        return self.search.request.path

    @property
    def first_windows(self) -> list[int]:
        """How many hits are examined at first, in a list of one search (see `MultiConversation`)."""
        return [self.options.initial_window]

    def remembered(self) -> Answer | None:
        """Return the finished page if it is in the cache."""
        body = self.settings.memory.recall_page(self.key, self.search.indexes)
        if body is None:
            return None
        if isinstance(body.get("ndd"), dict):
            body["ndd"]["cache"] = "hit"
        return Answer(body)

    def has_stream(self) -> bool:
        """Return whether the stream of the search is in the cache."""
        return self.settings.memory.recall_state(self.stream_key, self.search.indexes) is not None

    def wait(self, flight: Future[None], most: float) -> Waiting:
        """Wait until another caller has made the same page, at most `most` seconds and within the time budget.

        Returns whether time is left.
        """
        return self._round_trips.wait(flight, most)

    def flow(self) -> Flow:
        """Fetch hits until the page is full, and return the answer for the caller."""
        with self.settings.known.under_way:
            return (yield from self._flow())

    def _flow(self) -> Flow:
        search, settings = self.search, self.settings
        plan = plan_of(search, self.options, settings)
        if settings.clock() < plan.of_caller.bypass_until:  # learned while this search waited for another
            return (yield search.request)
        page = yield from peeked(plan, settings, self._round_trips)
        if page is not None:
            return replace(page, body=filter_body(page.body, search)) if page.has_hits else page
        if self.extras.seen is not None:
            plan = yield from self.extras.seen.added_to(plan, self._round_trips)
        if plan.of_caller.charged:
            settings.known.came_back(search.target, search.target_of_caller)
        cached = self._recall_state(plan)
        state, learns = cached or State(), False
        while True:
            try:
                answer = yield from self._carry_out(plan, state, cached)
                break
            except Replan as other:
                plan, state = other.plan, other.state
            except DoesNotFit:
                plan = replace(plan, strategy="one_phase", may_split=False)
                learns = cached is None  # a cached stream may merely be older than the index
                state, cached = State(), None
        if learns and answer.ok:  # the same search in one phase was answered
            settings.known.learn(search.target, whole_until=settings.clock() + settings.bypass_seconds)
        return answer

    def hide_sketches(self, body: Any) -> None:
        """Take the sketches out of an answer to the user's own request, in place, unless he names them."""
        SketchFilter(self.search.body, self.search.request.params, self.settings.sketch_field).clean(body)

    def _carry_out(self, plan: Plan, state: State, cached: State | None) -> Flow:
        """Fetch what the page needs beyond a state, and return the answer. cached: the state that was in the cache."""
        settings, experiment = self.settings, self.extras.experiment
        fetcher = HitFetcher(plan, settings, self._round_trips)
        found = yield from fetcher.fetch_until_full(state)
        if isinstance(found, Answer):
            return found
        state, has_fetched_hits = found, found is not cached
        state = yield from with_facets(state, plan, settings, self._round_trips)
        search, reader = plan.search, reader_of(state, settings)
        page = slice_page(state.stream, search.start, search.size, reader, plan.options, state.documents)
        on_page = page.ranks
        needed = on_page | (experiment.own_ranks(plan, state) if experiment else set())
        to_cache = state
        if missing := needed - state.documents.keys():
            ids_only = page.listing == "ids" and not experiment and missing.isdisjoint(page.shown_ranks)
            state = yield from fetcher.fetch_documents(state, needed, ids_only)
            to_cache = to_cache if ids_only else state  # other pages may show whole documents
        own_page_lacks_hits = bool(needed - on_page - state.documents.keys())
        own_page = None
        if experiment and experiment.reaches_beyond(plan, state):
            own_page = yield from self._own_page(plan)
            own_page_lacks_hits = own_page_lacks_hits or own_page is None
        if (own_page_lacks_hits and self._is_control) or (page.groups and page.groups[0].rank not in state.documents):
            return (yield from own_request(plan, settings, NO_DOCUMENTS))
        if to_cache is not cached and state.lasting:
            self._store(to_cache)
        if has_fetched_hits and cached is None and plan.is_measured:
            self._learn_from(plan, max(on_page, default=0) + 1)
        cache = "off" if self.stream_key is None else "hit" if to_cache is cached else "miss"
        return (yield from self._answered(plan, state, page, cache, own_page))

    def _answered(self, plan: Plan, state: State, page: Page, cache: str, own_page: list[Hit] | None) -> Flow:
        """Add what the search asks for beside the page, and return the answer, which is stored in the cache.

        cache: as in page.Info. own_page: the hits of the caller's own request, where an experiment needs them.
        """
        settings, trips, extras = self.settings, self._round_trips, self.extras
        if plan.options.members == "all":
            whole = WholeGroups(plan, settings, trips, plan.search.start)
            state, page = yield from whole.with_members(state, page, page.info.examined)
        if extras.explained:
            page = yield from with_explanations(extras.explained, state, page, plan, settings, trips)
        body = unfiltered_body(plan, settings, state, page, trips.own_seconds, cache)
        if extras.experiment:
            body = extras.experiment.applied(body, plan, state, page, own_page)
        body = filter_body(body, plan.search)
        if state.lasting:
            settings.memory.remember_page(self.key, body, state, self._moment)
        return Answer(body, raw=state.raw)

    def _store(self, state: State) -> None:
        """Store a state in the cache, with its frequency table if other searches have the same one."""
        memory = self.settings.memory
        memory.remember_state(self.stream_key, state, self._moment)
        if self.settings.frequency_table is True and state.table != LISTED:
            memory.remember_table(state.frequency_table)

    def _own_page(self, plan: Plan) -> Asking[list[Hit] | None]:
        """Return the hits of the caller's own request, None if it fails."""
        (answer,) = yield from self._round_trips.later([plan.search.request])
        if not answer.has_hits:
            return None
        plan.hide_sketches_in(answer.body)
        return answer.hits

    @property
    def _is_control(self) -> bool:
        """Whether the caller gets the engine's own page."""
        return self.extras.experiment is not None and self.extras.experiment.arm == "control"

    def _learn_from(self, plan: Plan, end: int) -> None:
        """Update the figures by which "auto" chooses the strategy of the next searches. end: of the page's ranks."""
        reach = end / (self.search.start + self.search.size)
        known, caller, now = self.settings.known, self.search.target_of_caller, self.settings.clock()
        timings = known.of_caller(caller).timings
        before, until = timings if now < timings.until else Timings(), now + self.settings.bypass_seconds
        seconds = self._round_trips.seconds if plan.is_timed and not known.under_way.are_many else None
        known.learn_of_caller(caller, timings=before.after(plan.strategy, seconds, reach, until))

    def _recall_state(self, plan: Plan) -> State | None:
        """Return the cached state of this search with its frequency table, None if there is none."""
        if not self._moment:
            return None
        cached = self.settings.memory.recall_state(self.stream_key, self.search.indexes)
        return None if cached is None else with_table_of_stream(cached, plan, self.settings)

    def _make_key(self, *parts: Any) -> bytes:
        key = self._hash_of_search.copy()
        key.update(repr(parts).encode())
        return key.digest()

    @cached_property
    def _hash_of_search(self) -> blake2b:
        """The hash of what all pages of the search have in common but the options."""
        request = self.search.request
        body = {key: value for key, value in self.search.body.items() if key not in ("from", "size")}
        params = {name: value for name, value in request.params.items() if name not in ("from", "size")}
        return hash_of_json("search", self.settings.key, self.search.caller, request.path, params, body)

    @cached_property
    def _moment(self) -> Moment | None:
        """The write tokens when this search began, None if it is not cached."""
        return self.settings.memory.moment(self.search.indexes) if self._remember else None

    @cached_property
    def stream_key(self) -> bytes | None:
        """The cache key of the stream that the page is cut from, None if it is not cached."""
        if not self._remember:
            return None
        whole = any(map(callable, self.options.keep))  # a callable reads hits, which may be cached without documents
        return self._make_key(self.options.of_stream.as_text, self.options.document_fields, whole)
