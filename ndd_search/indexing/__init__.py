"""Sketches on a server: ingest, backfill, templates, search of a whole index for duplicates, doctor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ndd_search.lazy_names import later

if TYPE_CHECKING:
    from ndd_search.indexing.duplicates_in_index import find_duplicates
    from ndd_search.search.rest.mapping import mapping_properties

_LATER = {
    "find_duplicates": "duplicates_in_index",
    "mapping_properties": ".search.rest.mapping",  # of the package around this one
}

__all__ = ["find_duplicates", "mapping_properties"]

if not TYPE_CHECKING:  # otherwise a type checker would accept any name
    __getattr__ = later(__name__, _LATER)
