"""Estimates the number of groups of the whole result in the first trip of a search, for total="estimate".

One more request of the `_msearch` fetches the sketches of a sample: the hits with the smallest values, by a sort of the
engine on a stored field (see `paging.group_estimate`). The estimate depends on the first window and that sample alone,
so every page of a search has the same one.

The field is `ndd.smallest`, of one value a document. Documents without it have to be counted, which costs the engine
as much as a search. So the first request puts them first: if none comes first, there is none. Else two more requests
count them, one of them sorted by `ndd.sketch`: earlier versions stored no smallest value. For a while, the further
samples of this caller are made like the one that could be used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import ceil
from typing import Any

from ndd_search.collapse_options import CollapseOptions
from ndd_search.middleware.add_answers import sketches_in
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
from ndd_search.sketching.sketches import VALUES, Lack, Sketch

SAMPLE = 40  # hits; docs/paging.md has the intervals that they give, and what they cost
LACKING, UNSORTED = "lacking", "unsorted"  # documents without a sketch; with one, but without the field of the sort
_KEYS, _KEYLESS = "keys", "keyless"  # different keys of `group_by`; documents without one
_COUNTED, _ERROR = 10_000, 0.03  # keys that an engine counts exactly, nearly; error of a larger count


def sample_requests(plan: Plan, settings: Settings) -> list[Request]:
    """Return the request for the sample, none if no estimate is wanted or the search cannot be sent beside another.

    With `collapse`, the engine counts documents but returns groups of its own, so there is no sample of these. A sample
    does not show how many groups `max_per` or several fields of `group_by` leave.
    """
    if plan.options.total != "estimate" or "collapse" in plan.search.body or not can_be_sampled(plan.options):
        return []
    if not plan.may_split or not can_be_split(plan.search, plan.options):
        return []
    return [_request(plan, learned_sort(plan, settings))]


def counting_requests(plan: Plan, sampled: Sequence[Answer]) -> list[Request]:
    """Return the requests for samples that count documents without values, if a sample that counts none has some."""
    if not sampled or not sampled[0].whole or _is_counted(sampled[0]) or _is_usable(sampled[0]):
        return []
    return [_request(plan, sort) for sort in sorts(plan.field)]


def usable_sample(plan: Plan, settings: Settings, sampled: Sequence[Answer]) -> Sequence[Answer]:
    """Return the first usable one of the answers to `counting_requests`, else the last, and remember its sort."""
    tried = list(zip(sorts(plan.field), sampled, strict=True))
    sort, answer = next((one for one in tried if one[1].whole and _is_usable(one[1])), tried[-1])
    learn_sort(plan, settings, sort)
    return [answer]


def learned_sort(plan: Plan, settings: Settings) -> str:
    """Return the field by which this caller's samples are sorted, "" if none is known to lack values."""
    learned = settings.known.of_caller(plan.search.target_of_caller)
    return learned.sort if settings.clock() < learned.sort_until else ""


def learn_sort(plan: Plan, settings: Settings, sort: str) -> None:
    """Sort this caller's samples by a field, and count documents without it, for a while."""
    until = settings.clock() + settings.bypass_seconds
    settings.known.learn_of_caller(plan.search.target_of_caller, sort=sort, sort_until=until)


def _is_counted(sampled: Answer) -> bool:
    """Return whether documents without values are counted in a sample."""
    return any(name.rpartition("#")[2] == UNSORTED for name in sampled.body.get("aggregations") or {})


def _is_usable(sampled: Answer) -> bool:
    """Return whether a sample is one of all documents: those without values are counted, or there are none."""
    if _is_counted(sampled):
        return not counted(sampled.body["aggregations"], UNSORTED)
    return not sampled.hits or _smallest(sampled.hits[0]) is not None  # they would come first


def sorts(field: SketchField) -> tuple[str, ...]:
    """Return the fields by which a sample can be sorted, the fastest first. An earlier version stored only the last."""
    return field.smallest, field.sketch


def _request(plan: Plan, sort: str) -> Request:
    """Return the request for the sample.

    sort: the field to sort by; documents without values are counted. "" for the smallest value, and those first.
    """
    request = sketches_only(plan.search, Fetch(0, SAMPLE), plan.field, plan.reading)
    order = smallest_first(sort, "_last") if sort else smallest_first(plan.field.smallest, "_first")
    own = {**request.body, "sort": order, "track_total_hits": True}
    if aggregations := {**(unsampled(plan.field, sort) if sort else {}), **of_keys(plan.options)}:
        own["aggs"] = aggregations
    own.pop("track_scores", None)
    return replace(request, body=own)


def can_be_sampled(options: CollapseOptions) -> bool:
    """Return whether a sample shows how many groups there are."""
    return not options.max_per and len(options.group_by) <= 1


def of_keys(options: CollapseOptions) -> dict[str, Any]:
    """Return the aggregations that count the keys of `group_by`. A missing value and an empty text are no key."""
    aggregations: dict[str, Any] = {}
    for name in options.group_by:
        missing = {"bool": {"must_not": [{"exists": {"field": name}}]}}
        empty = {"match": {name: {"query": "", "lenient": True}}}
        aggregations[_KEYS] = {"cardinality": {"field": name, "precision_threshold": _COUNTED}}
        aggregations[_KEYLESS] = {"filter": {"bool": {"should": [missing, empty], "minimum_should_match": 1}}}
    return aggregations


def keys_in(aggregations: Mapping[str, Any], options: CollapseOptions) -> int | None:
    """Return the number of keys and of documents without one, at most; None without `group_by`."""
    if not options.group_by:
        return None
    found = next(int(one["value"]) for name, one in aggregations.items() if name.rpartition("#")[2] == _KEYS)
    return found + (ceil(_ERROR * found) if found > _COUNTED else 0) + counted(aggregations, _KEYLESS)


def smallest_first(path: str, missing: str = "_last") -> list[dict[str, Any]]:
    """Return the sort by the smallest value of a field. missing: place of the documents without values."""
    return [{path: {"order": "asc", "mode": "min", "unmapped_type": "integer", "missing": missing}}]


def unsampled(field: SketchField, sort: str) -> dict[str, Any]:
    """Return the aggregations that count documents without a sketch, and those that lack just the field of a sort."""
    sketched, unsorted = ([{"exists": {"field": path}} for path in paths] for paths in (field.values, [sort]))
    return {
        LACKING: {"filter": {"bool": {"must_not": sketched}}},
        UNSORTED: {"filter": {"bool": {"should": sketched, "minimum_should_match": 1, "must_not": unsorted}}},
    }


def counted(aggregations: Mapping[str, Any], wanted: str) -> int:
    """Return what one of these aggregations counted. Its name has a prefix with `typed_keys`."""
    return sum(int(one["doc_count"]) for name, one in aggregations.items() if name.rpartition("#")[2] == wanted)


def sample_of(
    hits: Sequence[Hit],
    sketches: Sequence[Sketch | Lack],
    total: int,
    aggregations: Mapping[str, Any],
    options: CollapseOptions,
) -> Sample | None:
    """Return the sample in hits that were sorted by their smallest value. Hits without values are left out.

    sketches: one for each hit, or why it has none.
    Returns None if a hit has the smallest value of another sketch: earlier versions replaced only the sketch.
    """
    valued = [
        (hit, sketch, value)
        for hit, sketch in zip(hits, sketches, strict=True)
        if (value := _smallest(hit)) is not None
    ]
    if any(sketch[0] != value for _, sketch, value in valued if not isinstance(sketch, str)):
        return None
    found = [hit for hit, _, _ in valued]
    smallest = [value for _, _, value in valued]
    lacking, keys = counted(aggregations, LACKING), keys_in(aggregations, options)
    return Sample(found, [sketch for _, sketch, _ in valued], smallest, total, lacking, keys)


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
    sample = _sample(sampled, plan.options, settings)
    reader = partial(_reader, state, settings, head.fetched)
    return None if sample is None else estimate_groups(head, sample, reader, plan.options)


def _sample(sampled: Sequence[Answer], options: CollapseOptions, settings: Settings) -> Sample | None:
    """Return the sample in the answer to the request for it, None if it is not one of the whole result."""
    if settings.recipe.method != "min-k" or not sampled or not sampled[0].whole or sampled[0].total is None:
        return None
    if not _is_usable(sampled[0]):
        return None
    aggregations = sampled[0].body.get("aggregations") or {}
    sketches = sketches_in(sampled[0], settings)
    sample = sample_of(sampled[0].hits, sketches, sampled[0].total, aggregations, options)
    if sample is not None and len(sample.hits) < len(sampled[0].hits) and not _is_counted(sampled[0]):
        return None
    return sample


def _reader(state: State, settings: Settings, start: int, found: Sequence[Any]) -> HitReader:
    return HitReader(settings.recipe, settings.sketch_field, state.frequency_table, found, start)
