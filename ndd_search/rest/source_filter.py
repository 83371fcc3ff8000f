"""Removes the sketch, and what is stored with it, from the `_source` of answers, unless the caller names it.

Once an index is known to hold sketches of ours, the request excludes their values, which are the long part. The rest is
removed from the answer, and only from an object whose `recipe` is the id of a recipe. So a field of the caller's own
with the same name is returned as it is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from ndd_search.immutable import cached_property, dataclass
from ndd_search.rest.answers import drop_fields
from ndd_search.rest.intent import inside, named_inner_hits
from ndd_search.sketching.field import SketchField

_IN_URL = {"_source", "_source_includes", "_source_excludes", "_source_exclude_vectors"}
_RELATED = ("has_child", "has_parent")


def exclude_sketch(body: dict[str, Any], params: dict[str, str], field: SketchField, names: Set[str]) -> None:
    """Change a search so that every returned `_source` lacks the values of sketches.

    body, params: changed in place, at the top level only. names: every name in the body, at any depth.
    """
    _exclude(body, params, field)
    if "collapse" in body and isinstance(body["collapse"], Mapping):
        body["collapse"] = _with_inner_hits(body["collapse"], field)
    if "query" in body and not names.isdisjoint(_RELATED):
        body["query"] = _query(body["query"], field)
    for name in ("aggs", "aggregations"):
        if name in body:
            body[name] = _aggregations(body[name], field)


@dataclass(frozen=True)
class SketchFilter:
    """Removes sketches from the answers to one search: from hits and from all other lists of documents."""

    body: Mapping[str, Any]
    params: Mapping[str, str]
    field: SketchField

    def clean(self, answer: Any, fields: Sequence[str] = ()) -> None:
        """Remove the sketches from an answer, in place.

        fields: requested by us only; Elasticsearch adds the `fields` of the whole search to `top_hits`.
        """
        if not isinstance(answer, dict):
            return
        self._clean_hits(answer, self._hits_show)
        elsewhere = not {"aggs", "aggregations", "suggest"}.isdisjoint(self.body)
        left = [answer.get("aggregations"), answer.get("suggest")] if elsewhere else []
        while left:
            node = left.pop()
            if isinstance(node, list):
                left.extend(node)
            elif isinstance(node, dict):
                if isinstance(source := node.get("_source"), dict) and not self._hits_show:
                    self.field.remove_from(source)  # a document of a completion suggester
                for name, inner in node.items():
                    if isinstance(inner, dict) and isinstance(inner.get("hits"), dict):
                        plain_name = name.rpartition("#")[2]  # it is "top_hits#name" with `typed_keys`
                        self._clean_hits(inner, plain_name in self._showing, fields)
                    elif isinstance(inner, dict | list):
                        left.append(inner)

    def _clean_hits(self, node: dict[str, Any], show: bool, fields: Sequence[str] = ()) -> None:
        found = node.get("hits")
        hits = found.get("hits") if isinstance(found, dict) else None
        for hit in hits if isinstance(hits, list) else ():
            if not isinstance(hit, dict) or not (fields or "_source" in hit or "inner_hits" in hit):
                continue
            if not show and isinstance(source := hit.get("_source"), dict):
                self.field.remove_from(source)
            if fields and isinstance(hit.get("fields"), dict):
                drop_fields(hit, fields)
            if isinstance(inner := hit.get("inner_hits"), dict):
                for name, one in inner.items():
                    if isinstance(one, dict):
                        self._clean_hits(one, name in self._showing)

    @cached_property
    def _hits_show(self) -> bool:
        """Whether the caller requests the sketch in the `_source` of hits."""
        wanted = names_of(self.params.get("_source")) + names_of(self.params.get("_source_includes"))
        return _is_named_by(self.body.get("_source"), self.field) or any(is_named(one, self.field) for one in wanted)

    @cached_property
    def _showing(self) -> set[str]:
        """The names of `top_hits` and inner hits for which the caller requests the sketch."""
        return set(_showing([self.body.get(key) for key in ("query", "collapse", "aggs", "aggregations")], self.field))


def names_of(given: Any) -> list[str]:
    """Return the names or patterns in a user's list of fields."""
    if given is None:
        return []
    return [str(one.get("field")) if isinstance(one, Mapping) else str(one) for one in _listed(given)]


def is_named(pattern: str, field: SketchField) -> bool:
    """Return whether a pattern names a field of ours, rather than matching everything."""
    return pattern in (field.name, f"{field.name}*", field.keys) or pattern.startswith(f"{field.name}.")


def _listed(given: Any) -> list[Any]:
    """Return a single value, a list, or names separated by commas as a list."""
    if given is None:
        return []
    return given.split(",") if isinstance(given, str) else list(given) if isinstance(given, Sequence) else [given]


def _exclude(body: dict[str, Any], params: dict[str, str], field: SketchField) -> None:
    """Exclude the values from `_source`: in the URL if the caller filters `_source` there, else in the body."""
    if not _IN_URL.isdisjoint(params):
        wanted = names_of(params.get("_source")) + names_of(params.get("_source_includes"))
        if params.get("_source") != "false" and not any(is_named(one, field) for one in wanted):
            excludes = [params["_source_excludes"]] if params.get("_source_excludes") else []
            params["_source_excludes"] = ",".join([*excludes, *field.values])
        return
    source = body.get("_source", True)
    if source is False or ("_source" not in body and ({"stored_fields", "script_fields"} & {*body, *params})):
        return  # no `_source` is returned
    if not _is_named_by(source, field):
        body["_source"] = _without_values(source, field)


def _without_values(source: Any, field: SketchField) -> Any:
    """Return a `_source` that excludes the values. An invalid one is unchanged, so that the engine refuses it."""
    if source is True:
        return {"excludes": [*field.values]}
    if isinstance(source, str):
        return {"includes": [source], "excludes": [*field.values]}
    if isinstance(source, list | tuple):
        return {"includes": list(source), "excludes": [*field.values]}
    if not isinstance(source, Mapping):
        return source
    name = "exclude" if "exclude" in source else "excludes"
    given = source.get(name, [])
    if isinstance(given, str):
        given = [given]
    return {**source, name: [*given, *field.values]} if isinstance(given, list | tuple) else source


def _excluding(body: Any, field: SketchField) -> Any:
    """Return a copy of the definition of inner hits or `top_hits` that excludes the values; anything else unchanged."""
    if not isinstance(body, Mapping):
        return body
    copied = dict(body)
    _exclude(copied, {}, field)
    return copied


def _with_inner_hits(node: Mapping[str, Any], field: SketchField) -> Mapping[str, Any]:
    """Return a copy of a node whose `inner_hits`, one or a list, exclude the values."""
    given = node.get("inner_hits")
    if given is None:
        return node
    return {
        **node,
        "inner_hits": [_excluding(one, field) for one in given]
        if isinstance(given, list)
        else _excluding(given, field),
    }


def _query(node: Any, field: SketchField) -> Any:
    """Return a copy of a query whose inner hits of parents and children exclude the values."""
    if isinstance(node, list):
        return [_query(one, field) for one in node]
    if not isinstance(node, Mapping):
        return node
    copied = {kind: _query(inner, field) for kind, inner in node.items()}
    for kind in _RELATED:
        if isinstance(copied.get(kind), Mapping):
            copied[kind] = _with_inner_hits(copied[kind], field)
    return copied


def _aggregations(node: Any, field: SketchField) -> Any:
    """Return a copy of aggregations by name, whose `top_hits` exclude the values."""
    if not isinstance(node, Mapping):
        return node
    return {name: _aggregation(one, field) for name, one in node.items()}


def _aggregation(node: Any, field: SketchField) -> Any:
    if not isinstance(node, Mapping):
        return node
    copied = dict(node)
    if "top_hits" in copied:
        copied["top_hits"] = _excluding(copied["top_hits"], field)
    for name in ("aggs", "aggregations"):
        if name in copied:
            copied[name] = _aggregations(copied[name], field)
    return copied


def _showing(node: Any, field: SketchField) -> list[str]:
    """Return the names of `top_hits` and inner hits, in a part of a search, whose `_source` requests the sketch."""
    names = [name for name, inner in named_inner_hits(node) if _is_named_by(inner.get("_source"), field)]
    left = [node]
    while left:
        one = left.pop()
        left.extend(inside(one))
        if isinstance(one, Mapping):
            for name, inner in one.items():
                top = inner.get("top_hits") if isinstance(inner, Mapping) else None
                if isinstance(top, Mapping) and _is_named_by(top.get("_source"), field):
                    names.append(name)
    return names


def _is_named_by(source: Any, field: SketchField) -> bool:
    """Return whether a `_source` requests the sketch."""
    if source is None or isinstance(source, bool):
        return False
    if isinstance(source, Mapping):
        source = source.get("includes", source.get("include"))
    wanted = [source] if isinstance(source, str) else source if isinstance(source, list | tuple) else []
    return any(is_named(str(one), field) for one in wanted)
