"""Removes the sketch, and what is stored with it, from the `_source` of answers, unless the caller names it.

Once an index is known to hold sketches of ours, the request excludes their values, the long part, from hits. The rest
is removed from the answer, and only from an object whose `recipe` is the id of a recipe. So a field of the caller's own
with the same name is returned as it is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from ndd_search.core.immutable import cached_property, dataclass
from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.search.rest.read_answer import drop_fields
from ndd_search.search.rest.search_body import named_inner_hits, named_values, names_of

_VALUES = ("fields", "docvalue_fields")


def exclude_sketch(body: dict[str, Any], params: Mapping[str, str], field: SketchField) -> None:
    """Exclude the values of sketches from the `_source` of hits, in place at the top level of a search."""
    source = body.get("_source", True)
    if source is False or ("_source" not in body and ({"stored_fields", "script_fields"} & {*body, *params})):
        return  # no `_source` is returned
    if not _is_named_by(source, field):
        body["_source"] = _without_values(source, field)


@dataclass(frozen=True)
class SketchFilter:
    """Removes sketches from the answers to one search: from hits and from all other lists of documents."""

    body: Mapping[str, Any]
    field: SketchField

    def clean(self, answer: Any, fields: Sequence[str] = (), values: Sequence[str] = ()) -> None:
        """Remove the sketches from an answer, in place.

        fields: requested by us only; Elasticsearch adds the `fields` of the whole search to `top_hits`.
        values: likewise, with the doc values; engines add both to the documents of completion suggesters.
        """
        if not isinstance(answer, dict):
            return
        self._clean_hits(answer, self._hits_show)
        if "suggest" in self.body:
            for name, options in named_values(answer.get("suggest")):
                for one in options if name == "options" and isinstance(options, list) else ():
                    self._clean_option(one, values)
        if "aggs" in self.body or "aggregations" in self.body:
            for name, inner in _top_hits_in(answer.get("aggregations")):
                plain_name = name.rpartition("#")[2]  # it is "top_hits#name" with `typed_keys`
                unasked = [one for one in fields if not self._is_asked_for(one, plain_name)]
                self._clean_hits(inner, plain_name in self._showing, unasked)

    def _clean_option(self, option: Any, values: Sequence[str]) -> None:
        """Clean a document of a completion suggester: an option with a `_source`, `fields`, or both."""
        if isinstance(option, dict):
            if not self._hits_show:
                self.field.remove_from([option.get("_source")])
            if values and isinstance(option.get("fields"), dict):
                drop_fields(option, values)

    def _clean_hits(self, node: dict[str, Any], show: bool, fields: Sequence[str] = ()) -> None:
        found = node.get("hits")
        listed = found.get("hits") if isinstance(found, dict) else None
        hits = [hit for hit in listed if isinstance(hit, dict)] if isinstance(listed, list) else []
        if not show:
            self.field.remove_from([hit["_source"] for hit in hits if "_source" in hit])
        for hit in hits:
            if fields and isinstance(hit.get("fields"), dict):
                drop_fields(hit, fields)
            if isinstance(inner := hit.get("inner_hits"), dict):
                for name, one in inner.items():
                    if isinstance(one, dict):
                        self._clean_hits(one, name in self._showing)

    @cached_property
    def _hits_show(self) -> bool:
        """Whether the caller requests the sketch in the `_source` of hits."""
        return _is_named_by(self.body.get("_source"), self.field)

    @cached_property
    def _showing(self) -> set[str]:
        """The names of `top_hits` and inner hits for which the caller requests the sketch."""
        inner = named_inner_hits({part: self.body.get(part) for part in ("query", "collapse")})
        return {name for name, one in [*inner, *self._top_hits] if _is_named_by(one.get("_source"), self.field)}

    def _is_asked_for(self, path: str, top_hits: str) -> bool:
        """Return whether `top_hits` of this name request a field."""
        asked = [one.get(part) for name, one in self._top_hits if name == top_hits for part in _VALUES]
        return any(fnmatchcase(path, pattern) for given in asked for pattern in names_of(given))

    @cached_property
    def _top_hits(self) -> list[tuple[str, Mapping[str, Any]]]:
        """The name of each `top_hits`, and its definition."""
        given = named_values([self.body.get("aggs"), self.body.get("aggregations")])
        tops = [(name, one.get("top_hits")) for name, one in given if isinstance(one, Mapping)]
        return [(name, top) for name, top in tops if isinstance(top, Mapping)]


def _top_hits_in(aggregations: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the hits of each `top_hits` in an answer. It does not look into documents."""
    left = [aggregations]
    while left:
        node = left.pop()
        if isinstance(node, list):
            left.extend(node)
        elif isinstance(node, dict):
            for name, inner in node.items():
                if _are_hits(inner):
                    yield name, inner
                else:
                    left.append(inner)


def _are_hits(node: Any) -> bool:
    """Return whether a part of an answer is that of `top_hits`, rather than of aggregations of which one is "hits"."""
    return isinstance(node, dict) and isinstance(node.get("hits"), dict) and isinstance(node["hits"].get("hits"), list)


def is_named(pattern: str, field: SketchField) -> bool:
    """Return whether a pattern names a field of ours, rather than matching everything."""
    return pattern in (field.name, f"{field.name}*", field.keys) or pattern.startswith(f"{field.name}.")


def _without_values(source: Any, field: SketchField) -> Any:
    """Return a `_source` that excludes the values. An invalid one is unchanged, so that the engine refuses it."""
    if source is True:
        return {"excludes": [field.sketch]}
    if isinstance(source, str):
        return {"includes": [source], "excludes": [field.sketch]}
    if isinstance(source, list | tuple):
        return {"includes": list(source), "excludes": [field.sketch]}
    if not isinstance(source, Mapping):
        return source
    name = "exclude" if "exclude" in source else "excludes"
    given = source.get(name, [])
    if isinstance(given, str):
        given = [given]
    return {**source, name: [*given, field.sketch]} if isinstance(given, list | tuple) else source


def _is_named_by(source: Any, field: SketchField) -> bool:
    """Return whether a `_source` requests the sketch."""
    if source is None or isinstance(source, bool):
        return False
    if isinstance(source, Mapping):
        source = source.get("includes", source.get("include"))
    wanted = [source] if isinstance(source, str) else source if isinstance(source, list | tuple) else []
    return any(is_named(str(one), field) for one in wanted)
