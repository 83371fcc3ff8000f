"""Search results without near-duplicates: sketches in the index, collapsed on the client."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ndd_search.collapse_options import CollapseOptions
from ndd_search.errors import InvalidDocument, InvalidSketch, MissingExtra, NDDError, RecipeMismatch
from ndd_search.recipe import Recipe

if TYPE_CHECKING:
    from ndd_search.clients.wrap import unwrap, wrap
    from ndd_search.embedded.index import Index
    from ndd_search.indexing.backfill import Backfill
    from ndd_search.indexing.candidates import CandidateSearch, find_duplicates
    from ndd_search.indexing.duplicate_policy import DuplicatePolicy
    from ndd_search.indexing.ingest import sketch_fields, with_sketches
    from ndd_search.matching.groups import leaders
    from ndd_search.middleware.scope import options
    from ndd_search.paging.collapse import collapse
    from ndd_search.paging.page import Page
    from ndd_search.presets import Preset, preset
    from ndd_search.rest.merge import merge
    from ndd_search.sketching.estimates import containment, estimate_containment, estimate_resemblance, resemblance
    from ndd_search.sketching.sketches import Sketches, sketch, sketch_many

# Imported when first used: no program wants all of them, numpy takes its time, and some need an extra.
_LATER = {
    "Backfill": "indexing.backfill",
    "CandidateSearch": "indexing.candidates",
    "DuplicatePolicy": "indexing.duplicate_policy",
    "Index": "embedded.index",
    "Page": "paging.page",
    "Preset": "presets",
    "Sketches": "sketching.sketches",
    "collapse": "paging.collapse",
    "containment": "sketching.estimates",
    "estimate_containment": "sketching.estimates",
    "estimate_resemblance": "sketching.estimates",
    "find_duplicates": "indexing.candidates",
    "leaders": "matching.groups",
    "merge": "rest.merge",
    "options": "middleware.scope",
    "preset": "presets",
    "resemblance": "sketching.estimates",
    "sketch": "sketching.sketches",
    "sketch_fields": "indexing.ingest",
    "sketch_many": "sketching.sketches",
    "unwrap": "clients.wrap",
    "with_sketches": "indexing.ingest",
    "wrap": "clients.wrap",
}

__all__ = [
    "Backfill",
    "CandidateSearch",
    "CollapseOptions",
    "DuplicatePolicy",
    "Index",
    "InvalidDocument",
    "InvalidSketch",
    "MissingExtra",
    "NDDError",
    "Page",
    "Preset",
    "Recipe",
    "RecipeMismatch",
    "Sketches",
    "collapse",
    "containment",
    "estimate_containment",
    "estimate_resemblance",
    "find_duplicates",
    "leaders",
    "merge",
    "options",
    "preset",
    "resemblance",
    "sketch",
    "sketch_fields",
    "sketch_many",
    "unwrap",
    "with_sketches",
    "wrap",
]


if not TYPE_CHECKING:  # else a checker believes that every name is there

    def __getattr__(name: str) -> Any:
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = found = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
