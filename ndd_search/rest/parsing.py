"""Parses an answer without the sketches of its hits, which the native core decodes and cuts out of the text before.

The doc values of a sketch make up most of the text of a hit, and of the time to parse it. The sketches of a response
are cut out if the core understands all of them, else they stay in its hits. Without the core all sketches do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ndd_search import native
from ndd_search.rest.answers import MALFORMED, CutSketches
from ndd_search.sketching.field import StoredSketches, sketches_from


def parsed(text: Any, parse: Callable[[Any], Any], stored: StoredSketches) -> tuple[Any, CutSketches]:
    """Return a parsed answer, and the sketches that were cut out of it.

    text: anything but str and bytes is parsed as it is.
    """
    core = native.core if isinstance(text, str | bytes) else None
    if core is not None and (found := core.cut_sketches(text, stored.names, stored.recipe.k)):
        body, sketches = parse(found[0]), [None if read is None else sketches_from(read) for read in found[1]]
        if _fit(sketches, body):
            return body, sketches
    return parse(text), ()


def _fit(sketches: CutSketches, body: Any) -> bool:
    """Return whether each hit has an entry: a parser of the caller's own may return something else."""
    try:
        responses = body.get("responses", [body])
        counts = [None if one is None else len(one) for one in sketches]
        found = [
            None if count is None else len(one["hits"]["hits"]) for count, one in zip(counts, responses, strict=True)
        ]
    except MALFORMED:
        return False
    return found == counts
