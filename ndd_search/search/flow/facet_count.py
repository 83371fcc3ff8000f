"""Counts the groups in each bucket of facets, with one more request on the first page of a search.

A group counts once in each bucket that holds one of its documents, so a filter by that bucket shows as many groups. The
request fetches a sample of each bucket: its documents with the smallest sketch values (see `paging.group_estimate`).
A bucket whose documents are all in its sample is counted, any other is estimated.

If the page examined the whole result (with total="groups" every page does), its leaders are known in the engine's
order, and the counts are exact. An engine returns at most a hundred documents of a bucket, so a bucket is then
divided by the smallest value of its sketches. The limits are chosen from those of the result, so that no part has more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import pairwise, product
from math import prod
from typing import Any

import numpy as np

from ndd_search.core.document_fields import value_of
from ndd_search.core.paging.group_estimate import GroupEstimate, estimate_groups
from ndd_search.core.paging.stream import Stream
from ndd_search.core.sketching.sketches import VALUES
from ndd_search.core.sketching.stored_sketch import listed
from ndd_search.search.flow.count_groups import (
    UNSORTED,
    can_be_sampled,
    count_in,
    counts_of_keys,
    counts_of_missing,
    sample_of,
    smallest_first,
)
from ndd_search.search.flow.fetch_hits import reader_of, sketches_of
from ndd_search.search.flow.plan import Plan, Step
from ndd_search.search.flow.round_trips import LATE, Asking, RoundTrips, joined, trouble
from ndd_search.search.flow.search_state import State
from ndd_search.search.rest.read_answer import MALFORMED, Hit, HitReader, reason_of
from ndd_search.search.rest.read_request import Request, Search

_SAMPLED, _PARTS, _BARE = "ndd_sample", "ndd_parts", "ndd_bare"
_MOST_PARTS = 20_000  # of all buckets together; the engines allow 65,535
OF_BUCKET, _AT_LEAST = 24, 4  # hits in the sample of a bucket: at most, and with many buckets
_OF_ALL = 720  # hits in the samples of all buckets, about
_INNER_LIMIT = 100  # max_inner_result_window, by default
_MOST_ORDERS = 16  # of the hits of a bucket
_FAILED = "facets count documents, because the request for samples of their buckets failed"

_Counts = dict[str, list[Any]]


class Facets(Step):
    """Counts the groups in the buckets of the facets that a search names."""

    def after_hits(self, state: State, plan: Plan, round_trips: RoundTrips) -> Asking[State]:
        """Return the state with the counts of its facets, which are fetched unless it has them.

        If the request fails or an answer is malformed, the counts remain the engine's, and the page is degraded.
        """
        facets = facets_of(plan.search, plan.options.facets)
        if not facets or state.envelope is None or _fit(state, facets):
            return state
        found, examined = state.envelope.get("aggregations"), replace(state, stream=state.examined or state.stream)
        try:
            counts = yield from _counts(facets, examined, found, plan, round_trips)
        except MALFORMED:
            counts = "its answer is malformed"
        if isinstance(counts, str):
            return replace(state, degraded=joined(state.degraded, f"{_FAILED}: {counts}"), lasting=False)
        return replace(state, facets=counts)

    def with_answer(self, body: dict[str, Any], state: State, plan: Plan) -> dict[str, Any]:
        """Return the answer with these counts, and the engine's in its block `ndd`."""
        counts, block = state.facets or {}, body["ndd"]
        block["facets"] = _named(counts)
        block["warnings"] += wrong_facets(plan.search, plan.options.facets)
        return with_counts(body, plan.search, counts)


def _counts(
    facets: Mapping[str, Any], state: State, found: Any, plan: Plan, round_trips: RoundTrips
) -> Asking[_Counts | str]:
    """Return the counts of facets by their names, or why there are none. found: the engine's aggregations."""
    stream = state.stream
    buckets = {name: buckets_of(found, name) for name in facets}
    count = sum(_number(facet, buckets[name]) for name, facet in facets.items())
    limits = _limits(stream) if stream.exhausted and len(stream.hits) > _INNER_LIMIT else []
    held = stream.exhausted and len(limits) * count <= _MOST_PARTS
    size = _INNER_LIMIT if held else max(_AT_LEAST, min(OF_BUCKET, _OF_ALL // max(count, 1)))
    have_ids = {"_id" in hit for hit in stream.hits}
    request = sampling(plan.search.as_found, facets, _sampler(plan, size, limits if held else [], have_ids))
    (answer,) = yield from round_trips.later([request])
    if reason := trouble([answer], like=answer):
        return LATE if reason == LATE else "its answer is partial" if answer.has_hits else reason_of(answer.body)
    typed = plan.search.request.params.get("typed_keys", "false") != "false"
    aggregations = untyped(answer.body.get("aggregations")) if typed else answer.body.get("aggregations")
    sampled = {name: samples_of(aggregations, name, facet, buckets[name]) for name, facet in facets.items()}
    counter = _Counter(state, plan, held)
    return {name: counter.counts(facet, buckets[name], sampled[name]) for name, facet in facets.items()}


def _fit(state: State, facets: Mapping[str, Any]) -> bool:
    """Return whether a state, which an earlier page may have made, has the counts of these facets."""
    found, counts = (state.envelope or {}).get("aggregations"), state.facets
    return counts is not None and all(len(buckets_of(found, name)) == len(counts.get(name, ())) for name in facets)


def _named(counts: _Counts) -> dict[str, Any]:
    return {name: {"buckets": buckets} for name, buckets in counts.items()}


def _number(facet: Mapping[str, Any], buckets: Buckets) -> int:
    """Return the number of buckets, with those in them."""
    inner = usable_facets(facet).items()
    return len(buckets) + sum(_number(one, buckets_of(bucket, name)) for _, bucket in buckets for name, one in inner)


def _limits(stream: Stream) -> list[int]:
    """Return ascending limits of smallest values, between which no more hits lie than an engine returns of a bucket.

    Of a value that more hits have, some are missing.
    """
    limits, count = [0], 0
    for value, hits in sorted(Counter(int(sketch[0]) for sketch in stream.sketches if len(sketch)).items()):
        if count and count + hits > _INNER_LIMIT:
            limits.append(value)
            count = 0
        count += hits
    return [*limits, VALUES]


def _sampler(plan: Plan, size: int, limits: Sequence[int], have_ids: Set[bool]) -> dict[str, Any]:
    """Return the aggregations for each bucket. limits: of its parts, none for a bucket in one part.

    have_ids: whether the examined hits have ids; those without have sequence numbers. Some may, and others not.
    """
    fields = list(plan.reading.fields)
    keyed = counts_of_keys(plan.options) if can_be_sampled(plan.options) else {}
    hits = {
        "size": size,
        "sort": smallest_first(plan.field),
        "docvalue_fields": list(plan.reading.stored),
        "_source": {"includes": fields} if fields else False,
        **({} if True in have_ids or fields else {"stored_fields": "_none_"}),
        **({"seq_no_primary_term": True} if False in have_ids else {}),
    }
    sample: dict[str, Any] = {_SAMPLED: {"top_hits": hits}}
    if limits:
        ranges = [{"from": start, "to": end} for start, end in pairwise(limits)]
        parts = {"range": {"field": plan.field.smallest, "ranges": ranges}, "aggs": sample}
        sample = {_PARTS: parts, _BARE: {"missing": {"field": plan.field.smallest}, "aggs": sample}}
    return {**sample, **counts_of_missing(plan.field), **keyed}


def _hits_in(sampled: Mapping[str, Any]) -> tuple[list[Hit], list[Hit], int]:
    """Return the hits of a bucket by their smallest values, those without one, and how many of these are not there.

    Of a bucket in parts, the hits up to the end of the first part of which some are missing.
    """
    if _PARTS not in sampled:
        return sampled[_SAMPLED]["hits"]["hits"], [], 0
    hits: list[Hit] = []
    for part in sampled[_PARTS]["buckets"]:
        found = part[_SAMPLED]["hits"]["hits"]
        hits += found
        if len(found) < part["doc_count"]:
            break
    bare = sampled[_BARE][_SAMPLED]["hits"]["hits"]
    return hits, bare, int(sampled[_BARE]["doc_count"]) - len(bare)


class _Counter:
    """Counts the groups of buckets. held: whether the whole result was examined."""

    def __init__(self, state: State, plan: Plan, held: bool) -> None:
        self._state, self._plan = state, plan
        self._shown = plan.shown if plan.options.hides_seen else ()  # what resembles it has no place
        self._places: dict[Any, list[int]] = {}
        for place, both in enumerate(zip(state.stream.hits, state.stream.sketches, strict=True) if held else ()):
            name, *_ = _names(*both)
            if name[-1] or plan.options.reads_keys or name not in self._places:  # else it stands alone anywhere
                self._places.setdefault(name, []).append(place)

    def counts(
        self, facet: Mapping[str, Any], buckets: Buckets, samples: Sequence[Mapping[str, Any] | None]
    ) -> list[Any]:
        """Return the counts of each bucket: number of documents, of groups with its interval, and of inner facets."""
        found: list[Any] = []
        for (key, bucket), sampled in zip(buckets, samples, strict=True):
            entry = {"key": key, "documents": bucket["doc_count"], **self._groups(bucket, sampled).as_dict()}
            inner = {}
            for name, one in usable_facets(facet).items():
                within = buckets_of(bucket, name)
                inner[name] = self.counts(one, within, samples_of(sampled, name, one, within))
            found.append({**entry, "facets": _named(inner)} if inner else entry)
        return found

    def _groups(self, bucket: Mapping[str, Any], sampled: Mapping[str, Any] | None) -> GroupEstimate:
        documents = int(bucket["doc_count"])
        if sampled is None:  # the index has changed between the two requests
            return GroupEstimate(documents, "estimate", min(documents, 1), documents)
        total = int(sampled["doc_count"])
        hits, bare, alone = _hits_in(sampled)
        hits, every = [self._with_recipe(hit) for hit in hits], [self._with_recipe(hit) for hit in (*hits, *bare)]
        if total <= 1:
            return GroupEstimate.exactly(self._leaders(every) if every else total)
        options, is_min_k = self._plan.options, self._plan.settings.recipe.method == "min-k"
        is_all = total == len(every) + alone and not (alone and (options.reads_keys or count_in(sampled, UNSORTED)))
        if is_all and (orders := self._orders(every)):
            groups = [self._leaders(one) + alone for one in orders]
            low, high = min(groups), max(groups)
            return GroupEstimate(groups[0], "eq" if low == high else "estimate", low, high)
        if not is_min_k or count_in(sampled, UNSORTED) or not can_be_sampled(options):
            return GroupEstimate(total, "estimate", 1, total)
        sketches = sketches_of(hits, self._plan)
        if (sample := sample_of(hits, sketches, total, sampled, options)) is None:
            return GroupEstimate(total, "estimate", 1, total)
        return estimate_groups(Stream(), sample, self._reader, options)

    def _with_recipe(self, hit: Hit) -> Hit:
        """Return a hit with the fields that its sketch needs, also those that were read from its document."""
        read = {name: listed(value_of(hit.get("_source") or {}, name)) for name in self._plan.sketch_reading.fields}
        return {**hit, "fields": {**read, **hit.get("fields", {})}}

    def _orders(self, hits: Sequence[Hit]) -> list[list[Hit]]:
        """Return the hits of a bucket in all orders that may be the engine's; none if a place is unknown, or for many.

        There are several if hits of two shards have one name.
        """
        each = [_names(*both) for both in zip(hits, sketches_of(hits, self._plan), strict=True)]
        places = [next((self._places[name] for name in names if name in self._places), []) for names in each]
        if prod(map(len, places)) > _MOST_ORDERS:
            return []
        orders = [np.argsort(one, kind="stable").tolist() for one in product(*places)]
        return [[hits[at] for at in order] for order in orders]

    def _leaders(self, hits: Sequence[Hit]) -> int:
        reader = self._reader(sketches_of(hits, self._plan))
        stream = Stream(shown=self._shown).extend(hits, len(hits), reader, self._plan.options)
        return len(set(stream.leader.tolist())) - len(stream.seen)

    def _reader(self, found: Sequence[Any]) -> HitReader:
        return reader_of(self._state, self._plan, found, start=0)


def _names(hit: Hit, sketch: Any) -> list[Any]:
    """Return what tells a hit apart: its id, or else its sequence number, which two shards may give, and its sketch."""
    index, values = hit.get("_index"), b"" if isinstance(sketch, str) else sketch.tobytes()
    numbered = index, hit.get("_seq_no"), values
    return [(index, hit["_id"]), numbered] if "_id" in hit else [numbered]


KINDS = ("terms", "histogram", "date_histogram", "range", "date_range", "filters")
_WHICH = {  # parts of a body that decide which documents are aggregated
    *("query", "min_score", "runtime_mappings", "indices_boost", "terminate_after", "timeout"),
    *("knn", "retriever", "sub_searches"),
}
_COUNTS = {"_count", "_key", "_term"}

Counts = Mapping[str, Any]
Buckets = Sequence[tuple[Any, Mapping[str, Any]]]  # each with its key


def facets_of(search: Search, names: Sequence[str]) -> dict[str, Any]:
    """Return those of the named aggregations of a search that can count groups."""
    given = usable_facets(search.body)
    return {name: given[name] for name in names if name in given}


def wrong_facets(search: Search, names: Sequence[str]) -> list[str]:
    """Return a sentence about each named aggregation that does not exist or cannot count groups.

    A search without aggregations may be one that the names are not meant for, if it does not give them itself.
    """
    given, usable = _aggregations(search.body), facets_of(search, names)
    return [
        f"facet {name!r} counts documents: it is none of {', '.join(KINDS)}"
        if name in given
        else f"no aggregation of this search has the name {name!r} that facets names: check its spelling"
        for name in names
        if (given or "facets" in search.changes) and name not in usable
    ]


def sampling(search: Search, facets: Mapping[str, Any], sampler: Mapping[str, Any]) -> Request:
    """Return a request for facets alone. sampler: the aggregations for each bucket."""
    params = {
        name: value
        for name, value in search.request.params.items()
        if name not in ("size", "from", "filter_path", "track_total_hits", "track_scores")
        and not name.startswith(("docvalue", "stored"))
    }
    body = {name: value for name, value in search.body.items() if name in _WHICH}
    aggregations = {name: _with(facet, sampler) for name, facet in facets.items()}
    return replace(
        search.request, body={**body, "size": 0, "track_total_hits": False, "aggs": aggregations}, params=params
    )


def untyped(node: Any) -> Any:
    """Return aggregations that were asked for with `typed_keys` by the names that the request gave them."""
    if isinstance(node, list):
        return [untyped(one) for one in node]
    if not isinstance(node, Mapping):
        return node
    return {name.partition("#")[2] or name: one if name == "hits" else untyped(one) for name, one in node.items()}


def buckets_of(aggregations: Mapping[str, Any] | None, name: str) -> list[tuple[Any, dict[str, Any]]]:
    """Return the buckets of an aggregation in an answer, each with its key."""
    buckets = (_answered(aggregations or {}, name)[1] or {}).get("buckets")
    if isinstance(buckets, Mapping):
        return list(buckets.items())
    return [(bucket.get("key", place), bucket) for place, bucket in enumerate(buckets or [])]


def samples_of(
    aggregations: Mapping[str, Any] | None, name: str, facet: Mapping[str, Any], buckets: Buckets
) -> list[dict[str, Any] | None]:
    """Return the bucket of an aggregation in the answer to `sampling` for each of its buckets in the first answer.

    None if the index has changed and it has none. Ranges and filters are matched by their order: two may have one key,
    and the key of a range up to "now" differs from request to request.
    """
    sampled = buckets_of(aggregations, name)
    if _kind(facet) in ("range", "date_range", "filters") and len(sampled) == len(buckets):
        return [bucket for _, bucket in sampled]
    by_key = dict(sampled)
    return [by_key.get(key) for key, _ in buckets]


def with_counts(body: dict[str, Any], search: Search, facets: Mapping[str, Sequence[Counts]]) -> dict[str, Any]:
    """Return an answer whose buckets count groups. facets: by name, the counts of each bucket in the engine's order.

    The buckets of `terms` without an order are sorted by these counts, as the engine sorts by its own.
    """
    if not facets:
        return body
    return {**body, "aggregations": _counted(body.get("aggregations") or {}, usable_facets(search.body), facets)}


def _counted(
    answered: Mapping[str, Any], given: Mapping[str, Any], facets: Mapping[str, Sequence[Counts]]
) -> dict[str, Any]:
    """Return aggregations, or a bucket that holds some, with counts of groups. given: their definitions."""
    aggregations = dict(answered)
    for name, counts in facets.items():
        key, found = _answered(aggregations, name)
        if found is None:
            continue
        buckets, inner = found["buckets"], usable_facets(given[name])
        is_keyed = isinstance(buckets, Mapping)
        changed = [
            {**_counted(bucket, inner, _inner_of(count)), "doc_count": count["value"]}
            for bucket, count in zip(buckets.values() if is_keyed else buckets, counts, strict=True)
        ]
        if not is_keyed and _is_ranked(given[name]):
            changed.sort(key=lambda bucket: -bucket["doc_count"])
        aggregations[key] = {**found, "buckets": dict(zip(buckets, changed, strict=True)) if is_keyed else changed}
    return aggregations


def _inner_of(count: Counts) -> dict[str, Any]:
    return {name: one["buckets"] for name, one in count.get("facets", {}).items()}


def _aggregations(body: Mapping[str, Any]) -> Mapping[str, Any]:
    given = body.get("aggs", body.get("aggregations"))
    return given if isinstance(given, Mapping) else {}


def usable_facets(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the aggregations of a body, or within another one, that can count groups."""
    return {name: one for name, one in _aggregations(body).items() if isinstance(one, Mapping) and _kind(one)}


def _kind(facet: Mapping[str, Any]) -> str | None:
    return next((kind for kind in KINDS if isinstance(facet.get(kind), Mapping)), None)


def _is_ranked(facet: Any) -> bool:
    return isinstance(facet, Mapping) and isinstance(facet.get("terms"), Mapping) and "order" not in facet["terms"]


def _with(facet: Mapping[str, Any], sampler: Mapping[str, Any]) -> dict[str, Any]:
    """Return a facet with the sampler for each bucket. Its own parts are left out unless its order needs them."""
    kind = _kind(facet) or ""
    own = {} if _COUNTS.issuperset(_orders(facet[kind])) else _aggregations(facet)
    inner = {name: _with(one, sampler) for name, one in usable_facets(facet).items()}
    return {kind: facet[kind], "aggs": {**own, **inner, **sampler}}


def _orders(inner: Mapping[str, Any]) -> Iterator[str]:
    given = inner.get("order") or []
    for one in [given] if isinstance(given, Mapping) else given:
        yield from one


def _answered(aggregations: Mapping[str, Any], name: str) -> tuple[str, dict[str, Any] | None]:
    """Return the key and value of an aggregation in an answer. The key has a prefix with `typed_keys`."""
    keys = (name, *(key for key in aggregations if key.partition("#")[2] == name))  # a name may hold "#" as well
    return next(((key, aggregations[key]) for key in keys if "buckets" in aggregations.get(key, ())), (name, None))
