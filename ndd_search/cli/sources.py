"""Documents out of files: JSON lines, CSV, folders of texts."""

from __future__ import annotations

import csv
import gzip
import json
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from ndd_search.cli.output import warn
from ndd_search.engines.stored import id_of, source_of
from ndd_search.errors import InvalidDocument
from ndd_search.markup import strip_markup
from ndd_search.tuning.marked import safe

Report = Callable[[str], None]
Document = dict[str, Any]

_TEXT_FIELDS = ("title", "headline", "name", "text", "body", "content", "description", "abstract")
_FOLDER_TYPES = (".txt", ".md", ".html", ".htm")


def read_documents(source: Path, report: Report, number: bool) -> Iterator[Document]:
    """The documents of a source, in its order.

    source: .jsonl, .ndjson, .csv or .tsv, also with .gz, or a folder, whose .txt, .md and .html files are taken with
    their path as id, their name as title and their text as body.
    report: told a sentence for every line or file that cannot be taken.
    number: give a document without an id the number of its line.
    """
    if source.is_dir():
        return _possible(_folder(source, report), report)
    kind = source.name.removesuffix(".gz").rpartition(".")[2].lower()
    readers = {"jsonl": json_lines, "ndjson": json_lines, "csv": _csv, "tsv": _csv}
    if kind not in readers:
        hint = "; a list in one .json becomes lines with: jq -c '.[]'" if kind == "json" else ""
        raise ValueError(f"{source}: expected .jsonl, .ndjson, .csv, .tsv (also with .gz) or a folder{hint}")
    return _possible(_with_ids(_opened(source, readers[kind], report), report, number), report)


def text_fields(source: Path, documents: Iterable[Document]) -> tuple[list[str], Iterator[Document]]:
    """The fields of the first documents that usually hold text, and the documents again.

    Raises InvalidDocument when there is no such field, or no document.
    """
    waiting = iter(documents)
    first = list(islice(waiting, 100))
    if not first:
        wanted = ", ".join(_FOLDER_TYPES) if source.is_dir() else "document"
        raise InvalidDocument(source, f"it holds no {wanted} that can be taken", "name another one")
    if found := [name for name in _TEXT_FIELDS if any(name in one for one in first)]:
        return found, chain(first, waiting)
    fields = ", ".join(dict.fromkeys(str(name) for one in first for name in one))
    raise InvalidDocument(source, f"which of its fields hold text? there are {fields}", "say so: --text NAME,NAME")


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
        except RecursionError:
            report(f"line {number} is left out, it is nested too deep")
            continue
        if isinstance(document, dict):
            yield number, document
        else:
            report(f"line {number} is left out, it is no JSON object but {type(document).__name__}")


def _csv(lines: Iterable[str], report: Report) -> Iterator[tuple[int, Document]]:
    csv.field_size_limit(2**31 - 1)  # characters; a page of text has more than the 131,072 of the default
    waiting = iter(lines)
    header = next(waiting, "")
    between = max(",;\t", key=header.count)  # commas, unless the header has more of another one
    # Strict, or a quote that is never closed takes the rest of the file without a word.
    rows = csv.DictReader(chain([header], waiting), delimiter=between, strict=True)
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            report(f"line {rows.line_num + 1} is left out, it is no CSV: {error}")
            continue
        if None in row:
            report(f"line {rows.line_num} is left out, it has more fields than the header")
        else:
            yield rows.line_num, {name: value for name, value in row.items() if value is not None}


def _opened(
    source: Path, read: Callable[[Iterable[str], Report], Iterator[tuple[int, Document]]], report: Report
) -> Iterator[tuple[int, Document]]:
    with open_text(source) as lines:
        yield from read(_legible(lines, str(source)), report)


@contextmanager
def open_text(source: Path) -> Iterator[IO[str]]:
    """A file of lines, also with .gz. Raises InvalidDocument where that is damaged."""
    opening = gzip.open if source.suffix == ".gz" else open
    with opening(source, "rt", encoding="utf-8-sig", errors="replace", newline="") as file:
        try:
            yield file
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InvalidDocument(source, f"it is no whole gzip file: {error}", "get it again") from None


def input_lines() -> list[str]:
    """The lines of standard input, in UTF-8, with whatever ends them but the line feed.

    A byte that is no UTF-8 becomes a lone surrogate; print_line writes it as it was.
    """
    if sys.stdin is None:  # the caller has closed it
        return []
    lines = sys.stdin.buffer.read().decode("utf-8", "surrogateescape").split("\n")
    return lines if lines[-1] else lines[:-1]


def print_line(line: str) -> None:
    """Write a line of input_lines as it came."""
    if sys.stdout:  # there is none where the caller has closed it
        sys.stdout.flush()
        sys.stdout.buffer.write(line.encode("utf-8", "surrogateescape") + b"\n")


def _legible(lines: Iterable[str], where: str) -> Iterator[str]:
    """The lines; the first that was not all UTF-8 is named."""
    told = False
    for number, line in enumerate(lines, 1):
        if not told and "\ufffd" in line:
            told = True
            warn(f"{where}: line {number} has characters that are no UTF-8, kept as \ufffd: convert the file first")
        yield line


def _possible(named: Iterable[tuple[str, Document]], report: Report) -> Iterator[Document]:
    """The documents that an index can take."""
    for name, document in named:
        try:
            id_of(document, name)
            source_of(document, name)
        except InvalidDocument as error:
            _, problem, remedy = error.args
            report(f"{name} is left out, {problem}: {remedy}")
        else:
            yield document


def _with_ids(numbered: Iterable[tuple[int, Document]], report: Report, number: bool) -> Iterator[tuple[str, Document]]:
    for line, document in numbered:
        if document.get("_id", document.get("id")) not in (None, ""):
            yield f"line {line}", document
        elif number:
            others = {name: value for name, value in document.items() if name not in ("id", "_id")}
            yield f"line {line}", {"id": str(line), **others}
        else:
            report(f'line {line} is left out, it has no id: name one "id", or let --number-lines give one')


def _folder(folder: Path, report: Report) -> Iterator[tuple[str, Document]]:
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() not in _FOLDER_TYPES or not path.is_file():
            continue
        try:
            text = path.read_text("utf-8", errors="replace")
        except OSError as error:
            report(f"{safe(str(path))} is left out: {error.strerror}")
            continue
        if "\ufffd" in text:
            warn(f"{safe(str(path))} has characters that are no UTF-8, kept as \ufffd")
        body = _without_markup(path, text)
        yield safe(str(path)), {"id": str(path.relative_to(folder)), "title": path.stem, "body": body}


def read_text(path: str, stdin: IO[str]) -> str:
    """The text of a file, as in a folder of texts, or of standard input for "-".

    Raises InvalidDocument for what is no UTF-8 text, MissingExtra for .html without the extra "html".
    """
    try:
        if path == "-":
            return stdin.read() if stdin else ""
        return _without_markup(Path(path), Path(path).read_text("utf-8"))
    except UnicodeDecodeError as error:
        raise InvalidDocument(
            path, f"it is no UTF-8 text: {error.reason} at byte {error.start}", "convert it"
        ) from None


def _without_markup(path: Path, text: str) -> str:
    """The text of a file; of .html what a reader would see."""
    return strip_markup(text) if path.suffix.lower() in (".html", ".htm") else text
