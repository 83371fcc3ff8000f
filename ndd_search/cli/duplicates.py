"""Find the near-duplicates of one document, text or record in an index; ndd-search corpus finds those of all documents.

examples:
  ndd-search duplicates http://localhost:9200 news --of 4711
  ndd-search duplicates http://localhost:9200 news --text article.txt --min-similarity 0.7
  ndd-search duplicates http://localhost:9200 places --items places.toml --of 4711
  ndd-search duplicates http://localhost:9200 places --items places.toml --record '{"name": "St. Finbarr"}'

--of and --text need the keys that with_sketches and ndd-search backfill store.

With --items, a schema that ndd-search items learn has written, documents are found that are one thing with a record:
by the fields of the documents, without sketches or keys. --min-similarity is then a probability, by default that of the
schema. The 100 documents are compared that agree most with the record.
The exit code is 1 if nothing is found, and 3 if not all documents were compared.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

import ndd_search
from ndd_search.cli import DONE, NO, PARTLY
from ndd_search.cli.cluster import add_cluster, connected
from ndd_search.cli.output import add_shared, console, number, print_json, table, warn
from ndd_search.core.paging.records_of_one_thing import MOST_EXAMINED, Candidate
from ndd_search.core.sketching.sketches import Sketch, sketch
from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.core.text.printable import safe
from ndd_search.errors import IndexUnusable
from ndd_search.indexing.duplicates_in_index import NOT_ALL_COMPARED, CandidateSearch, resembling, stored_recipe
from ndd_search.indexing.resolve_indexes import look_up
from ndd_search.sources.text_files import read_record, read_text

_COMPARED = 100  # documents compared with a record
Pairs = Iterator[tuple[str, Candidate]]


def configure(parser: argparse.ArgumentParser) -> None:
    add_cluster(parser)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--of", metavar="ID", help="find the duplicates of the document with this _id")
    what.add_argument(
        "--text",
        metavar="FILE",
        help='find the duplicates of a text: a file in UTF-8, or .html, read without markup; "-" for standard input',
    )
    what.add_argument("--record", metavar="RECORD", help="with --items: a JSON object, or a .json file with one")
    parser.add_argument("--items", metavar="FILE", help="compare the fields of documents, by this schema")
    parser.add_argument("--min-similarity", type=number(float, 0, 1), help="the least similarity of a pair (0.5)")
    add_shared(parser, "--field")
    parser.add_argument(
        "--size", type=number(int, 1), default=20, help="number of results to show (20); --json prints all"
    )
    add_shared(parser, "--recipe", "--json")


def run(arguments: argparse.Namespace) -> int:
    if arguments.items or arguments.record:
        with connected(arguments, arguments.url) as client:
            found = _of_record(client, arguments)
        return _json(found) if arguments.json else _table(found, arguments.size)
    with connected(arguments, arguments.url) as client:
        look_up(client, arguments.index)  # raises if there is no such index
        search = CandidateSearch(
            recipe=stored_recipe(client, arguments.index, arguments.field, arguments.recipe),
            field=arguments.field,
            min_similarity=0.5 if arguments.min_similarity is None else arguments.min_similarity,
        )
        pairs, missing = _of_one(client, arguments, search)
    code = _json(pairs) if arguments.json else _table(pairs, arguments.size)
    if missing:
        warn(missing)
    return PARTLY if missing else code


def _of_one(client: Any, arguments: argparse.Namespace, search: CandidateSearch) -> tuple[Pairs, str]:
    """Find the duplicates of one document or text; also return a warning if not all candidates were compared."""
    if arguments.text is not None:
        wanted, where = sketch(read_text(arguments.text, sys.stdin), search.recipe), ""
    else:
        wanted, where = _stored(client, arguments.index, arguments.of, search)
    # Two more than are shown: the document itself, and one that tells whether there are more.
    size = None if arguments.json else min(arguments.size + 2, MOST_EXAMINED)
    found, to_the_end = resembling(client, arguments.index, wanted, search, size)
    others = [one for one in found if (one.id, one.index) != (arguments.of, where)]
    enough = to_the_end or (not arguments.json and len(others) > arguments.size)
    return ((arguments.of or arguments.text, one) for one in others), "" if enough else NOT_ALL_COMPARED


def _of_record(client: Any, arguments: argparse.Namespace) -> Pairs:
    """Find the documents that are one thing with a record or a document."""
    if not arguments.items or arguments.text is not None:
        raise ValueError("--items goes with --of or --record, and --record with --items")
    items, identity, where = ndd_search.items.Items.read(arguments.items), arguments.of, ""
    if arguments.record:
        record = read_record(arguments.record)
    else:
        record, where = _document(client, arguments.index, identity)
    bar = "auto" if arguments.min_similarity is None else arguments.min_similarity
    size = _COMPARED if arguments.json else min(arguments.size + 2, MOST_EXAMINED)
    found = ndd_search.find_duplicates(client, arguments.index, record, items=items, size=size, min_similarity=bar)
    return ((identity or "record", one) for one in found if (one.id, one.index) != (identity, where))


def _document(client: Any, index: str, identity: str) -> tuple[dict[str, Any], str]:
    """Return the source of a document, and the name of its index."""
    hit = _hit(client, index, identity)
    if "_source" not in hit:
        raise IndexUnusable(index, f"it stores no source of document {identity}", "give its fields with --record")
    return dict(hit["_source"]), str(hit["_index"])


def _stored(client: Any, index: str, identity: str, search: CandidateSearch) -> tuple[Sketch, str]:
    """Return the sketch of a document, and the name of its index."""
    where = SketchField(search.field)
    hit = _hit(client, index, identity, _source=False, docvalue_fields=where.read, sort=["_doc"])
    (sketch,) = where.decode([hit.get("fields", {})], search.recipe)
    if isinstance(sketch, str):
        what = f"document {identity} has no sketch of recipe {search.recipe.id} ({sketch})"
        raise IndexUnusable(index, what, "run ndd-search backfill, or name the stored recipe: --recipe ID")
    return sketch, str(hit["_index"])


def _hit(client: Any, index: str, identity: str, **body: Any) -> Any:
    hits = client.search(index=index, body={"query": {"ids": {"values": [identity]}}, **body})["hits"]["hits"]
    if not hits:
        raise IndexUnusable(index, f"it has no document {identity}", "give the _id of a document")
    return hits[0]


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
        print("there are more: --size shows more, --json shows all")
    return DONE
