"""Passages without near-duplicates out of any ranked list: what a retriever found, or what a reranker gave back.

    found = passages(reranked, size=10, max_tokens=4000, text="text", id="chunk_id", source="url")
    prompt = "\n\n".join(found.texts)
    found[0].provenance     # what the first passage stands for: ids, sources, similarity

Two passages are near-duplicates as they are for `ndd_search.collapse`. With `contained`, a passage that stands word for
word in a longer one is shown as a part of that one, at the better of their two places. With `merge`, overlapping
passages of one document become one passage. Every passage that is not shown is listed under the one that stands for it,
or in `left_out`, or comes after the last place that was asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ndd_search.integrations.options import Fields, PassageOptions, Where, count_words, passage_options
from ndd_search.integrations.results import Copy, Passage, Passages
from ndd_search.integrations.selection import select

__all__ = ["Copy", "Fields", "Passage", "PassageOptions", "Passages", "count_words", "passage_options", "passages"]


def passages(
    ranked: Iterable[Any],
    *,
    text: Where | None = None,
    id: Where = "id",
    source: Where = "source",
    document: Where = "document",
    start: Where = "start",
    stored: Where = "ndd",
    options: PassageOptions | None = None,
    **changes: Any,
) -> Passages:
    """Choose different passages out of a ranked list, and say what each of them stands for.

    ranked:  best first: texts, mappings, objects, or pairs (any of these, score) as rerankers give them.
    text, id, source, document, start, stored: where these are in a passage: a field, or a callable(passage). `document`
             names the document that the passage was cut from, `start` the position there, `stored` a stored sketch.
             text=None looks for text, content and page_content.
    options, changes: PassageOptions, or single options of it or of CollapseOptions by name (size=5, max_tokens=2000,
             min_similarity=0.8, keep=["newest:date"], merge=True).
    The passages given are not changed. A passage without text is shown on its own.
    Raises InvalidDocument when no passage at all has a text, ValueError or TypeError for a setting that cannot be.
    """
    if isinstance(ranked, str | bytes | Mapping):
        raise TypeError(f"passages are a list, got one {type(ranked).__name__}")
    found = Fields(text=text, id=id, source=source, document=document, start=start, stored=stored)
    return select(list(ranked), found, passage_options(options, **changes))
