"""Put documents into an index folder, which is made if it is not there; the same id again replaces a document.

examples:
  ndd-search index articles.jsonl.gz news.idx --text title,body
  ndd-search index products.csv shop.idx --number-lines
  ndd-search index notes/ notes.idx --language german
  ndd-search index posts.jsonl posts.idx --preset messages

A line that cannot be taken is named on standard error, the rest is indexed, and the exit code is 3.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ndd_search.cli import DONE, PARTLY
from ndd_search.cli.output import (
    add_json,
    add_preset,
    add_recipe,
    comma_list,
    counted,
    many,
    print_json,
    progress,
    warn,
)
from ndd_search.cli.sources import Document, read_documents, text_fields
from ndd_search.documents import text_of
from ndd_search.errors import IndexUnusable
from ndd_search.presets import preset


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", type=Path, help=".jsonl, .ndjson, .csv, .tsv (also .gz), or a folder of .txt, .md, .html"
    )
    parser.add_argument("folder", type=Path, help="the index")
    parser.add_argument(
        "--text", type=comma_list, help="fields to search and compare, with commas (those that usually hold text)"
    )
    parser.add_argument("--language", help="whose word stems searches use, or none (english)")
    parser.add_argument("--number-lines", action="store_true", help="a document without id gets its line's number")
    either = parser.add_mutually_exclusive_group()
    add_recipe(either)
    add_preset(either)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    from ndd_search.engines.embedded import Index

    left_out: Counter[str] = Counter()

    def report(sentence: str) -> None:
        left_out["lines"] += 1
        warn(f"{arguments.source}: {sentence}")

    if not arguments.source.exists():
        raise IndexUnusable(arguments.source, "there is no such file or folder", "see to its name")
    documents = read_documents(arguments.source, report, arguments.number_lines)
    recipe = preset(arguments.preset).recipe if arguments.preset else arguments.recipe
    fields = arguments.text
    if fields is None and not (arguments.folder / "ndd.json").exists():
        fields, documents = text_fields(arguments.source, documents)
    with (
        Index.open(arguments.folder, fields, language=arguments.language, recipe=recipe) as index,
        progress("indexing", None, arguments.json) as advance,
    ):
        text = index.meta.text
        added = index.add(counted(_watched(documents, text, left_out), advance))
        empty, total = left_out.pop("empty", 0), len(index)
    if added and empty == added:
        warn(f"none of the documents has any text in {', '.join(text)}: name the fields that hold it with --text")
    if arguments.json:
        facts = {"added": added, "left_out": left_out["lines"], "without_text": empty, "documents": total, "text": text}
        print_json(facts)
    else:
        print(
            f"{many(added, 'document')} added to {arguments.folder}, which holds {total:,} now; text: {', '.join(text)}"
        )
    return PARTLY if left_out else DONE


def _watched(documents: Iterable[Document], fields: Sequence[str], count: Counter[str]) -> Iterator[Document]:
    """The documents, those without any text counted as empty."""
    for document in documents:
        count["empty"] += not text_of(document, fields)
        yield document
