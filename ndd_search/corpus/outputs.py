"""Rows and documents into files: Parquet, JSON lines and CSV, by the name of the file."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from ndd_search.errors import InvalidDocument, importing

_ROWS = 20_000  # in a group of rows of a Parquet file
_KINDS = ".parquet, .jsonl or .csv (the last two also with .gz)"


def write(path: str | Path, rows: Iterable[Mapping[str, Any]]) -> int:
    """Write rows; a file that is there is replaced when the new one is whole. Returns how many rows were written.

    Columns of .parquet and .csv are the fields of the first rows. Raises ValueError for another kind of file,
    InvalidDocument for a row that does not fit the columns.
    """
    path = Path(path)
    kind = check_kind(path)
    partial = path.with_name(f"{path.name}.new")
    try:
        count = {"parquet": _parquet, "jsonl": _lines, "csv": _csv}[kind](partial, path.suffix == ".gz", iter(rows))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return count


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
    first = list(islice(rows, _ROWS))
    names = list(dict.fromkeys(name for row in first for name in row))
    table = pa.Table.from_pylist([{name: row.get(name) for name in names} for row in first])
    count = 0
    with parquet.ParquetWriter(path, table.schema, compression="zstd") as file:
        while table.num_rows:
            file.write_table(table)
            count += table.num_rows
            following = list(islice(rows, _ROWS))
            try:
                table = pa.Table.from_pylist(following, schema=table.schema)
            except pa.ArrowException as error:
                what = f"it does not fit the columns of the first {_ROWS:,} rows: {str(error).splitlines()[0]}"
                raise InvalidDocument(f"a row after row {count:,}", what, "write .jsonl") from None
            if more := {name for row in following for name in row} - set(names):
                what = f"it has the field {min(more)!r}, which the first {_ROWS:,} rows have not"
                raise InvalidDocument(f"a row after row {count:,}", what, "write .jsonl")
    return count


@contextmanager
def _text(path: Path, packed: bool) -> Iterator[IO[str]]:
    with gzip.open(path, "wt", encoding="utf-8") if packed else path.open("w", encoding="utf-8", newline="") as file:
        yield file


def _lines(path: Path, packed: bool, rows: Iterator[Mapping[str, Any]]) -> int:
    count = 0
    with _text(path, packed) as file:
        for row in rows:
            count += 1
            file.write(line_of(row) + "\n")
    return count


def line_of(row: Mapping[str, Any]) -> str:
    """A row as a line of JSON."""
    return json.dumps(row, ensure_ascii=False, default=str)


def _csv(path: Path, packed: bool, rows: Iterator[Mapping[str, Any]]) -> int:
    first = list(islice(rows, _ROWS))
    names = list(dict.fromkeys(name for row in first for name in row))
    count = 0
    with _text(path, packed) as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        for count, row in enumerate(chain(first, rows), 1):
            if more := row.keys() - set(names):
                what = f"it has the field {min(more)!r}, which the first {_ROWS:,} rows have not"
                raise InvalidDocument(f"row {count:,}", what, "write .jsonl")
            writer.writerow(row)
    return count
