"""Documents from one file or standard input: JSON lines, a JSON array, CSV or mails.

Memory holds a line at a time; of a JSON array its text, and an element at a time.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, cast

from ndd_search.core.exact_numbers import WrittenNumber
from ndd_search.errors import InvalidDocument
from ndd_search.sources.mails import MAILS, read_mails

Report = Callable[[str], None]  # takes a sentence for the user
Document = dict[str, Any]
Rows = Iterator[tuple[int, Document]]

STDIN = Path("-")
LONGEST = 64 * 2**20  # bytes of one line
_CHUNK = 2**20  # bytes of a file that are looked at for its first character
_KINDS = ("jsonl", "ndjson", "csv", "tsv", "json")


def read_rows(source: Path, report: Report, note: Report, exact: bool = False) -> Rows:
    """Yield the documents of a file with their numbers, from 1: of lines, elements of a JSON array, or mails.

    source: .jsonl, .ndjson, .json, .csv or .tsv, also with .gz; .eml or .mbox (see read_mails); "-" is standard input,
            whose format is detected by its first character.
    report: called with a sentence for every line that is skipped.
    note:   called with a sentence for what was replaced, or is missing, in lines that are not skipped.
    exact:  whether numbers of JSON that no float has exactly are WrittenNumber; documents with vectors take three times
            as long to read.
    Raises ValueError for another kind of file, InvalidDocument for a damaged one.
    """
    if source.suffix.lower() in MAILS:
        return read_mails(source, source.name, report, {})
    kind = source.name.removesuffix(".gz").rpartition(".")[2].lower()
    if source != STDIN and kind not in _KINDS:
        raise ValueError(
            f"{source}: expected .jsonl, .ndjson, .json, .csv, .tsv (also with .gz), .eml, .mbox or a folder"
        )
    return _rows(source, kind, report, note, exact)


def unit_of(source: Path) -> str:
    """Return what `read_rows` counts in a file: "line", "element" or "mail"."""
    if source.suffix.lower() in MAILS:
        return "mail"
    if not source.name.removesuffix(".gz").endswith(".json"):
        return "line"
    with _opened(source) as file:
        return "element" if _first(file) == "[" else "line"


def _rows(source: Path, kind: str, report: Report, note: Report, exact: bool) -> Rows:
    with _opened(source) as file:
        first = _first(file)
        if source == STDIN:
            kind = {"[": "json", "{": "jsonl"}.get(first, "csv")
        if kind in ("csv", "tsv"):
            yield from _csv(_lines(file, source, report, note), source, report, note)
        elif kind != "json":
            yield from json_lines(_lines(file, source, report, note), report, exact)
        elif first == "[":
            yield from _array(_legible(_without_mark(file.read(), source), str(source), note), report, exact)
        else:
            yield from _json(file, source, report, note, exact)


@contextmanager
def _opened(source: Path) -> Iterator[io.BufferedReader]:
    """Open a file or standard input for reading bytes, decompressed. Raises InvalidDocument if it is damaged."""
    if source == STDIN:
        if sys.stdin is None:  # the caller has closed it
            raise InvalidDocument("-", "standard input is closed", "redirect a file to it, or name a file")
        file = cast(io.BufferedReader, sys.stdin.buffer)
        packed = file.peek(2)[:2] == b"\x1f\x8b"
    else:
        file, packed = source.open("rb"), source.suffix == ".gz"
    with file, gzip.open(file) if packed else file as unpacked:
        try:
            yield cast(io.BufferedReader, unpacked)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InvalidDocument(
                source, f"it is not a complete gzip file: {error}", "download or create it again"
            ) from None


def text_lines(source: Path, report: Report) -> Iterator[str]:
    """Yield the lines of a text file, also with .gz, with their ends. Raises InvalidDocument if it is damaged.

    report: called with a sentence for a line that is too long, and for bytes that are not UTF-8.
    """
    with _opened(source) as file:
        yield from _lines(file, source, report, report)


def input_lines(source: Path, note: Report) -> list[str]:
    """Return the lines of a file, also with .gz, or of standard input, in UTF-8, without the line feeds that end them.

    A byte that is not UTF-8 becomes a lone surrogate, so that cli.output.print_line can write the byte back; note is
    called with a sentence about it. A mark of UTF-8 at the start is left out. Raises InvalidDocument for UTF-16.
    """
    if source != STDIN:
        with _opened(source) as file:
            raw = file.read()
    elif sys.stdin is None:  # the caller has closed it
        return []
    else:
        raw = sys.stdin.buffer.read()
    raw = _without_mark(raw, source)
    try:
        lines = raw.decode().split("\n")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        note(f"{source}: line {line} has bytes that are not UTF-8, which are no letters here: convert it to UTF-8")
        lines = raw.decode("utf-8", "surrogateescape").split("\n")
    return lines if lines[-1] else lines[:-1]


def _first(file: io.BufferedReader) -> str:
    """The first character that is not white space, "" if the buffer has none; the file position does not move."""
    start = file.peek(_CHUNK).removeprefix(codecs.BOM_UTF8).lstrip()
    return start[:1].decode("latin-1")


def _lines(file: io.BufferedReader, source: Path, report: Report, note: Report) -> Iterator[str]:
    """Yield the lines of a file, in UTF-8, with their line ends.

    Only a line feed ends a line. A line longer than LONGEST is reported and yielded as an empty one, so that the
    others keep their numbers. Raises InvalidDocument for UTF-16.
    """
    number, told = 0, list[str]()

    def noted(sentence: str) -> None:
        told.append(sentence)
        if len(told) == 1:
            note(sentence)

    while line := file.readline(LONGEST + 1):
        number += 1
        if number == 1:
            line = _without_mark(line, source)
        if len(line) > LONGEST:
            while line and not line.endswith(b"\n"):
                line = file.readline(LONGEST)
            report(f"line {number} was skipped, it is longer than {LONGEST >> 20} MB: split it into several documents")
            yield "\n"
            continue
        yield _legible(line, f"{source}: line {number}", noted)


def _without_mark(start: bytes, source: Path) -> bytes:
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InvalidDocument(source, "it is in UTF-16", "convert it first: iconv -f UTF-16 -t UTF-8")
    return start.removeprefix(codecs.BOM_UTF8)


def json_lines(lines: Iterable[str], report: Report, exact: bool = False) -> Rows:
    """Yield the JSON objects of lines with their line numbers, from 1; other lines are reported."""
    decoder, twice = _decoder(exact)
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        twice.clear()
        try:
            document = decoder.decode(line)
        except ValueError as error:
            report(f"line {number} was skipped, it is not JSON: {error}")
            continue
        except RecursionError:
            report(f"line {number} was skipped, it is nested too deep: flatten it")
            continue
        if problem := _problem(document, twice):
            report(f"line {number} was skipped, {problem}")
        else:
            yield number, document


def _json(file: io.BufferedReader, source: Path, report: Report, note: Report, exact: bool) -> Rows:
    """Yield the documents of a .json file that is not an array: JSON lines, or one object over several lines."""
    whole = _without_mark(file.read(LONGEST + 1), source)
    if len(whole) <= LONGEST and b"\n" in whole.strip():
        decoder, twice = _decoder(exact)
        try:
            document = decoder.decode(whole.decode())
        except (ValueError, RecursionError):
            pass  # JSON lines; if it is not JSON at all, every line is reported
        else:
            if problem := _problem(document, twice):
                report(f"the file was skipped, {problem}")
            else:
                yield 1, document
            return
    file.seek(0)
    yield from json_lines(_lines(file, source, report, note), report, exact)


def _array(text: str, report: Report, exact: bool) -> Rows:
    """Yield the objects of a JSON array; other elements are reported."""
    decoder, twice = _decoder(exact)
    place, number = text.index("[") + 1, 0
    while True:
        separator = _SEPARATOR.match(text, place)
        place = separator.end() if separator else place
        if text[place : place + 1] == "]":
            if text[place + 1 :].strip():
                report("what follows the array was skipped: write one array, or JSON lines")
            return
        number += 1
        twice.clear()
        try:
            value, place = decoder.raw_decode(text, place)
        except RecursionError:
            report(f"element {number} and all after it were skipped, it is nested too deep: flatten it")
            return
        except json.JSONDecodeError as error:
            report(f"element {number} and all after it were skipped, they are not JSON: {error.msg}")
            return
        except ValueError:  # Python reads no longer ones
            what = f"it has an integer of more than {sys.get_int_max_str_digits():,} digits"
            report(f"element {number} and all after it were skipped, {what}: write it as a text")
            return
        if problem := _problem(value, twice):
            report(f"element {number} was skipped, {problem}")
        else:
            yield number, value


_SEPARATOR = re.compile(r"[\s,]*")


def _legible(raw: bytes, where: str, note: Report) -> str:
    """Decode UTF-8. Every other byte is replaced by U+FFFD, with a note."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        note(f"{where} has bytes that are not UTF-8: they were replaced by \ufffd; convert the file to UTF-8")
        return raw.decode(errors="replace")


def _decoder(exact: bool) -> tuple[json.JSONDecoder, list[str]]:
    """Return a JSON decoder, and the list to which it appends each key that an object has twice."""
    twice: list[str] = []

    def to_document(pairs: list[tuple[str, Any]]) -> Document:
        document = dict(pairs)
        if len(document) < len(pairs):
            names = [name for name, _ in pairs]
            twice.append(next(name for name in document if names.count(name) > 1))
        return document

    return json.JSONDecoder(object_pairs_hook=to_document, parse_float=WrittenNumber.of if exact else None), twice


def _problem(value: Any, twice: Sequence[str]) -> str | None:
    """Why a JSON value is not a document, None if it is one."""
    if not isinstance(value, dict):
        return f"it is not a JSON object but {type(value).__name__}"
    return f"it has the key {twice[0]!r} twice: rename one" if twice else None


def _csv(lines: Iterator[str], source: Path, report: Report, note: Report) -> Rows:
    """Yield the rows of a table with a header as mappings with the names of the header.

    The delimiter is whichever of comma, semicolon, tab and bar splits the header into most columns. A column without a
    name is named by its number. Raises InvalidDocument for an invalid header, also if two columns have one name.
    """
    csv.field_size_limit(LONGEST)
    first = next(lines, "")
    if "\r" in first.rstrip("\r\n") and not first.endswith("\n"):  # the lines of this file end with carriage returns
        lines = chain(re.findall(r"[^\r]*\r|[^\r]+", first), lines)
        first = next(lines)
    delimiter = max(",;\t|", key=lambda mark: _columns(first, mark))
    # Strict: otherwise a quote that is never closed would silently swallow the rest of the file.
    rows = csv.reader(chain([first], lines), delimiter=delimiter, strict=True)
    names: list[str] | None = None
    is_noted = False
    while True:
        start = rows.line_num + 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            if names is None:
                problem = f"its header is not valid CSV: {error}"
                raise InvalidDocument(source, problem, "correct its first line") from None
            which = f"lines {start} to {rows.line_num} were" if rows.line_num > start else f"line {start} was"
            report(f"{which} skipped, it is not valid CSV: {error}")
            continue
        if names is None:
            names = _header(row, source, note)
        elif any(row[len(names) :]):
            report(f"line {start} was skipped, it has more fields than the header")
        elif row:
            if len(row) < len(names) and not is_noted:
                is_noted = True
                what = f"{source}: line {start} has fewer fields than the header"
                note(f"{what}: its document, and those of later such lines, lack the last fields")
            yield start, dict(zip(names, row, strict=False))


def _columns(line: str, delimiter: str) -> int:
    """How many columns a delimiter makes of a line, 0 if it is not valid CSV."""
    try:
        return len(next(csv.reader([line], delimiter=delimiter), []))
    except csv.Error:
        return 0


def _header(row: Sequence[str], source: Path, note: Report) -> list[str]:
    row = [name.strip() for name in row]
    names = [name or f"column {place}" for place, name in enumerate(row, 1)]
    for name in names:
        if names.count(name) > 1:
            raise InvalidDocument(source, f"two of its columns are named {name!r}", "rename one of them")
    if unnamed := [name for name, written in zip(names, row, strict=True) if name != written]:
        note(f"{source}: columns without a name were named by their number: {', '.join(unnamed)}")
    return names
