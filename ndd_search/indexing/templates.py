"""Templates with the mapping of the stored fields.

The files in index_templates/ hold these templates; a test keeps them equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ndd_search.indexing.mapping import VERSION, mapping_properties

Engine = Literal["elasticsearch", "opensearch"]
ENGINES: tuple[Engine, ...] = ("elasticsearch", "opensearch")
_PRIORITY = 501  # above the 100 and 200 of the templates that Elasticsearch and Fleet install


def component_template(field: str = "ndd", keys: bool = False) -> dict[str, Any]:
    """Return the component template; it takes effect in index templates that name it in `composed_of`."""
    return {
        "template": {"mappings": {"properties": mapping_properties(field, keys)}},
        "version": VERSION,
        "_meta": {"managed_by": "ndd_search", "description": "Near-duplicate sketches of the documents"},
    }


def index_template(component: str = "ndd", data_stream: bool = False) -> dict[str, Any]:
    """Return an example of an index template that uses the component, with the fields of an article."""
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
    """Return a user's index template with our component as the last of `composed_of`."""
    names = [name for name in template.get("composed_of", []) if name != component]
    # Elasticsearch 9 returns dates that it refuses in a request.
    kept = {key: value for key, value in template.items() if not key.startswith(("created_date", "modified_date"))}
    return {**kept, "composed_of": [*names, component]}


def files() -> dict[str, dict[str, Any]]:
    """Return the content of the files of index_templates/, by name."""
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
