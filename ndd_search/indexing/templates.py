"""What a search engine must know about the stored fields, and what is wrong with a mapping that knows otherwise.

The files in index_templates/ are these templates, written down; a test keeps both the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ndd_search.sketching.field import SketchField

Engine = Literal["elasticsearch", "opensearch"]
Level = Literal["ok", "note", "warning", "error"]
ENGINES: tuple[Engine, ...] = ("elasticsearch", "opensearch")
VERSION = 2  # of the mapping below
_PRIORITY = 501  # above the 100 and 200 of what Elasticsearch brings and Fleet installs


@dataclass(frozen=True)
class Finding:
    """One thing seen in an index. level: "error" when sketches or documents suffer. remedy: what to do, "" if nothing.

    about: what was looked at, in a word or two.
    """

    level: Level
    about: str
    what: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.what}; {self.remedy}" if self.remedy else self.what


def properties(field: str = "ndd", keys: bool = False) -> dict[str, Any]:
    """The mapping of what is stored under `field`, for "properties" of an index or a template.

    keys: whether near-duplicates are to be looked for in the whole index.
    """
    where = SketchField(field)
    stored: dict[str, Any] = {
        where.name: {
            "dynamic": False,  # whatever else a pipeline writes into the object makes no new fields
            "properties": {
                "sketch": {"type": "integer", "index": False},  # doc values only: half the space, nobody searches it
                "numbers": {"type": "integer", "index": False},  # compared by the guard numbers_must_match
                "recipe": {"type": "keyword"},  # searched by backfill, counted by doctor
                "duplicate_of": {"type": "keyword"},  # for collapse and filters of the engine's own
            },
        }
    }
    if keys:
        stored[where.keys] = {"type": "keyword", "doc_values": False}  # looked up, never read
    return stored


def component_template(field: str = "ndd", keys: bool = False) -> dict[str, Any]:
    """The component template to name in `composed_of` of an index template; alone it does nothing."""
    return {
        "template": {"mappings": {"properties": properties(field, keys)}},
        "version": VERSION,
        "_meta": {"managed_by": "ndd_search", "description": "Near-duplicate sketches of the documents"},
    }


def index_template(component: str = "ndd", data_stream: bool = False) -> dict[str, Any]:
    """An example of an index template that composes the component, complete with the fields of an article."""
    fields: dict[str, Any] = {"title": {"type": "text"}, "body": {"type": "text"}, "url": {"type": "keyword"}}
    if data_stream:
        fields = {"@timestamp": {"type": "date"}, **fields}
    return {
        "index_patterns": ["articles-stream*" if data_stream else "articles-*"],
        "priority": _PRIORITY + data_stream,
        **({"data_stream": {}} if data_stream else {}),
        "composed_of": [component],
        "template": {"mappings": {"dynamic": "strict", "properties": fields}},
        "_meta": {"managed_by": "you", "description": "An example: every article gets a sketch"},
    }


def composed(template: Mapping[str, Any], component: str = "ndd") -> dict[str, Any]:
    """A user's index template, as the engine returned it, with our component as the last it is composed of."""
    names = [name for name in template.get("composed_of", []) if name != component]
    # Elasticsearch 9 returns dates that it refuses to take back.
    kept = {key: value for key, value in template.items() if not key.startswith(("created_date", "modified_date"))}
    return {**kept, "composed_of": [*names, component]}


def files() -> dict[str, dict[str, Any]]:
    """The files of index_templates/, by name."""
    return {
        f"{engine}/{name}.json": content
        for engine in ENGINES
        for name, content in {
            "component": component_template(),
            "component-with-keys": component_template(keys=True),
            "example-index": index_template(),
            "example-data-stream": index_template(data_stream=True),
        }.items()
    }


def check_mapping(mapping: Mapping[str, Any], field: str = "ndd") -> Iterator[Finding]:
    """What is wrong with the mapping of an index ("mappings" of GET index), as far as sketches go."""
    yield from _check_object(mapping, field)
    yield from _check_source(mapping, field)


def _check_object(mapping: Mapping[str, Any], field: str) -> Iterator[Finding]:
    where, fields = SketchField(field), mapping.get("properties", {})
    found = fields.get(field)
    if found is None:
        yield Finding("error", "mapping", f"there is no field {field}", "run ndd-search backfill, or put the template")
        return
    if "properties" not in found:
        kind = found.get("type", "object")
        yield Finding(
            "error", "mapping", f"{field} is a field of type {kind}, not our object", "choose another name: --field"
        )
        return
    yield from _check_sketch(where, found["properties"].get("sketch"))
    recipe = found["properties"].get("recipe", {}).get("type")
    if recipe != "keyword":
        what = f"{where.recipe} is {recipe or 'not mapped'}, not keyword (dynamic mapping makes it text)"
        remedy = "put the template first next time; here use another name (--field ndd_2) and run backfill"
        yield Finding("error", "mapping", what, remedy)
    if (numbers := found["properties"].get("numbers")) and numbers.get("type") not in ("integer", "long"):
        what = f"{where.numbers} is {numbers.get('type')}, not integer: numbers_must_match cannot read it"
        yield Finding("warning", "mapping", what, "use another name (--field) and run backfill")
    if (keys := fields.get(where.keys)) and keys.get("type") != "keyword":
        yield Finding("error", "mapping", f"{where.keys} is {keys.get('type')}, not keyword", "reindex with keys")


def _check_sketch(where: SketchField, found: Mapping[str, Any] | None) -> Iterator[Finding]:
    new_index = "new indexes: put the template; this one: reindex into a new index when its space matters"
    if found is None:
        remedy = "run ndd-search backfill, or put the template"
        yield Finding("error", "mapping", f"{where.sketch} is not mapped", remedy)
    elif found.get("type") not in ("integer", "long"):
        remedy = "choose another name: --field"
        yield Finding("error", "mapping", f"{where.sketch} is {found.get('type')}, not integer", remedy)
    elif found.get("doc_values") is False:
        remedy = "use another name (--field) and run backfill"
        yield Finding("error", "mapping", f"{where.sketch} has no doc values, so no search can read it", remedy)
    elif found.get("index") is not False:
        what = f"{where.sketch} is an indexed {found['type']} (dynamic mapping makes these): about twice the space"
        yield Finding("warning", "mapping", what, new_index)
    elif found.get("type") == "long":
        yield Finding("note", "mapping", f"{where.sketch} is long where integer is enough; it costs no more")


def _check_source(mapping: Mapping[str, Any], field: str) -> Iterator[Finding]:
    source = mapping.get("_source", {})
    excluded = source.get("excludes", [])
    if source.get("enabled") is False:
        remedy = "sketch documents before they are indexed: ndd.with_sketches"
        yield Finding("error", "_source", "_source is disabled, so backfill has no text to sketch", remedy)
    elif any(name in (field, f"{field}.*", f"{field}.sketch", f"{field}*") for name in excluded):
        what = f"_source leaves out {field}: every partial update, update by query and reindex drops the sketch"
        yield Finding("warning", "_source", what, "only append, or run backfill after such updates")
    if others := kept_out_of_source(mapping, field):
        what = f"_source leaves out {', '.join(others)}: every update of a document loses them, and so would backfill"
        yield Finding(
            "warning", "_source", what, "use ndd.with_sketches, or reindex from where the documents come from"
        )


def holds_sketches(mapping: Mapping[str, Any], field: str) -> bool:
    """Whether a field is mapped as sketches are, by a template or by the engine itself."""
    fields = mapping.get("properties", {}).get(field, {}).get("properties", {})
    kinds = [fields.get(name, {}).get("type") for name in ("sketch", "recipe")]
    return kinds[0] in ("integer", "long") and kinds[1] in ("keyword", "text")


def is_mapped(mapping: Mapping[str, Any], path: str) -> bool:
    """Whether a mapping has a field, or an object, of this name."""
    head, _, rest = path.partition(".")
    found = mapping.get("properties", {}).get(head)
    return found is not None and (not rest or is_mapped(found, rest))


def kept_out_of_source(mapping: Mapping[str, Any], field: str = "ndd") -> list[str]:
    """What the mapping keeps out of _source, other than our own fields."""
    source = mapping.get("_source", {})
    included = [f"all but {', '.join(source['includes'])}"] if source.get("includes") else []
    ours = SketchField(field)
    mine = {field, f"{field}.*", ours.sketch, ours.recipe, ours.numbers, ours.duplicate_of, ours.keys, f"{field}*"}
    return [*included, *(name for name in source.get("excludes", []) if name not in mine)]
