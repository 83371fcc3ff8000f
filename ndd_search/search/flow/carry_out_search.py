"""Carries out one search as a generator that yields requests and is sent answers. Nothing here does I/O.

An exception of the client is thrown into the generator where its request was yielded. On the first request it passes
through unchanged. Later it ends the fetching of hits, and the caller gets the page made of the hits fetched so far.
A search follows a plan (see `plan`). An answer of the engine may show that another plan is needed: then the search
begins again with that one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from ndd_search.core.immutable import cached_property
from ndd_search.core.options import CollapseOptions, Total
from ndd_search.core.paging.cache import hash_of_json
from ndd_search.core.paging.fill_page import window_for
from ndd_search.core.paging.page import Page, slice_page
from ndd_search.core.paging.record_schema import SEEN_WITH_ITEMS
from ndd_search.errors import CursorUnusable
from ndd_search.search.flow.choose_frequency_table import with_table
from ndd_search.search.flow.client_settings import Settings, options_and_others
from ndd_search.search.flow.engines_own_page import NO_DOCUMENTS, as_it_is, own_request
from ndd_search.search.flow.fetch_hits import HitFetcher, reader_of
from ndd_search.search.flow.page_cache import Made, Moment
from ndd_search.search.flow.plan import AskAnew, Plan, Step, needs_sketches, plan_of, planned_anew
from ndd_search.search.flow.round_trips import Finished, Flow, RoundTrips, goes_together, joined
from ndd_search.search.flow.search_state import State
from ndd_search.search.rest.candidate_limits import raised
from ndd_search.search.rest.read_answer import Answer, Hit, shards_of, without_fields
from ndd_search.search.rest.read_request import Piped, Request, Search, read_search
from ndd_search.search.rest.write_response import block_of, hits_of, total_of

_REFRESH = 1.0  # seconds: how often engines show what was written, unless an index is set otherwise
_OF_CANDIDATES: Mapping[str, Total] = {"groups": "estimate", "auto": "hits"}


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
    if (given := changes.pop("cursor", None)) is not None and given is not False:  # one on its own is no conversation
        raise CursorUnusable(request.path, 'a search in an _msearch cannot have "cursor"', "send it on its own")
    options, others = options_and_others(own_settings.options, changes) if changes else (own_settings.options, {})
    if search.limits.apart and not goes_together(search.request):
        search = search.as_found
    if not search.ranks_hits and "unranked" not in own_settings.collapsed_too(changes):
        return None
    steps = steps_of(options, others, own_settings)
    known, now = own_settings.known, own_settings.clock()
    is_bypassed = now < known.about(search.target_of_caller).bypass_until and needs_sketches(options, steps)
    if search.start + search.size > known.about(search.target).window_limit or (is_bypassed and not search.changes):
        return None  # beyond max_result_window, where the engine's own error is due; or a target without sketches
    if search.limits.bounded and options.total in _OF_CANDIDATES:  # to make more candidates for a total costs too much
        options = replace(options, total=_OF_CANDIDATES[options.total])
        steps = steps_of(options, others, own_settings)
    remember = others.get("cache", True) and not is_bypassed
    return Conversation(search, options, own_settings, steps, remember, changes.get("preset"))


def steps_of(
    options: CollapseOptions, others: Mapping[str, Any], settings: Settings, has_cursor: bool = False
) -> list[Step]:
    """Return the steps that a search asks for, in the order in which they work. Each is imported when one asks for it.

    others: as `options_and_others` returns them. Raises TypeError or ValueError for wrong values.
    """
    steps: list[Step] = []
    if (seen := others.get("seen")) is not None:
        from ndd_search.search.flow.seen_items import SeenItems

        if settings.items is not None:
            raise ValueError(SEEN_WITH_ITEMS)
        steps.append(SeenItems.of(seen, settings.recipe))
    if options.total in ("estimate", "groups"):
        from ndd_search.search.flow.count_groups import AllGroups, GroupCount

    if options.total == "estimate":
        steps.append(GroupCount())
    if options.total == "groups" and has_cursor:  # other searches examine the whole result for their page
        steps.append(AllGroups())
    if options.facets:
        from ndd_search.search.flow.facet_count import Facets

        steps.append(Facets())
    if options.members == "all":
        from ndd_search.search.flow.whole_groups import AllMembers

        steps.append(AllMembers())
    if "explain" in others:
        from ndd_search.search.flow.explain_documents import Explanations, explained_ids

        steps += [Explanations(ids)] if (ids := explained_ids(others["explain"])) else []
    return steps


class Conversation:
    """The requests for one search, and the answer for its caller, which may be cached.

    steps: what it has beside its page. remember: whether its page may be read from the cache and stored there.
    preset: the one that the search names. If it does not fit the sketches, the page has a warning.
    """

    key: bytes | None = None  # of the page in the cache

    def __init__(
        self, search: Search, options: CollapseOptions, settings: Settings, steps: Sequence[Step], remember: bool,
        preset: Any = None,
    ) -> None:  # fmt: skip
        self.search, self.options, self.settings, self.steps = search, options, settings, steps
        self.round_trips = RoundTrips(settings.time_budget)
        self._remember = remember and settings.cache is not None and all(step.is_remembered for step in steps)
        if self._remember and not any(map(callable, options.keep)):
            self.key = self._make_key(options.as_text, search.start, search.size, preset)

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

    def flow(self) -> Flow:
        """Return the page in the cache, or else make it."""
        return self.remembered() or (yield from self.made())

    def made(self) -> Flow:
        """Fetch hits until the page is full, and return the answer for the caller."""
        search, settings = self.search, self.settings
        plan = plan_of(search, self.options, settings)
        if any(step.needs_ids for step in self.steps):
            plan = replace(plan, is_split=False)
        is_bypassed = settings.clock() < plan.of_caller.bypass_until  # perhaps while this search waited for another
        if is_bypassed and needs_sketches(self.options, self.steps):
            return as_it_is((yield search.request), search, settings)
        cached = settings.memory.recall_state(self.stream_key, search.indexes) if self._moment else None
        if cached is not None:
            cached = with_table(cached, plan)
        state, whole = cached or State(), 0.0
        while True:
            try:
                for step in self.steps:
                    plan = yield from step.planned(plan, self.round_trips)
                answer = yield from self._carry_out(plan, state, cached)
                break
            except Finished as end:
                answer = as_it_is(end.answer, plan.search, settings)
                break
            except AskAnew as refused:
                plan = planned_anew(plan, refused)
                if cached is None and not refused.learned:  # a cached stream may merely be older than the index
                    whole = _REFRESH if refused.changed else settings.bypass_seconds
                state, cached = State(), None
        if whole and answer.ok:  # the same search in one phase was answered
            settings.known.learn(search.target, whole_until=settings.clock() + whole)
        return answer

    def engines_own(self, reason: str) -> Flow:
        """Return the engine's answer to the caller's own request. reason: why it is no page of ours."""
        return own_request(plan_of(self.search, self.options, self.settings), reason)

    def _carry_out(self, plan: Plan, state: State, cached: State | None) -> Flow:
        """Fetch what the page needs beyond a state, and return the answer. cached: the state that was in the cache."""
        fetcher = HitFetcher(plan, self.round_trips, self.steps)
        state = yield from fetcher.fetch_until_full(state)
        search = plan.search
        if search.limits.of_shard is not None:
            envelope = state.envelope or {}
            search = search.of_shards(shards_of(envelope), Answer(envelope).exact_total)
            plan = replace(plan, search=search)
        for step in self.steps:
            state = yield from step.after_hits(state, plan, self.round_trips)
        reader = reader_of(state, plan)
        page = slice_page(state.stream, search.start, search.size, reader, plan.options)
        to_cache = state  # without the documents of this page: the page itself is cached, and others show other ones
        chooses_anew = plan.options.members == "all"  # among all members, so every one of the window is needed whole
        needed = page.ranks | page.grouped_ranks if chooses_anew else page.ranks
        if needed - state.documents.keys():
            state = yield from fetcher.fetch_documents(state, needed)
        elif not needed and to_cache is not cached and plan.leaves_unread:
            yield from self.round_trips.needed([search.request])  # no document was requested: engines may refuse that
        if page.groups and page.groups[0].rank not in state.documents:
            return (yield from own_request(plan, NO_DOCUMENTS))
        made: Made = {}
        if self.stream_key is not None and to_cache is not cached and state.lasting:
            made[self.stream_key] = to_cache
        cache = "off" if self.stream_key is None else "hit" if to_cache is cached else "miss"
        return (yield from self._answered(plan, state, page, cache, made))

    def _answered(self, plan: Plan, state: State, page: Page, cache: str, made: Made) -> Flow:
        """Add what steps have to add, and return the answer, which is stored in the cache.

        cache: as in page.Info. made: what is stored with it, by key.
        """
        trips = self.round_trips
        for step in self.steps:
            state, page = yield from step.with_page(state, page, plan, trips)
        page = page.with_hits(state.documents)
        if page.info.degraded:
            state = replace(state, lasting=False)
        body = unfiltered_body(plan, state, page, trips.own_seconds, cache)
        for step in self.steps:
            body = step.with_answer(body, state, plan)
        body = plan.search.filtered(body)
        if self.key is not None and state.lasting:
            made[self.key] = body
        if made and self._moment is not None:
            self.settings.memory.remember(made, [*state.stream.hits, *state.documents.values()], self._moment)
        return Answer(body, raw=state.raw)

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
        caller = self.settings.key, request.sender, self.search.caller
        return hash_of_json("search", caller, request.path, params, body)

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
        limits = self.search.limits if self.search.limits.bounded else None  # they decide which request is sent
        return self._make_key(self.options.stream_text, self.options.document_fields, whole, limits)


def unfiltered_body(plan: Plan, state: State, page: Page, seconds: float, cache: str) -> dict[str, Any]:
    """Return the answer in the engine's shape, with the page and the block `ndd`, before the caller's `filter_path`.

    seconds: of our own work. cache: "hit", "miss" or "off".
    """

    def without_added(hit: Hit) -> Hit:
        return without_fields(hit, plan.added_fields)

    plain: Callable[[Hit], Hit] = without_added if plan.added_fields else dict
    search, limits = plan.search, plan.search.limits
    degraded = joined(state.stopped, state.degraded, plan.unread, page.info.degraded)
    if degraded:
        plan.settings.degrade(search.request.path, degraded)
    body = dict(state.envelope or {})
    body["hits"] = {**body["hits"], "hits": hits_of(page, plain)}
    if "total" in body["hits"]:
        body["hits"]["total"] = total_of(page, body["hits"]["total"], limits.total)
    places = [group.rank for group in page.groups]
    start = search.start + state.stream.earlier
    end = start + search.size
    changed = places != list(range(start, min(end, state.stream.fetched) if state.stream.exhausted else end))
    block = block_of(page, plain)
    block.update(took_ms=round(seconds * 1000, 3), cache=cache, degraded=degraded or None)
    strategy = "two_phases" if plan.is_split else "one_phase"
    block.update(changed=changed, strategy=strategy, table=state.table[:8] or None)
    block["warnings"] += plan.warnings
    block["warnings"] += [plan.settings.tell(search.request.path, state.stale)] if state.stale else []
    if state.groups is not None:
        block["unique"] = dict(state.groups)
    if limits.total is not None and (unique := block["unique"]):
        unique.update({name: min(unique[name], limits.total) for name in ("value", "low", "high")})
    if limits.bounded:
        notes = raised(search.body, window_for(state.stream, search.start + search.size, plan.options), limits)[1]
        block.update({"raised": notes} if notes else {})
    body["ndd"] = block
    return body
