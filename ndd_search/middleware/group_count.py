"""Estimates the number of groups of the whole result in the first trip of a search, for total="estimate".

One more request of the `_msearch` fetches a sample of the whole result (see `samples`). The estimate depends on the
first window and that sample alone, so every page of a search has the same one.

To count documents without a smallest value costs the engine as much as a search. So the first request puts them first:
if none comes first, there is none. Else a second trip asks for samples that count them, one for each field that a
sample can be sorted by. For a while, the further samples of this caller are asked for like the one that was usable.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from ndd_search.middleware.add_answers import sketches_in
from ndd_search.middleware.fetch_strategies import can_be_split, sketches_only
from ndd_search.middleware.plan import Plan
from ndd_search.middleware.samples import (
    UNSORTED,
    can_be_sampled,
    count_in,
    counts_of_keys,
    counts_of_missing,
    counts_unsorted,
    known_sort_field,
    remember_sort_field,
    sample_of,
    smallest_first,
    smallest_of,
    sort_fields,
)
from ndd_search.middleware.sending import Asking, RoundTrips
from ndd_search.middleware.settings import Settings
from ndd_search.middleware.state import State
from ndd_search.paging.group_estimate import GroupEstimate, Sample, estimate_groups, extrapolated, head_of
from ndd_search.paging.stream import Stream
from ndd_search.paging.windows import Fetch
from ndd_search.rest.answers import MALFORMED, Answer, HitReader, envelope_after
from ndd_search.rest.request import Request

SAMPLE = 40  # hits; docs/paging.md has the intervals that they give, and what they cost


def sample_requests(plan: Plan, settings: Settings) -> list[Request]:
    """Return the request for the sample, none if no estimate is wanted or the search cannot be sent beside another.

    With `collapse`, the engine counts documents but returns groups of its own, so there is no sample of these.
    """
    if plan.options.total != "estimate" or "collapse" in plan.search.body or not can_be_sampled(plan.options):
        return []
    if not plan.may_split or not can_be_split(plan.search, plan.options):
        return []
    return [_request(plan, known_sort_field(plan, settings))]


def with_group_count(
    state: State, plan: Plan, settings: Settings, round_trips: RoundTrips, sampled: Sequence[Answer]
) -> Asking[State]:
    """Return the state with the number of groups. sampled: the answer to the request for the sample, if one was sent.

    Without a usable answer, the number is extrapolated from the first window, with bounds that always hold.
    """
    if plan.options.total != "estimate":
        return state
    head = head_of(state.stream, plan.options.window)
    if head.exhausted:
        return replace(state, groups=GroupEstimate.exactly(len(set(head.leader.tolist()))).as_dict())
    answer = sampled[0] if sampled else None
    if answer is not None and _may_lack_some(answer):
        requests = [_request(plan, field) for field in sort_fields(plan.field)]
        answers = yield from round_trips.later(requests)
        answer = _usable(answers, plan, settings)
        whole = all(one.whole for one in answers)
        envelope = envelope_after(state.envelope or {}, answers) if whole else state.envelope
        state = replace(state, lasting=state.lasting and whole, envelope=envelope)
    found = None if answer is None else _estimated(head, answer, state, plan, settings)
    if found is None and head.total is not None:
        found = extrapolated(head, head.total)
    return replace(state, groups=None if found is None else found.as_dict())


def _request(plan: Plan, sort_field: str) -> Request:
    """Return the request for the sample.

    sort_field: the sample is sorted by it, and documents without it are counted. "" for the smallest value, where
                documents without it come first and are not counted.
    """
    request = sketches_only(plan.search, Fetch(0, SAMPLE), plan.field, plan.reading)
    order = smallest_first(sort_field) if sort_field else smallest_first(plan.field.smallest, "_first")
    body = {**request.body, "sort": order, "track_total_hits": True}
    counts = counts_of_missing(plan.field, sort_field) if sort_field else {}
    if aggregations := {**counts, **counts_of_keys(plan.options)}:
        body["aggs"] = aggregations
    body.pop("track_scores", None)
    return replace(request, body=body)


def _may_lack_some(sampled: Answer) -> bool:
    """Return whether some documents have no smallest value, and are not counted: they come first."""
    with suppress(*MALFORMED):
        return sampled.whole and not counts_unsorted(sampled.body.get("aggregations")) and not _is_of_all(sampled)
    return False


def _is_of_all(sampled: Answer) -> bool:
    """Return whether no document lacks values: those that do were counted, or would come first."""
    aggregations = sampled.body.get("aggregations")
    if counts_unsorted(aggregations):
        return not count_in(aggregations, UNSORTED)
    return not sampled.hits or smallest_of(sampled.hits[0]) is not None


def _usable(answers: Sequence[Answer], plan: Plan, settings: Settings) -> Answer | None:
    """Return the first usable sample of one for each of `sort_fields`, else the last, and remember its field.

    None if an answer is malformed.
    """
    tried = list(zip(sort_fields(plan.field), answers, strict=True))
    with suppress(*MALFORMED):
        field, answer = next((one for one in tried if one[1].whole and _is_of_all(one[1])), tried[-1])
        remember_sort_field(plan, settings, field)
        return answer
    return None


def _estimated(head: Stream, sampled: Answer, state: State, plan: Plan, settings: Settings) -> GroupEstimate | None:
    """Return the estimate from the answer to the request for the sample, None if it is not usable."""
    with suppress(*MALFORMED):
        if (sample := _sample(sampled, plan, settings)) is not None:
            return estimate_groups(head, sample, partial(_reader, state, settings, head.fetched), plan.options)
    return None


def _sample(sampled: Answer, plan: Plan, settings: Settings) -> Sample | None:
    """Return the sample in the answer to the request for it, None if it is not one of the whole result."""
    if settings.recipe.method != "min-k" or not sampled.whole or sampled.total is None or not _is_of_all(sampled):
        return None
    aggregations = sampled.body.get("aggregations") or {}
    hits, sketches = sampled.hits, sketches_in(sampled, settings)
    sample = sample_of(hits, sketches, sampled.total, aggregations, plan.options)
    if sample is not None and len(sample.hits) < len(hits) and not counts_unsorted(aggregations):
        return None
    return sample


def _reader(state: State, settings: Settings, start: int, found: Sequence[Any]) -> HitReader:
    return HitReader(settings.recipe, settings.sketch_field, state.frequency_table, found, start)
