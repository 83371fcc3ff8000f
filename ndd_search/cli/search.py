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
from typing import TYPE_CHECKING, Any

from ndd_search.cli import DONE, NO
from ndd_search.cli.output import add_json, add_page, console, many, page_settings, print_json, shorten, table, warn
from ndd_search.config import CollapseOptions
from ndd_search.documents import text_of
from ndd_search.engines.folder import read_meta
from ndd_search.errors import IndexUnusable
from ndd_search.presets import preset
from ndd_search.tuning.marked import safe

if TYPE_CHECKING:
    from ndd_search.engines.embedded import Index


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="an index made by ndd-search index")
    parser.add_argument("query", help="words to search for")
    add_page(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    with open_index(arguments.folder, settings=arguments.settings) as index:
        options = options_for(index, arguments.preset)
        response = index.search(arguments.query, options=options, **page_settings(arguments))
        if arguments.json:
            print_json(response)
        else:
            show(response, index.meta.text, arguments.from_)
    return DONE if response["hits"]["hits"] else NO


def open_index(folder: Path, **settings: Any) -> Index:
    """An index that is there already. Raises IndexUnusable."""
    from ndd_search.engines.embedded import Index

    if read_meta(folder) is None:
        raise IndexUnusable(folder, "there is no index here", f"make it: ndd-search index FILE {folder}")
    return Index.open(folder, **settings)


def options_for(index: Index, name: str | None) -> CollapseOptions:
    """The options of a preset; without one, those that the index was opened with."""
    if name is None:
        return index.options
    chosen = preset(name)
    if chosen.recipe != index.recipe:
        warn(f"the index was made with recipe {index.recipe.id}, preset {name} has {chosen.recipe.id}")
    return chosen.options


def show(response: dict[str, Any], fields: tuple[str, ...], start: int = 0) -> None:
    """Print a response as a table, and a line that sums it up."""
    ndd = response["ndd"]
    if not response["hits"]["hits"]:
        print("nothing found" if not ndd["examined"] else f"no hit at place {start + 1}: {_different(ndd)}")
        return
    found = table(">", "id", ">score", "text", "also")
    for place, hit in enumerate(response["hits"]["hits"], start + 1):
        text = shorten(text_of(hit["_source"], fields) or "", 160)
        found.add_row(str(place), safe(hit["_id"]), f"{hit['_score']:.2f}", text, "\n".join(also(hit)))
    console().print(found)
    print(
        f"{many(ndd['examined'], 'hit')} examined, {ndd['hidden']:,} of them shown under another; "
        f"{_different(ndd)} ({response['took']} ms)"
    )


def _different(ndd: dict[str, Any]) -> str:
    about = "" if ndd["unique"]["relation"] == "eq" else "about "
    return f"{about}{many(ndd['unique']['value'], 'different one')} in all"


def also(hit: dict[str, Any]) -> list[str]:
    """What a hit stands for, or whose duplicate it is, a line each."""
    fields = hit.get("fields", {})
    if "ndd.duplicate_of" in fields:
        return [f"{fields['ndd.similarity'][0]:.0%} like {safe(fields['ndd.duplicate_of'][0])}"]
    copies = hit.get("inner_hits", {}).get("near_duplicates", {}).get("hits", {}).get("hits", [])
    return [f"{copy['fields']['ndd.similarity'][0]:.0%} {safe(copy['_id'])}" for copy in copies]
