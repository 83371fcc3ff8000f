"""Add documents to an index folder, which is created if it does not exist; a document replaces one with the same id.

examples:
  ndd-search index articles.jsonl.gz news.idx --text title,body
  ndd-search index products.csv shop.idx --id sku
  ndd-search index lines.csv lines.idx --number-lines
  ndd-search index notes/ notes.idx --language german
  ndd-search index pages/ pages.idx --main-text
  curl -s https://example.org/posts.json | ndd-search index - posts.idx --preset messages
  ndd-search index articles.jsonl.gz news.idx --replace

Lines that cannot be read are named on standard error, the rest is indexed, and the exit code is 3.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

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
    say,
    warn,
)
from ndd_search.documents import text_of
from ndd_search.embedded.folder import read_meta
from ndd_search.embedded.stored import id_of
from ndd_search.errors import IndexUnusable
from ndd_search.presets import preset
from ndd_search.sources.csv_and_json import STDIN, Document
from ndd_search.sources.documents import PEEK, SourceOptions, read_documents, text_fields, with_text

if TYPE_CHECKING:
    from ndd_search.embedded.index import Index

_NAMED = 20  # skipped lines that are named one by one


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        type=Path,
        help="a .jsonl, .ndjson, .json, .csv, .tsv (also .gz), - for standard input, or a folder of .txt, .md, .html",
    )
    parser.add_argument("folder", type=Path, help="the index")
    parser.add_argument(
        "--text",
        type=comma_list,
        help="fields to search and compare, joined by commas (those whose names usually hold text)",
    )
    parser.add_argument("--language", help="the language of the stemmer, or none (english)")
    ids = parser.add_mutually_exclusive_group()
    ids.add_argument("--id", metavar="FIELD", help="the field that holds the id of a document (_id, id)")
    ids.add_argument(
        "--number-lines",
        action="store_true",
        help="a document without an id gets the name of the file and the number of its line as id",
    )
    parser.add_argument(
        "--main-text",
        action="store_true",
        help="read only the article of .html files, without navigation, headers and footers",
    )
    parser.add_argument(
        "--replace", action="store_true", help="afterwards delete every document that is not in this source"
    )
    either = parser.add_mutually_exclusive_group()
    add_recipe(either)
    add_preset(either)
    add_json(parser)


@dataclass
class _Counts:
    """Counts of what was read. left_out: lines or files that were skipped."""

    source: Path
    left_out: int = 0
    without_text: int = 0
    ids: set[str] = field(default_factory=set)

    def report(self, sentence: str) -> None:
        self.left_out += 1
        if self.left_out <= _NAMED:
            warn(f"{self.source}: {sentence}")

    def watched(self, documents: Iterable[Document], fields: Sequence[str]) -> Iterator[Document]:
        for document in documents:
            self.ids.add(id_of(document, "document"))
            self.without_text += not text_of(document, fields)
            yield document


def run(arguments: argparse.Namespace) -> int:
    from ndd_search.embedded.index import Index

    if arguments.source != STDIN and not arguments.source.exists():
        raise IndexUnusable(arguments.source, "there is no such file or folder", "check its name")
    counts = _Counts(arguments.source)
    options = SourceOptions(id=arguments.id, number=arguments.number_lines, main_text=arguments.main_text)
    documents = read_documents(arguments.source, options, report=counts.report, note=warn)
    fields, documents = _fields(arguments, documents)
    recipe = preset(arguments.preset).recipe if arguments.preset else arguments.recipe
    with (
        Index.open(arguments.folder, fields, language=arguments.language, recipe=recipe) as index,
        progress("indexing", None, arguments.json) as advance,
    ):
        before = len(index)
        added = index.add(counted(counts.watched(documents, index.meta.text), advance))
        facts = {"added": added, "replaced": added - (len(index) - before), "left_out": counts.left_out}
        facts["deleted"] = _delete_others(index, counts) if arguments.replace else 0
        facts |= {"without_text": counts.without_text, "documents": len(index)}
        _show(arguments, facts, index.meta.text, added - len(counts.ids))
    return PARTLY if counts.left_out else DONE


def _fields(
    arguments: argparse.Namespace, documents: Iterator[Document]
) -> tuple[Sequence[str] | None, Iterator[Document]]:
    """Return the text fields for a new index, None for an existing one, and all documents.

    Raises InvalidDocument, before an index is created, if none of the first documents has text in these fields.
    """
    source, meta = arguments.source, read_meta(arguments.folder)
    if arguments.text:
        fields, remedy = arguments.text, "nothing was stored; name the fields that hold the text: --text NAME,NAME"
    elif meta:
        fields = list(meta.text)
        remedy = f"these are the text fields of {arguments.folder}: rename those of the source, or use another folder"
    else:
        return text_fields(source, documents)
    absent, documents = with_text(source, documents, fields, remedy)
    if absent:
        what = f"{source}: none of the first {PEEK:,} documents has a field {', '.join(absent)}"
        warn(f"{what}: if that is a typing mistake, remove {arguments.folder} and index again with the right --text")
    return arguments.text, documents


def _delete_others(index: Index, counts: _Counts) -> int:
    """Delete documents that are not in the source, unless some of its lines were skipped. Returns how many."""
    others = [id for id in index.ids() if id not in counts.ids]
    if counts.left_out and others:
        warn(
            f"{many(len(others), 'document')} that may be missing from {counts.source} were not deleted, "
            f"because {many(counts.left_out, 'line')} were skipped: correct them and index again with --replace"
        )
        return 0
    index.delete(others)
    return len(others)


def _show(arguments: argparse.Namespace, facts: dict[str, int], text: tuple[str, ...], repeated: int) -> None:
    if facts["left_out"] > _NAMED:
        warn(f"{arguments.source}: {facts['left_out'] - _NAMED:,} more were skipped, which are not named")
    if repeated:
        what = f"{arguments.source}: {many(repeated, 'document')} had the id of an earlier one in it"
        warn(f"{what} and replaced it: if they are different documents, use another --id")
    if arguments.json:
        print_json({**facts, "text": text})
        return
    replaced = f" ({facts['replaced']:,} of them replaced one with the same id)" if facts["replaced"] else ""
    deleted = f", {facts['deleted']:,} others deleted from it" if arguments.replace else ""
    say(
        f"{many(facts['added'], 'document')} added to {arguments.folder}{replaced}{deleted}, "
        f"which now holds {facts['documents']:,}; text: {', '.join(text)}"
    )
