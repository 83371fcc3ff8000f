"""Read a ranked list from a file or standard input, best first, and print a page of it without near-duplicates.

Each line is a text, or with --text a JSON object with its text in these fields. Lines are printed unchanged. Shingles
that many of the lines share, as those of a template, count less.

examples:
  ndd-search corpus page < titles.txt
  ndd-search corpus page hits.jsonl --text title,body --size 20
  ndd-search corpus page --text body --json < hits.jsonl

For all unique documents of a collection, with ids and in any order, use ndd-search corpus unique.
"""

from __future__ import annotations

import argparse
import logging
from itertools import islice
from pathlib import Path
from typing import Any

from ndd_search.cli import DONE, NO, LeftOut
from ndd_search.cli.output import (
    add_page,
    add_shared,
    comma_list,
    page_settings,
    print_json,
    print_line,
    stored_options,
    warn,
)
from ndd_search.core.document_fields import text_of
from ndd_search.core.matching.document_frequency import count_in_list
from ndd_search.core.matching.frequency_table import SAMPLE
from ndd_search.core.paging.collapse import collapse, evenly
from ndd_search.core.paging.page import Info
from ndd_search.core.sketching.sketches import sketch_many
from ndd_search.errors import InvalidDocument
from ndd_search.sources.csv_and_json import input_lines, json_lines


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help='the list; "-" or nothing: standard input')
    parser.add_argument(
        "--text", type=comma_list, help="lines are JSON objects with their text in these fields, joined by commas"
    )
    add_page(parser)
    add_shared(parser, "--recipe", "--json")


def run(arguments: argparse.Namespace) -> int:
    if arguments.file.lower().removesuffix(".gz").endswith((".csv", ".tsv")):
        what = "it is a table with a header, and this command reads a list of lines"
        remedy = f"use ndd-search corpus unique {arguments.file} --text FIELD"
        raise InvalidDocument(arguments.file, what, f"{remedy}, or give a list on standard input")
    left_out = LeftOut()
    lines, fields = input_lines(Path(arguments.file), warn), arguments.text
    hits: dict[int, Any] = dict(json_lines(lines, left_out) if fields else enumerate(lines, 1))
    texts = [text_of(hit, fields) for hit in hits.values()] if fields else lines
    source = "standard input" if arguments.file == "-" else arguments.file
    if not lines:
        warn(f"{source} is empty")
    elif not fields and all(line.startswith("{") and line.rstrip().endswith("}") for line in lines[:SAMPLE]):
        warn(f"{source} holds JSON objects, which are compared as they are written: name their texts with --text FIELD")
    if texts and all(text is None for text in texts):
        names = ", ".join(dict.fromkeys(name for hit in islice(hits.values(), SAMPLE) for name in hit))
        what = f"no line has text in {', '.join(fields)}; the fields there are {names}"
        raise InvalidDocument(source, what, "check the names in --text")
    numbers = list(hits)
    options, recipe = stored_options(arguments)
    sample = sketch_many((texts[place] or "" for place in evenly(len(texts), SAMPLE)), recipe)
    frequency_table = count_in_list(sample, recipe)
    log, silent = logging.getLogger("ndd_search"), logging.NullHandler()
    log.addHandler(silent)  # what is logged is told below
    page = collapse(
        hits.values(),
        text=fields,
        recipe=recipe,
        frequency_table=frequency_table,
        options=options,
        **page_settings(arguments),
    )
    log.removeHandler(silent)
    for group in page.groups:
        line = lines[numbers[group.rank] - 1]
        if arguments.json:
            copies = [
                {"line": numbers[copy.rank], "similarity": round(copy.similarity, 4)} for copy in group.duplicates
            ]
            found = {"line": numbers[group.rank], "hit": line.removesuffix("\r"), "duplicates": copies}
            if group.duplicate_of is not None:  # with mode annotate or demote it is shown itself
                found |= {"duplicate_of": numbers[group.duplicate_of], "similarity": round(group.similarity, 4)}
            print_json(found)
        else:
            print_line(line)
    for sentence in page.info.warnings:
        warn(sentence)
    _note_more(page.info, arguments.from_ + len(page.groups))
    return left_out.code or (DONE if page.groups else NO)


def _note_more(info: Info, end: int) -> None:
    """Warn if the page is not the whole list: otherwise its end looks like the end of the input."""
    if end < info.kept or not info.exhausted:
        warn(f"the page ends here: --size shows more, --from {end} shows the next page")
