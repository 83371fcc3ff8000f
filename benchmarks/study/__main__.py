"""Compare all methods on labelled pairs, or show the similar pairs of unlabelled documents.

A FOLDER holds documents.jsonl[.gz] and optionally pairs, clusters and results (see benchmarks.study.collection).

examples:
  python -m benchmarks.study labelled/news labelled/shop --report report.html
  python -m benchmarks.study labelled/news --methods auto,min-k,simhash
  python -m benchmarks.study labelled/news --sensitivity
  python -m benchmarks.study labelled/news labelled/shop --presets

Prints Markdown tables.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.study.collection import TEXT_FIELDS, read_collection
from benchmarks.study.methods import Method, by_presets
from benchmarks.study.report import page
from benchmarks.study.study import all_methods, halved_and_doubled, study
from benchmarks.study.tables import best_elsewhere_table, tables
from ndd_search.core.recipe import Recipe
from ndd_search.errors import NDDError


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        "python -m benchmarks.study", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="folder of a collection")
    compared = parser.add_mutually_exclusive_group()
    compared.add_argument("--methods", metavar="NAMES", help="names of methods, joined by commas (all)")
    compared.add_argument("--presets", action="store_true", help="compare the presets instead, with their guards")
    compared.add_argument(
        "--sensitivity",
        action="store_true",
        help="compare the default with variants whose constants are halved and doubled",
    )
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="write tables, curves and sample pairs to this HTML file"
    )
    parser.add_argument("--fields", default=",".join(TEXT_FIELDS), help="the fields that hold the text, in order")
    parser.add_argument("--no-speed", action="store_true", help="print no times, which differ from run to run")
    parser.add_argument("--quiet", action="store_true", help="print no progress")
    arguments = parser.parse_args(words)
    methods = _chosen(parser, arguments)
    try:
        _compare(arguments, methods)
    except (NDDError, OSError) as error:
        parser.exit(2, f"{error}\n")


def _chosen(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> list[Method]:
    known = all_methods()
    if arguments.presets:
        return by_presets()
    if arguments.sensitivity:
        return [known["auto"], *halved_and_doubled(Recipe())]
    names = arguments.methods.split(",") if arguments.methods else list(known)
    if unknown := [name for name in names if name not in known]:
        parser.error(f"unknown methods {', '.join(unknown)}: choose from {', '.join(known)}")
    return [known[name] for name in names]


def _compare(arguments: argparse.Namespace, methods: Sequence[Method]) -> None:
    fields = tuple(arguments.fields.split(","))
    collections = [read_collection(folder, fields) for folder in arguments.folders]
    found = study(collections, methods, lambda step: None if arguments.quiet else print(step, file=sys.stderr))
    if found.results:
        for title, table in tables(found, speed=not arguments.no_speed):
            print(f"\n## {title}\n\n{table}")
    if arguments.sensitivity and len(found.collections) > 1:
        print(f"\n## The constants chosen without each collection\n\n{best_elsewhere_table(found)}")
    if arguments.report:
        arguments.report.write_text(page(found), "utf-8", errors="replace")
    if found.unlabelled:
        names = ", ".join(collection.name for collection in found.unlabelled)
        instead = f"see {arguments.report}" if arguments.report else "write a --report to see"
        print(f"\n{names}: no labelled pairs, so no method can be measured; {instead} how similar the documents are")


if __name__ == "__main__":
    main()
