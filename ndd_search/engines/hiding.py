"""Leave the sketch, and what is stored with it, out of what a search brings back, unless the user names it himself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ndd_search.field import SketchField


def hide_sketch(body: dict[str, Any], params: dict[str, str], field: SketchField) -> None:
    """Change a search so that neither its hits nor those that parts of it list show the sketch in `_source`.

    body, params: ours to change, but for what is inside them.
    """
    _hide(body, params, field)
    if isinstance(body.get("collapse"), Mapping):
        body["collapse"] = _with_inner_hits(body["collapse"], field)
    if "query" in body:
        body["query"] = _query(body["query"], field)
    for name in ("aggs", "aggregations"):
        if name in body:
            body[name] = _aggregations(body[name], field)


def names_of(given: Any) -> list[str]:
    """The names or patterns in what a user says of fields."""
    return [str(one.get("field")) if isinstance(one, Mapping) else str(one) for one in listed(given)]


def is_named(pattern: str, field: SketchField) -> bool:
    """Whether a pattern is about what we store, and not just about everything."""
    return pattern in (field.name, field.keys) or pattern.startswith(f"{field.name}.")


def listed(given: Any) -> list[Any]:
    """What may be one thing, several in a list, or names with commas, as a list."""
    if given is None:
        return []
    return given.split(",") if isinstance(given, str) else list(given) if isinstance(given, Sequence) else [given]


def _hide(body: dict[str, Any], params: dict[str, str], field: SketchField) -> None:
    """Leave the sketch out of `_source`, wherever the user says what he wants of it."""
    in_url = [name for name in ("_source", "_source_includes", "_source_excludes") if name in params]
    if in_url:
        if params.get("_source") != "false" and not _names_field(params.get("_source_includes", ""), field):
            excludes = [params["_source_excludes"]] if params.get("_source_excludes") else []
            params["_source_excludes"] = ",".join([*excludes, field.name, field.keys])
        return
    source = body.get("_source", True)
    if source is False or ("_source" not in body and ({"stored_fields", "script_fields"} & {*body, *params})):
        return  # nothing of it comes back
    if isinstance(source, Mapping):
        includes = source.get("includes", source.get("include"))
        if not _names_field(includes, field):
            excludes = listed(source.get("excludes", source.get("exclude")))
            body["_source"] = {"includes": listed(includes), "excludes": [*excludes, field.name, field.keys]}
    elif source is True or not _names_field(source, field):
        body["_source"] = {"includes": [] if source is True else listed(source), "excludes": [field.name, field.keys]}


def _hidden(body: Any, field: SketchField) -> Any:
    """A copy of what is said of some hits, without the sketch; anything else as it is."""
    if not isinstance(body, Mapping):
        return body
    made = dict(body)
    _hide(made, {}, field)
    return made


def _with_inner_hits(node: Mapping[str, Any], field: SketchField) -> Mapping[str, Any]:
    """A copy of a node whose own `inner_hits`, one or a list of them, come without the sketch."""
    given = node.get("inner_hits")
    if given is None:
        return node
    return {
        **node,
        "inner_hits": [_hidden(one, field) for one in given] if isinstance(given, list) else _hidden(given, field),
    }


def _query(node: Any, field: SketchField) -> Any:
    """A copy of a query whose parents and children come without the sketch."""
    if isinstance(node, list):
        return [_query(one, field) for one in node]
    if not isinstance(node, Mapping):
        return node
    made = {kind: _query(inner, field) for kind, inner in node.items()}
    for kind in ("has_child", "has_parent"):
        if isinstance(made.get(kind), Mapping):
            made[kind] = _with_inner_hits(made[kind], field)
    return made


def _aggregations(node: Any, field: SketchField) -> Any:
    """A copy of aggregations by name, where `top_hits` come without the sketch."""
    if not isinstance(node, Mapping):
        return node
    return {name: _aggregation(one, field) for name, one in node.items()}


def _aggregation(node: Any, field: SketchField) -> Any:
    if not isinstance(node, Mapping):
        return node
    made = dict(node)
    if "top_hits" in made:
        made["top_hits"] = _hidden(made["top_hits"], field)
    for name in ("aggs", "aggregations"):
        if name in made:
            made[name] = _aggregations(made[name], field)
    return made


def _names_field(patterns: Any, field: SketchField) -> bool:
    return any(is_named(one, field) for one in names_of(patterns))
