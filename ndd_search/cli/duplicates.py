"""Find near-duplicates in a whole index: of one document, of a text, or all pairs there are.

examples:
  ndd-search duplicates http://localhost:9200 news --of 4711
  ndd-search duplicates http://localhost:9200 news --text article.txt --min-similarity 0.7
  ndd-search duplicates http://localhost:9200 news --json > pairs.jsonl

The documents need keys: with_sketches(..., keys=8), or ndd-search backfill ... --keys 8.
The exit code is 1 when nothing is found.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Generator
from contextlib import closing
from dataclasses import replace
from itertools import islice
from typing import Any

from ndd_search.cli import DONE, NO
from ndd_search.cli.cluster import add_cluster, connected
from ndd_search.cli.output import add_json, add_recipe, console, print_json, table, warn
from ndd_search.cli.sources import read_text
from ndd_search.config import Recipe
from ndd_search.errors import IndexUnusable
from ndd_search.field import SketchField
from ndd_search.indexing.candidates import Candidate, CandidateSearch, all_duplicates, resembling
from ndd_search.indexing.indexes import look_up
from ndd_search.sketches import Sketch, sketch
from ndd_search.tuning.marked import safe

Pairs = Generator[tuple[str, Candidate], None, None]


def configure(parser: argparse.ArgumentParser) -> None:
    add_cluster(parser)
    parser.add_argument("index", metavar="INDEX", help="an index, alias, data stream or pattern")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--of", metavar="ID", help="of this document")
    what.add_argument(
        "--text", metavar="FILE", help='of this text in UTF-8, .html without its markup, "-" for standard input'
    )
    parser.add_argument("--min-similarity", type=float, default=0.5, help="the bar (0.5)")
    parser.add_argument("--keys", type=int, default=8, help="keys to ask for, at most as many as are stored (8)")
    parser.add_argument("--field", default="ndd", help="the object that holds the sketch (ndd)")
    parser.add_argument("--size", type=int, default=20, help="how many to show (20); with --json all are")
    add_recipe(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.size < 1:
        raise ValueError(f"--size must be at least 1, got {arguments.size}")
    search = CandidateSearch(
        recipe=arguments.recipe or Recipe(),
        field=arguments.field,
        keys=arguments.keys,
        min_similarity=arguments.min_similarity,
    )
    with connected(arguments, arguments.url) as client:
        _check_keys(client, arguments.index, search)
        # Closed before the client is: it keeps a view of the index open on the server.
        with closing(_found(client, arguments, search)) as found:
            return _json(found) if arguments.json else _table(found, arguments.size)


def _found(client: Any, arguments: argparse.Namespace, search: CandidateSearch) -> Pairs:
    if arguments.text is None and arguments.of is None:
        yield from all_duplicates(client, arguments.index, search)
        return
    if arguments.text is not None:
        wanted, where = sketch(read_text(arguments.text, sys.stdin), search.recipe), ""
    else:
        wanted, where = _stored(client, arguments.index, arguments.of, search)
    # One more than are shown, to know whether there are more, and the document itself.
    search = replace(search, examined=max(search.examined, min(arguments.size + 2, 10_000)))
    found, to_the_end = resembling(client, arguments.index, wanted, search)
    for one in found:
        if (one.id, one.index) != (arguments.of, where):
            yield arguments.of or arguments.text, one
    if not to_the_end:
        compared = f"only the {search.examined:,} documents were compared that share most keys with it"
        warn(f"{compared}: there may be more, and a larger --size compares as many")


def _check_keys(client: Any, index: str, search: CandidateSearch) -> None:
    keys = SketchField(search.field).keys
    if not any(keys in facts.mapping.get("properties", {}) for facts in look_up(client, index)):
        remedy = f"store them: ndd-search backfill ... --keys {search.keys}"
        raise IndexUnusable(index, f"it has no keys ({keys}) to look up", remedy)


def _stored(client: Any, index: str, identity: str, search: CandidateSearch) -> tuple[Sketch, str]:
    """The sketch of a document, and which index it is in, where there are several."""
    where = SketchField(search.field)
    body = {
        "query": {"ids": {"values": [identity]}},
        "_source": False,
        "docvalue_fields": [where.sketch, where.recipe],
        "sort": ["_doc"],
    }
    hits = client.search(index=index, body=body)["hits"]["hits"]
    if not hits:
        raise IndexUnusable(index, f"it has no document {identity}", "give the _id of a document")
    (sketch,) = where.decode([hits[0].get("fields", {})], search.recipe)
    if isinstance(sketch, str):
        what = f"document {identity} has no sketch of recipe {search.recipe.id} ({sketch})"
        raise IndexUnusable(index, what, "run ndd-search backfill, or say which recipe: --recipe ID")
    return sketch, str(hits[0]["_index"])


def _json(found: Pairs) -> int:
    any_found = False
    for of, one in found:
        any_found = True
        print_json({"of": of, "id": one.id, "index": one.index, "similarity": round(one.similarity, 4)})
    return DONE if any_found else NO


def _table(found: Pairs, size: int) -> int:
    shown = table("document", "resembles", "in", ">similarity")
    for of, one in islice(found, size):
        shown.add_row(safe(of), safe(one.id), one.index, f"{one.similarity:.3f}")
    if not shown.row_count:
        print("nothing found")
        return NO
    console().print(shown)
    if next(found, None):
        print("there are more: --size shows them, --json all")
    return DONE
