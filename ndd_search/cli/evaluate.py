"""Compare all methods on labelled pairs, or show the similar pairs of unlabelled documents.

A FOLDER holds documents.jsonl[.gz] and optionally pairs, clusters and results (see ndd_search.evaluation).

examples:
  ndd-search evaluate labelled/news labelled/shop --report report.html
  ndd-search evaluate labelled/news --methods auto,min-k,simhash
  ndd-search evaluate labelled/news --sensitivity
  ndd-search evaluate labelled/news labelled/shop --presets

Prints Markdown tables.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ndd_search.cli import DONE
from ndd_search.cli.output import warn


def configure(parser: argparse.ArgumentParser) -> None:
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
    parser.add_argument("--fields", default="title,text,body,fields", help="the fields that hold the text, in order")
    parser.add_argument("--no-speed", action="store_true", help="print no times, which differ from run to run")
    parser.add_argument("--quiet", action="store_true", help="print no progress")


def run(arguments: argparse.Namespace) -> int:
    from ndd_search.evaluation.collection import read_collection
    from ndd_search.evaluation.methods import by_presets
    from ndd_search.evaluation.report import page
    from ndd_search.evaluation.study import all_methods, halved_and_doubled, study
    from ndd_search.evaluation.tables import best_elsewhere_table, tables
    from ndd_search.recipe import Recipe

    known = all_methods()
    names = arguments.methods.split(",") if arguments.methods else list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"unknown methods {', '.join(unknown)}: choose from {', '.join(known)}")
    methods = [known[name] for name in names]
    if arguments.presets:
        methods = by_presets()
    elif arguments.sensitivity:
        methods = [known["auto"], *halved_and_doubled(Recipe())]
    fields = tuple(arguments.fields.split(","))
    collections = [read_collection(folder, fields) for folder in arguments.folders]
    found = study(collections, methods, (lambda step: None) if arguments.quiet else warn)
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
    return DONE
