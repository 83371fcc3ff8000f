"""Print the sketches of texts: of each file, or of each line of standard input.

examples:
  ndd-search sketch old.txt new.txt
  cut -f 2 titles.tsv | ndd-search sketch --recipe c5-k64-v1 --json
"""

from __future__ import annotations

import argparse
import sys

from ndd_search.cli import DONE
from ndd_search.cli.output import add_json, add_recipe, print_json, say
from ndd_search.recipe import Recipe
from ndd_search.sketching.sketches import sketch_many
from ndd_search.sources.csv_and_json import input_lines
from ndd_search.sources.text_files import read_text


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="texts in UTF-8, or .html, read without its markup; without files, each line of standard input",
    )
    add_recipe(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    recipe = arguments.recipe or Recipe()
    if arguments.files:
        names, texts = arguments.files, [read_text(name, sys.stdin) for name in arguments.files]
    else:
        texts = input_lines()
        names = [f"line {number}" for number in range(1, len(texts) + 1)]
    for name, sketch in zip(names, sketch_many(texts, recipe), strict=True):
        if arguments.json:
            print_json({"text": name, "recipe": recipe.id, "sketch": sketch.tolist()})
        else:
            say(f"{name}\t{recipe.id}\t{' '.join(map(str, sketch.tolist()))}")
    return DONE
