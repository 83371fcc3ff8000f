"""The template with the mapping of the stored fields; a test keeps the files in index_templates/ equal to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ndd_search.search.rest.mapping import VERSION, mapping_properties

Engine = Literal["elasticsearch", "opensearch"]
ENGINES: tuple[Engine, ...] = ("elasticsearch", "opensearch")


def component_template(field: str = "ndd") -> dict[str, Any]:
    """Return the component template; it takes effect in index templates that name it in `composed_of`."""
    return {
        "template": {"mappings": {"properties": mapping_properties(field)}},
        "version": VERSION,
        "_meta": {"managed_by": "ndd_search", "description": "Near-duplicate sketches of the documents"},
    }


def composed(template: Mapping[str, Any], component: str = "ndd") -> dict[str, Any]:
    """Return a user's index template with our component as the last of `composed_of`."""
    names = [name for name in template.get("composed_of", []) if name != component]
    # Elasticsearch 9 returns dates that it refuses in a request.
    kept = {key: value for key, value in template.items() if not key.startswith(("created_date", "modified_date"))}
    return {**kept, "composed_of": [*names, component]}
