"""Search results without near-duplicates: sketches in the index, collapsed on the client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ndd_search.core.options import CollapseOptions
from ndd_search.core.recipe import Recipe
from ndd_search.lazy_names import later

if TYPE_CHECKING:
    from ndd_search import errors as errors
    from ndd_search import indexing as indexing
    from ndd_search import items as items
    from ndd_search import plugins as plugins
    from ndd_search.core.paging.collapse import collapse
    from ndd_search.core.paging.source import stream
    from ndd_search.core.sketching.sketches import sketch
    from ndd_search.corpus.collection import Corpus
    from ndd_search.embedded.index import Index
    from ndd_search.indexing.with_sketches import with_sketches
    from ndd_search.integrations.choose_passages import passages
    from ndd_search.search.clients.pages_and_explain import pages
    from ndd_search.search.clients.wrap import wrap
    from ndd_search.search.flow.client_settings import options
    from ndd_search.search.rest.info_and_copies import copies, info
    from ndd_search.search.rest.merge_clusters import merge
    from ndd_search.search.settings_file import preset

_LATER = {
    "Corpus": "corpus.collection",
    "Index": "embedded.index",
    "collapse": "core.paging.collapse",
    "copies": "search.rest.info_and_copies",
    "info": "search.rest.info_and_copies",
    "errors": "errors",
    "indexing": "indexing",
    "items": "items",
    "merge": "search.rest.merge_clusters",
    "options": "search.flow.client_settings",
    "pages": "search.clients.pages_and_explain",
    "passages": "integrations.choose_passages",
    "plugins": "plugins",
    "preset": "search.settings_file",
    "sketch": "core.sketching.sketches",
    "stream": "core.paging.source",
    "with_sketches": "indexing.with_sketches",
    "wrap": "search.clients.wrap",
}

__all__ = [
    "CollapseOptions",
    "Corpus",
    "Index",
    "Recipe",
    "collapse",
    "copies",
    "info",
    "merge",
    "options",
    "pages",
    "passages",
    "preset",
    "sketch",
    "stream",
    "with_sketches",
    "wrap",
]


if not TYPE_CHECKING:  # otherwise a type checker would accept any name
    __getattr__ = later(__name__, _LATER)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
