"""Search an index folder and show a page without near-duplicates; the duplicates are listed beside each hit.

examples:
  ndd-search search news.idx "climate summit"
  ndd-search search news.idx "climate summit" --from 10 --min-similarity 0.8
  ndd-search search news.idx "climate summit" --set mode=annotate --json
  ndd-search search news.idx '"climate summit" +paris -sport'
  ndd-search search shop.idx '+name:shoe +price:[10 TO 50]' --sort price

A query finds documents with any of its words. It may contain "phrases in quotes", +required and -excluded words, AND,
OR, parentheses, field:word, price:>10, day:[2024-01-01 TO 2024-06-30], field:* for any value, * for every document.

The exit code is 1 if nothing was found.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ndd_search.cli import DONE, NO
from ndd_search.cli.output import (
    add_folder,
    add_page,
    add_shared,
    console,
    page_settings,
    print_json,
    shorten,
    styled,
    table,
    warn,
)
from ndd_search.core.document_fields import text_of
from ndd_search.core.text.printable import many, safe
from ndd_search.embedded.folder import Meta, read_meta
from ndd_search.errors import IndexUnusable
from ndd_search.search.rest.info_and_copies import copies

if TYPE_CHECKING:
    from rich.text import Text

    from ndd_search.embedded.index import Index

_JSON_MARKS = ("<em>", "</em>")
_MARKS = ("\ue000", "\ue001")  # of the private use area; in a text that contains them, only the marks would be wrong


def configure(parser: argparse.ArgumentParser) -> None:
    add_folder(parser)
    parser.add_argument(
        "query", default="", metavar="QUERY", help="words to search for, with the operators explained below"
    )
    parser.add_argument(
        "--sort", metavar="FIELD", help="order by a field instead of by score; FIELD:desc for descending order"
    )
    add_page(parser)
    add_shared(parser, "--json")


def run(arguments: argparse.Namespace) -> int:
    with open_index(arguments.folder, preset=arguments.preset) as index:
        marks = _JSON_MARKS if arguments.json else _MARKS
        settings = page_settings(arguments)
        response = index.search(arguments.query, sort=arguments.sort, highlight=marks, **settings)
        for note in response["ndd"].get("notes", ()):
            warn(note)
        if arguments.json:
            print_json(response)
        else:
            show(response, index.meta.text, arguments.from_)
    return DONE if response["hits"]["hits"] else NO


def open_index(folder: Path, **settings: Any) -> Index:
    """Open an existing index. Raises IndexUnusable if there is none."""
    from ndd_search.embedded.index import Index

    existing(folder)
    return Index.open(folder, **settings)


def existing(folder: Path) -> Meta:
    """Read the metadata of an existing index. Raises IndexUnusable if there is none."""
    if (meta := read_meta(folder)) is None:
        remedy = f"create it: ndd-search index add FILE {folder}"
        if str(folder).startswith(("http:", "https:")):
            raise ValueError(
                "the address of an engine is no folder: name an index folder; ndd-search ui searches an engine"
            )
        raise IndexUnusable(folder, "there is no index here", remedy)
    return meta


def show(response: dict[str, Any], fields: tuple[str, ...], start: int = 0) -> None:
    """Print a response as a table, with a summary line."""
    ndd = response["ndd"]
    if not response["hits"]["hits"]:
        print("nothing found" if not ndd["examined"] else f"no hit at place {start + 1}: {_different(ndd)}")
        return
    found = table(">", "id", ">score", "text", "also")
    for place, hit in enumerate(response["hits"]["hits"], start + 1):
        found.add_row(str(place), _linked(hit), f"{hit['_score']:.2f}", passage(hit, fields), "\n".join(also(hit)))
    console().print(found)
    print(
        f"{many(ndd['examined'], 'hit')} examined, {ndd['hidden']:,} of them shown under another; "
        f"{_different(ndd)} ({response['took']} ms)"
    )


def passage(hit: dict[str, Any], fields: tuple[str, ...]) -> Text:
    """The passages around the matched words, which are bold, after the beginning of the first text field."""
    found = hit.get("highlight", {})
    if not found:
        return styled(shorten(text_of(hit["_source"], fields) or "", 160))
    pieces: list[tuple[str, str] | str] = []
    if fields[0] not in found and (first := shorten(text_of(hit["_source"], fields[:1]) or "", 60)):
        pieces += [first, " … "]
    for (part,) in found.values():
        for plain in part.split(_MARKS[0]):
            word, mark, rest = plain.partition(_MARKS[1])
            pieces += [(_one_line(word), "bold reverse"), _one_line(rest)] if mark else [_one_line(plain)]
        pieces.append(" … ")
    return styled(*pieces[:-1])


def _one_line(text: str) -> str:
    """Remove control characters from a text; a space at its start or end is kept."""
    return f"{' ' * text[:1].isspace()}{safe(text)}{' ' * text[-1:].isspace()}" if text.strip() else " " * bool(text)


def _linked(hit: dict[str, Any]) -> Text:
    """The id of a hit; if it is a file, a link to the file on terminals that support links."""
    file = hit["_source"].get("file")
    is_link = isinstance(file, str) and re.fullmatch(r"file:///[\w%/.,~+@=&-]*", file, re.ASCII)
    return styled((safe(hit["_id"]), f"link {file}")) if is_link else styled(safe(hit["_id"]))


def _different(ndd: dict[str, Any]) -> str:
    about = "" if ndd["unique"]["relation"] == "eq" else "about "
    return f"{about}{many(ndd['unique']['value'], 'different one')} in all"


def also(hit: dict[str, Any]) -> list[str]:
    """The duplicates listed under a hit, or the hit of which it is a duplicate; one line each."""
    fields = hit.get("fields", {})
    if "ndd.duplicate_of" in fields:
        return [f"{fields['ndd.similarity'][0]:.0%} like {safe(fields['ndd.duplicate_of'][0])}"]
    return [f"{copy.similarity:.0%} {safe(copy.id)}" for copy in copies(hit)]
