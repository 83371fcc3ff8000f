"""Estimates the number of groups of the whole result in the first trip of a search, for total="estimate".

One more request of the `_msearch` fetches the sketches of a sample: the hits with the smallest values, by a sort of the
engine on the stored field (see `paging.group_estimate`). The estimate depends on the first window and that sample
alone, so every page of a search has the same one.

Documents without values have to be counted, which costs the engine as much as the sort. So the first request puts them
first: if none comes first, there is none. Else another request counts them, and for a while the further samples of this
caller do so at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from ndd_search.middleware.add_answers import sketches_of
from ndd_search.middleware.fetch_strategies import can_be_split, sketches_only
from ndd_search.middleware.plan import Plan
from ndd_search.middleware.settings import Settings
from ndd_search.middleware.state import State
from ndd_search.paging.group_estimate import GroupEstimate, Sample, estimate_groups, extrapolated, head_of
from ndd_search.paging.stream import Stream
from ndd_search.paging.windows import Fetch
from ndd_search.rest.answers import MALFORMED, Answer, Hit, HitReader
from ndd_search.rest.request import Request
from ndd_search.sketching.field import SketchField
from ndd_search.sketching.sketches import VALUES

SAMPLE = 40  # hits; docs/paging.md has the intervals that they give, and what they cost
LACKING, UNSORTED = "lacking", "unsorted"  # documents without a sketch; with one in a form that engines cannot sort by


def sample_requests(plan: Plan, settings: Settings) -> list[Request]:
    """Return the request for the sample, none if no estimate is wanted or the search cannot be sent beside another.

    With `collapse`, the engine counts documents but returns groups of its own, so there is no sample of these.
    """
    if plan.options.total != "estimate" or "collapse" in plan.search.body:
        return []
    if not plan.may_split or not can_be_split(plan.search, plan.options):
        return []
    counts = settings.clock() < settings.known.of_caller(plan.search.target_of_caller).lacking_until
    return [_request(plan, counts)]


def counting_requests(plan: Plan, settings: Settings, sampled: Sequence[Answer]) -> list[Request]:
    """Return the request for a sample that counts documents without values, if some of these are in a sample."""
    if not sampled or not sampled[0].whole or not sampled[0].hits or "aggregations" in sampled[0].body:
        return []
    if _smallest(sampled[0].hits[0]) is not None:
        return []
    until = settings.clock() + settings.bypass_seconds
    settings.known.learn_of_caller(plan.search.target_of_caller, lacking_until=until)
    return [_request(plan, counts=True)]


def _request(plan: Plan, counts: bool) -> Request:
    """Return the request for the sample. counts: documents without values are counted; else they come first."""
    request = sketches_only(plan.search, Fetch(0, SAMPLE), plan.field, plan.reading)
    missing = "_last" if counts else "_first"
    own = {**request.body, "sort": smallest_first(plan.field, missing), "track_total_hits": True}
    if counts:
        own["aggs"] = unsampled(plan.field)
    own.pop("track_scores", None)
    return replace(request, body=own)


def smallest_first(field: SketchField, missing: str = "_last") -> list[dict[str, Any]]:
    """Return the sort by the smallest value of a sketch. missing: place of the documents without values."""
    return [{field.sketch: {"order": "asc", "mode": "min", "unmapped_type": "integer", "missing": missing}}]


def unsampled(field: SketchField) -> dict[str, Any]:
    """Return the aggregations that count documents without values, and those with packed values alone."""
    integers, packed = ({"exists": {"field": path}} for path in field.values)
    return {
        LACKING: {"filter": {"bool": {"must_not": [integers, packed]}}},
        UNSORTED: {"filter": {"bool": {"must": [packed], "must_not": [integers]}}},
    }


def counted(aggregations: Mapping[str, Any], wanted: str) -> int:
    """Return what one of these aggregations counted. Its name has a prefix with `typed_keys`."""
    return sum(int(one["doc_count"]) for name, one in aggregations.items() if name.rpartition("#")[2] == wanted)


def sample_of(hits: Sequence[Hit], total: int, lacking: int, settings: Settings) -> Sample:
    """Return the sample in hits that were sorted by their smallest value. Hits without values are left out."""
    valued = [(hit, smallest) for hit in hits if (smallest := _smallest(hit)) is not None]
    found = [hit for hit, _ in valued]
    return Sample(found, sketches_of(found, settings), [smallest for _, smallest in valued], total, lacking)


def _smallest(hit: Hit) -> int | None:
    """Return the smallest value of a hit that was sorted by it, None if it has none."""
    found = hit["sort"][0] if hit.get("sort") else None
    return int(found) if found is not None and 0 <= int(found) < VALUES else None


def with_group_count(state: State, plan: Plan, settings: Settings, sampled: Sequence[Answer]) -> State:
    """Return the state with the number of groups. sampled: the answer to the request for the sample, if one was sent.

    Without a usable answer, the number is extrapolated from the first window, with bounds that always hold.
    """
    if plan.options.total != "estimate":
        return state
    head = head_of(state.stream, plan.options.window)
    found: GroupEstimate | None = None
    if head.exhausted:
        found = GroupEstimate.exactly(len(set(head.leader.tolist())))
    else:
        with suppress(*MALFORMED):
            found = _estimated(head, sampled, state, plan, settings)
    if found is None and head.total is not None:
        found = extrapolated(head, head.total)
    return replace(state, groups=None if found is None else found.as_dict())


def _estimated(
    head: Stream, sampled: Sequence[Answer], state: State, plan: Plan, settings: Settings
) -> GroupEstimate | None:
    """Return the estimate from the answer to the request for the sample, None if it is not usable."""
    sample = _sample(sampled, settings)
    reader = partial(_reader, state, settings, head.fetched)
    return None if sample is None else estimate_groups(head, sample, reader, plan.options)


def _sample(sampled: Sequence[Answer], settings: Settings) -> Sample | None:
    """Return the sample in the answer to the request for it, None if it is not one of the whole result."""
    if settings.recipe.method != "min-k" or not sampled or not sampled[0].whole or sampled[0].total is None:
        return None
    aggregations = sampled[0].body.get("aggregations") or {}
    if not aggregations and any(_smallest(hit) is None for hit in sampled[0].hits):
        return None
    if counted(aggregations, UNSORTED):
        return None
    return sample_of(sampled[0].hits, sampled[0].total, counted(aggregations, LACKING), settings)


def _reader(state: State, settings: Settings, start: int, found: Sequence[Any]) -> HitReader:
    return HitReader(settings.recipe, settings.sketch_field, state.frequency_table, found, start)
