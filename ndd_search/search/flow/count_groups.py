"""Counts the groups of the whole result, for `total`: estimated in the first trip, or all examined for a cursor.

One more request of the `_msearch` fetches a sample of the whole result. The estimate depends on the
first window and that sample alone, so every page of a search has the same one.

The engine sorts a result, or a bucket, by `ndd.smallest`. To count documents without a smallest value costs the engine
as much as a search. So the first request puts them first: if none comes first, there is none. Else a second trip asks
for a sample that counts them, and for a while, so do the further samples of this caller. A sample is of use only if it
is one of all documents with a sketch, so those that lack just the smallest value are counted, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import ceil
from typing import Any

from ndd_search.core.options import CollapseOptions
from ndd_search.core.paging.fill_page import Fetch, count_places
from ndd_search.core.paging.group_estimate import GroupEstimate, Sample, estimate_groups, extrapolated, head_of
from ndd_search.core.paging.page import Layout
from ndd_search.core.paging.stream import NO_HITS, Stream
from ndd_search.core.sketching.sketches import VALUES, Lack, Sketch
from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.search.flow.fetch_hits import reader_of, sketches_in
from ndd_search.search.flow.plan import Plan, Step, can_be_split, sketches_only
from ndd_search.search.flow.round_trips import Asking, RoundTrips
from ndd_search.search.flow.search_state import State
from ndd_search.search.rest.point_in_time import ordered
from ndd_search.search.rest.read_answer import MALFORMED, Answer, Hit, envelope_after
from ndd_search.search.rest.read_request import Request

SAMPLE = 40  # hits; docs/paging.md has the intervals that they give, and what they cost


class GroupCount(Step):
    """Estimates the number of groups of the whole result."""

    def beside(self, plan: Plan) -> list[Request]:
        """Return the request for the sample, none if there can be none, or the search cannot be sent beside another."""
        if not can_be_sampled(plan.options):
            return []
        if not plan.may_split or not can_be_split(plan.search, plan.options):
            return []
        learned = plan.settings.known.about(plan.search.target_of_caller)
        return [_request(plan, counts=plan.settings.clock() < learned.lacks_until)]

    def after_first_trip(
        self, state: State, plan: Plan, round_trips: RoundTrips, answers: list[Answer]
    ) -> Asking[State]:
        """Return the state with the number of groups.

        Without a usable answer, the number is extrapolated from the first window, with bounds that always hold.
        """
        head = head_of(state.stream, plan.options.window)
        if head.exhausted:
            hidden = len(head.seen) if plan.options.hides_seen else 0
            return replace(state, groups=GroupEstimate.exactly(len(set(head.leader.tolist())) - hidden).as_dict())
        answer = answers[0] if answers else None
        if answer is not None and _may_lack_some(answer):
            until = plan.settings.clock() + plan.settings.bypass_seconds
            plan.settings.known.learn(plan.search.target_of_caller, lacks_until=until)
            (answer,) = yield from round_trips.later([_request(plan, counts=True)])
            envelope = envelope_after(state.envelope or {}, [answer]) if answer.whole else state.envelope
            state = replace(state, lasting=state.lasting and answer.whole, envelope=envelope)
        found = None if answer is None else _estimated(head, answer, state, plan)
        if found is None and head.total is not None:
            most = plan.search.limits.total  # a longer page raises the limits, and with them the engine's total
            found = extrapolated(head, head.total if most is None else min(head.total, most))
        return replace(state, groups=None if found is None else found.as_dict())


class AllGroups(Step):
    """Counts the hits that all pages of a cursor show, up to max_window, and its groups: total="groups"."""

    def after_first_trip(
        self, state: State, plan: Plan, round_trips: RoundTrips, answers: list[Answer]
    ) -> Asking[State]:
        """Return the state with the total, which is the first window's if the request for it fails."""
        stream = state.stream
        most = min(plan.options.max_window, plan.window_limit)
        if not stream.exhausted and stream.fetched < most:
            request = sketches_only(plan.search, Fetch(0, most), plan.field, plan.reading, ids=bool(plan.shown))
            request = replace(request, body={**request.body, "sort": ordered(plan.search)})
            (answer,) = yield from round_trips.later([request])
            if answer.whole:
                reader = reader_of(state, plan, sketches_in(answer, plan), start=0)
                stream = replace(NO_HITS, shown=plan.shown).extend(answer.hits, most, reader, plan.options)
        count, relation = count_places(stream, stream.fetched, plan.options), "eq" if stream.exhausted else "gte"
        state = replace(state, total={"value": count, "relation": relation}, examined=stream)
        if stream.exhausted:
            layout = Layout(stream, len(stream.hits), plan.options)
            groups = GroupEstimate.exactly(len(layout.leaders) - len(layout.passed_over))
            state = replace(state, groups=groups.as_dict())
        return state


def _request(plan: Plan, counts: bool) -> Request:
    """Return the request for the sample. counts: of documents without a smallest value; else they come first."""
    request = sketches_only(plan.search, Fetch(0, SAMPLE), plan.field, plan.reading)
    order = smallest_first(plan.field, missing="_last" if counts else "_first")
    body = {**request.body, "sort": order, "track_total_hits": True}
    if aggregations := {**(counts_of_missing(plan.field) if counts else {}), **counts_of_keys(plan.options)}:
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


def _estimated(head: Stream, sampled: Answer, state: State, plan: Plan) -> GroupEstimate | None:
    """Return the estimate from the answer to the request for the sample, None if it is not usable."""
    with suppress(*MALFORMED):
        if (sample := _sample(sampled, plan)) is not None:
            return estimate_groups(head, sample, partial(reader_of, state, plan, start=head.fetched), plan.options)
    return None


def _sample(sampled: Answer, plan: Plan) -> Sample | None:
    """Return the sample in the answer to the request for it, None if it is not one of the whole result."""
    if plan.settings.recipe.method != "min-k" or not sampled.whole or sampled.total is None or not _is_of_all(sampled):
        return None
    aggregations = sampled.body.get("aggregations") or {}
    hits, sketches = sampled.hits, sketches_in(sampled, plan)
    sample = sample_of(hits, sketches, sampled.total, aggregations, plan.options)
    if sample is not None and len(sample.hits) < len(hits) and not counts_unsorted(aggregations):
        return None
    return sample


UNSKETCHED, UNSORTED = "lacking", "unsorted"  # documents without a sketch; with one, but no smallest value
_KEYS, _KEYLESS = "keys", "keyless"  # different keys of `group_by`; documents without one
_COUNTED_EXACTLY, _COUNT_ERROR = 10_000, 0.03  # keys that an engine counts nearly exactly; error of a larger count


def smallest_first(field: SketchField, missing: str = "_last") -> list[dict[str, Any]]:
    """Return the sort by the smallest value. missing: place of the documents without one."""
    return [{field.smallest: {"order": "asc", "mode": "min", "unmapped_type": "integer", "missing": missing}}]


def counts_of_missing(field: SketchField) -> dict[str, Any]:
    """Return the aggregations that count documents without a sketch, and those that lack just the smallest value."""
    sketched, sortable = ({"exists": {"field": path}} for path in (field.sketch, field.smallest))
    return {
        UNSKETCHED: {"filter": {"bool": {"must_not": sketched}}},
        UNSORTED: {"filter": {"bool": {"filter": sketched, "must_not": sortable}}},
    }


def can_be_sampled(options: CollapseOptions) -> bool:
    """Return whether a sample shows how many groups there are. With `max_per` and several keys it does not."""
    return not options.max_per and len(options.group_by) <= 1


def counts_of_keys(options: CollapseOptions) -> dict[str, Any]:
    """Return the aggregations that count the keys of `group_by`. A missing value and an empty text are no key."""
    aggregations: dict[str, Any] = {}
    for name in options.group_by:
        missing = {"bool": {"must_not": [{"exists": {"field": name}}]}}
        empty = {"match": {name: {"query": "", "lenient": True}}}
        aggregations[_KEYS] = {"cardinality": {"field": name, "precision_threshold": _COUNTED_EXACTLY}}
        aggregations[_KEYLESS] = {"filter": {"bool": {"should": [missing, empty], "minimum_should_match": 1}}}
    return aggregations


def counts_unsorted(aggregations: Mapping[str, Any] | None) -> bool:
    """Return whether the answer to a sample counts the documents that lack values."""
    return any(_plain_name(name) == UNSORTED for name in aggregations or {})


def count_in(aggregations: Mapping[str, Any], wanted: str) -> int:
    """Return the number of documents that one of these aggregations has counted."""
    return sum(int(one["doc_count"]) for name, one in aggregations.items() if _plain_name(name) == wanted)


def _most_keys_in(aggregations: Mapping[str, Any], options: CollapseOptions) -> int | None:
    """Return the number of keys and of documents without one, at most; None without `group_by`."""
    if not options.group_by:
        return None
    found = next(int(one["value"]) for name, one in aggregations.items() if _plain_name(name) == _KEYS)
    error = ceil(_COUNT_ERROR * found) if found > _COUNTED_EXACTLY else 0
    return found + error + count_in(aggregations, _KEYLESS)


def _plain_name(name: str) -> str:
    """Return the name that a request gave to an aggregation. With `typed_keys` an answer puts a prefix before it."""
    return name.rpartition("#")[2]


def sample_of(
    hits: Sequence[Hit],
    sketches: Sequence[Sketch | Lack],
    total: int,
    aggregations: Mapping[str, Any],
    options: CollapseOptions,
) -> Sample | None:
    """Return the sample in hits that were sorted by their smallest value. Hits without values are left out.

    sketches: one for each hit, or why it has none. total: documents that the sample is of.
    Returns None if a hit has the smallest value of another sketch: some program has replaced only the sketch.
    """
    valued = [
        (hit, sketch, value)
        for hit, sketch in zip(hits, sketches, strict=True)
        if (value := smallest_of(hit)) is not None
    ]
    if any(sketch[0] != value for _, sketch, value in valued if not isinstance(sketch, str)):
        return None
    found = [hit for hit, _, _ in valued]
    smallest = [value for _, _, value in valued]
    unsketched, keys = count_in(aggregations, UNSKETCHED), _most_keys_in(aggregations, options)
    return Sample(found, [sketch for _, sketch, _ in valued], smallest, total, unsketched, keys)


def smallest_of(hit: Hit) -> int | None:
    """Return the smallest value of a hit that was sorted by it, None if it has none; it may then have 2**31 - 1."""
    found = hit["sort"][0] if hit.get("sort") else None
    return int(found) if found is not None and 0 <= int(found) < VALUES - 1 else None
