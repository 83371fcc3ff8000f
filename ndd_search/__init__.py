"""Search results without near-duplicates: sketches in the index, collapsed on the client."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ndd_search.collapse_options import CollapseOptions
from ndd_search.errors import NDDError
from ndd_search.recipe import Recipe

if TYPE_CHECKING:
    from ndd_search.clients.explain import explain
    from ndd_search.clients.pages import pages
    from ndd_search.clients.wrap import unwrap, wrap
    from ndd_search.corpus.collection import Corpus
    from ndd_search.corpus.columns import mark_duplicates
    from ndd_search.embedded.index import Index
    from ndd_search.indexing.candidates import find_duplicates
    from ndd_search.indexing.ingest import with_sketches
    from ndd_search.indexing.mapping import mapping_properties
    from ndd_search.integrations.passages import passages
    from ndd_search.items.fields import Category, Date, Exact, Name, Number, Place, Text, Url
    from ndd_search.items.schema import Items
    from ndd_search.matching.groups import leaders
    from ndd_search.middleware.scope import options
    from ndd_search.paging.collapse import collapse
    from ndd_search.plugins.opentelemetry_spans import OpenTelemetrySpans
    from ndd_search.plugins.prometheus_metrics import PrometheusMetrics
    from ndd_search.plugins.redis_cache import RedisCache
    from ndd_search.plugins.redis_seen_memory import RedisSeenMemory
    from ndd_search.plugins.search_log import SearchLog
    from ndd_search.plugins.seen_memory import SeenMemory
    from ndd_search.presets import preset
    from ndd_search.rest.merge import merge
    from ndd_search.sketching.estimates import resemblance
    from ndd_search.sketching.sketches import sketch, sketch_many

# Imported on first use: importing numpy takes time, some rooms need an extra, and no program needs all of them.
_LATER = {
    "Category": "items.fields",
    "Corpus": "corpus.collection",
    "Date": "items.fields",
    "Exact": "items.fields",
    "Index": "embedded.index",
    "Items": "items.schema",
    "Name": "items.fields",
    "Number": "items.fields",
    "OpenTelemetrySpans": "plugins.opentelemetry_spans",
    "Place": "items.fields",
    "PrometheusMetrics": "plugins.prometheus_metrics",
    "RedisCache": "plugins.redis_cache",
    "RedisSeenMemory": "plugins.redis_seen_memory",
    "SearchLog": "plugins.search_log",
    "SeenMemory": "plugins.seen_memory",
    "Text": "items.fields",
    "Url": "items.fields",
    "collapse": "paging.collapse",
    "explain": "clients.explain",
    "find_duplicates": "indexing.candidates",
    "leaders": "matching.groups",
    "mapping_properties": "indexing.mapping",
    "mark_duplicates": "corpus.columns",
    "merge": "rest.merge",
    "options": "middleware.scope",
    "pages": "clients.pages",
    "passages": "integrations.passages",
    "preset": "presets",
    "resemblance": "sketching.estimates",
    "sketch": "sketching.sketches",
    "sketch_many": "sketching.sketches",
    "unwrap": "clients.wrap",
    "with_sketches": "indexing.ingest",
    "wrap": "clients.wrap",
}

__all__ = [
    "Category",
    "CollapseOptions",
    "Corpus",
    "Date",
    "Exact",
    "Index",
    "Items",
    "NDDError",
    "Name",
    "Number",
    "OpenTelemetrySpans",
    "Place",
    "PrometheusMetrics",
    "Recipe",
    "RedisCache",
    "RedisSeenMemory",
    "SearchLog",
    "SeenMemory",
    "Text",
    "Url",
    "collapse",
    "explain",
    "find_duplicates",
    "leaders",
    "mapping_properties",
    "mark_duplicates",
    "merge",
    "options",
    "pages",
    "passages",
    "preset",
    "resemblance",
    "sketch",
    "sketch_many",
    "unwrap",
    "with_sketches",
    "wrap",
]


if not TYPE_CHECKING:  # otherwise a type checker would accept any name

    def __getattr__(name: str) -> Any:
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
