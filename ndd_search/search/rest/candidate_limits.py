"""Raises the candidate limits of searches that have them: nearest neighbours, hybrid queries, retrievers.

Collapsing needs more hits than a page shows, so some limits are raised in the request that is sent. The answer keeps
the caller's own limits: it shows no more hits and no higher total than without collapsing. A limit is not raised if
that would change scores or aggregations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ndd_search.core.immutable import dataclass
from ndd_search.search.rest.search_body import number_of

MOST_CANDIDATES = 10_000  # of a nearest-neighbour search; the engines' own limit
_RANK_WINDOW = 10  # the engines' default for rank_window_size, and for window_size of a rescorer
SIZE = 10  # the engines' default for the size of a page
_NEIGHBOURS = 10  # OpenSearch's default for k of "neural"
_CANDIDATES = 1.5  # Elasticsearch's default for num_candidates, as a multiple of k
_FUSING = ("rrf", "linear")
_FUSED = {"retrievers", "fields", "rank_window_size", "rank_constant", "normalizer"}  # one may stand in short: a query
_RERANKING = ("text_similarity_reranker", "diversify")  # whose candidates are no more than their window
# Parts of a search that have limits.
LIMITED = {"knn", "neural", "hybrid", *_FUSING, *_RERANKING, "rescorer"}
_QUERY_KEYS = {"vector", "query_text", "query_image", "query_tokens", "model_id"}  # OpenSearch, below the field's name
_REDUCING = {"post_filter", "collapse", "rescore"}  # run after the neighbour search; more neighbours may change results

Body = Mapping[str, Any]


@dataclass(frozen=True)
class Limits:
    """The candidate limits of a search.

    size:    page size that the caller requested; the default of some limits.
    bounded: whether the search has such limits; a larger window may then change the order of the first hits, so that
             all pages have one window.
    grows:   whether the limits are raised to the window.
    apart:   whether aggregations need a separate request with the caller's limits, because they cover all candidates.
    found:   most hits that the search can give because limits are not raised, None if unknown.
    shown:   most hits that the caller requested on all pages together, None without a limit.
    total:   upper bound of `hits.total`, None for the engine's own.
    of_shard: most hits that the caller requested of each shard, None without such a limit (see `Search.of_shards`).
    """

    size: int
    bounded: bool = False
    grows: bool = False
    apart: bool = False
    found: int | None = None
    shown: int | None = None
    total: int | None = None
    of_shard: int | None = None

    @property
    def is_lone(self) -> bool:
        """Whether the search is one nearest-neighbour search and nothing else, whose k is raised."""
        return self.grows and (self.total is not None or self.of_shard is not None)


def default_size(body: Body) -> int:
    """Return the size of a page that names none: 10, and with a rescorer retriever all hits that it rescores."""
    return _rescored(body) or SIZE


def limits_of(body: Body, size: int = SIZE) -> Limits:
    """Return the limits of a search for pages of this size: all its pages have the same."""
    bounds = list(_bounds({key: body[key] for key in ("knn", "query", "retriever") if key in body}))
    refused = any(_is_refused(node, place, size) for kind, node, place in bounds if kind == "knn")
    if not refused and (window := _rescored(body) or _reranked(body)):
        return Limits(size, bounded=bool(bounds), found=window, shown=window)
    if refused or not bounds:
        return Limits(size)
    grows = not _aggregates(body)
    for kind, node, _ in bounds:
        if kind in _FUSING:
            given = _number(node, "rank_window_size")
            return Limits(size, bounded=True, grows=grows, found=None if grows else given or _RANK_WINDOW, shown=given)
        if kind == "hybrid":
            return Limits(size, bounded=True, grows=grows)
    if _is_lone(body, bounds):
        return _limits_of_lone(body, _k_of(bounds[0][1], size), size)
    nearest = [_k_of(node, size) or 0 for _, node, _ in bounds]
    return Limits(size, bounded=True, found=None if {"query", "retriever"} & set(body) else sum(nearest))


def _limits_of_lone(body: Body, k: int | None, size: int) -> Limits:
    """Return the limits of a search for the k nearest neighbours alone. k: None for all within a distance."""
    if k is None:
        return Limits(size, bounded=True)
    grows = _REDUCING.isdisjoint(body)
    if "query" not in body:
        found = None if grows else k
        return Limits(size, bounded=True, grows=grows, apart=grows and _aggregates(body), found=found, shown=k, total=k)
    if not grows or size > k:
        return Limits(size, bounded=True)
    return Limits(size, bounded=True, grows=grows, apart=_aggregates(body), of_shard=k)


def raised(body: Body, most: int, limits: Limits) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the parts of a body that must change to give `most` hits, and the limits that were raised.

    Defaults that depend on the page size, and are not raised, are written out.
    """
    notes: dict[str, int] = {}
    if not limits.bounded:
        return {}, notes
    parts = {key: body[key] for key in ("knn", "retriever", "query") if key in body}
    changed = {key: _changed({key: node}, most, limits, notes)[key] for key, node in parts.items()}
    return changed, notes


def _is_refused(node: Body, place: str, size: int) -> bool:
    """Return whether Elasticsearch refuses a neighbour search, which it would take with limits of ours."""
    if "field" not in node:
        return False
    defaults = {"k": {"knn": size, "query": 1}.get(place, 0), "num_candidates": MOST_CANDIDATES}  # a retriever has none
    k, candidates = (_number(node, name) or 0 if name in node else given for name, given in defaults.items())
    return not 0 < k <= candidates <= MOST_CANDIDATES


def _is_lone(body: Body, bounds: list[tuple[str, Body, str]]) -> bool:
    """Return whether a search is one nearest-neighbour search and nothing else."""
    parts = [body[key] for key in ("knn", "query", "retriever") if body.get(key)]
    if len(bounds) != 1 or len(parts) != 1:
        return False
    if "knn" in body:
        return True
    return isinstance(parts[0], Mapping) and list(parts[0]) == [bounds[0][0]]


def _k_of(node: Body, size: int) -> int | None:
    """Return how many neighbours are requested, None if a distance or score limits them instead."""
    if "field" in node:
        return _number(node, "k") or min(size, _number(node, "num_candidates") or size)
    by_number = {"min_score", "max_distance"}.isdisjoint(node)
    return _number(node, "k") or (_NEIGHBOURS if by_number else None)


def _aggregates(body: Body) -> bool:
    return bool(body.get("aggs") or body.get("aggregations"))


def _retriever(body: Body) -> Body:
    given = body.get("retriever")
    return given if isinstance(given, Mapping) else {}


def _reranked(body: Body) -> int | None:
    """Return the window of a reranker, which is not raised because each candidate costs an inference, or None."""
    reranker = next((one for kind, one in _retriever(body).items() if kind in _RERANKING), None)
    return (_number(reranker, "rank_window_size") or _RANK_WINDOW) if isinstance(reranker, Mapping) else None


def _rescored(body: Body) -> int | None:
    """Return the smallest window of a rescorer, or None.

    It is not raised because that would change the ranking, and Elasticsearch refuses a page that is longer.
    """
    rescorer = _retriever(body).get("rescorer")
    given = rescorer.get("rescore") if isinstance(rescorer, Mapping) else None
    nodes = [node for node in (given if isinstance(given, list) else [given]) if isinstance(node, Mapping)]
    return min((_number(node, "window_size") or _RANK_WINDOW for node in nodes), default=None)


def _number(node: Body, name: str) -> int | None:
    return number_of(node.get(name))


def _bounds(node: Any, place: str = "knn") -> Iterator[tuple[str, Body, str]]:
    """Yield the nodes with limits: ("knn", its parameters, its place), ("hybrid", ...), ("rrf", ...), ...

    place: the part of a search that the node is in, "knn", "query" or "retriever".
    """
    if isinstance(node, list):
        for item in node:
            yield from _bounds(item, place)
    elif isinstance(node, Mapping):
        for kind, inner in node.items():
            for one in inner if isinstance(inner, list) else [inner]:
                if (parameters := _parameters(kind, one)) is not None:
                    yield kind, parameters, place
            yield from _bounds(inner, {"filter": "query"}.get(kind, kind if kind in ("query", "retriever") else place))


def _parameters(kind: str, node: Any) -> Body | None:
    """Return the object that holds a node's limits, None for any other node, as for a field with such a name."""
    if not isinstance(node, Mapping):
        return None
    if kind in ("knn", "neural"):
        if "field" in node and ("query_vector" in node or "query_vector_builder" in node):
            return node
        inner = next(iter(node.values()), None) if len(node) == 1 else None  # OpenSearch: {"knn": {FIELD: {...}}}
        return inner if isinstance(inner, Mapping) and not _QUERY_KEYS.isdisjoint(inner) else None
    if (kind == "hybrid" and "queries" in node) or (kind in _FUSING and not _FUSED.isdisjoint(node)):
        return node
    return None


def _changed(node: Any, most: int, limits: Limits, notes: dict[str, int]) -> Any:
    """Return a copy of a part of a body with the limits that it needs."""
    if isinstance(node, list):
        return [_changed(one, most, limits, notes) for one in node]
    if not isinstance(node, Mapping):
        return node
    copied = {}
    for kind, inner in node.items():
        several = isinstance(inner, list)
        nodes = [
            one if (given := _parameters(kind, one)) is None else _with(one, _numbers(kind, given, most, limits, notes))
            for one in (inner if several else [inner])
        ]
        changed = nodes if several else nodes[0]
        copied[kind] = changed if kind in _RERANKING else _changed(changed, most, limits, notes)
    return copied


def _numbers(kind: str, node: Body, most: int, limits: Limits, notes: dict[str, int]) -> dict[str, int]:
    """Return the limits that a node needs and does not have."""
    if kind == "hybrid":
        return _at_least(node, {"pagination_depth": most}, notes) if limits.grows else {}
    if kind in _FUSING:
        window = {"rank_window_size": _RANK_WINDOW, **node}
        return _at_least(window, {"rank_window_size": most}, notes) if limits.grows else {}
    k = _k_of(node, limits.size) or 0
    if limits.is_lone:
        wanted = min(max(most, k), MOST_CANDIDATES)
        names = ("k", "num_candidates") if "field" in node else ("k",)
        return _at_least({"k": k, **node}, dict.fromkeys(names, wanted), notes)
    if "field" not in node or limits.grows or _number(node, "k"):
        return {}
    candidates = min(max(round(_CANDIDATES * k), k), MOST_CANDIDATES)
    return {"k": k, "num_candidates": _number(node, "num_candidates") or candidates}


def _with(node: Body, numbers: Mapping[str, int]) -> Body:
    """Return a node with other limits; OpenSearch has them below the field's name."""
    if not numbers:
        return node
    if len(node) == 1 and isinstance(inner := next(iter(node.values())), Mapping):
        return {name: {**inner, **numbers} for name in node}
    return {**node, **numbers}


def _at_least(node: Body, wanted: Mapping[str, int], notes: dict[str, int]) -> dict[str, int]:
    """Return the raised values of limits that a node has and that are too small."""
    changed = {name: least for name, least in wanted.items() if 0 < (_number(node, name) or 0) < least}
    notes.update({name: max(least, notes.get(name, 0)) for name, least in changed.items()})
    return changed
