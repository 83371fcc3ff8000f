"""What the files in index_templates/ hold."""

from __future__ import annotations

from typing import Any

from ndd_search.search.rest.mapping import component_template

_PRIORITY = 501  # above the 100 and 200 of the templates that Elasticsearch and Fleet install


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


def files() -> dict[str, dict[str, Any]]:
    """Return the content of the files of index_templates/, by name."""
    return {
        "component.json": component_template(),
        "example-index.json": index_template(),
        "example-data-stream.json": index_template(data_stream=True),
    }
