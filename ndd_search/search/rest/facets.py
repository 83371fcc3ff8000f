"""Facets whose buckets count groups: the request for a sample of each bucket, and the counts in an answer.

Facets are aggregations of the caller whose buckets hold documents, and such aggregations within their buckets. A
bucket's `doc_count` becomes the number of groups of its documents; the engine's number of documents is in the block
`ndd`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ndd_search.search.rest.read_request import Request, Search

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

    A search without aggregations is none that the names were meant for: they may be options of the whole client.
    """
    given, usable = _aggregations(search.body), facets_of(search, names)
    return [
        f"facet {name!r} counts documents: it is none of {', '.join(KINDS)}"
        if name in given
        else f"no aggregation of this search has the name {name!r} that facets names: check its spelling"
        for name in names
        if given and name not in usable
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
