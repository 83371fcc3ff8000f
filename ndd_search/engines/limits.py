"""Searches that give no more hits than they were told to look at: nearest neighbours, hybrid queries, retrievers.

A window needs these numbers raised. Raising them changes what is fused and what is aggregated, so such a search has one
window for all its pages, and with aggregations it keeps the numbers its user chose.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

MOST_CANDIDATES = 10_000  # of a nearest-neighbour search; the engines' own limit
_RANK_WINDOW = 10  # the engines' default for rank_window_size
_FUSING = ("rrf", "linear")
_WHAT_TO_FIND = {
    "vector",
    "query_text",
    "query_image",
    "query_tokens",
    "model_id",
}  # OpenSearch, below the field's name

Body = Mapping[str, Any]


def is_bounded(body: Body) -> bool:
    """Whether asking for more hits may change the order of the first ones."""
    return any(True for _ in _bounds(body))


def limit_of(body: Body) -> int | None:
    """How many hits a search can give at most because its numbers are not raised; None where there is no such limit.

    Each hit that a reranking retriever looks at costs an inference; aggregations are over what is found.
    """
    reranker = _retriever(body).get("text_similarity_reranker")
    if isinstance(reranker, Mapping):
        return _number(reranker, "rank_window_size") or _RANK_WINDOW
    query = body.get("query")
    if not _aggregates(body) or (query and ("knn" in body or not {"knn", "neural"}.intersection(query))):
        return None  # or what else is asked for finds more
    for kind, node in _bounds(body):
        if kind in _FUSING:
            return _number(node, "rank_window_size") or _RANK_WINDOW
    nearest = [_number(node, "k") for _, node in _bounds(body)]
    return sum(filter(None, nearest)) or None


def raised(body: Body, most: int) -> tuple[dict[str, Any], dict[str, int]]:
    """The parts of a body that have to change for it to give `most` hits, and the numbers in them that were raised."""
    notes: dict[str, int] = {}
    if _aggregates(body) or not is_bounded(body):
        return {}, notes
    changed = {key: _raised({key: body[key]}, most, notes)[key] for key in ("knn", "retriever", "query") if key in body}
    return changed, notes


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


def _raised(node: Any, most: int, notes: dict[str, int]) -> Any:
    if isinstance(node, list):
        return [_raised(one, most, notes) for one in node]
    if not isinstance(node, Mapping):
        return node
    made = {}
    for kind, inner in node.items():
        several = isinstance(inner, list)
        nodes = [
            _with_numbers(kind, one, most, notes) if _parameters(kind, one) is not None else one
            for one in (inner if several else [inner])
        ]
        changed = nodes if several else nodes[0]
        made[kind] = changed if kind == "text_similarity_reranker" else _raised(changed, most, notes)
    return made


def _with_numbers(kind: str, node: Body, most: int, notes: dict[str, int]) -> Body:
    """The node with the numbers that its kind needs."""
    if kind == "hybrid":
        return {**node, **_at_least(node, {"pagination_depth": most}, notes)}
    if kind in _FUSING:
        return {**node, **_at_least({"rank_window_size": _RANK_WINDOW, **node}, {"rank_window_size": most}, notes)}
    if "field" not in node:
        ((name, inner),) = node.items()
        return {name: {**inner, **_at_least(inner, {"k": min(most, MOST_CANDIDATES)}, notes)}}
    k = min(max(most, _number(node, "k") or 0), MOST_CANDIDATES)
    return {**node, **_at_least(node, {"k": k, "num_candidates": k}, notes)}


def _at_least(node: Body, wanted: Mapping[str, int], notes: dict[str, int]) -> dict[str, int]:
    """The numbers of a node that are there and too small, raised."""
    changed = {name: least for name, least in wanted.items() if 0 < (_number(node, name) or 0) < least}
    notes.update({name: max(least, notes.get(name, 0)) for name, least in changed.items()})
    return changed
