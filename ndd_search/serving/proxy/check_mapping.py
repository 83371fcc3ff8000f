"""Compares the rules for documents that are written with the mappings of their indexes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any
from urllib.parse import quote

from ndd_search.core.document_fields import splits, text_of
from ndd_search.search.index_rules import IndexRules
from ndd_search.search.rest.mapping import Finding, Level, check_mapping, is_mapped
from ndd_search.search.rest.read_answer import reason_of
from ndd_search.search.rest.read_request import Request
from ndd_search.search.writing.sketch_or_mark_stale import Sketcher
from ndd_search.search.writing.sketch_written_requests import SketchedWrites
from ndd_search.serving.proxy.http_exchange import Header
from ndd_search.serving.proxy.upstream import Upstream, sent

_SECONDS = 30.0  # for one request
_LOOKED_AT = 100  # documents that are checked for fields that are not mapped


async def compared_rules(writes: SketchedWrites, upstream: Upstream, headers: Sequence[Header]) -> list[Finding]:
    """Return what is wrong with the fields of the rules and the mappings of their indexes.

    headers: credentials that may read mappings. Raises Unreachable if the engine does not answer.
    """
    given = {name.decode(): value.decode("latin-1") for name, value in headers}
    return [found for rule in writes.rules for found in await _check_rule(*rule, writes.indexes, upstream, given)]


async def _check_rule(
    pattern: str, sketcher: Sketcher, rules: IndexRules, upstream: Upstream, headers: Mapping[str, str]
) -> list[Finding]:
    target = f"/{quote(pattern, safe='*')}?expand_wildcards=open,hidden&ignore_unavailable=true"
    answer = await sent(upstream, headers, Request("GET", target, {}, {}, None, _SECONDS))
    status, body = answer.status, answer.body
    if status != 200:
        remedy = "give credentials that may read mappings: set NDD_SEARCH_API_KEY for --check"
        remedy = remedy if status in (401, 403) else ""
        return [Finding("error", pattern, f"its indexes cannot be compared ({status}: {reason_of(body)})", remedy)]
    if not body:
        return await _check_template(pattern, sketcher, upstream, headers)
    findings: list[Finding] = []
    for index, facts in body.items():
        if rules.pattern_of(index) in (pattern, None):  # None: an alias has another name than its index
            documents = await _some_documents(index, sketcher, upstream, headers)
            findings += _compared(index, facts.get("mappings", {}), sketcher, documents)
    return findings


async def _some_documents(index: str, sketcher: Sketcher, upstream: Upstream, headers: Mapping[str, str]) -> list[Any]:
    """Return what some documents of an index have in the fields of the rule, nothing if they cannot be read."""
    wanted = list(chain.from_iterable(sketcher.fields.values()))
    body = {"query": {"function_score": {"random_score": {}}}, "size": _LOOKED_AT, "_source": wanted}
    answer = await sent(upstream, headers, Request("POST", f"/{quote(index)}/_search", {}, {}, body, _SECONDS))
    return [hit.get("_source", {}) for hit in answer.hits] if answer.has_hits else []


async def _check_template(
    pattern: str, sketcher: Sketcher, upstream: Upstream, headers: Mapping[str, str]
) -> list[Finding]:
    """Compare with the mapping that the first index of a pattern will get from a template."""
    name = quote(pattern.replace("*", "x"), safe="")
    target = f"/_index_template/_simulate_index/{name}"
    answer = await sent(upstream, headers, Request("POST", target, {}, {}, None, _SECONDS))
    made = answer.body.get("template", {}) if answer.status == 200 and isinstance(answer.body, Mapping) else {}
    about = f"{pattern} (there is no index yet)"
    return list(_compared(about, made.get("mappings", {}), sketcher))


def _compared(
    index: str, mapping: Mapping[str, Any], sketcher: Sketcher, documents: Sequence[Any] = ()
) -> Iterator[Finding]:
    own = {name for field in sketcher.fields for name in (field, f"{field}_keys")}
    others = {name: kind for name, kind in mapping.get("properties", {}).items() if name not in own}
    for field, sources in sketcher.fields.items():
        for found in check_mapping(mapping, field):
            yield Finding(found.level, index, found.what, found.remedy)
        held = {source for source in sources if any(text_of(one, [source]) for one in documents)}
        unseen = {source for source in sources if documents and not is_mapped(mapping, source)} - held
        lacking = [source for source in sources if source in unseen or not _may_hold(mapping, source)]
        if others and lacking:  # else an index may get the fields of the rule with its first document
            level: Level = "error" if len(lacking) == len(sources) else "warning"
            what = f"it has no field {' or '.join(lacking)}, which its rule names; it has {', '.join(others)}"
            yield Finding(level, index, what, "correct the fields of the rule")


def _may_hold(mapping: Mapping[str, Any], path: str, dynamic: Any = True) -> bool:
    """Return whether documents may have a field: it is mapped, or stands where nothing is mapped by itself.

    dynamic: that of the object around this one.
    """
    if str(mapping.get("enabled", True)).lower() == "false" or mapping.get("type") in ("flattened", "flat_object"):
        return True
    properties, dynamic = mapping.get("properties", {}), mapping.get("dynamic", dynamic)
    inner = [(properties[head], rest) for head, rest in splits(path) if head in properties]
    if path in properties or path in mapping.get("runtime", {}):
        return True
    if inner:
        return any(_may_hold(one, rest, dynamic) for one, rest in inner)
    return str(dynamic).lower() == "false"
