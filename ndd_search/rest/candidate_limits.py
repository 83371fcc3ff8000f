"""Searches that give no more hits than they were told to look at: nearest neighbours, hybrid queries, retrievers.

Collapsing needs more hits than a page shows, so some of these numbers are raised in what is sent. What the caller gets
keeps to the numbers as they were: no more hits are shown, and the total is no higher, than without us. Where a raised
number would change scores, or what is aggregated, it stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

MOST_CANDIDATES = 10_000  # of a nearest-neighbour search; the engines' own limit
_RANK_WINDOW = 10  # the engines' default for rank_window_size
_NEIGHBOURS = 10  # OpenSearch's default for k of "neural"
_CANDIDATES = 1.5  # Elasticsearch's default for num_candidates: so many for each hit
_FUSING = ("rrf", "linear")
_WHAT_TO_FIND = {
    "vector",
    "query_text",
    "query_image",
    "query_tokens",
    "model_id",
}  # OpenSearch, below the field's name
_REDUCING = {
    "post_filter",
    "collapse",
    "rescore",
}  # what comes after the neighbours and may have other results for more

Body = Mapping[str, Any]


@dataclass(frozen=True)
class Limits:
    """What the numbers in a search say of its hits.

    size:    hits of a page, as the caller asked for them: some numbers are this one where they are not given.
    bounded: whether there are such numbers; such a search has one window for all its pages.
    grows:   whether they are raised to the window.
    apart:   whether aggregations, which are over what is found, take a request with the numbers as they are.
    found:   how many hits the search can give at most because they are not raised, None where that is not known.
    shown:   how many hits the caller asked for at most on all pages together, None without such a limit.
    total:   the most that `hits.total` may say, None for what the engine says.
    """

    size: int
    bounded: bool = False
    grows: bool = False
    apart: bool = False
    found: int | None = None
    shown: int | None = None
    total: int | None = None


def limits_of(body: Body, start: int = 0, size: int = 10) -> Limits:
    """The limits of a search for the page [start, start + size)."""
    bounds = list(_bounds(body))
    reranker = _retriever(body).get("text_similarity_reranker")
    if isinstance(reranker, Mapping):  # each hit that it looks at costs an inference
        window = _number(reranker, "rank_window_size") or _RANK_WINDOW
        return Limits(size, bounded=bool(bounds), found=window, shown=window)
    if not bounds:
        return Limits(size)
    grows = not _aggregates(body)
    for kind, node in bounds:
        if kind in _FUSING:
            given = _number(node, "rank_window_size")
            return Limits(size, bounded=True, grows=grows, found=None if grows else given or _RANK_WINDOW, shown=given)
        if kind == "hybrid":
            return Limits(size, bounded=True, grows=grows)
    if _is_lone(body, bounds):
        return _limits_of_lone(body, _k_of(bounds[0][1], size), start, size)
    nearest = [_k_of(node, size) or 0 for _, node in bounds]
    return Limits(size, bounded=True, found=None if {"query", "retriever"} & set(body) else sum(nearest))


def _limits_of_lone(body: Body, k: int | None, start: int, size: int) -> Limits:
    """The limits of a search for the k nearest neighbours, None where it is for all within a distance."""
    if k is None:
        return Limits(size, bounded=True)
    grows = _REDUCING.isdisjoint(body)
    if "query" not in body:
        found = None if grows else k
        return Limits(size, True, grows, apart=grows and _aggregates(body), found=found, shown=k, total=k)
    # Here each shard gives k: beyond the first k there may be more to show, and how many is not known.
    if not grows or start + size > k:
        return Limits(size, bounded=True)
    return Limits(size, True, grows, apart=_aggregates(body), shown=k, total=k)


def raised(body: Body, most: int, limits: Limits) -> tuple[dict[str, Any], dict[str, int]]:
    """The parts of a body that have to change for it to give `most` hits, and the numbers in them that were raised.

    Numbers that depend on the size of the page, and are not to be raised, are written out.
    """
    notes: dict[str, int] = {}
    if not limits.bounded:
        return {}, notes
    parts = {key: body[key] for key in ("knn", "retriever", "query") if key in body}
    changed = {key: _changed({key: node}, most, limits, notes)[key] for key, node in parts.items()}
    return changed, notes


def _is_lone(body: Body, bounds: list[tuple[str, Body]]) -> bool:
    """Whether a search consists of one search for nearest neighbours and nothing else."""
    parts = [body[key] for key in ("knn", "query", "retriever") if body.get(key)]
    if len(bounds) != 1 or len(parts) != 1:
        return False
    if "knn" in body:
        return True
    return isinstance(parts[0], Mapping) and list(parts[0]) == [bounds[0][0]]


def _k_of(node: Body, size: int) -> int | None:
    """How many neighbours are asked for, None where it is no number of them."""
    if "field" in node:
        return _number(node, "k") or min(size, _number(node, "num_candidates") or size)
    by_number = {"min_score", "max_distance"}.isdisjoint(node)
    return _number(node, "k") or (_NEIGHBOURS if by_number else None)


def _aggregates(body: Body) -> bool:
    return bool(body.get("aggs") or body.get("aggregations"))


def _retriever(body: Body) -> Body:
    given = body.get("retriever")
    return given if isinstance(given, Mapping) else {}


def _number(node: Body, name: str) -> int | None:
    value = node.get(name)
    return value if isinstance(value, int) else None


def _bounds(body: Body) -> Iterator[tuple[str, Body]]:
    """What bounds a search: ("knn", its parameters), ("hybrid", ...), ("rrf", ...), ..."""
    yield from _found({key: body[key] for key in ("knn", "query", "retriever") if key in body})


def _found(node: Any) -> Iterator[tuple[str, Body]]:
    if isinstance(node, list):
        for one in node:
            yield from _found(one)
    elif isinstance(node, Mapping):
        for kind, inner in node.items():
            for one in inner if isinstance(inner, list) else [inner]:
                if (parameters := _parameters(kind, one)) is not None:
                    yield kind, parameters
            yield from _found(inner)


def _parameters(kind: str, node: Any) -> Body | None:
    """Where the numbers are, for a node that bounds a search; None for another node, though a field has such a name."""
    if not isinstance(node, Mapping):
        return None
    if kind in ("knn", "neural"):
        if "field" in node and ("query_vector" in node or "query_vector_builder" in node):
            return node
        inner = next(iter(node.values()), None) if len(node) == 1 else None  # OpenSearch: {"knn": {FIELD: {...}}}
        return inner if isinstance(inner, Mapping) and not _WHAT_TO_FIND.isdisjoint(inner) else None
    if (kind == "hybrid" and "queries" in node) or (kind in _FUSING and "retrievers" in node):
        return node
    return None


def _changed(node: Any, most: int, limits: Limits, notes: dict[str, int]) -> Any:
    """A copy of a part of a body with the numbers that it needs."""
    if isinstance(node, list):
        return [_changed(one, most, limits, notes) for one in node]
    if not isinstance(node, Mapping):
        return node
    made = {}
    for kind, inner in node.items():
        several = isinstance(inner, list)
        nodes = [
            one if (given := _parameters(kind, one)) is None else _with(one, _numbers(kind, given, most, limits, notes))
            for one in (inner if several else [inner])
        ]
        changed = nodes if several else nodes[0]
        made[kind] = changed if kind == "text_similarity_reranker" else _changed(changed, most, limits, notes)
    return made


def _numbers(kind: str, node: Body, most: int, limits: Limits, notes: dict[str, int]) -> dict[str, int]:
    """The numbers that a node of a kind needs and does not have."""
    if kind == "hybrid":
        return _at_least(node, {"pagination_depth": most}, notes) if limits.grows else {}
    if kind in _FUSING:
        window = {"rank_window_size": _RANK_WINDOW, **node}
        return _at_least(window, {"rank_window_size": most}, notes) if limits.grows else {}
    k = _k_of(node, limits.size) or 0
    if limits.grows and limits.total is not None:  # the only clause
        wanted = min(max(most, k), MOST_CANDIDATES)
        names = ("k", "num_candidates") if "field" in node else ("k",)
        return _at_least({"k": k, **node}, dict.fromkeys(names, wanted), notes)
    if "field" not in node or limits.grows:
        return {}
    candidates = min(max(round(_CANDIDATES * k), k), MOST_CANDIDATES)
    return {"k": k, "num_candidates": _number(node, "num_candidates") or candidates}


def _with(node: Body, numbers: Mapping[str, int]) -> Body:
    """A node with other numbers, which OpenSearch has below the field's name."""
    if not numbers:
        return node
    if len(node) == 1 and isinstance(inner := next(iter(node.values())), Mapping):
        return {name: {**inner, **numbers} for name in node}
    return {**node, **numbers}


def _at_least(node: Body, wanted: Mapping[str, int], notes: dict[str, int]) -> dict[str, int]:
    """The numbers of a node that are there and too small, raised."""
    changed = {name: least for name, least in wanted.items() if 0 < (_number(node, name) or 0) < least}
    notes.update({name: max(least, notes.get(name, 0)) for name, least in changed.items()})
    return changed
