"""Search results without near-duplicates: sketches in the index, collapsed on the client."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ndd_search.config import CollapseOptions, Recipe
from ndd_search.errors import InvalidDocument, InvalidSketch, MissingExtra, NDDError, RecipeMismatch

if TYPE_CHECKING:
    from ndd_search.engines.embedded import Index
    from ndd_search.engines.hook import options
    from ndd_search.engines.merge import merge
    from ndd_search.engines.wrap import unwrap, wrap
    from ndd_search.groups import leaders
    from ndd_search.indexing.backfill import Backfill
    from ndd_search.indexing.candidates import CandidateSearch, find_duplicates
    from ndd_search.indexing.duplicate_policy import DuplicatePolicy
    from ndd_search.indexing.ingest import sketch_fields, with_sketches
    from ndd_search.page import Page
    from ndd_search.presets import Preset, preset
    from ndd_search.ranked_list import collapse
    from ndd_search.similarity import containment, estimate_containment, estimate_resemblance, resemblance
    from ndd_search.sketches import Sketches, sketch, sketch_many

# Imported when first used: no program wants all of them, numpy takes its time, and some need an extra.
_LATER = {
    "Backfill": "indexing.backfill",
    "CandidateSearch": "indexing.candidates",
    "DuplicatePolicy": "indexing.duplicate_policy",
    "Index": "engines.embedded",
    "Page": "page",
    "Preset": "presets",
    "Sketches": "sketches",
    "collapse": "ranked_list",
    "containment": "similarity",
    "estimate_containment": "similarity",
    "estimate_resemblance": "similarity",
    "find_duplicates": "indexing.candidates",
    "leaders": "groups",
    "merge": "engines.merge",
    "options": "engines.hook",
    "preset": "presets",
    "resemblance": "similarity",
    "sketch": "sketches",
    "sketch_fields": "indexing.ingest",
    "sketch_many": "sketches",
    "unwrap": "engines.wrap",
    "with_sketches": "indexing.ingest",
    "wrap": "engines.wrap",
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
