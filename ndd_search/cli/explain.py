"""Says where documents are in the pages of a search, and why: `doctor --explain`."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from ndd_search.cli import DONE, NO
from ndd_search.cli.cluster import connected
from ndd_search.cli.output import (
    add_set,
    add_shared,
    page_settings,
    preset_of,
    tell,
)
from ndd_search.search.clients.pages_and_explain import pages
from ndd_search.search.clients.wrap import wrap
from ndd_search.sources.text_files import read_text


def configure(parser: argparse.ArgumentParser) -> None:
    """Add what `run` reads, beside the address, the index, --field, --recipe and --json."""
    parser.add_argument("--explain", metavar="ID", nargs="+", help="say where documents are in a search, and why")
    parser.add_argument("--query", metavar="WORDS", help="words of that search, in all fields")
    parser.add_argument("--body", metavar="FILE", help='a file with its body as JSON; "-" for standard input')
    add_shared(parser, "--min-similarity", "--preset")
    add_set(parser)


def run(arguments: argparse.Namespace) -> int:
    body = _body(arguments)
    with connected(arguments, arguments.url) as client:
        settings = {"recipe": arguments.recipe, "preset": preset_of(arguments), **page_settings(arguments)}
        wrapped = wrap(client, cache=False, indexes={"*": {"field": arguments.field}}, **settings)
        entries = pages(wrapped, index=arguments.index, body=body).explain(arguments.explain)
    for entry in entries:
        tell(arguments, entry, f"{entry['_id']}: {entry['description']}")
    return DONE if any(entry["status"] in ("shown", "hidden") for entry in entries) else NO


def _body(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the body of the search. Raises ValueError for a file that is not a JSON object, or without a search."""
    if (arguments.query is None) == (arguments.body is None):
        raise ValueError("--explain needs the search: give its words with --query, or a file with its body with --body")
    if arguments.query is not None:
        return {"query": {"simple_query_string": {"query": arguments.query}}}
    try:
        body = json.loads(read_text(arguments.body, sys.stdin))
    except ValueError as error:
        raise ValueError(f"--body {arguments.body}: not JSON ({error})") from None
    if not isinstance(body, dict):
        raise ValueError(f"--body {arguments.body}: expected the JSON object of a search, got {type(body).__name__}")
    return body
