"""From shingle hashes to sketches, and estimates from two sketches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ndd_search.lazy_names import later

if TYPE_CHECKING:
    from ndd_search.core.sketching.estimate_similarity import (
        containment,
        estimate_containment,
        estimate_resemblance,
        resemblance,
    )
    from ndd_search.core.sketching.sketches import sketch_many

_LATER = {
    "containment": "estimate_similarity",
    "estimate_containment": "estimate_similarity",
    "estimate_resemblance": "estimate_similarity",
    "resemblance": "estimate_similarity",
    "sketch_many": "sketches",
}

__all__ = ["containment", "estimate_containment", "estimate_resemblance", "resemblance", "sketch_many"]

if not TYPE_CHECKING:  # otherwise a type checker would accept any name
    __getattr__ = later(__name__, _LATER)
