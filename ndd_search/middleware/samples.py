"""Asks for samples of documents by their smallest sketch values, and reads them (see `paging.group_estimate`).

The engine sorts a result, or a bucket, by a stored field. This is `ndd.smallest`, of one value a document, or
`ndd.sketch`, as earlier versions stored no smallest value. A sample is of use only if it is one of all documents with a
sketch, so aggregations count the documents that have no value in the field. They are named by the constants here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

from ndd_search.collapse_options import CollapseOptions
from ndd_search.middleware.plan import Plan
from ndd_search.middleware.settings import Settings
from ndd_search.paging.group_estimate import Sample
from ndd_search.rest.answers import Hit
from ndd_search.sketching.field import SketchField
from ndd_search.sketching.sketches import VALUES, Lack, Sketch

UNSKETCHED, UNSORTED = "lacking", "unsorted"  # documents without a sketch; with one, but no value in the field
_KEYS, _KEYLESS = "keys", "keyless"  # different keys of `group_by`; documents without one
_COUNTED_EXACTLY, _COUNT_ERROR = 10_000, 0.03  # keys that an engine counts nearly exactly; error of a larger count


def sort_fields(field: SketchField) -> tuple[str, ...]:
    """Return the fields by which a sample can be sorted, the fastest first. An earlier version stored only the last."""
    return field.smallest, field.sketch


def known_sort_field(plan: Plan, settings: Settings) -> str:
    """Return the field by which this caller's samples are sorted, "" if none is known to lack smallest values."""
    learned = settings.known.of_caller(plan.search.target_of_caller)
    return learned.sort if settings.clock() < learned.sort_until else ""


def remember_sort_field(plan: Plan, settings: Settings, field: str) -> None:
    """Sort this caller's samples by a field, and count documents without it, for a while."""
    until = settings.clock() + settings.bypass_seconds
    settings.known.learn_of_caller(plan.search.target_of_caller, sort=field, sort_until=until)


def smallest_first(path: str, missing: str = "_last") -> list[dict[str, Any]]:
    """Return the sort by the smallest value of a field. missing: place of the documents without values."""
    return [{path: {"order": "asc", "mode": "min", "unmapped_type": "integer", "missing": missing}}]


def counts_of_missing(field: SketchField, sort_field: str) -> dict[str, Any]:
    """Return the aggregations that count documents without a sketch, and those that lack just the field of a sort."""
    sketched, sortable = ([{"exists": {"field": path}} for path in paths] for paths in (field.values, [sort_field]))
    return {
        UNSKETCHED: {"filter": {"bool": {"must_not": sketched}}},
        UNSORTED: {"filter": {"bool": {"should": sketched, "minimum_should_match": 1, "must_not": sortable}}},
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
    """Return whether the answer to a sample counts the documents that lack just the field of its sort."""
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
    Returns None if a hit has the smallest value of another sketch: earlier versions replaced only the sketch.
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
    """Return the smallest value of a hit that was sorted by it, None if it has none."""
    found = hit["sort"][0] if hit.get("sort") else None
    return int(found) if found is not None and 0 <= int(found) < VALUES else None
