"""Fill and look after an index folder, which is created if it does not exist.

examples:
  ndd-search index add articles.jsonl.gz news.idx --text title,body
  ndd-search index add products.csv shop.idx --id sku
  ndd-search index add notes/ notes.idx --language german
  ndd-search index info news.idx
  ndd-search index delete news.idx 4711 4712
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ndd_search.cli import DONE, NO, PARTLY
from ndd_search.cli.output import (
    add_folder,
    add_shared,
    comma_list,
    counted,
    progress,
    tell,
    warn,
)
from ndd_search.cli.search import open_index
from ndd_search.core.document_fields import text_of
from ndd_search.core.text.printable import many, safe
from ndd_search.embedded.folder import read_meta
from ndd_search.embedded.stored_document import id_of
from ndd_search.errors import IndexUnusable
from ndd_search.sources.csv_and_json import STDIN, Document
from ndd_search.sources.documents_with_ids import PEEK, SourceOptions, read_documents, text_fields, with_text

if TYPE_CHECKING:
    from ndd_search.embedded.index import Index

_NAMED = 20  # skipped lines that are named one by one
_SAMPLE = 1000  # documents whose fields `info` lists

_ADD = """\
examples:
  ndd-search index add lines.csv lines.idx --number-lines
  ndd-search index add pages/ pages.idx --main-text
  curl -s https://example.org/posts.json | ndd-search index add - posts.idx --preset messages

A document replaces one with the same id. Lines that cannot be read are named on standard error, the rest is indexed,
and the exit code is 3."""
_DELETE = "The exit code is 3 if some of the ids are not in the index, and 1 if none is."


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    def action(name: str, summary: str, epilog: str, work: Callable[[argparse.Namespace], int]) -> Any:
        made = actions.add_parser(
            name,
            help=summary,
            description=f"{summary.capitalize()}.",
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        made.set_defaults(work=work)
        return made

    _configure_add(action("add", "add documents", _ADD, _add))
    info = action("info", "show the number of documents, the fields and the settings", "", _info)
    delete = action("delete", "delete documents by their ids", _DELETE, _delete)
    for each in (info, delete):
        add_folder(each)
        add_shared(each, "--json")
    delete.add_argument("ids", nargs="+", metavar="ID", help="ids, as a search shows them")


def _configure_add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        metavar="SOURCE",
        type=Path,
        help="a .jsonl, .ndjson, .json, .csv, .tsv (also .gz), .eml, .mbox, - for standard input, or a folder of "
        "mails, .txt, .md, .html",
    )
    add_folder(parser)
    parser.add_argument(
        "--text",
        type=comma_list,
        help="fields to search and compare, joined by commas (those whose names usually hold text)",
    )
    parser.add_argument("--language", help="the language of the stemmer, or none (english)")
    ids = parser.add_mutually_exclusive_group()
    add_shared(ids, "--id")
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
    either = parser.add_mutually_exclusive_group()
    add_shared(either, "--recipe", "--preset")
    add_shared(parser, "--json")


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
    code: int = arguments.work(arguments)
    return code


def _add(arguments: argparse.Namespace) -> int:
    from ndd_search.embedded.index import Index

    if arguments.source != STDIN and not arguments.source.exists():
        raise IndexUnusable(arguments.source, "there is no such file or folder", "check its name")
    counts = _Counts(arguments.source)
    options = SourceOptions(id=arguments.id, number=arguments.number_lines, main_text=arguments.main_text)
    documents = read_documents(arguments.source, options, report=counts.report, note=warn)
    fields, documents = _fields(arguments, documents)
    kind = arguments.preset
    recipe = kind.recipe if kind else arguments.recipe
    with (
        Index.open(arguments.folder, fields, language=arguments.language, recipe=recipe) as index,
        progress("indexing", None, arguments.json) as advance,
    ):
        before = len(index)
        added = index.add(counted(counts.watched(documents, index.meta.text), advance))
        facts = {"added": added, "replaced": added - (len(index) - before), "left_out": counts.left_out}
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


def _show(arguments: argparse.Namespace, facts: dict[str, int], text: tuple[str, ...], repeated: int) -> None:
    if facts["left_out"] > _NAMED:
        warn(f"{arguments.source}: {facts['left_out'] - _NAMED:,} more were skipped, which are not named")
    if repeated:
        what = f"{arguments.source}: {many(repeated, 'document')} had the id of an earlier one in it"
        warn(f"{what} and replaced it: if they are different documents, use another --id")
    replaced = f" ({facts['replaced']:,} of them replaced one with the same id)" if facts["replaced"] else ""
    tell(
        arguments,
        {**facts, "text": text},
        f"{many(facts['added'], 'document')} added to {arguments.folder}{replaced}, "
        f"which now holds {facts['documents']:,}; text: {', '.join(text)}",
    )


def _info(arguments: argparse.Namespace) -> int:
    with open_index(arguments.folder) as index:
        facts = _facts(index)
    width, told = max(map(len, facts)), []
    for name, value in facts.items():
        shown = f"{value:,}" if isinstance(value, int) else ", ".join(value) if isinstance(value, list) else value
        told.append(f"{name.replace('_', ' '):{width}}  {safe(shown)}")
    tell(arguments, facts, "\n".join(told))
    return DONE


def _facts(index: Index) -> dict[str, Any]:
    written = (index.path / "meta.json").stat().st_mtime
    names = dict.fromkeys(str(name) for document in index.sample(_SAMPLE) for name in document)
    return {
        "documents": len(index),
        "text": list(index.meta.text),
        "fields": list(names),
        "language": index.meta.language,
        "recipe": index.recipe.id,
        "bytes": sum(path.stat().st_size for path in index.path.iterdir() if path.is_file()),
        "written": datetime.fromtimestamp(written, UTC).isoformat(timespec="seconds"),
    }


def _delete(arguments: argparse.Namespace) -> int:
    with open_index(arguments.folder) as index:
        present = [id for id in dict.fromkeys(arguments.ids) if index.get(id) is not None]
        absent = [id for id in dict.fromkeys(arguments.ids) if id not in present]
        index.delete(present)
        left = len(index)
    if absent:
        warn(f"{arguments.folder} holds no document {', '.join(map(safe, absent))}: give ids as a search shows them")
    sentence = f"{many(len(present), 'document')} deleted from {arguments.folder}, which now holds {left:,}"
    tell(arguments, {"deleted": present, "absent": absent, "documents": left}, sentence)
    return DONE if not absent else PARTLY if present else NO
