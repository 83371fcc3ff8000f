"""Show how similar two texts are: resemblance and containment, estimated from sketches and from all shingles.

examples:
  ndd-search corpus compare old.txt new.txt
  ndd-search corpus compare - other.txt --recipe c5-k128-v4 < one.txt
  ndd-search corpus compare 4711 4712 --in news.idx

With --in, A and B are ids of documents of an index folder. They are then compared as in a search there, with the
document frequencies of the index. The exit code is 0 for near-duplicates and 1 for others.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ndd_search.cli import DONE, NO
from ndd_search.cli.output import (
    add_shared,
    console,
    print_json,
    say,
    shorten,
    stored_options,
    table,
)
from ndd_search.cli.search import open_index
from ndd_search.core.document_fields import text_of
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.matching.similarity_measures import estimate
from ndd_search.core.paging.collapse import collapse
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.estimate_similarity import estimate_containment
from ndd_search.core.sketching.sketches import sketch_many
from ndd_search.core.text.shingles import shingle_texts
from ndd_search.errors import InvalidDocument
from ndd_search.sources.text_files import read_text

if TYPE_CHECKING:
    from ndd_search.embedded.index import Index

_MOST_SHARED = 10  # shingles that are listed


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "a", metavar="A", help='a text in UTF-8, or .html, read without its markup; "-" for standard input'
    )
    parser.add_argument("b", metavar="B", help="the other text")
    parser.add_argument("--in", type=Path, dest="folder", metavar="FOLDER", help="the index of documents A and B")
    add_shared(parser, "--min-similarity", "--preset", "--recipe", "--json")


def run(arguments: argparse.Namespace) -> int:
    options, recipe = stored_options(arguments)
    frequency_table: FrequencyTable | None = None
    hits: Sequence[Any]
    if arguments.folder:
        with open_index(arguments.folder, recipe=arguments.recipe) as index:
            recipe, frequency_table, fields = index.recipe, index.frequency_table, index.meta.text
            hits = _stored(index, arguments.a, arguments.b)
        texts = [text_of(hit, fields) or "" for hit in hits]
    elif arguments.a == arguments.b == "-":
        raise ValueError("standard input can be read only once: name a file for one of the two texts")
    else:
        hits = texts = [read_text(name, sys.stdin) for name in (arguments.a, arguments.b)]
        fields = ()
    if arguments.min_similarity is not None:
        options = replace(options, min_similarity=arguments.min_similarity)
    sketches = sketch_many(texts, recipe)
    page = collapse(
        hits, text=fields, sketches=sketches, recipe=recipe, frequency_table=frequency_table or False, options=options
    )
    verdict = page.explain(1)
    facts = {"recipe": recipe.id, "near_duplicates": verdict.leader == 0, "rule": verdict.rule}
    facts |= _figures(texts, recipe)
    if arguments.json:
        print_json(facts)
    else:
        _show(facts)
    return DONE if facts["near_duplicates"] else NO


def _stored(index: Index, *ids: str) -> list[dict[str, Any]]:
    """Return documents by their ids. Raises InvalidDocument naming the first missing one."""
    documents = [(id, index.get(id)) for id in ids]
    if lacking := [id for id, document in documents if document is None]:
        raise InvalidDocument(index.path, f"there is no document {lacking[0]!r}", "give ids as a search shows them")
    return [document for _, document in documents if document is not None]


def _figures(texts: Sequence[str], recipe: Recipe) -> dict[str, Any]:
    """Compare two texts by their sketches and by all their shingles."""
    a, b = sketch_many(texts, recipe)
    alike = estimate(a, b, recipe)
    first, second = (dict.fromkeys(shingle_texts(text, recipe)) for text in texts)
    shared = [shingle for shingle in first if shingle in second]
    union, smaller = len(first) + len(second) - len(shared), min(len(first), len(second))
    return {
        "measure": recipe.measure,
        "similarity": alike.value,
        "standard_error": alike.standard_error,
        "exact_resemblance": len(shared) / union if union else 0.0,
        "containment": estimate_containment(a, b, recipe.k).value if recipe.measure == "kmv" else None,
        "exact_containment": len(shared) / smaller if smaller else 0.0,
        "shingles": [len(first), len(second)],
        "shared": len(shared),
        "shared_shingles": shared[:_MOST_SHARED],
    }


def _show(facts: dict[str, Any]) -> None:
    figures = table("", ">from the sketches", ">from all shingles")
    similarity = f"{facts['similarity']:.3f} ± {facts['standard_error']:.3f}"
    if facts["measure"] == "kmv":
        figures.add_row("resemblance", similarity, f"{facts['exact_resemblance']:.3f}")
        figures.add_row("containment", f"{facts['containment']:.3f}", f"{facts['exact_containment']:.3f}")
    else:
        figures.add_row(facts["measure"], similarity, "")
        figures.add_row("resemblance", "", f"{facts['exact_resemblance']:.3f}")
    console().print(figures)
    verdict = "near-duplicates" if facts["near_duplicates"] else "no near-duplicates"
    sizes = " and ".join(map(str, facts["shingles"]))
    say(f"{verdict}: {facts['rule']}\n{facts['shared']} shingles ({facts['recipe']}) shared, of {sizes}")
    for shingle in facts["shared_shingles"]:
        print(f"  {shorten(shingle)}")
