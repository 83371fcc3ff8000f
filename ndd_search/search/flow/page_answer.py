"""Assembles the answer for the caller from a page and the engine's answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ndd_search.core.paging.fill_page import window_for
from ndd_search.core.paging.page import Page
from ndd_search.search.flow.plan import Plan
from ndd_search.search.flow.settings import Settings
from ndd_search.search.flow.state import State
from ndd_search.search.rest.answers import Hit, without_fields
from ndd_search.search.rest.filter_path import filtered
from ndd_search.search.rest.request import Search
from ndd_search.search.rest.response import block_of, hits_of, total_of


def unfiltered_body(
    plan: Plan, settings: Settings, state: State, page: Page, seconds: float, cache: str
) -> dict[str, Any]:
    """Return the answer in the engine's shape, with the page and the block `ndd`, before the caller's `filter_path`.

    seconds: of our own work. cache: "hit", "miss" or "off".
    """

    def without_added(hit: Hit) -> Hit:
        return without_fields(hit, plan.added_fields)

    plain: Callable[[Hit], Hit] = without_added if plan.added_fields else dict
    search, limits = plan.search, plan.search.limits
    page = page.with_hits(state.documents)
    degraded = state.stopped or state.degraded or plan.unread or page.info.degraded
    if degraded:
        settings.degrade(search.request.path, degraded)
    body = dict(state.envelope or {})
    body["hits"] = {**body["hits"], "hits": hits_of(page, plain)}
    if "total" in body["hits"]:
        body["hits"]["total"] = total_of(page, body["hits"]["total"], limits.total)
    places = [group.rank for group in page.groups]
    changed = places != list(range(search.start, search.start + len(places)))
    block = block_of(page, plain)
    block.update(took_ms=round(seconds * 1000, 3), cache=cache, degraded=degraded or None)
    block.update(changed=changed, strategy=plan.strategy, table=state.table[:8] or None)
    block["warnings"] += plan.warnings
    if state.groups is not None:
        block["unique"] = dict(state.groups)
    if limits.total is not None and (unique := block["unique"]):
        unique.update({name: min(unique[name], limits.total) for name in ("value", "low", "high")})
    if search.one_window:
        notes = search.raised(window_for(state.stream, search.start + search.size, plan.options))[1]
        block.update({"raised": notes} if notes else {})
    body["ndd"] = block
    return body


def engine_page(plan: Plan, state: State, ranks: Sequence[int]) -> dict[str, Any]:
    """Return the engine's own page as its answer: the hits at these ranks."""
    body = dict(state.envelope or {})
    hits = [without_fields(state.documents[rank], plan.added_fields) for rank in ranks]
    body["hits"] = {**body["hits"], "hits": hits}
    return filter_body(body, plan.search)


def filter_body(body: dict[str, Any], search: Search) -> dict[str, Any]:
    """Return what the caller's `filter_path` leaves of an answer."""
    paths = search.request.params.get("filter_path")
    return filtered(body, paths, "ndd") if paths else body
