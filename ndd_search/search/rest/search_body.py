"""Reads the body of a search: the names and numbers in it, whether it ranks its hits, whether it asks for ids."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from ndd_search.core.paging.cache import is_value
from ndd_search.core.sketching.stored_sketch import listed

Body = Mapping[str, Any]
_SCALARS = (str, int, float, type(None))
OBJECTS = (dict, Mapping)  # dict first: isinstance(x, Mapping) takes ten times as long
_CONTAINERS = (list, tuple, *OBJECTS)

_QUERIES = ("query", "post_filter", "knn", "retriever", "rescore", "sub_searches")  # parts of a body that hold queries
_NAMES_ID = re.compile(r"(?<![\w.])_id\s*:")  # in the language of query_string
# Parts of a query that name documents or values without requesting these documents.
_NOT_ASKED_FOR = {
    *("must_not", "like", "unlike", "document", "documents", "params"),
    *("vector", "query_vector", "query_vector_builder"),
}
# See _is_about_ids.
_ABOUT_IDS = {"_id", "wrapper", "ids", "ruleset_ids", "fields", "default_field", "query_string"}
_UNORDERED = {"_doc", "_shard_doc"}
_NUMBER = re.compile(r"[+-]?[0-9]+")  # int() also takes spaces, "1_0" and the digits of other scripts
_DEEPEST = 100  # levels; engines refuse queries nested deeper than 30


def resolved(node: Any, depth: int = 0) -> Any:
    """Return a copy of a body in which the objects of a client's DSL are replaced by the JSON that they stand for.

    Such objects have `to_dict`, or hold a list in `_l_`. Raises ValueError if the body nests too deep (see `names_in`).
    """
    if depth > _DEEPEST:
        raise ValueError("the body of a search nests too deep")
    if hasattr(node, "to_dict") and not is_value(node):
        return resolved(node.to_dict(), depth + 1)
    if isinstance(node, OBJECTS):
        return {name: resolved(inner, depth + 1) for name, inner in node.items()}
    items = getattr(node, "_l_", node)
    return [resolved(item, depth + 1) for item in items] if isinstance(items, list | tuple) else node


def names_in(body: Any) -> set[str] | None:
    """Return every name in a body, at any depth.

    None if it nests deeper than any engine accepts, contains itself, or holds an object whose names cannot be read.

    One walk through a body answers for all parts that most searches lack: nearest neighbours, inner hits, scripts, ...
    """
    names = set[str]()
    left = [(body, 0)]  # the deepest part first: a body that contains itself twice doubles with each level
    while left:
        node, depth = left.pop()
        if depth > _DEEPEST:
            return None
        if isinstance(node, OBJECTS):
            names.update(node)
        for child in _parts(node):
            if isinstance(child, _CONTAINERS):
                left.append((child, depth + 1))
            elif not isinstance(child, _SCALARS) and not is_value(child):
                return None
    return names


def named_inner_hits(body: Body) -> Iterator[tuple[str, Body]]:
    """Yield the inner hits in a search: the name that they have in each hit, and their definition."""
    for one in (part for _, value in named_values(body) for part in listed(value)):
        if isinstance(one, OBJECTS):
            default = one.get("type", one.get("parent_type", one.get("path")))
            for inner in listed(one.get("inner_hits")):
                if isinstance(inner, OBJECTS):
                    yield str(inner.get("name", default)), inner


def asks_for_ids(body: Body, params: Mapping[str, str], names: Set[str]) -> bool:
    """Return whether a search names documents by id, outside `must_not`. No such hit may be hidden.

    A `wrapper` query counts as one, because its content is encoded. names: those in the body (see `names_in`).
    """
    if ("q" in params and _NAMES_ID.search(str(params["q"]))) or params.get("df") == "_id":
        return True
    return not names.isdisjoint(_ABOUT_IDS) and any(
        _is_about_ids(name, inner) for part in _QUERIES for name, inner in named_values(body.get(part), _NOT_ASKED_FOR)
    )


def ranks_hits(body: Body, params: Mapping[str, str]) -> bool:
    """Return whether a search ranks its hits.

    It does with a `sort` by anything but `_doc`, or, without a sort, if a clause scores. An export, a `match_all` or a
    pure filter does not rank.
    """
    given = body.get("sort")
    fields = [_sorted_by(one) for one in (given.split(",") if isinstance(given, str) else listed(given))]
    if fields and fields != ["_score"] * len(fields):
        return not _UNORDERED.issuperset(fields)
    if body.get("knn") or body.get("rescore") or body.get("sub_searches") or "q" in params:
        return True
    if isinstance(body.get("retriever"), OBJECTS):
        return ranks_hits(standard, {}) if (standard := standard_of(body)) else True
    return _scores(body.get("query"))


def _scores(query: Any) -> bool:
    """Return whether the hits of a query can have different scores."""
    if not isinstance(query, OBJECTS) or len(query) != 1:
        return bool(query)  # invalid: the engine reports the error
    kind, inner = next(iter(query.items()))
    if kind in ("match_all", "match_none", "constant_score"):
        return False
    if kind != "bool" or not isinstance(inner, OBJECTS):
        return True
    should = listed(inner.get("should"))
    return len(should) > 1 or any(map(_scores, [*should, *listed(inner.get("must"))]))


def _sorted_by(one: Any) -> str:
    """Return the field of one sort criterion: "price", "price:desc" in the URL, {"price": ...}."""
    name = next(iter(one), "") if isinstance(one, Mapping) else one
    return str(name).partition(":")[0]


def _is_about_ids(name: str, inner: Any) -> bool:
    """Return whether a name in a query, with its value, selects documents by id."""
    match name:
        case "_id" | "wrapper" | "ruleset_ids":  # query rules pin documents
            return True
        case "ids":  # a field of that name has no "values"
            return isinstance(inner, Mapping) and "values" in inner
        case "pinned":
            return isinstance(inner, Mapping) and "ids" in inner  # its "docs" name an "_id"
        case "fields" | "default_field":
            return any(str(one).partition("^")[0] == "_id" for one in listed(inner))
        case "query_string":
            return isinstance(inner, Mapping) and _NAMES_ID.search(str(inner.get("query"))) is not None
    return False


def named_values(node: Any, but: Set[str] = frozenset()) -> Iterator[tuple[str, Any]]:
    """Yield every name in a part of a body with its value, at any depth. but: names of parts that are left out."""
    left = [node]
    while left:
        node = left.pop()
        if isinstance(node, OBJECTS):
            for name, inner in node.items():
                if name not in but:
                    yield name, inner
                    if not isinstance(inner, _SCALARS):
                        left.append(inner)
        else:
            left.extend(child for child in _parts(node) if isinstance(child, _CONTAINERS))


def _parts(node: Any) -> Iterable[Any]:
    """Return what is directly inside an object or a list. A list of numbers is skipped."""
    if isinstance(node, OBJECTS):
        return node.values()
    return node if isinstance(node, list | tuple) and node and not isinstance(node[0], int | float) else ()


def standard_of(body: Body) -> Body:
    """Return the retriever that is a search of its own, an empty one for any other search."""
    retriever = body.get("retriever")
    standard = retriever.get("standard") if isinstance(retriever, OBJECTS) else None
    return standard if isinstance(standard, OBJECTS) else {}


def names_of(given: Any) -> list[str]:
    """Return the names or patterns in a user's list of fields."""
    if given is None:
        return []
    return [str(one.get("field")) if isinstance(one, Mapping) else str(one) for one in comma_separated(given)]


def comma_separated(given: Any) -> list[Any]:
    """Return a single value, a list, or names separated by commas as a list."""
    if given is None:
        return []
    return given.split(",") if isinstance(given, str) else list(given) if isinstance(given, Sequence) else [given]


def number_of(given: Any) -> int | None:
    """Return a number, also from a text, as engines accept it; None for anything else."""
    if isinstance(given, bool) or (isinstance(given, str) and not _NUMBER.fullmatch(given)):
        return None
    try:
        return int(given)
    except (TypeError, ValueError, OverflowError):
        return None
