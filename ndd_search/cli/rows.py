"""Documents out of one file or standard input: JSON lines, a JSON array or CSV, read in bounded memory."""

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
from typing import IO, Any, cast

from ndd_search.cli.output import warn
from ndd_search.errors import InvalidDocument

Report = Callable[[str], None]
Document = dict[str, Any]
Rows = Iterator[tuple[int, Document]]

STDIN = Path("-")
LONGEST = 64 * 2**20  # bytes of one line, or characters of one element of a JSON array
_CHUNK = 2**20  # characters of a JSON array read at a time
_KINDS = ("jsonl", "ndjson", "csv", "tsv", "json")


def read_rows(source: Path, report: Report) -> Rows:
    """The documents of a file with their numbers, from 1: lines, or elements of a JSON array.

    source: .jsonl, .ndjson, .json, .csv or .tsv, also with .gz; "-" is standard input, whose kind is seen from its
    first character.
    report: told a sentence for every line that cannot be taken.
    Raises ValueError for another kind of file, InvalidDocument for a damaged one.
    """
    kind = source.name.removesuffix(".gz").rpartition(".")[2].lower()
    if source != STDIN and kind not in _KINDS:
        raise ValueError(f"{source}: expected .jsonl, .ndjson, .json, .csv, .tsv (also with .gz) or a folder")
    return _rows(source, kind, report)


def _rows(source: Path, kind: str, report: Report) -> Rows:
    with _opened(source) as file:
        first = _first(file)
        if kind not in ("jsonl", "ndjson", "csv", "tsv"):
            kind = {"[": "array", "{": "jsonl"}.get(first, "csv") if source == STDIN else f"json {first}"
        if kind in ("array", "json ["):
            yield from _array(file, report)
        elif kind in ("csv", "tsv"):
            yield from _csv(_lines(file, source, report), source, report)
        elif kind.startswith("json "):
            yield from _json(file, source, report)
        else:
            yield from json_lines(_lines(file, source, report), report)


@contextmanager
def _opened(source: Path) -> Iterator[io.BufferedReader]:
    """The bytes of a file, or of standard input, unpacked. Raises InvalidDocument where it is damaged."""
    if source == STDIN:
        if sys.stdin is None:  # the caller has closed it
            raise InvalidDocument("-", "standard input is closed", "give it a file, or name one")
        file = cast(io.BufferedReader, sys.stdin.buffer)
        packed = file.peek(2)[:2] == b"\x1f\x8b"
    else:
        file, packed = source.open("rb"), source.suffix == ".gz"
    with file, gzip.open(file) if packed else file as unpacked:
        try:
            yield cast(io.BufferedReader, unpacked)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InvalidDocument(source, f"it is no whole gzip file: {error}", "get it again") from None


@contextmanager
def open_text(source: Path) -> Iterator[IO[str]]:
    """A file of lines, also with .gz. Raises InvalidDocument where that is damaged."""
    with _opened(source) as file, io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace", newline="") as text:
        yield text


def _first(file: io.BufferedReader) -> str:
    """The first character that is no space, "" when there is none near; nothing is taken from the file."""
    start = file.peek(_CHUNK).removeprefix(codecs.BOM_UTF8).lstrip()
    return start[:1].decode("latin-1")


def _lines(file: io.BufferedReader, source: Path, report: Report) -> Iterator[str]:
    """The lines of a file, in UTF-8, with their ends.

    Only a line feed ends a line. A line longer than LONGEST is reported, and is empty here, so that the others keep
    their numbers. Raises InvalidDocument for UTF-16.
    """
    number, told = 0, False
    while line := file.readline(LONGEST + 1):
        number += 1
        if number == 1:
            line = _without_mark(line, source)
        if len(line) > LONGEST:
            while line and not line.endswith(b"\n"):
                line = file.readline(LONGEST)
            report(f"line {number} is left out, it is longer than {LONGEST >> 20} MB: split it into several documents")
            yield "\n"
            continue
        try:
            yield line.decode()
        except UnicodeDecodeError:
            if not told:
                warn(f"{source}: line {number} has bytes that are no UTF-8, kept as \ufffd: convert the file first")
            told = True
            yield line.decode(errors="replace")


def _without_mark(start: bytes, source: Path) -> bytes:
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InvalidDocument(source, "it is in UTF-16", "convert it first: iconv -f UTF-16 -t UTF-8")
    return start.removeprefix(codecs.BOM_UTF8)


def json_lines(lines: Iterable[str], report: Report) -> Rows:
    """The JSON objects of some lines with their line numbers, from 1; other lines are reported."""
    decoder, twice = _decoder()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        twice.clear()
        try:
            document = decoder.decode(line)
        except ValueError as error:
            report(f"line {number} is left out, it is no JSON: {error}")
            continue
        except RecursionError:
            report(f"line {number} is left out, it is nested too deep: flatten it")
            continue
        if problem := _problem(document, twice):
            report(f"line {number} is left out, {problem}")
        else:
            yield number, document


def _json(file: io.BufferedReader, source: Path, report: Report) -> Rows:
    """The documents of a .json file that is no array: JSON lines, or one object over several lines."""
    whole = _without_mark(file.read(LONGEST + 1), source)
    if len(whole) <= LONGEST and b"\n" in whole.strip():
        decoder, twice = _decoder()
        try:
            document = decoder.decode(whole.decode())
        except (ValueError, RecursionError):
            pass  # JSON lines, or no JSON at all, of which every line says so
        else:
            if problem := _problem(document, twice):
                report(f"the file is left out, {problem}")
            else:
                yield 1, document
            return
    rest = cast(io.BufferedReader, io.BufferedReader(cast(Any, _Chained(whole, file))))
    yield from json_lines(_lines(rest, source, report), report)


class _Chained(io.RawIOBase):
    """Bytes that were read already, and then the rest of the file that they were read from."""

    def __init__(self, start: bytes, rest: io.BufferedReader) -> None:
        self._start, self._rest = io.BytesIO(start), rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._start.read(len(buffer)) or self._rest.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


def _array(file: io.BufferedReader, report: Report) -> Rows:
    """The objects of a JSON array, an element at a time; other elements are reported."""
    text = codecs.getreader("utf-8-sig")(file, "surrogateescape")
    decoder, twice = _decoder()
    buffer, place, number, ended = text.read(_CHUNK), 0, 0, False
    place = buffer.index("[") + 1
    while True:
        separator = _SEPARATOR.match(buffer, place)
        place = separator.end() if separator else place
        twice.clear()
        try:
            value, end = decoder.raw_decode(buffer, place)
            complete = end < len(buffer)  # the digits of a number may go on in what was not read yet
        except RecursionError:
            report(f"element {number + 1} and all after it are left out, it is nested too deep: flatten it")
            return
        except json.JSONDecodeError as error:
            if buffer[place : place + 1] == "]":
                return
            complete = False
            if ended or len(buffer) - place > LONGEST:
                report(f"element {number + 1} and all after it are left out, they are no JSON: {error.msg}")
                return
        if not complete and not ended:
            more = text.read(max(_CHUNK, len(buffer) - place))
            buffer, place, ended = buffer[place:] + _legible(more, number), 0, not more
            continue
        number, place = number + 1, end
        if problem := _problem(value, twice):
            report(f"element {number} is left out, {problem}")
        else:
            yield number, value


_SEPARATOR = re.compile(r"[\s,]*")


def _legible(text: str, number: int) -> str:
    """The text with U+FFFD for every byte that is no UTF-8, which is said."""
    try:
        text.encode()
    except UnicodeEncodeError:
        warn(f"after element {number} are bytes that are no UTF-8, kept as \ufffd: convert the file first")
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return text


def _decoder() -> tuple[json.JSONDecoder, list[str]]:
    """A decoder of JSON, and the list in which it notes keys that one object has twice."""
    twice: list[str] = []

    def taken(pairs: list[tuple[str, Any]]) -> Document:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice.append(next(name for name in found if names.count(name) > 1))
        return found

    return json.JSONDecoder(object_pairs_hook=taken), twice


def _problem(value: Any, twice: Sequence[str]) -> str | None:
    """Why a JSON value is no document, None when it is one."""
    if not isinstance(value, dict):
        return f"it is no JSON object but {type(value).__name__}"
    return f"it has the key {twice[0]!r} twice: rename one" if twice else None


def _csv(lines: Iterator[str], source: Path, report: Report) -> Rows:
    """The rows of a table with a header, by the header's names.

    The delimiter is the one that parts the header into most columns: a comma, semicolon, tab or bar. A column without
    a name is called by its number. Raises InvalidDocument for two columns of one name.
    """
    csv.field_size_limit(LONGEST)
    first = next(lines, "")
    if "\r" in first.rstrip("\r\n") and not first.endswith("\n"):  # only carriage returns end the lines of this file
        lines = chain(re.findall(r"[^\r]*\r|[^\r]+", first), lines)
        first = next(lines)
    between = max(",;\t|", key=lambda mark: len(next(csv.reader([first], delimiter=mark), [])))
    # Strict, or a quote that is never closed takes the rest of the file without a word.
    rows = csv.reader(chain([first], lines), delimiter=between, strict=True)
    names: list[str] | None = None
    told = False
    while True:
        start = rows.line_num + 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            many = f"lines {start} to {rows.line_num} are" if rows.line_num > start else f"line {start} is"
            report(f"{many} left out, it is no CSV: {error}")
            continue
        if names is None:
            names = _header(row, source)
        elif any(row[len(names) :]):
            report(f"line {start} is left out, it has more fields than the header")
        elif row:
            if len(row) < len(names) and not told:
                told = True
                what = f"{source}: line {start} has fewer fields than the header"
                warn(f"{what}: its document goes without the last ones, as do those of later such lines")
            yield start, dict(zip(names, row, strict=False))


def _header(row: Sequence[str], source: Path) -> list[str]:
    names = [name if name.strip() else f"column {place}" for place, name in enumerate(row, 1)]
    for name in names:
        if names.count(name) > 1:
            raise InvalidDocument(source, f"two of its columns are named {name!r}", "rename one of them")
    if unnamed := [name for name, given in zip(names, row, strict=True) if name != given]:
        warn(f"{source}: a column without a name is called by its place: {', '.join(unnamed)}")
    return names
