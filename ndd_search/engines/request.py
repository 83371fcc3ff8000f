"""What a search request asks for, whether it is left alone, and the wider request that is sent in its place.

The caller's dicts are never changed: what differs is copied.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from hashlib import blake2b
from typing import Any

from ndd_search.config import Recipe
from ndd_search.field import SketchField

_PATH = re.compile(r"(?:/[^/]+)?/_search")
_READS = {
    *("_search", "_msearch", "_count", "_mget", "_pit", "_field_caps", "_validate", "_explain", "_analyze", "_eql"),
    *(
        "_termvectors",
        "_mtermvectors",
        "_search_shards",
        "_async_search",
        "_rank_eval",
        "_terms_enum",
        "_query",
        "_sql",
    ),
}
_BUSY_KEYS = ("pit", "search_after", "slice", "search_pipeline")  # others page, or work on every hit that comes back
_BUSY_PARAMS = ("scroll", "search_pipeline", "search_after")
_FIRST_ROUND_ONLY = ("aggs", "aggregations", "suggest", "profile", "track_total_hits")
SAMPLE = 1000  # documents whose sketch values are counted: more change hardly any decision
MOST_CANDIDATES = 10_000  # of a kNN search; the engines' own limit


@dataclass(frozen=True)
class Request:
    """One call of a client's transport.

    params: of the URL, as text. body: parsed, None when there is none. timeout: seconds, None for the client's own.
    """

    method: str
    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any
    timeout: float | None = None


@dataclass(frozen=True)
class Search:
    """A search whose hits we may collapse.

    request:    as the user sent it, without our own key "ndd".
    start, size: the page asked for.
    changes:    what the request's own "ndd" says: options by name.
    limit:      hits that the search can give at most, because a reranker looks at no more; None without such a limit.
    one_window: whether asking for more hits changes the order of the first ones (fused and nearest-neighbour searches).
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
    """The search in a request; None for everything that is left alone."""
    body = {} if request.body is None else request.body
    if not isinstance(body, Mapping) or _is_left_alone(request, body):
        return None
    changes = body.get("ndd", {})
    try:
        size = int(request.params.get("size", body.get("size", 10)))
        start = int(request.params.get("from", body.get("from", 0)))
    except (TypeError, ValueError):
        return None  # the engine says what is wrong with it
    if size < 1 or start < 0 or not isinstance(changes, Mapping):
        return None
    plain = replace(request, body={key: value for key, value in body.items() if key != "ndd"} if body else request.body)
    return Search(plain, start, size, changes, _reranked(body), _is_fused(body))


def stripped(request: Request) -> Request:
    """The request without our own key, for an engine that does not know it."""
    if isinstance(request.body, Mapping) and "ndd" in request.body:
        return replace(request, body={key: value for key, value in request.body.items() if key != "ndd"})
    return request


def is_write(request: Request) -> bool:
    """Whether a request may change what searches find."""
    if request.method in ("GET", "HEAD"):
        return False
    return request.method != "POST" or not _READS.intersection(request.path.split("/"))


def widened(search: Search, start: int, size: int, field: SketchField, values: Sequence[str] = ()) -> Request:
    """The request for hits [start, start + size) with their sketches; aggregations and the like only for start 0.

    values: fields of the documents that guards and `keep` read.
    """
    body = dict(search.body)
    params = {
        name: value for name, value in search.request.params.items() if name not in ("size", "from", "filter_path")
    }
    body["from"], body["size"] = start, size
    body["docvalue_fields"] = [*_listed(body.get("docvalue_fields")), field.sketch, field.recipe]
    if values:
        body["fields"] = [*_listed(body.get("fields")), *values]
    _hide_from_source(body, params, field)
    _raise_limits(body, start + size)
    if start:
        for key in _FIRST_ROUND_ONLY:
            body.pop(key, None)
        params.pop("track_total_hits", None)
    if (
        "preference" not in params
    ):  # rounds have to see the same copy of each shard: ties are broken differently on another
        params["preference"] = _preference(search)
    return replace(search.request, body=body, params=params)


def sample(search: Search, field: SketchField, recipe: Recipe) -> Request:
    """A request for the sketches of some documents of what is searched, chosen at random but the same every time."""
    of_recipe = {"bool": {"filter": [{"term": {field.recipe: recipe.id}}]}}
    chance = {"seed": 1, "field": "_seq_no"}
    body = {
        "size": SAMPLE,
        "query": {"function_score": {"query": of_recipe, "random_score": chance, "boost_mode": "replace"}},
        "docvalue_fields": [field.sketch, field.recipe],
        "_source": False,
        "track_total_hits": False,
    }
    return replace(search.request, method="POST", body=body, params={})


def asked_for(search: Search, path: str) -> bool:
    """Whether the user himself asked for a field that we add."""
    wanted = [
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
    return kind == "ids" or (kind in ("term", "terms") and isinstance(inner, Mapping) and "_id" in inner)


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
    if source is False or ("_source" not in body and "stored_fields" in body):
        return
    if isinstance(source, Mapping):
        includes = source.get("includes", source.get("include"))
        if not _names_field(includes, field):
            excludes = _listed(source.get("excludes", source.get("exclude")))
            body["_source"] = {"includes": _listed(includes), "excludes": [*excludes, field.name]}
    elif source is True or not _names_field(source, field):
        body["_source"] = {"includes": [] if source is True else _listed(source), "excludes": [field.name]}


def _names_field(patterns: Any, field: SketchField) -> bool:
    return any(one == field.name or one.startswith(f"{field.name}.") for one in _names(patterns))


def _raise_limits(body: dict[str, Any], most: int) -> None:
    """Let kNN searches and retrievers give as many hits as the window needs."""
    for key in ("knn", "retriever", "query"):
        if key in body:
            body[key] = _raised(body[key], most, top=key == "knn")


def _raised(node: Any, most: int, top: bool = False) -> Any:
    if isinstance(node, list):
        return [_raised(one, most, top) for one in node]
    if not isinstance(node, Mapping):
        return node
    raised = {
        key: value if key == "text_similarity_reranker" else _raised(value, most, key in ("knn", "neural"))
        for key, value in node.items()
    }
    if top and isinstance(raised.get("k"), int):
        raised["k"] = min(max(raised["k"], most), MOST_CANDIDATES)
        if isinstance(raised.get("num_candidates"), int):
            raised["num_candidates"] = max(raised["num_candidates"], raised["k"])
    elif top and len(raised) == 1:  # OpenSearch: {"knn": {"FIELD": {"vector": ..., "k": ...}}}
        raised = {name: _raised(value, most, True) for name, value in raised.items()}
    for key in ("rank_window_size", "pagination_depth"):
        if isinstance(raised.get(key), int):
            raised[key] = max(raised[key], most)
    for kind in ("rrf", "linear"):
        if isinstance(raised.get(kind), dict):
            raised[kind].setdefault("rank_window_size", most)
    return raised


def _reranked(body: Mapping[str, Any]) -> int | None:
    """How many hits a reranking retriever looks at: each costs an inference, so it is never raised."""
    reranker = (body.get("retriever") or {}).get("text_similarity_reranker") if "retriever" in body else None
    return int(reranker.get("rank_window_size", 10)) if isinstance(reranker, Mapping) else None


def _is_fused(body: Mapping[str, Any]) -> bool:
    text = json.dumps([body.get("query"), body.get("retriever")], default=repr)
    return "knn" in body or any(f'"{kind}"' in text for kind in ("knn", "neural", "hybrid", "rrf", "linear"))


def _preference(search: Search) -> str:
    text = json.dumps([search.request.path, search.body.get("query")], sort_keys=True, default=str)
    return "ndd" + blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
