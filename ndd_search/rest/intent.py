"""What the caller of a search is after: documents by their ids, a ranking, or just every document that matches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Body = Mapping[str, Any]
_SCALARS = (str, int, float, type(None))
_OBJECTS = (dict, Mapping)  # the plain one first: asking for a Mapping takes ten times as long
_CONTAINERS = (list, tuple, *_OBJECTS)

_QUERIES = ("query", "post_filter", "knn", "retriever", "rescore", "sub_searches")  # parts of a body that hold queries
_NAMES_ID = re.compile(r"(?<![\w.])_id\s*:")  # in the language of query_string
# Parts of a query that name documents or values without asking for these documents.
_NOT_ASKED_FOR = {
    *("must_not", "like", "unlike", "document", "documents", "params"),
    *("vector", "query_vector", "query_vector_builder"),
}
_UNORDERED = {"_doc", "_shard_doc"}
_DEEPEST = 100  # levels; engines refuse queries nested deeper than 30


def nests_too_deep(body: Any) -> bool:
    """Whether a body has more levels than a search that an engine answers, or holds itself."""
    left = [(body, 0)]
    while left:
        node, depth = left.pop()
        if depth > _DEEPEST:
            return True
        left.extend((one, depth + 1) for one in inside(node))
    return False


def inside(node: Any) -> Iterable[Any]:
    """The objects and lists that stand in an object or a list of a body; a list of numbers is not searched for any."""
    if isinstance(node, list | tuple):
        within: Iterable[Any] = node if node and not isinstance(node[0], int | float) else ()
    else:
        within = node.values() if isinstance(node, _OBJECTS) else ()
    return [one for one in within if not isinstance(one, _SCALARS) and isinstance(one, _CONTAINERS)]


def asks_for_ids(body: Body, params: Mapping[str, str]) -> bool:
    """Whether a search names documents by id, in any part of its queries but `must_not`: no such hit may be hidden.

    A `wrapper` query, whose content is encoded, counts as one that does.
    """
    if _NAMES_ID.search(str(params.get("q", ""))) or params.get("df") == "_id":
        return True
    return any(_is_about_ids(name, inner) for part in _QUERIES for name, inner in _names(body.get(part)))


def ranks(body: Body, params: Mapping[str, str]) -> bool:
    """Whether a search puts its hits in an order that means something.

    It does with a `sort` by anything but `_doc`, or without a sort where a clause scores. An export, a `match_all` or a
    pure filter does not rank.
    """
    given = params.get("sort") or body.get("sort")
    fields = [_sorted_by(one) for one in (given.split(",") if isinstance(given, str) else _several(given))]
    if fields and fields != ["_score"] * len(fields):
        return not _UNORDERED.issuperset(fields)
    if body.get("knn") or body.get("rescore") or body.get("sub_searches") or "q" in params:
        return True
    retriever = body.get("retriever")
    if isinstance(retriever, Mapping):
        standard = retriever.get("standard")
        return ranks(standard, {}) if isinstance(standard, Mapping) else True
    return _scores(body.get("query"))


def _scores(query: Any) -> bool:
    """Whether the hits of a query have scores that differ."""
    if not isinstance(query, Mapping) or len(query) != 1:
        return bool(query)  # the engine says what is wrong with it
    kind, inner = next(iter(query.items()))
    if kind in ("match_all", "match_none", "constant_score"):
        return False
    if kind != "bool" or not isinstance(inner, Mapping):
        return True
    should = _several(inner.get("should"))
    return len(should) > 1 or any(map(_scores, [*should, *_several(inner.get("must"))]))


def _sorted_by(one: Any) -> str:
    """The field of one criterion of a sort: "price", "price:desc" in the URL, {"price": ...}."""
    name = next(iter(one), "") if isinstance(one, Mapping) else one
    return str(name).partition(":")[0]


def _is_about_ids(name: str, inner: Any) -> bool:
    """Whether a name in a query, with what stands under it, is about the ids of documents."""
    match name:
        case "_id" | "wrapper":
            return True
        case "ids":  # or a field of that name, which holds no such values
            return isinstance(inner, Mapping) and "values" in inner
        case "pinned":
            return isinstance(inner, Mapping) and not {"ids", "docs"}.isdisjoint(inner)
        case "fields" | "default_field":
            return any(str(one).partition("^")[0] == "_id" for one in _several(inner))
        case "query_string":
            return isinstance(inner, Mapping) and _NAMES_ID.search(str(inner.get("query"))) is not None
    return False


def _names(node: Any) -> Iterator[tuple[str, Any]]:
    """Every name in a query with what stands under it, at any depth, but for what is not asked for."""
    left = [node]
    while left:
        one = left.pop()
        if isinstance(one, _OBJECTS):
            for name, inner in one.items():
                if name not in _NOT_ASKED_FOR:
                    yield name, inner
                    if not isinstance(inner, _SCALARS):
                        left.append(inner)
        else:
            left.extend(inside(one))


def _several(given: Any) -> list[Any]:
    """What may be one thing or a list of them, as a list."""
    if given is None:
        return []
    return list(given) if isinstance(given, list | tuple) else [given]
