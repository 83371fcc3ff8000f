"""Delete documents from an index folder by their ids.

examples:
  ndd-search delete news.idx 4711 4712

The exit code is 3 when some of the ids are not in the index, and 1 when none of them is.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ndd_search.cli import DONE, NO, PARTLY
from ndd_search.cli.output import add_json, many, print_json, say, warn
from ndd_search.cli.search import open_index
from ndd_search.text.printable import safe


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="an index made by ndd-search index")
    parser.add_argument("ids", nargs="+", metavar="ID", help="ids, as a search shows them")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    with open_index(arguments.folder) as index:
        there = [id for id in dict.fromkeys(arguments.ids) if index.get(id) is not None]
        absent = [id for id in dict.fromkeys(arguments.ids) if id not in there]
        index.delete(there)
        left = len(index)
    if absent:
        warn(f"{arguments.folder} holds no document {', '.join(map(safe, absent))}: give ids as a search shows them")
    if arguments.json:
        print_json({"deleted": there, "absent": absent, "documents": left})
    else:
        say(f"{many(len(there), 'document')} deleted from {arguments.folder}, which holds {left:,} now")
    return DONE if not absent else PARTLY if there else NO
