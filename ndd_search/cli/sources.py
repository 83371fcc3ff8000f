"""Documents out of files: JSON lines, CSV, folders of texts."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from ndd_search.errors import InvalidDocument
from ndd_search.markup import strip_markup

Report = Callable[[str], None]
Document = dict[str, Any]

_TEXT_FIELDS = ("title", "headline", "name", "text", "body", "content", "description", "abstract")
_FOLDER_TYPES = (".txt", ".md", ".html", ".htm")


def read_documents(source: Path, report: Report, number: bool) -> Iterator[Document]:
    """The documents of a source, in its order.

    source: .jsonl, .ndjson or .csv, also with .gz, or a folder, whose .txt, .md and .html files are taken with their
    path as id, their name as title and their text as body.
    report: told a sentence for every line that cannot be taken.
    number: give a document without an id the number of its line.
    """
    if source.is_dir():
        return _folder(source, report)
    kind = source.name.removesuffix(".gz").rpartition(".")[2].lower()
    readers = {"jsonl": json_lines, "ndjson": json_lines, "csv": _csv}
    if kind not in readers:
        raise ValueError(f"{source}: expected .jsonl, .ndjson, .csv (also with .gz) or a folder")
    return _with_ids(_opened(source, readers[kind], report), report, number)


def text_fields(documents: Iterable[Document]) -> tuple[list[str], Iterator[Document]]:
    """The fields of the first documents that usually hold text, and the documents again."""
    waiting = iter(documents)
    first = list(islice(waiting, 100))
    return [name for name in _TEXT_FIELDS if any(name in one for one in first)], chain(first, waiting)


def json_lines(lines: Iterable[str], report: Report) -> Iterator[tuple[int, Document]]:
    """The JSON objects of some lines with their line numbers, from 1; other lines are reported."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            document = json.loads(line)
        except ValueError as error:
            report(f"line {number} is left out, it is no JSON: {error}")
            continue
        if isinstance(document, dict):
            yield number, document
        else:
            report(f"line {number} is left out, it is no JSON object but {type(document).__name__}")


def _csv(lines: Iterable[str], report: Report) -> Iterator[tuple[int, Document]]:
    rows = csv.DictReader(lines)
    for row in rows:
        if None in row:
            report(f"line {rows.line_num} is left out, it has more fields than the header")
        else:
            yield rows.line_num, {name: value for name, value in row.items() if value is not None}


def _opened(
    source: Path, read: Callable[[Iterable[str], Report], Iterator[tuple[int, Document]]], report: Report
) -> Iterator[tuple[int, Document]]:
    with open_text(source) as lines:
        yield from read(lines, report)


@contextmanager
def open_text(source: Path) -> Iterator[IO[str]]:
    """A file of lines, also with .gz."""
    opening = gzip.open if source.suffix == ".gz" else open
    with opening(source, "rt", encoding="utf-8-sig", errors="replace", newline="") as file:
        yield file


def _with_ids(numbered: Iterable[tuple[int, Document]], report: Report, number: bool) -> Iterator[Document]:
    for line, document in numbered:
        if document.get("_id", document.get("id")) not in (None, ""):
            yield document
        elif number:
            yield {"id": str(line), **{name: value for name, value in document.items() if name not in ("id", "_id")}}
        else:
            report(f'line {line} is left out, it has no id: name one "id", or let --number-lines give one')


def _folder(folder: Path, report: Report) -> Iterator[Document]:
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() not in _FOLDER_TYPES or not path.is_file():
            continue
        try:
            text = path.read_text("utf-8", errors="replace")
        except OSError as error:
            report(f"{path} is left out: {error.strerror}")
            continue
        body = strip_markup(text) if path.suffix.lower().startswith(".htm") else text
        yield {"id": str(path.relative_to(folder)), "title": path.stem, "body": body}


def read_text(path: str, stdin: IO[str]) -> str:
    """The text of a file, of standard input for "-". Raises InvalidDocument for what is no UTF-8 text."""
    try:
        return stdin.read() if path == "-" else Path(path).read_text("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidDocument(
            path, f"it is no UTF-8 text: {error.reason} at byte {error.start}", "convert it"
        ) from None
