"""Requests for a point in time, and searches in it, for Elasticsearch and OpenSearch.

A point in time is a snapshot of the searched indexes that the engine keeps for a while. Its hits are ordered by the
caller's sort, then by `_shard_doc`, a number that is different for every document of an index, and by `_index`:
OpenSearch (3.8 at least) numbers the documents of each index alike, and continuing after a number would lose others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from ndd_search.core.sketching.stored_sketch import listed
from ndd_search.search.rest.read_request import Request, Search

# Formats of times that are exact to the millisecond at least: names of the engines', and patterns.
_EXACT = re.compile("nanos|millis|fraction|SSS|optional_time|date_time|epoch|iso8601|rfc3339")

Family = Literal["elasticsearch", "opensearch"]

TIEBREAK = ("_shard_doc", "_index")
# Parameters that a point in time takes when it is opened. The engines refuse them in a search of it.
_OF_THE_TARGET = ("preference", "routing", "ignore_unavailable", "allow_no_indices", "expand_wildcards")
_NOT_IN_A_SEARCH = {*_OF_THE_TARGET, "ccs_minimize_roundtrips"}


def opened(search: Search, family: Family, keep_alive: str) -> Request:
    """Return the request that opens a point in time of what a search searches. keep_alive: a time as in "5m"."""
    target = search.request.path.removesuffix("/_search") or "/_all"
    params = {name: search.request.params[name] for name in _OF_THE_TARGET if name in search.request.params}
    params["keep_alive"] = keep_alive
    if family == "opensearch":
        params["allow_partial_pit_creation"] = "false"
    path = target + ("/_pit" if family == "elasticsearch" else "/_search/point_in_time")
    return replace(search.request, method="POST", path=path, params=params, body=None)


def closed(request: Request, family: Family, pit: str) -> Request:
    """Return the request that closes a point in time. request: of the search; it gives the headers."""
    path = "/_pit" if family == "elasticsearch" else "/_search/point_in_time"
    body = {"id": pit} if family == "elasticsearch" else {"pit_id": [pit]}
    return replace(request, method="DELETE", path=path, params={}, body=body)


def id_in(body: Any) -> str | None:
    """Return the id of the point in time in the answer to `opened`, None if there is none."""
    found = (body.get("id") or body.get("pit_id")) if isinstance(body, Mapping) else None
    return found if isinstance(found, str) else None


def in_pit(request: Request, pit: str, keep_alive: str) -> Request:
    """Return a search request as one in a point in time."""
    params = {name: value for name, value in request.params.items() if name not in _NOT_IN_A_SEARCH}
    params["allow_partial_search_results"] = "false"  # hits of a missing shard would be lost
    body = {**request.body, "pit": {"id": pit, "keep_alive": keep_alive}}
    return replace(request, method="POST", path="/_search", params=params, body=body)


def in_a_row(request: Request, search: Search, after: list[Any] | None, family: Family) -> Request:
    """Return a search request as one for hits in a row of a point in time. after: sort values of the hit before."""
    request = replace(request, body={**request.body, "sort": ordered(search)})
    if after is not None:
        request = continued(request, after, family)
    if not listed(search.body.get("sort") or None):  # then hits have scores; engines fail for those of suggestions
        request.body["track_scores"] = "suggest" not in search.body
    return request


def continued(request: Request, after: list[Any], family: Family) -> Request:
    """Return a search request for the hits after those with these sort values.

    If OpenSearch (3.8 at least) does not count all hits, it leaves out hits after a value that many of them have or
    lack, and fails for texts that some lack.
    """
    body = {**request.body, "search_after": after}
    if family != "opensearch":
        return replace(request, body=body)
    params = {name: value for name, value in request.params.items() if name != "track_total_hits"}
    return replace(request, body={**body, "track_total_hits": True}, params=params)


def rounds(search: Search) -> bool:
    """Return whether a sort gives values with fewer digits than it compares: a `format` of days, for instance.

    The hits after such a value begin with some of those before it, so pages would repeat for ever.
    """
    orders = [
        order for one in listed(search.body.get("sort") or None) if isinstance(one, Mapping) for order in one.values()
    ]
    formats = [str(order["format"]) for order in orders if isinstance(order, Mapping) and order.get("format")]
    return any("no_millis" in one or not _EXACT.search(one.partition("||")[0]) for one in formats)


def ordered(search: Search) -> list[Any]:
    """Return the sort by which hits are continued: the caller's, and then one without ties."""
    asked = listed(search.body.get("sort") or None) or [{"_score": "desc"}]
    named = {name for one in asked for name in ([one] if isinstance(one, str) else one)}
    return [*asked, *({name: "asc"} for name in TIEBREAK if name not in named)]
