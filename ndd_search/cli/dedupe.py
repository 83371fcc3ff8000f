"""Read a ranked list from standard input, best first, and print a page of it without near-duplicates.

A line is a text, or, with --text, a JSON object that has its text in these fields. Lines come out as they went in.

examples:
  ndd-search dedupe < titles.txt
  ndd-search dedupe --text title,body --size 20 < hits.jsonl
  ndd-search dedupe --text body --json < hits.jsonl
"""

from __future__ import annotations

import argparse
import sys

from ndd_search.cli import DONE, NO, PARTLY
from ndd_search.cli.output import add_json, add_page, add_recipe, page_settings, print_json, stored_options, warn
from ndd_search.cli.sources import json_lines
from ndd_search.documents import text_of
from ndd_search.ranked_list import collapse


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--text", help="lines are JSON objects with their text in these fields, with commas")
    add_page(parser)
    add_recipe(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    left_out: list[str] = []
    lines = sys.stdin.read().splitlines()
    fields = arguments.text.split(",") if arguments.text else []
    texts: dict[int, str | None] = dict(enumerate(lines, 1))
    if fields:
        texts = {number: text_of(document, fields) for number, document in json_lines(lines, left_out.append)}
    for sentence in left_out:
        warn(sentence)
    numbers = list(texts)
    options, recipe = stored_options(arguments)
    page = collapse(numbers, text=texts.__getitem__, recipe=recipe, options=options, **page_settings(arguments))
    for group in page.groups:
        line = lines[group.hit - 1]
        copies = [{"line": copy.hit, "similarity": round(copy.similarity, 4)} for copy in group.duplicates]
        if arguments.json:
            print_json({"line": group.hit, "hit": line, "duplicates": copies})
        else:
            print(line)
    if left_out:
        return PARTLY
    return DONE if page.groups else NO
