"""Say where documents are in the pages of a search, and why.

examples:
  ndd-search explain http://localhost:9200 news 4711 --query "climate summit"
  ndd-search explain http://localhost:9200 news 4711 4712 --body search.json
  ndd-search explain https://USER:PASSWORD@HOST news 4711 --query steel --min-similarity 0.8 --json

A document is on a page, hidden under another hit (with the figures of the comparison), not matched by the search, below
the examined hits, or not in the index. --body is the body of the search that your program sends, with its options in
"ndd"; --query searches all fields for words. Name the options of your client with --preset, or one by one.

The exit code is 1 if no document is on a page or listed there.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from ndd_search.cli import DONE, NO
from ndd_search.cli.cluster import add_cluster, connected
from ndd_search.cli.output import (
    add_set,
    add_shared,
    page_settings,
    preset_of,
    tell,
)
from ndd_search.search.clients.pages_and_explain import explain
from ndd_search.search.clients.wrap import wrap
from ndd_search.sources.text_files import read_text


def configure(parser: argparse.ArgumentParser) -> None:
    add_cluster(parser)
    parser.add_argument("ids", metavar="ID", nargs="+", help="the _id of a document")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--query", metavar="WORDS", help="words to search for, in all fields")
    what.add_argument("--body", metavar="FILE", help='a file with the body of a search as JSON; "-" for standard input')
    add_shared(parser, "--field", "--min-similarity", "--preset")
    add_set(parser)
    add_shared(parser, "--recipe", "--json")


def run(arguments: argparse.Namespace) -> int:
    with connected(arguments, arguments.url) as client:
        settings = {"recipe": arguments.recipe, "preset": preset_of(arguments), **page_settings(arguments)}
        wrapped = wrap(client, cache=False, indexes={"*": {"field": arguments.field}}, **settings)
        entries = explain(wrapped, arguments.ids, index=arguments.index, body=_body(arguments))
    for entry in entries:
        tell(arguments, entry, f"{entry['_id']}: {entry['description']}")
    return DONE if any(entry["status"] in ("shown", "hidden") for entry in entries) else NO


def _body(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the body of the search. Raises ValueError for a file that is not a JSON object."""
    if arguments.query is not None:
        return {"query": {"simple_query_string": {"query": arguments.query}}}
    try:
        body = json.loads(read_text(arguments.body, sys.stdin))
    except ValueError as error:
        raise ValueError(f"--body {arguments.body}: not JSON ({error})") from None
    if not isinstance(body, dict):
        raise ValueError(f"--body {arguments.body}: expected the JSON object of a search, got {type(body).__name__}")
    return body
