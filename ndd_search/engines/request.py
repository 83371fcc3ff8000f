"""What a search request asks for, whether it is left alone, and the wider request that is sent in its place.

The caller's dicts are never changed: what differs is copied.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from ndd_search.cache import cache_key
from ndd_search.config import Recipe
from ndd_search.engines.limits import is_bounded, limit_of, raised
from ndd_search.field import SketchField

_PATH = re.compile(r"(?:/[^/]+)?/_search")
_READS = {
    *("_search", "_msearch", "_count", "_mget", "_pit", "_field_caps", "_validate", "_explain", "_analyze", "_eql"),
    *("_termvectors", "_mtermvectors", "_search_shards", "_async_search", "_rank_eval", "_terms_enum", "_query"),
    "_sql",
}
_BUSY_KEYS = ("pit", "search_after", "slice", "search_pipeline")  # others page, or work on every hit that comes back
_BUSY_PARAMS = ("scroll", "search_pipeline", "search_after")
_FIRST_ROUND_ONLY = ("aggs", "aggregations", "suggest", "profile")
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
    limit:      hits that the search can give at most, None without such a limit (see `limits`).
    one_window: whether asking for more hits may change the order of the first ones.
    """

    request: Request
    start: int
    size: int
    changes: Mapping[str, Any]
    limit: int | None
    one_window: bool

    @property
    def body(self) -> Mapping[str, Any]:
        """The body as a mapping."""
        return self.request.body or {}


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
    try:
        size = int(request.params.get("size", body.get("size", 10)))
        start = int(request.params.get("from", body.get("from", 0)))
    except (TypeError, ValueError):
        return None  # the engine says what is wrong with it
    if size < 1 or start < 0:
        return None
    plain = replace(request, body={key: value for key, value in body.items() if key != "ndd"} if body else request.body)
    return Search(plain, start, size, changes, limit_of(body), is_bounded(body))


def stripped(request: Request) -> Request:
    """The request without our own key, for an engine that does not know it."""
    if isinstance(request.body, Mapping) and "ndd" in request.body:
        return replace(request, body={key: value for key, value in request.body.items() if key != "ndd"})
    return request


def is_write(request: Request) -> bool:
    """Whether a request may change what searches find."""
    return request.method not in ("GET", "HEAD") and _READS.isdisjoint(request.path.split("/"))


def widened(
    search: Search,
    start: int,
    size: int,
    field: SketchField,
    values: Sequence[str] = (),
    stored: Sequence[str] = (),
    first: bool = True,
) -> Request:
    """The request for hits [start, start + size) with their sketches; aggregations and the like only in the first one.

    values: fields of the documents that guards and `keep` read. stored: what they read beside the sketch.
    """
    body = dict(search.body)
    params = {
        name: value for name, value in search.request.params.items() if name not in ("size", "from", "filter_path")
    }
    body["from"], body["size"] = start, size
    in_url = _listed(params.get("docvalue_fields"))
    body["docvalue_fields"] = _completed(body.get("docvalue_fields"), (field.sketch, field.recipe, *stored), in_url)
    if values:
        body["fields"] = _completed(body.get("fields"), values)
    _hide_from_source(body, params, field)
    _hide_from_inner_hits(body, field)
    body.update(raised(search.body, start + size)[0])
    if not first:
        for key in _FIRST_ROUND_ONLY:
            body.pop(key, None)
        params.pop("track_total_hits", None)
        body["track_total_hits"] = False
    # Rounds have to see the same copy of each shard: ties are broken differently on another.
    params.setdefault("preference", _preference(search))
    return replace(search.request, body=body, params=params)


def sample(search: Search, field: SketchField, recipe: Recipe, size: int) -> Request:
    """A request for the sketches of some documents of what is searched, chosen at random but the same every time."""
    return _beside(search, sample_body(field, recipe, size))


def sample_body(field: SketchField, recipe: Recipe, size: int = SAMPLE) -> dict[str, Any]:
    """The body of that request. size: how many documents."""
    of_recipe = {"bool": {"filter": [{"term": {field.recipe: recipe.id}}]}}
    chance = {"seed": 1, "field": "_seq_no"}
    return {
        "size": size,
        "query": {"function_score": {"query": of_recipe, "random_score": chance, "boost_mode": "replace"}},
        "docvalue_fields": [field.sketch, field.recipe],
        "_source": False,
        "track_total_hits": False,
    }


def any_sketch(search: Search, field: SketchField) -> Request:
    """A request that finds a document with a sketch in what is searched, if there is one."""
    return _beside(search, {"size": 1, "query": {"exists": {"field": field.recipe}}, "_source": False})


def _beside(search: Search, body: Mapping[str, Any]) -> Request:
    """A request of our own for the same target."""
    params = {name: value for name, value in search.request.params.items() if name in _WHICH_INDEXES}
    return replace(search.request, method="POST", body=body, params=params)


def asked_for(search: Search, path: str) -> bool:
    """Whether the user himself asked for a field that we add."""
    wanted = [
        *_names([search.body["collapse"].get("field")] if isinstance(search.body.get("collapse"), Mapping) else []),
        *_names(search.body.get("docvalue_fields")),
        *_names(search.body.get("fields")),
        *_names(search.request.params.get("docvalue_fields")),
    ]
    return any(fnmatchcase(path, pattern) for pattern in wanted)


def _is_left_alone(request: Request, body: Mapping[str, Any]) -> bool:
    return (
        request.method not in ("GET", "POST")
        or not _PATH.fullmatch(request.path)
        or body.get("ndd") is False
        or any(body.get(key) for key in _BUSY_KEYS)
        or any(request.params.get(name) for name in _BUSY_PARAMS)
        or not _is_json(request)
        or "source" in request.params  # the body in the URL
        or "_none_" in _names(body.get("stored_fields")) + _names(request.params.get("stored_fields"))
        or _looks_up_ids(body.get("query"))
    )


def _is_json(request: Request) -> bool:
    accept = next((value for name, value in request.headers.items() if name.lower() == "accept"), "application/json")
    return "json" in accept and request.params.get("format", "json") == "json"


def _looks_up_ids(query: Any) -> bool:
    """Whether a query asks for certain documents: hiding one of them would be wrong."""
    if not isinstance(query, Mapping) or len(query) != 1:
        return False
    kind, inner = next(iter(query.items()))
    if not isinstance(inner, Mapping):
        return False
    if kind in ("bool", "constant_score"):
        return any(_looks_up_ids(one) for name in ("must", "filter") for one in _listed(inner.get(name)))
    return kind == "ids" or (kind in ("term", "terms") and "_id" in inner)


def _completed(given: Any, wanted: Sequence[str], elsewhere: Sequence[str] = ()) -> list[Any]:
    """The fields a user asks for with those we need; one asked for twice may come back with its values twice."""
    patterns = _names(given) + list(elsewhere)
    return [*_listed(given), *(name for name in wanted if not any(fnmatchcase(name, one) for one in patterns))]


def _names(given: Any) -> list[str]:
    return [str(one.get("field")) if isinstance(one, Mapping) else str(one) for one in _listed(given)]


def _listed(given: Any) -> list[Any]:
    if given is None:
        return []
    return given.split(",") if isinstance(given, str) else list(given) if isinstance(given, Sequence) else [given]


def _hide_from_source(body: dict[str, Any], params: dict[str, str], field: SketchField) -> None:
    """Leave the sketch out of `_source`, wherever the user says what he wants of it, unless he names it himself."""
    in_url = [name for name in ("_source", "_source_includes", "_source_excludes") if name in params]
    if in_url:
        if params.get("_source") != "false" and not _names_field(params.get("_source_includes", ""), field):
            excludes = [params["_source_excludes"]] if params.get("_source_excludes") else []
            params["_source_excludes"] = ",".join([*excludes, field.name])
        return
    source = body.get("_source", True)
    if source is False or ("_source" not in body and ({"stored_fields", "script_fields"} & {*body, *params})):
        return  # nothing of it comes back
    if isinstance(source, Mapping):
        includes = source.get("includes", source.get("include"))
        if not _names_field(includes, field):
            excludes = _listed(source.get("excludes", source.get("exclude")))
            body["_source"] = {"includes": _listed(includes), "excludes": [*excludes, field.name]}
    elif source is True or not _names_field(source, field):
        body["_source"] = {"includes": [] if source is True else _listed(source), "excludes": [field.name]}


def _hide_from_inner_hits(body: dict[str, Any], field: SketchField) -> None:
    """Leave the sketch out of the hits that the user's own `collapse` lists."""
    collapse = body["collapse"] if isinstance(body.get("collapse"), Mapping) else {}
    given = _listed(collapse.get("inner_hits"))
    if not given or not all(isinstance(one, Mapping) for one in given):
        return
    made = [dict(one) for one in given]
    for one in made:
        _hide_from_source(one, {}, field)
    body["collapse"] = {**collapse, "inner_hits": made if isinstance(collapse["inner_hits"], list) else made[0]}


def _names_field(patterns: Any, field: SketchField) -> bool:
    return any(one == field.name or one.startswith(f"{field.name}.") for one in _names(patterns))


def _preference(search: Search) -> str:
    return "ndd" + cache_key(search.request.path, search.body.get("query")).hex()[:12]
