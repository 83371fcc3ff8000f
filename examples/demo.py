"""Run the same searches on a small collection without and with ndd_search, side by side.

    python examples/demo.py [--query "fishing fleet and ports"]

The collection is sections of the CIA World Factbook (public domain), each in its versions of July and of October 2022.
It is indexed in a temporary folder.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ndd_search import Index
from ndd_search.cli.output import console, styled, table
from ndd_search.cli.search import also

PAGES = Path(__file__).parent / "factbook" / "factbook.jsonl.gz"
QUERIES = (
    "coral reefs and overfishing",
    "languages spoken by minorities",
    "liquefied natural gas exports",
    "compulsory military service for women",
    "earthquakes and volcanoes",
)
SIZE = 8
_AGAIN = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--query", action="append", help="run this query instead; may be given several times")
    queries, screen = parser.parse_args().query or QUERIES, console()
    documents = [json.loads(line) for line in gzip.decompress(PAGES.read_bytes()).splitlines()]
    with tempfile.TemporaryDirectory() as folder, Index.open(Path(folder) / "demo", text=["title", "text"]) as index:
        began = perf_counter()
        index.add(documents)
        seconds = perf_counter() - began
        screen.print(f"{len(documents)} documents sketched and indexed in {seconds:.1f} s\n")
        for query in queries:
            screen.print(compare(index, query), end="\n\n")
        show_times(index, queries, screen)


def compare(index: Index, query: str) -> Table:
    """A table with the first page of a search as the engine ranks it, and collapsed."""
    before = index.search(query, size=SIZE, mode="annotate")
    after = index.search(query, size=SIZE)
    places = {hit["_id"]: place for place, hit in enumerate(before["hits"]["hits"], 1)}
    copies = sum("fields" in hit for hit in before["hits"]["hits"])
    ndd = after["ndd"]
    found = table(
        "",
        "as the engine ranks",
        "with ndd_search",
        title=f"{query!r}: {copies} of the first {len(before['hits']['hits'])} hits repeat another",
        caption=f"{ndd['examined']} hits examined, {ndd['kept']} kept, {ndd['hidden']} shown under another; "
        f"{ndd['took_ms']:.2f} ms to collapse them",
        title_justify="left",
        caption_justify="left",
    )
    for place in range(max(len(before["hits"]["hits"]), len(after["hits"]["hits"]))):
        found.add_row(str(place + 1), _before(before, place, places), _after(after, place))
    return found


def show_times(index: Index, queries: tuple[str, ...], screen: Console) -> None:
    """Print the median time of repeated searches."""
    times = []
    for query in queries * _AGAIN:
        began = perf_counter()
        index.search(query, size=SIZE)
        times.append((perf_counter() - began) * 1000)
    screen.print(f"a search that is answered from the cache takes {median(times):.2f} ms in all (median)")


def _before(response: dict[str, Any], place: int, places: dict[str, int]) -> Text:
    hits = response["hits"]["hits"]
    if place >= len(hits):
        return styled()
    hit = hits[place]
    if "fields" not in hit:
        return styled(hit["_source"]["title"])
    leader = places[hit["fields"]["ndd.duplicate_of"][0]]
    about = f" {hit['fields']['ndd.similarity'][0]:.0%} like {leader}"
    return styled((hit["_source"]["title"], "red"), (about, "dim"))


def _after(response: dict[str, Any], place: int) -> Text:
    hits = response["hits"]["hits"]
    if place >= len(hits):
        return styled()
    hit = hits[place]
    listed = "".join(f"\n  + {line}" for line in also(hit))
    return styled(hit["_source"]["title"], (listed, "dim"))


if __name__ == "__main__":
    main()
