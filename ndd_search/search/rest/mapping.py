"""The mapping of the stored fields, the template with it, and checks of existing mappings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

from ndd_search.core.sketching.stored_sketch import SketchField

Level = Literal["ok", "note", "warning", "error"]
VERSION = 3  # of the mapping below
_INSTALL = "run ndd-search backfill, or install the template"
_RENAME = "use another name (--field ndd_2) and run backfill; for new indexes install the template first"
_MARKS = {"group": "keyword", "group_size": "integer", "leads": "boolean"}  # as `corpus mark` maps them


@dataclass(frozen=True)
class Finding:
    """The result of one check of an index.

    level:  "error" if sketches or documents are lost or unusable. about: the subject of the check, in a word or two.
    what:   what was found. remedy: what to do, "" if nothing.
    """

    level: Level
    about: str
    what: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.what}; {self.remedy}" if self.remedy else self.what


def mapping_properties(field: str = "ndd", keys: bool = True) -> dict[str, Any]:
    """Return the mapping of the stored sketches, for "properties" of an index or a template.

    field: the object that holds the sketch. keys: also map the keys, by which whole groups and duplicates are found.
    """
    where = SketchField(field)
    stored: dict[str, Any] = {
        where.name: {
            "dynamic": False,  # other values that a pipeline writes into the object add no fields
            "properties": {
                "sketch": {"type": "integer", "index": False},  # doc values only: never searched, half the space
                "smallest": {"type": "integer", "index": False},  # sorted by for the sample of a total
                "numbers": {"type": "integer", "index": False},  # compared by the guard numbers
                "recipe": {"type": "keyword"},  # queried by backfill, counted by doctor
                "text": {"type": "keyword"},  # the names of the sketched fields; queried by backfill
                "group": {"type": "keyword"},  # for the collapse of the engine
            },
        }
    }
    if keys:
        stored[where.keys] = {"type": "keyword", "doc_values": False}  # queried, never read
    return stored


def component_template(field: str = "ndd") -> dict[str, Any]:
    """Return the component template; it takes effect in index templates that name it in `composed_of`."""
    return {
        "template": {"mappings": {"properties": mapping_properties(field)}},
        "version": VERSION,
        "_meta": {"managed_by": "ndd_search", "description": "Near-duplicate sketches of the documents"},
    }


def with_sketch_fields(template: Mapping[str, Any], field: str = "ndd") -> dict[str, Any]:
    """Return a user's index template with the mapping of sketches."""
    # Elasticsearch 9 returns dates that it refuses in a request.
    kept = {key: value for key, value in template.items() if not key.startswith(("created_date", "modified_date"))}
    inner = kept.get("template", {})
    mappings = inner.get("mappings", {})
    properties = {**mappings.get("properties", {}), **mapping_properties(field)}
    return {**kept, "template": {**inner, "mappings": {**mappings, "properties": properties}}}


def check_mapping(mapping: Mapping[str, Any], field: str = "ndd") -> Iterator[Finding]:
    """Yield the problems of a mapping, as under "mappings" of GET index, that concern sketches."""
    if str(mapping.get("enabled", True)).lower() == "false":
        what = "its mapping is switched off (enabled: false), so no search can read a sketch"
        yield Finding("error", "mapping", what, "reindex into an index whose mapping is switched on")
        return
    yield from _check_object(mapping, field)
    yield from _check_source(mapping, field)


def _check_object(mapping: Mapping[str, Any], field: str) -> Iterator[Finding]:
    where, fields, wanted = SketchField(field), mapping.get("properties", {}), mapping_properties(field)
    found = fields.get(field)
    if found is None:
        yield Finding("error", "mapping", f"there is no field {field}", _INSTALL)
        return
    if (kind := found.get("type", "object")) != "object" or "properties" not in found:
        what = f"{field} is a field of type {kind}, not an object with sketches"
        yield Finding("error", "mapping", what, "choose another name: --field")
        return
    given = {f"{field}.{name}": one for name, one in found["properties"].items()}
    ours = {f"{field}.{name}": one for name, one in wanted[field]["properties"].items()}
    for path in (where.sketch, where.recipe, where.smallest, where.numbers):
        yield from _check_field(path, ours[path], given.get(path), where)
    yield from _check_field(where.keys, wanted[where.keys], fields.get(where.keys), where)


def _check_field(
    path: str, wanted: Mapping[str, Any], found: Mapping[str, Any] | None, where: SketchField
) -> Iterator[Finding]:
    """Yield what is wrong with the mapping of one of our fields."""
    if found is None:
        if path in where.read:
            yield Finding("error", "mapping", f"{path} is not mapped", _INSTALL)
        elif path == where.keys:
            what = f'{path} is not mapped: no search finds duplicates, or copies beyond its window (members="all")'
            yield Finding("note", "mapping", what, "run ndd-search backfill, which maps and stores keys")
        return
    kind = found.get("type", "an object")
    if kind != wanted["type"] and (kind, wanted["type"]) != ("long", "integer"):
        what = f"{path} is {kind}, not {wanted['type']}{' (dynamic mapping makes it text)' if kind == 'text' else ''}"
        if path == where.recipe and kind == "text":
            what += ": searches read it from each document, and backfill cannot query it"
        yield Finding("warning" if path == where.numbers else "error", "mapping", what, _RENAME)
    elif wanted.get("doc_values", True) and found.get("doc_values") is False:
        yield Finding("error", "mapping", f"{path} has no doc values, so no search can read it", _RENAME)
    elif path == where.sketch and found.get("index") is not False:
        what = f"{path} is an indexed {kind} (dynamic mapping makes these): about twice the space"
        remedy = "install the template for new indexes; reindex this one if its space matters"
        yield Finding("warning", "mapping", what, remedy)


def _check_source(mapping: Mapping[str, Any], field: str) -> Iterator[Finding]:
    source = mapping.get("_source", {})
    excluded = source.get("excludes", [])
    if source.get("enabled") is False:
        remedy = "sketch documents before they are indexed: ndd.with_sketches"
        yield Finding("error", "_source", "_source is disabled, so backfill has no text to sketch", remedy)
    elif any(name in (field, f"{field}.*", f"{field}.sketch", f"{field}*") for name in excluded):
        what = f"_source excludes {field}: every partial update, update by query and reindex drops the sketch"
        yield Finding("warning", "_source", what, "never update documents, or run backfill after updates")
    if others := kept_out_of_source(mapping, field):
        what = f"_source excludes {', '.join(others)}: every update of a document loses them, and so would backfill"
        yield Finding(
            "warning", "_source", what, "use ndd.with_sketches, and index the documents again from their source"
        )


def faults_in(mapping: Mapping[str, Any], field: str = "ndd") -> list[str]:
    """Return what keeps searches from reading sketches where a mapping has our fields, or gets them."""
    ours, given = mapping_properties(field), mapping.get("properties", {})
    there = given.get(field, {})
    is_object = there.get("type", "object") == "object" and there.get("enabled", True) is True
    if is_object and not is_for_sketches(mapping, field):
        inner = {**ours[field]["properties"], **there.get("properties", {})}
        given = {**given, field: {**there, "properties": inner}}
    mapped = {**mapping, "properties": {**ours, **given}}
    return [str(finding) for finding in check_mapping(mapped, field) if finding.level == "error"]


def is_for_sketches(mapping: Mapping[str, Any], field: str) -> bool:
    """Whether a mapping has our fields. An object of this name may have none, or those of `corpus mark` alone."""
    return is_mapped(mapping, SketchField(field).recipe)


def holds_sketches(mapping: Mapping[str, Any], field: str) -> bool:
    """Whether a field is mapped as sketches are, by a template or by dynamic mapping, or as marks of groups are."""
    fields = mapping.get("properties", {}).get(field, {}).get("properties", {})
    kinds = {name: one.get("type") for name, one in fields.items()}
    is_sketch = kinds.get("sketch") in ("integer", "long") and kinds.get("recipe") in ("keyword", "text")
    return is_sketch or kinds.items() >= _MARKS.items()


def is_mapped(mapping: Mapping[str, Any], path: str) -> bool:
    """Whether a mapping has a field or an object of this name."""
    head, _, rest = path.partition(".")
    found = mapping.get("properties", {}).get(head)
    return found is not None and (not rest or is_mapped(found, rest))


def is_mapped_by_any(templates: Any, index: str, field: str) -> bool:
    """Whether a legacy template of an index, among these by name, has a field or an object of this name."""
    given = [one for one in templates.values() if isinstance(one, Mapping)] if isinstance(templates, Mapping) else []
    found = [one for one in given if any(fnmatchcase(index, name) for name in one.get("index_patterns", []))]
    return any(is_mapped(one.get("mappings", {}), field) for one in found)


def kept_out_of_source(mapping: Mapping[str, Any], field: str = "ndd") -> list[str]:
    """Return the fields that the mapping excludes from _source, except our own."""
    source = mapping.get("_source", {})
    included = [f"all but {', '.join(source['includes'])}"] if source.get("includes") else []
    ours = SketchField(field)
    mine = {field, f"{field}.*", *ours.paths, f"{field}*"}
    return [*included, *(name for name in source.get("excludes", []) if name not in mine)]
