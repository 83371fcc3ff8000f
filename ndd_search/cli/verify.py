"""Check the files of an index folder for damage.

examples:
  ndd-search verify news.idx

Reads every file and compares it with the checksum that was stored when it was written. The exit code is 1 if a file is
damaged.
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
    problems = damages(arguments.folder)
    if arguments.json:
        print_json({"damaged": problems})
    elif problems:
        for name, problem in problems.items():
            say(f"{safe(name)}: {problem}")
        say(f"{many(len(problems), 'damaged file')} in {arguments.folder}: index the documents into another folder")
    else:
        say(f"{arguments.folder} is not damaged")
    return NO if problems else DONE
