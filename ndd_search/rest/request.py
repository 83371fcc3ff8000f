"""What a search request asks for, whether it is left alone, and the wider request that is sent in its place.

The caller's dicts are never changed: what differs is copied.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

from ndd_search.collapse_options import CollapseOptions
from ndd_search.paging.cache import cache_key
from ndd_search.recipe import Recipe
from ndd_search.rest.candidate_limits import Limits, limits_of, raised
from ndd_search.rest.intent import asks_for_ids, nests_too_deep, ranks
from ndd_search.rest.source_filter import exclude_sketch, is_named, listed, names_of
from ndd_search.sketching.field import SketchField

INDEX = "/(?:_all|[^_/?#][^/?#]*)"  # in a path: no index has a name with an underscore in front
_PATH = re.compile(f"(?:{INDEX})?/_search")
_READS = {
    *("_search", "_msearch", "_count", "_mget", "_pit", "_field_caps", "_validate", "_explain", "_analyze", "_eql"),
    *("_termvectors", "_mtermvectors", "_search_shards", "_async_search", "_rank_eval", "_terms_enum", "_query"),
    "_sql",
}
# Searches with one of these are left alone: they page by other means, or something works on every hit that comes back.
_BUSY_KEYS = {"pit", "search_after", "slice", "search_pipeline"}
_BUSY_PARAMS = {"scroll", "search_pipeline", "search_after"}
_FIRST_ROUND_ONLY = ("aggs", "aggregations", "suggest", "profile")
# Headers that trace, date or describe a request. They differ from request to request and give nobody any right, so they
# do not tell callers apart. Every other header may, whatever its name: a proxy may read anything as an identity.
_NO_IDENTITY = {
    *("traceparent", "tracestate", "baggage", "sentry-trace", "uber-trace-id", "elastic-apm-traceparent", "b3"),
    *("x-opaque-id", "x-request-id", "request-id", "x-correlation-id", "correlation-id", "x-trace-id"),
    *("x-amzn-trace-id", "x-amzn-requestid", "x-cloud-trace-context", "x-ms-client-request-id"),
    *("date", "x-amz-date", "x-amz-content-sha256", "x-request-start"),
    *("user-agent", "x-elastic-client-meta", "content-length"),
}
_NO_IDENTITY_PREFIXES = ("x-b3-", "x-datadog-")
_WHICH_INDEXES = ("ignore_unavailable", "allow_no_indices", "expand_wildcards")  # what the target of a request means
SAMPLE = 5000  # documents whose sketch values are counted: a template that one in a thousand fills is seen


@dataclass(frozen=True)
class Request:
    """One call of a client's transport.

    params: of the URL, as text. body: parsed, None when there is none; a list has a line each.
    timeout: seconds, None for the client's own. parts: the searches of an `_msearch` that we made.
    """

    method: str
    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any
    timeout: float | None = None
    parts: tuple[Request, ...] = ()


@dataclass(frozen=True)
class Search:
    """A search whose hits we may collapse.

    request:    as the user sent it, without our own key "ndd".
    start, size: the page asked for.
    changes:    what the request's own "ndd" says: options by name.
    limits:     what numbers in the search say of how many hits it gives.
    ranks:      whether the order of the hits means something (see `intent`).
    """

    request: Request
    start: int
    size: int
    changes: Mapping[str, Any]
    limits: Limits
    ranks: bool

    @property
    def limit(self) -> int | None:
        """Hits that the search can give at most, None without such a limit."""
        return self.limits.found

    @property
    def one_window(self) -> bool:
        """Whether asking for more hits may change the order of the first ones."""
        return self.limits.bounded

    @property
    def as_found(self) -> Search:
        """The same with its numbers as they are: for what is found by it, and not shown of it."""
        return replace(self, limits=replace(self.limits, grows=False, apart=False))

    def raised(self, most: int) -> tuple[dict[str, Any], dict[str, int]]:
        """What has to change in the body for it to give `most` hits, and the numbers that were raised for it."""
        return raised(self.body, most, self.limits)

    def is_collapsed(self, options: CollapseOptions) -> bool:
        """Whether its hits are to be collapsed: a search that does not rank only if somebody asked for that."""
        return self.ranks or options.collapse_unranked

    @property
    def body(self) -> Mapping[str, Any]:
        """The body as a mapping."""
        return self.request.body or {}

    @cached_property
    def target(self) -> bytes:
        """What is searched, as the URL says it: what is learnt about an index is kept under it."""
        which = {name: self.request.params[name] for name in _WHICH_INDEXES if name in self.request.params}
        return cache_key(self.request.path, which) if which else cache_key(self.request.path)

    @cached_property
    def target_of_caller(self) -> bytes:
        """The same for one caller, who may see less of it than others."""
        return cache_key(self.target.hex(), self.caller)

    @cached_property
    def caller(self) -> dict[str, str]:
        """The headers that may say who asks."""
        named = {name.lower(): value for name, value in self.request.headers.items()}
        return {
            name: value
            for name, value in named.items()
            if name not in _NO_IDENTITY and not name.startswith(_NO_IDENTITY_PREFIXES)
        }


@dataclass(frozen=True)
class Reading:
    """What is read of each hit for us, besides what its user asks for.

    stored:   fields whose doc values are read.
    fields:   fields read out of documents, which have to be unpacked for it.
    sketched: whether the target is known to hold sketches; the engine then leaves them out of `_source`.
    """

    stored: tuple[str, ...]
    fields: tuple[str, ...] = ()
    sketched: bool = True

    def and_of(self, stored: Sequence[str], fields: Sequence[str]) -> Reading:
        """This and some more."""
        return replace(self, stored=(*self.stored, *stored), fields=(*self.fields, *fields))


def sketch_reading(field: SketchField, text: bool = False, sketched: bool = True) -> Reading:
    """What it takes to read sketches. text: whether the recipe is mapped as text, which has no doc values."""
    if text:
        return Reading((field.sketch,), (field.recipe,), sketched)
    return Reading((field.sketch, field.recipe), (), sketched)


def read_search(request: Request) -> Search | None:
    """The search in a request; None for everything that is left alone.

    Raises TypeError if its "ndd" is neither options by name nor true or false.
    """
    body = {} if request.body is None else request.body
    if not isinstance(body, Mapping) or _is_left_alone(request, body):
        return None
    changes = body.get("ndd")
    if changes is None or changes is True:
        changes = {}
    if not isinstance(changes, Mapping):
        raise TypeError(f'"ndd" in a search must be an object of options, true or false, got {changes!r}')
    if body.get("ndd") is not None:
        changes = {"collapse_unranked": True, **changes}
    size = _number(request.params.get("size", body.get("size", 10)))
    start = _number(request.params.get("from", body.get("from", 0)))
    if size is None or start is None or size < 1 or start < 0:
        return None  # the engine says what is wrong with it
    limits = limits_of(body, start, size)
    if limits.shown is not None:
        if start >= limits.shown or (size > limits.shown and limits.total is None):
            return None  # the engine's own answer has no hits, or says that the page is too long
        size = min(size, limits.shown - start)
    plain = replace(request, body={key: value for key, value in body.items() if key != "ndd"} if body else request.body)
    return Search(plain, start, size, changes, limits, ranks(body, request.params))


def stripped(request: Request) -> Request:
    """A search without our own key "ndd", which engines refuse; any other request as it is, whatever it holds."""
    if _is_search(request) and isinstance(request.body, Mapping) and "ndd" in request.body:
        return replace(request, body={key: value for key, value in request.body.items() if key != "ndd"})
    return request


def is_write(request: Request) -> bool:
    """Whether a request may change what searches find."""
    if request.method in ("GET", "HEAD"):
        return False
    parts = request.path.split("/")
    return next((part for part in parts if part.startswith("_") and part != "_all"), "") not in _READS


def widened(
    search: Search, start: int, size: int, field: SketchField, reading: Reading, *, first: bool = True
) -> Request:
    """The request for hits [start, start + size) with what we read; aggregations and the like only in the first one."""
    body = dict(search.body)
    params = {
        name: value for name, value in search.request.params.items() if name not in ("size", "from", "filter_path")
    }
    body["from"], body["size"] = start, size
    in_url = listed(params.get("docvalue_fields"))
    body["docvalue_fields"] = _completed(body.get("docvalue_fields", []), reading.stored, in_url)
    if reading.fields:
        body["fields"] = _completed(body.get("fields", []), reading.fields)
    if reading.sketched:
        exclude_sketch(body, params, field)
    body.update(search.raised(start + size)[0])
    if not first:
        for key in _FIRST_ROUND_ONLY:
            body.pop(key, None)
        params.pop("track_total_hits", None)
        body["track_total_hits"] = False
    # Rounds have to see the same copy of each shard: ties are broken differently on another.
    params.setdefault("preference", _preference(search))
    return replace(search.request, body=body, params=params)


def peek(search: Search, reading: Reading) -> Request:
    """The caller's own request, which also reads the sketches of the hits that it gives."""
    params = {name: value for name, value in search.request.params.items() if name != "filter_path"}
    body = dict(search.body)
    in_url = listed(params.get("docvalue_fields"))
    body["docvalue_fields"] = _completed(body.get("docvalue_fields", []), reading.stored, in_url)
    if reading.fields:
        body["fields"] = _completed(body.get("fields", []), reading.fields)
    return replace(search.request, body=body, params=params)


def sample(search: Search, field: SketchField, recipe: Recipe, reading: Reading, size: int) -> Request:
    """A request for the sketches of some documents of what is searched, chosen at random but the same every time."""
    body = sample_body(field, recipe, size)
    of_each = {"docvalue_fields": list(reading.stored), **({"fields": list(reading.fields)} if reading.fields else {})}
    return _beside(search, {**body, **of_each, "track_total_hits": True})


def sample_body(field: SketchField, recipe: Recipe, size: int = SAMPLE) -> dict[str, Any]:
    """The body of that request. size: how many documents."""
    return {
        **_drawn(field, recipe, size),
        "docvalue_fields": [field.sketch, field.recipe],
        "track_total_hits": False,
    }


def sample_head(search: Search, field: SketchField, recipe: Recipe, size: int) -> Request:
    """A request for the ids of the first documents of that sample, and for how many there are to choose from."""
    return _beside(search, {**_drawn(field, recipe, size), "track_total_hits": True})


def _drawn(field: SketchField, recipe: Recipe, size: int) -> dict[str, Any]:
    of_recipe = {"match": {field.recipe: {"query": recipe.id, "operator": "and"}}}  # a term, or words where it is text
    chance = {"random_score": {"seed": 1, "field": "_seq_no"}, "boost_mode": "replace"}
    return {
        "size": size,
        "query": {"function_score": {"query": {"bool": {"filter": [of_recipe]}}, **chance}},
        "_source": False,
    }


def any_sketch(search: Search, field: SketchField) -> Request:
    """A request that finds a document with a sketch in what is searched, if there is one."""
    return _beside(search, {"size": 1, "query": {"exists": {"field": field.sketch}}, "_source": False})


def _beside(search: Search, body: Mapping[str, Any]) -> Request:
    """A request of our own for the same target."""
    params = {name: value for name, value in search.request.params.items() if name in _WHICH_INDEXES}
    return replace(search.request, method="POST", body=body, params=params)


def asked_for(search: Search, field: SketchField, path: str) -> bool:
    """Whether the user himself asked for a field that comes back; everything of his does not mean ours."""
    wanted = [
        *names_of([search.body["collapse"].get("field")] if isinstance(search.body.get("collapse"), Mapping) else []),
        *names_of(search.body.get("docvalue_fields")),
        *names_of(search.body.get("fields")),
        *names_of(search.request.params.get("docvalue_fields")),
    ]
    ours = path in field.paths
    return any(fnmatchcase(path, pattern) and (not ours or is_named(pattern, field)) for pattern in wanted)


def _number(given: Any) -> int | None:
    """A number or its text, as the engines take them; None for what they refuse."""
    try:
        return None if isinstance(given, bool) else int(given)
    except (TypeError, ValueError, OverflowError):
        return None


def _is_search(request: Request) -> bool:
    return request.method in ("GET", "POST") and _PATH.fullmatch(request.path) is not None


def _is_left_alone(request: Request, body: Mapping[str, Any]) -> bool:
    return (
        not _is_search(request)
        or body.get("ndd") is False
        or not _BUSY_KEYS.isdisjoint(body)
        or not _BUSY_PARAMS.isdisjoint(request.params)
        or not _is_json(request)
        or "source" in request.params  # the body in the URL
        or "_none_" in names_of(body.get("stored_fields")) + names_of(request.params.get("stored_fields"))
        or nests_too_deep(body)
        or asks_for_ids(body, request.params)
    )


def _is_json(request: Request) -> bool:
    accept = next((value for name, value in request.headers.items() if name.lower() == "accept"), "application/json")
    return "json" in accept and request.params.get("format", "json") == "json"


def _completed(given: Any, wanted: Sequence[str], elsewhere: Sequence[str] = ()) -> Any:
    """The fields a user asks for with those we need; one asked for twice may come back with its values twice.

    What is no list stays as it is, for the engine to refuse.
    """
    if not isinstance(given, list | tuple):
        return given
    patterns = names_of(given) + list(elsewhere)
    return [*given, *(name for name in wanted if not any(fnmatchcase(name, one) for one in patterns))]


def _preference(search: Search) -> str:
    return "ndd" + cache_key(search.request.path, search.body.get("query")).hex()[:12]
