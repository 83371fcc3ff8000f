"""Check whether an index is ready for searches without near-duplicates; each problem comes with a remedy.

examples:
  ndd-search doctor http://localhost:9200 news
  ndd-search doctor http://localhost:9200 news --all
  ndd-search doctor https://HOST news-* --json
  ndd-search doctor http://localhost:9200 news --explain 4711 4712 --query "climate summit"
  ndd-search doctor http://localhost:9200 news --explain 4711 --body search.json --set window=200

It changes nothing; ndd-search tune shows what each setting would hide. The exit code is 1 if there are warnings or
errors.

--explain says of documents where they are in a search: on a page, hidden under another hit (with the figures of the
comparison), not matched, below the examined hits, or not in the index. --body is the body of the search that your
program sends, with its options in "ndd"; --query searches all fields for words. Name the options of your client with
--preset, or one by one. The exit code is then 1 if no document is on a page or listed there.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Mapping
from typing import Any

from ndd_search.cli import DONE, NO
from ndd_search.cli.cluster import add_cluster, connected
from ndd_search.cli.output import (
    add_set,
    add_shared,
    console,
    page_settings,
    print_json,
    styled,
    table,
    tell,
)
from ndd_search.core.recipe import Recipe
from ndd_search.indexing.doctor import Diagnosis, Doctor, Figures
from ndd_search.native import in_use
from ndd_search.search.clients.pages_and_explain import pages
from ndd_search.search.clients.wrap import wrap
from ndd_search.sources.text_files import read_text

_COLOURS = {"error": "red", "warning": "yellow", "note": "", "ok": "green"}


def configure(parser: argparse.ArgumentParser) -> None:
    add_cluster(parser)
    add_shared(parser, "--fields", "--field", "--recipe")
    parser.add_argument("--all", action="store_true", help="compare all sketches with their texts, and not a sample")
    parser.add_argument("--explain", metavar="ID", nargs="+", help="say where documents are in a search, and why")
    parser.add_argument("--query", metavar="WORDS", help="words of that search, in all fields")
    parser.add_argument("--body", metavar="FILE", help='a file with its body as JSON; "-" for standard input')
    add_shared(parser, "--min-similarity", "--preset")
    add_set(parser)
    add_shared(parser, "--json")


def run(arguments: argparse.Namespace) -> int:
    if arguments.explain:
        return _explain(arguments)
    doctor = Doctor(
        index=arguments.index,
        fields=tuple(arguments.fields),
        recipe=arguments.recipe or Recipe(),
        field=arguments.field,
        all=arguments.all,
    )
    with connected(arguments, arguments.url) as client:
        diagnosis = doctor.examine(client)
    if arguments.json:
        print_json(dataclasses.asdict(diagnosis))
    else:
        _show(diagnosis)
    return NO if any(finding.level in ("error", "warning") for finding in diagnosis.findings) else DONE


def _explain(arguments: argparse.Namespace) -> int:
    body = _body(arguments)
    with connected(arguments, arguments.url) as client:
        settings = {"recipe": arguments.recipe, "preset": arguments.preset, **page_settings(arguments)}
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


def _show(diagnosis: Diagnosis) -> None:
    out = console()
    if diagnosis.figures:
        shown = table("", "", show_header=False)
        for name, value in _lines(diagnosis.figures).items():
            shown.add_row(name, value)
        out.print(shown)
    shown = table("", "about", "finding", "remedy")
    for finding in diagnosis.findings:
        shown.add_row(styled((finding.level, _COLOURS[finding.level])), finding.about, finding.what, finding.remedy)
    out.print(shown)


def _lines(figures: Figures) -> Mapping[str, str]:
    lines = {"computed with": in_use(), "documents": f"{figures.documents:,}"}
    a_document = f", {figures.bytes / figures.documents:,.0f} bytes a document" if figures.documents else ""
    lines["whole index"] = f"{figures.bytes / 2**20:,.1f} MB{a_document}, with old versions until they are merged"
    lines |= {f"recipe {name}": f"{count:,}" for name, count in figures.recipes.items()}
    if figures.wrong is not None:
        lines["sketches of another text"] = f"{round(figures.wrong * figures.sampled):,} of {figures.sampled:,} checked"
    return lines
