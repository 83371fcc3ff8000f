"""Count the files and functions of the package that one search through a wrapped client of elasticsearch-py enters.

    python -m benchmarks.entered [--url URL] [--native] [--list]

The first search of a new client with its default settings counts a frequency table, too. A cold search is one that it
has not made before; a cached one is that search again. The engine's answers are the recorded ones of
`benchmarks.own_work`, or those of the server at --url, with an index made for it. The numpy code of the core is used
unless --native is given, because whoever reads a search reads that. Expressions (lambdas, comprehensions) are counted
with the function that they stand in. --list prints the functions by file.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from elasticsearch import Elasticsearch

from benchmarks.own_work import MATCH, RecordedNode

import ndd_search as ndd  # isort: skip  # after own_work, which sets the number of threads
from ndd_search import native

ROOT = Path(ndd.__file__).parent
INDEX = "ndd-entered"
Entered = dict[str, set[str]]  # by file: the functions


def entered(call: Callable[[], Any]) -> Entered:
    """Return what a call enters in this thread."""
    found: defaultdict[str, set[str]] = defaultdict(set)

    def trace(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(ROOT)) and not code.co_name.startswith("<"):
            found[str(Path(code.co_filename).relative_to(ROOT))].add(code.co_qualname)

    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(None)
    return dict(found)


def searches(make: Callable[[], Elasticsearch], index: str) -> dict[str, Entered]:
    """Return what a cold and a cached search enter. The process has searched before: all modules are imported."""
    first, cold = {"query": MATCH, "size": 10}, {"query": MATCH, "size": 9}
    ndd.wrap(make()).search(index=index, body=first)
    client = ndd.wrap(make())
    found = {"first": entered(partial(client.search, index=index, body=first))}
    client = ndd.wrap(make())
    client.search(index=index, body={**first, "query": {"match": {"body": "market town"}}})
    search = partial(client.search, index=index, body=cold)
    found |= {"cold": entered(search), "cached": entered(search)}
    assert search()["ndd"]["cache"] == "hit"
    return found


@contextmanager
def filled(url: str) -> Iterator[None]:
    """Make an index of 100 documents with sketches on a server for the time of a block."""
    from elasticsearch import helpers

    texts = [f"the market of town {number % 40} opened {number % 40 * 'again '}" for number in range(100)]
    documents = [{"_index": INDEX, "_id": str(n), "body": text} for n, text in enumerate(texts)]
    with Elasticsearch(url) as client:
        client.indices.create(index=INDEX, mappings={"properties": ndd.indexing.mapping_properties()})
        try:
            helpers.bulk(client, ndd.with_sketches(documents, fields=["body"]), refresh=True)
            yield
        finally:
            client.indices.delete(index=INDEX)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="of a live server")
    parser.add_argument("--native", action="store_true", help="use the native core")
    parser.add_argument("--list", action="store_true", help="print the functions")
    arguments = parser.parse_args()
    if not arguments.native:
        native.core = None
    if arguments.url:
        with filled(arguments.url):
            found = searches(partial(Elasticsearch, arguments.url), INDEX)
    else:
        found = searches(partial(Elasticsearch, "http://recorded:9200", node_class=RecordedNode), "news")
    print("| search | files | functions |\n| --- | ---: | ---: |")
    for name, files in found.items():
        print(f"| {name} | {len(files)} | {sum(map(len, files.values()))} |")
    if arguments.list:
        for name, files in found.items():
            for file, functions in sorted(files.items()):
                print(f"{name} {file}: {', '.join(sorted(functions))}")


if __name__ == "__main__":
    main()
