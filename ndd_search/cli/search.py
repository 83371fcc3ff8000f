"""Search an index folder and show a page without near-duplicates, with what each hit stands for.

examples:
  ndd-search search news.idx "climate summit"
  ndd-search search news.idx "climate summit" --from 10 --min-similarity 0.8
  ndd-search search news.idx "climate summit" --mode annotate --json

The exit code is 1 when nothing was found.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ndd_search.cli import DONE, NO
from ndd_search.cli.output import add_json, add_page, console, page_settings, print_json, shorten, table, warn
from ndd_search.documents import text_of
from ndd_search.presets import preset


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="an index made by ndd-search index")
    parser.add_argument("query", help="words to search for")
    add_page(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    from ndd_search.engines.embedded import Index

    with Index.open(arguments.folder, settings=arguments.settings) as index:
        chosen = preset(arguments.preset) if arguments.preset else None
        if chosen and chosen.recipe != index.recipe:
            warn(f"the index was made with recipe {index.recipe.id}, preset {chosen.name} has {chosen.recipe.id}")
        options = chosen.options if chosen else None
        response = index.search(arguments.query, options=options, **page_settings(arguments))
        if arguments.json:
            print_json(response)
        else:
            show(response, index.meta.text, arguments.from_)
    return DONE if response["hits"]["hits"] else NO


def show(response: dict[str, Any], fields: tuple[str, ...], start: int = 0) -> None:
    """Print a response as a table, and a line that sums it up."""
    ndd = response["ndd"]
    if not response["hits"]["hits"]:
        print("nothing found" if not ndd["examined"] else f"nothing after {start} hits")
        return
    found = table(">", "id", ">score", "text", "also")
    for place, hit in enumerate(response["hits"]["hits"], start + 1):
        text = shorten(text_of(hit["_source"], fields) or "", 160)
        found.add_row(str(place), hit["_id"], f"{hit['_score']:.2f}", text, "\n".join(also(hit)))
    console().print(found)
    about = "" if ndd["unique"]["relation"] == "eq" else "about "
    print(
        f"{ndd['examined']:,} hits examined, {ndd['hidden']:,} of them shown under another; "
        f"{about}{ndd['unique']['value']:,} different ones in all ({response['took']} ms)"
    )


def also(hit: dict[str, Any]) -> list[str]:
    """What a hit stands for, or whose duplicate it is, a line each."""
    fields = hit.get("fields", {})
    if "ndd.duplicate_of" in fields:
        return [f"{fields['ndd.similarity'][0]:.0%} like {fields['ndd.duplicate_of'][0]}"]
    copies = hit.get("inner_hits", {}).get("near_duplicates", {}).get("hits", {}).get("hits", [])
    return [f"{copy['fields']['ndd.similarity'][0]:.0%} {copy['_id']}" for copy in copies]
