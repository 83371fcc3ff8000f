"""Rows and documents into files: Parquet, JSON lines and CSV, by the name of the file."""

from __future__ import annotations

import csv
import gzip
import json
import logging
import re
import secrets
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from decimal import Decimal
from itertools import chain, islice
from math import isnan
from pathlib import Path
from typing import IO, Any

import numpy as np

from ndd_search.atomic_file import replacing
from ndd_search.core.exact_numbers import WrittenNumber, holds_written
from ndd_search.core.text.printable import many
from ndd_search.errors import InvalidDocument, importing

log = logging.getLogger("ndd_search")

_FORMULA = re.compile(r"[=@\t\r]|[+-](?![\d.]+$)")
_MARK = secrets.token_hex(8)  # so that no text of a document is taken for a number
_MARKED = re.compile(f'"{_MARK}([^"]*)"')
_ROWS = 20_000  # in a group of rows of a Parquet file
_EXACT = {"string": str, "int64": int, "double": float, "bool": bool}  # columns that hold all values of a type as given
_KINDS = ".parquet, .jsonl or .csv (the last two also with .gz)"


def write(path: str | Path, rows: Iterable[Mapping[str, Any]]) -> int:
    """Write rows; a file that is there is replaced when the new one is whole. Returns how many rows were written.

    Columns of .parquet and .csv are the fields of the first rows. Raises ValueError for another kind of file,
    InvalidDocument for a row that does not fit the columns.
    """
    kind = check_kind(path)
    path = Path(path)
    try:
        with replacing(path) as partial:
            return {"parquet": _parquet, "jsonl": _lines, "csv": _csv}[kind](partial, path.suffix == ".gz", iter(rows))
    except OSError as error:
        error.filename = error.filename or str(path)  # an error of writing names no file
        raise


def check_kind(path: str | Path) -> str:
    """ "parquet", "jsonl" or "csv". Raises ValueError for another kind of file."""
    name = str(path).removesuffix(".gz")
    for ending, kind in ((".jsonl", "jsonl"), (".ndjson", "jsonl"), (".csv", "csv")):
        if name.endswith(ending):
            return kind
    if str(path).endswith(".parquet"):
        return "parquet"
    raise ValueError(f"{path}: expected a name that ends in {_KINDS}")


def _parquet(path: Path, _: bool, rows: Iterator[Mapping[str, Any]]) -> int:
    with importing("pyarrow", "writing Parquet", "pyarrow", "corpus"):
        import pyarrow as pa
        from pyarrow import parquet
    batch = list(islice(rows, _ROWS))
    names = list(dict.fromkeys(name for row in batch for name in row))
    count = 0
    try:
        table = pa.Table.from_pylist([{name: row.get(name) for name in names} for row in batch])
        with parquet.ParquetWriter(path, table.schema, compression="zstd", write_page_checksum=True) as file:
            while table.num_rows:
                _check_unchanged(batch, table, count)
                file.write_table(table)
                count += table.num_rows
                batch = list(islice(rows, _ROWS))
                table = pa.Table.from_pylist(batch, schema=table.schema)
    except (pa.ArrowException, UnicodeEncodeError, OverflowError) as error:
        what = f"Parquet cannot hold it in the columns of the first {_ROWS:,} rows: {str(error).splitlines()[0]}"
        raise InvalidDocument(f"a row after row {count:,}", what, "write .jsonl") from None
    return count


def _check_unchanged(rows: list[Mapping[str, Any]], table: Any, count: int) -> None:
    """Raise InvalidDocument if a table of pyarrow holds another value than the rows that it was made of, or none.

    pyarrow makes 1 of 1.5 in a column of integers, a date of a time, and bytes of a text, rounds numbers that no float
    has exactly, and leaves out what the columns lack. count: rows before these.
    """
    known = set(table.column_names)
    for place, row in enumerate(rows, count + 1):
        _check_fields(row, known, place)
    for name in table.column_names:
        values, column = [row.get(name) for row in rows], table.column(name)
        if set(map(type, values)) <= {_EXACT.get(str(column.type)), type(None)}:
            continue
        for place, (value, held) in enumerate(zip(values, column.to_pylist(), strict=True), count + 1):
            if not _is_unchanged(value, held):
                shown = value.text if isinstance(value, WrittenNumber) else repr(value)
                what = f"a column of {column.type} cannot hold {name!r}: {shown:.100}"
                raise InvalidDocument(f"row {place:,}", what, "write .jsonl")


def _is_unchanged(value: Any, held: Any) -> bool:
    """Whether a value of a row is the same in a table, where objects have all keys of their column."""
    if isinstance(value, WrittenNumber):
        return False  # no float has it exactly
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return isinstance(held, Mapping) and all(_is_unchanged(one, held.get(name)) for name, one in value.items())
    if isinstance(value, list | tuple):
        return isinstance(held, list) and len(value) == len(held) and all(map(_is_unchanged, value, held))
    if isinstance(value, float) and isnan(value):
        return isinstance(held, float) and isnan(held)
    return bool(value == held) and isinstance(value, bool) == isinstance(held, bool)


def _check_fields(row: Mapping[str, Any], names: Set[str], place: int) -> None:
    """Raise InvalidDocument for a field that the columns lack. place: of the row, from 1."""
    if more := row.keys() - names:
        what = f"it has the field {min(more)!r}, which the first {_ROWS:,} rows have not"
        raise InvalidDocument(f"row {place:,}", what, "write .jsonl")


@contextmanager
def _text(path: Path, packed: bool, errors: str = "strict") -> Iterator[IO[str]]:
    opened = gzip.open if packed else open
    with opened(path, "wt", encoding="utf-8", errors=errors, newline="") as file:
        yield file


def _lines(path: Path, packed: bool, rows: Iterator[Mapping[str, Any]]) -> int:
    count = 0
    with _text(path, packed, "backslashreplace") as file:  # a lone surrogate becomes its escape in JSON
        for row in rows:
            count += 1
            file.write(line_of(row) + "\n")
    return count


def line_of(value: Any, sort_keys: bool = False) -> str:
    """A row or another value as a line of JSON. Numbers read with `exact`, and decimals, keep their digits."""
    given = _marked(value) if holds_written(value) else value
    line = json.dumps(given, ensure_ascii=False, default=_as_json, sort_keys=sort_keys)
    return _MARKED.sub(r"\1", line) if _MARK in line else line


def _as_json(value: Any) -> str:
    """A value that json cannot write as a text: bytes in Base64, as a binary field of the engines holds them.

    A Decimal becomes a marked text, as a WrittenNumber does.
    """
    if isinstance(value, Decimal) and value.is_finite():
        return f"{_MARK}{value:f}"
    return b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _marked(value: Any) -> Any:
    """Return a value with each WrittenNumber as a marked text."""
    if isinstance(value, Mapping):
        return {name: _marked(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return list(map(_marked, value))
    return f"{_MARK}{value.text}" if isinstance(value, WrittenNumber) else value


def _csv(path: Path, packed: bool, rows: Iterator[Mapping[str, Any]]) -> int:
    first = list(islice(rows, _ROWS))
    names = list(dict.fromkeys(name for row in first for name in row))
    count, formulas, known = 0, 0, set(names)
    with _text(path, packed) as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        for count, row in enumerate(chain(first, rows), 1):
            formulas += any(isinstance(one, str) and _FORMULA.match(one) for one in row.values())
            _check_fields(row, known, count)
            try:
                writer.writerow({name: _cell(value) for name, value in row.items()})
            except UnicodeEncodeError:
                what = "it has a lone surrogate, which CSV in UTF-8 cannot hold"
                raise InvalidDocument(f"row {count:,}", what, "write .jsonl") from None
    if formulas:
        what = "of the CSV file begin a cell with =, +, - or @, which spreadsheets compute: import its cells as text"
        log.warning("%s %s", many(formulas, "row"), what)
    return count


def _cell(value: Any) -> Any:
    """A value of a CSV file: objects, lists and booleans as JSON."""
    if isinstance(value, bytes):
        return _as_json(value)
    is_json = isinstance(value, Mapping | list | tuple | bool | WrittenNumber)
    return line_of(value) if is_json else value
