"""Read an index folder as a whole and say which of its files are damaged.

examples:
  ndd-search verify news.idx

Every file of the search engine is compared with the checksum that was written with it. The exit code is 1 when
something is damaged.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ndd_search.cli import DONE, NO
from ndd_search.cli.output import add_json, many, print_json, say
from ndd_search.cli.search import existing
from ndd_search.embedded.folder import damages
from ndd_search.text.printable import safe


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="an index made by ndd-search index")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    existing(arguments.folder)
    found = damages(arguments.folder)
    if arguments.json:
        print_json({"damaged": found})
    elif found:
        for name, problem in found.items():
            say(f"{safe(name)}: {problem}")
        say(f"{many(len(found), 'damaged file')} in {arguments.folder}: index the documents again into another folder")
    else:
        say(f"{arguments.folder} is whole")
    return NO if found else DONE
