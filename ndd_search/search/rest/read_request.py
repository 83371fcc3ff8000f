"""Reads requests: which are searches, which of these are left alone, which change documents.

The caller's dicts are never changed; changed parts are copied.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Literal
from urllib.parse import parse_qsl, quote, unquote_plus, urlencode

from ndd_search.core.immutable import cached_property, dataclass
from ndd_search.core.options import EVERY_SEARCH
from ndd_search.core.sketching.stored_sketch import StoredSketches
from ndd_search.search.rest.candidate_limits import (
    LIMITED,
    MOST_CANDIDATES,
    SIZE,
    Limits,
    default_size,
    limits_of,
)
from ndd_search.search.rest.search_body import (
    OBJECTS,
    asks_for_ids,
    comma_separated,
    named_inner_hits,
    names_in,
    names_of,
    number_of,
    ranks_hits,
    resolved,
    standard_of,
)
from ndd_search.search.rest.write_response import INNER, filtered

INDEX = "/(?:_all|[^_/?#][^/?#]*)"  # in a path; no name of an index starts with an underscore
_SEARCHES = re.compile(f"(?:{INDEX})?/_(search|msearch|search/template)")
_OF_LINES = re.compile("/_(bulk|msearch|msearch/template)/?$")
_READS = {
    *("_search", "_msearch", "_count", "_mget", "_pit", "_field_caps", "_validate", "_explain", "_analyze", "_eql"),
    *("_termvectors", "_mtermvectors", "_search_shards", "_async_search", "_rank_eval", "_terms_enum", "_query"),
    "_sql",
}
# Searches with one of these are left alone: they page in another way.
_BUSY_KEYS = {"pit", "search_after", "slice"}
_BUSY_PARAMS = {"scroll", "search_after"}
_MOVED = {"sort", "_source", "_source_includes", "_source_excludes", "_source_exclude_vectors"}  # to the body
# A search for suggestions has no hits without one of these.
_FINDING = {"query", "knn", "retriever", "sub_searches", "aggs", "aggregations"}
_OF_BODY = "it names documents by id, has inner hits named near_duplicates, or holds what cannot be read"
_OF_TARGET = "its indexes are switched off or have different settings, or its page ends beyond max_result_window"
Piped = Literal["", "safe", "reorders"]
# Headers that trace, date or describe a request. They differ between requests and grant no rights, so they are not part
# of a caller's identity. Every other header is, because a proxy may read any header as an identity.
_NO_IDENTITY = {
    *("traceparent", "tracestate", "baggage", "sentry-trace", "uber-trace-id", "elastic-apm-traceparent", "b3"),
    *("x-opaque-id", "x-request-id", "request-id", "x-correlation-id", "correlation-id", "x-trace-id"),
    *("x-amzn-trace-id", "x-amzn-requestid", "x-cloud-trace-context", "x-ms-client-request-id"),
    *("date", "x-amz-date", "x-amz-content-sha256", "x-request-start"),
    *("user-agent", "x-elastic-client-meta", "content-length"),
}
_NO_IDENTITY_PREFIXES = ("x-b3-", "x-datadog-")
WHICH_INDEXES = ("ignore_unavailable", "allow_no_indices", "expand_wildcards")  # decide which indexes a target means


@dataclass(frozen=True)
class Request:
    """One call of a client's transport.

    params: of the URL, as text. headers: by lower-case name.
    body: parsed, None if there is none; a list holds one item per NDJSON line.
    timeout: seconds, None for the client's own. parts: the searches of an `_msearch` of ours.
    cut: the sketches that may be cut out of the hits before the answer is parsed (see `rest.read_answer`), or None.
    sender: hash of the credentials that the client's connections add to those in `headers`, "" for none.
    """

    method: str
    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any
    timeout: float | None = None
    parts: tuple[Request, ...] = ()
    cut: StoredSketches | None = None
    sender: str = ""

    def asking(self, body: Any, params: Mapping[str, str], cut: StoredSketches | None = None) -> Request:
        """Return the same request with another body and other parameters."""
        return Request(self.method, self.path, params, self.headers, body, self.timeout, self.parts, cut, self.sender)


@dataclass(frozen=True)
class Search:
    """A search whose hits may be collapsed.

    request:    as the user sent it, without our own key "ndd".
    start, size: the requested page.
    changes:    options by name, from the request's own "ndd".
    limits:     the candidate limits of the search.
    ranks_hits: whether the search ranks its hits (see the function of that name).
    names:      every name in the body, at any depth.
    """

    request: Request
    start: int
    size: int
    changes: Mapping[str, Any]
    limits: Limits
    ranks_hits: bool
    names: Set[str]

    @property
    def as_found(self) -> Search:
        """The same search with the caller's own candidate limits, for its aggregations."""
        return replace(self, limits=replace(self.limits, grows=False, apart=False))

    def of_shards(self, shards: int, found: int | None) -> Search:
        """Return a search that limits each shard with the limits of all of them. found: hits of all, None if unknown.

        A `knn` query finds at most k neighbours in each shard.
        """
        most = (self.limits.of_shard or 0) * shards
        most = most if found is None else min(most, found)
        size = max(0, min(self.size, most - self.start))
        return replace(self, size=size, limits=replace(self.limits, total=most))

    def filtered(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return what the caller's `filter_path` leaves of an answer."""
        paths = self.request.params.get("filter_path")
        return filtered(body, paths, "ndd") if paths else body

    @property
    def indexes(self) -> str:
        """The part of the path that names the indexes, as in "/news,blogs"."""
        return self.request.path.rpartition("/")[0]

    @cached_property
    def body(self) -> Mapping[str, Any]:
        """The body as a mapping."""
        return self.request.body or {}

    @cached_property
    def target(self) -> bytes:
        """Hash of what is searched according to the URL: the key of learned facts."""
        which = {name: self.request.params[name] for name in WHICH_INDEXES if name in self.request.params}
        return _hash(self.request.path, which).digest()

    @cached_property
    def target_of_caller(self) -> bytes:
        """Hash of target and caller, because callers may see different documents."""
        return _hash(self.target, self.caller, self.request.sender).digest()

    @cached_property
    def wanted_fields(self) -> list[str]:
        """The fields, or patterns of fields, whose values the user requests for each hit."""
        body, collapse = self.body, self.body.get("collapse")
        given = [body.get("docvalue_fields"), body.get("fields"), self.request.params.get("docvalue_fields")]
        if isinstance(collapse, Mapping):
            given.append([collapse.get("field")])
        return [name for one in given if one is not None for name in names_of(one)]

    @cached_property
    def preference(self) -> str:
        """The `preference` of all requests for a page, because copies of a shard break ties differently."""
        return "ndd" + _hash(self.request.path, self.body.get("query")).hexdigest()[:12]

    @cached_property
    def caller(self) -> dict[str, str]:
        """The headers that may identify the caller."""
        return identifying(self.request.headers)


def identifying(headers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the headers that may identify a caller. headers: by lower-case name."""
    return {
        name: value
        for name, value in headers.items()
        if name not in _NO_IDENTITY and not name.startswith(_NO_IDENTITY_PREFIXES)
    }


def _hash(*parts: Any) -> blake2b:
    """Return a hash that is equal for equal parts of plain types; `cache_key` takes three times as long."""
    return blake2b(repr(parts).encode(), digest_size=16)


def read_search(request: Request, pipeline: Piped = "") -> Search | None:
    """Return the search in a request, None if it is left alone.

    pipeline: "" leaves searches with a search pipeline alone; "safe" and "reorders": see `pipelines_and_templates`.
    Raises TypeError if its "ndd" is neither options by name nor true or false.
    """
    body = {} if request.body is None else request.body
    if not isinstance(body, OBJECTS) or _obstacle(request, body, pipeline):
        return None
    # Always another object: the caller may change the body meanwhile, and a proxy passes on the caller's object unread.
    own: Mapping[str, Any] = {key: value for key, value in body.items() if key != "ndd"}
    if (names := names_in(own)) is None:
        with suppress(Exception):  # `to_dict` is not our code; the client calls it again, and raises what it raises
            own = resolved(own)
            names = names_in(own)
    own, params = in_body(own, request.params)
    if names is None or asks_for_ids(own, params, names):
        return None
    if "inner_hits" in names and any(name == INNER for name, _ in named_inner_hits(own)):
        return None  # ours would overwrite them
    changes = options_in(body)
    if body.get("ndd") is not None:
        changes = {"enabled": EVERY_SEARCH, **changes}
    is_limited = not names.isdisjoint(LIMITED)
    size = _requested("size", own, params, default_size(own) if is_limited else SIZE)
    start = _requested("from", own, params, 0)
    if size is None or start is None or size < 1 or start < 0 or own.get("_source", True) is None:
        return None  # invalid: the engine reports the error
    limits = limits_of(own, size) if is_limited else Limits(size)
    if limits.shown is not None:
        if start >= limits.shown or (size > limits.shown and limits.total is None) or start + size > MOST_CANDIDATES:
            return None  # the engine's own answer has no hits, or reports that the page is too long
        size = min(size, limits.shown - start)
    if pipeline:  # an `_msearch` has no pipeline for each search
        limits = replace(limits, bounded=limits.bounded or pipeline == "reorders")
        limits = replace(limits, grows=limits.grows and not limits.apart, apart=False)
    plain = request.asking(own if body or own else request.body, params)
    return Search(plain, start, size, changes, limits, ranks_hits(own, params), names)


def in_body(body: Mapping[str, Any], params: Mapping[str, str]) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """Return a search whose sort and `_source` stand in its body: there, each part of an `_msearch` can have its own.

    Engines sort by what the URL says after what the body says, and a `_source` in the URL replaces the body's.
    """
    if _MOVED.isdisjoint(params) or body.get("_source", True) is None:  # an engine refuses null
        return body, params
    moved = {name: params[name] for name in _MOVED & params.keys()}
    body, params = dict(body), {name: value for name, value in params.items() if name not in moved}
    if orders := _orders(moved.pop("sort", "")):
        body["sort"] = [*comma_separated(body.get("sort")), *orders]
    if moved:
        given, excludes = moved.get("_source", "true"), moved.get("_source_excludes", "")
        includes = moved.get("_source_includes", "" if given in ("true", "false") else given)
        lists = {name: one.split(",") for name, one in (("includes", includes), ("excludes", excludes)) if one}
        vectors = {"exclude_vectors": one} if (one := moved.get("_source_exclude_vectors")) else {}
        body["_source"] = ({**lists, **vectors} or True) if given != "false" else False
    return body, params


def _orders(given: str) -> list[Any]:
    """Return a sort in a URL as one in a body. Engines ignore what has another order than these two."""
    parts = [one.rpartition(":") for one in given.split(",") if one]
    return [{field: order} if field else order for field, _, order in parts if not field or order in ("asc", "desc")]


def _requested(name: str, body: Mapping[str, Any], params: Mapping[str, str], default: int) -> int | None:
    """Return a number of a search, None if it is invalid. The URL overrides the body, but engines check both."""
    given = number_of(body.get(name, default))
    if name not in params:
        return given
    return None if given is None or given < 0 else number_of(params[name])


def options_in(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options in the "ndd" of a search. Raises TypeError if it is neither options by name nor true."""
    given = body.get("ndd")
    if given is None:
        return {}
    changes = {} if given is True else given
    if not isinstance(changes, OBJECTS):
        raise TypeError(f'"ndd" in a search must be an object of options, true or false, got {given!r}')
    if wrong := [name for name in changes if not isinstance(name, str)]:
        raise TypeError(f'the options in "ndd" of a search are named by texts, got {wrong[0]!r}')
    if "enabled" in changes:
        raise TypeError('"ndd": false leaves a search alone, and any other value has it collapsed: leave out "enabled"')
    return changes


def option_in(request: Request, name: str) -> Any:
    """Return one option in the "ndd" of a search, None without it."""
    given = request.body.get("ndd") if isinstance(request.body, OBJECTS) else None
    return given.get(name) if given and isinstance(given, OBJECTS) else None


def stripped(request: Request) -> Request:
    """Return a search, or one by a template, without our key "ndd", which engines refuse; others as they are."""
    return without_key(request) if is_search(request) or is_template(request) else request


def read_once(request: Request) -> Request:
    """Return a request of many lines whose body can be read again: clients also take the lines from an iterator."""
    if isinstance(request.body, Iterator) and _OF_LINES.search(request.path):
        return replace(request, body=list(request.body))
    return request


def without_key(request: Request) -> Request:
    """Return a request without the key "ndd" of its body. A request without that key is returned unchanged."""
    if isinstance(request.body, Mapping) and "ndd" in request.body:
        body = {key: value for key, value in request.body.items() if key != "ndd"}
        return request.asking(body, request.params)
    return request


def kind_of_search(method: str, path: str) -> Literal["", "search", "msearch", "search/template"]:
    """Return which search a request is, several in one, or one by a template; "" for any other request."""
    found = _SEARCHES.fullmatch(path) if method in ("GET", "POST") else None
    return found[1] if found else ""  # type: ignore[return-value]


def is_search(request: Request) -> bool:
    """Return whether a request is a search of its own."""
    return kind_of_search(request.method, request.path) == "search"


def is_template(request: Request) -> bool:
    """Return whether a request is a search by a template."""
    return kind_of_search(request.method, request.path) == "search/template"


def is_write(method: str, path: str) -> bool:
    """Return whether a request may change the results of searches."""
    if method in ("GET", "HEAD"):
        return False
    parts = path.split("/")
    return next((part for part in parts if part.startswith("_") and part != "_all"), "") not in _READS


def why_left_alone(request: Request) -> str:
    """Return why a search that asks to be collapsed is not."""
    body = request.body if isinstance(request.body, OBJECTS) else {}
    if (obstacle := _obstacle(request, body, "")) or read_search(request) is not None:
        return f"the search was left alone: {obstacle or _OF_TARGET}"
    return f"the search was left alone: {_OF_BODY}"


def _obstacle(request: Request, body: Mapping[str, Any], pipeline: Piped) -> str:
    """Return what a search has that is left alone, "" if there is nothing."""
    params = request.params
    stored = [one["stored_fields"] for one in (body, params) if "stored_fields" in one]
    reasons = {
        "it is no _search": not is_search(request),
        'its "ndd" is false': body.get("ndd") is False,
        "it has a page of its own (scroll, pit, search_after, slice): use a cursor": not (
            _BUSY_KEYS.isdisjoint({*body, *standard_of(body)}) and _BUSY_PARAMS.isdisjoint(params)
        ),
        "its search pipeline cannot be read": not pipeline
        and ("search_pipeline" in body or "search_pipeline" in params),
        "its size is 0, so it shows no hits": str(params.get("size", body.get("size"))) == "0",
        "its answer is not JSON": "json" not in request.headers.get("accept", "json")
        or params.get("format", "json") != "json",
        "its body is in the URL": "source" in params,
        "it asks for suggestions alone": "suggest" in body and "q" not in params and _FINDING.isdisjoint(body),
        "it asks for hits without their fields": any("_none_" in names_of(one) for one in stored),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def changed_target(request: Request, original: Request, target: str) -> str:
    """Return path and query of a request. Parameters with the value of the original request keep their bytes.

    target: path and query of the original request.
    """
    if request is original:
        return target
    if not request.params:
        return request.path
    same = {name for name, value in request.params.items() if original.params.get(name) == value}
    changed = {name: value for name, value in request.params.items() if name not in same}
    kept = [piece for name, piece in named_pieces(target.partition("?")[2]) if name in same]
    query = kept + [urlencode({name: value}, quote_via=quote, safe=",*") for name, value in changed.items()]
    return f"{request.path}?{'&'.join(query)}" if query else request.path


def params_of(query: str) -> dict[str, str]:
    """Return the parameters of a query string; of a repeated name, the last value."""
    return dict(parse_qsl(query, keep_blank_values=True))


def named_pieces(query: str) -> list[tuple[str, str]]:
    """Return the pieces of a query string as they are, each with the name of its parameter."""
    return [(unquote_plus(piece.partition("=")[0]), piece) for piece in query.split("&")]


def media_type(kind: str, lines: bool) -> str:
    """Return a media type of JSON for lines of JSON, or for one value."""
    plain = kind.replace("x-ndjson", "json")
    return plain.replace("json", "x-ndjson", 1) if lines else plain
