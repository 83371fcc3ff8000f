"""The documents of a collection, a batch at a time: out of files, folders, tables, an index or any iterable."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ndd_search.core.document_fields import as_mapping, value_of
from ndd_search.core.exact_numbers import json_with_written
from ndd_search.core.text.printable import many
from ndd_search.errors import InvalidDocument, importing
from ndd_search.sources.csv_and_json import read_rows, unit_of
from ndd_search.sources.documents_with_ids import SourceOptions, read_documents

BATCH = 4_096  # documents read at a time
TOLD = 20  # sentences about one source, before the others are only counted
_QUOTED = 80  # characters of an id in a sentence

Document = Mapping[str, Any]
Report = Callable[[str], None]


@dataclass(frozen=True)
class IndexSource:
    """An index of Elasticsearch or OpenSearch as a source of documents, read as it is at one moment.

    client: of elasticsearch-py or opensearch-py.
    index:  its name, an alias or a pattern.
    query:  which documents, as under "query" of a search request; None for all.
    slice:  a point in time (None where the server has none), and which of how many slices of it; None for a new one.

    A document is its `_source` with its `_id`.
    """

    client: Any
    index: str
    query: Mapping[str, Any] | None = None
    slice: tuple[str | None, int, int] | None = None


@dataclass(frozen=True)
class Pieces:
    """What the sources of a collection consist of: files, folders, tables, indexes and iterables, in their order."""

    pieces: tuple[object, ...]

    @classmethod
    def of(cls, sources: Iterable[object]) -> Pieces:
        """Look up the paths among some sources.

        A source is a path or a pattern of paths, a table with `__arrow_c_stream__` (pyarrow, polars, pandas, DuckDB),
        an IndexSource, or an iterable of mappings. Raises InvalidDocument for a path that names nothing, TypeError for
        anything else.
        """
        pieces: list[object] = []
        for source in sources:
            if isinstance(source, str | Path):
                pieces += _paths(source)
            elif _is_other_source(source):
                pieces.append(source)
            else:
                what = "paths, tables, an IndexSource or iterables of mappings"
                raise TypeError(f"a collection is read from {what}, got {type(source).__name__}")
        return cls(tuple(pieces))

    @property
    def read_once(self) -> bool:
        """Whether reading uses one of them up."""
        return any(isinstance(piece, Iterator) for piece in self.pieces)

    def check_outputs(self, *outputs: str | None, folders: bool = False) -> None:
        """Raise ValueError for a file to write that is one of these sources, a folder or in none, or is named twice.

        folders: whether outputs are folders, which are replaced with all that they hold.
        """
        read = {piece.resolve() for piece in self.pieces if isinstance(piece, Path)}
        read |= {folder for path in read for folder in path.parents} if folders else set()
        written: set[Path] = set()
        for name in filter(None, outputs):
            path = Path(name).resolve()
            if path in read:
                what = "holds" if folders else "is"
                raise ValueError(f"{name} {what} one of the sources, and would be overwritten: write to another file")
            if path in written:
                raise ValueError(f"{name} is named for two outputs, and one would be overwritten: name another file")
            if path.is_dir() and not folders:
                raise ValueError(f"{name} cannot be written: it is a folder; name a file")
            if not Path(name).parent.is_dir() and not folders:
                raise ValueError(f"{name} cannot be written: there is no folder {Path(name).parent}")
            if not os.access(path.parent, os.W_OK) and not folders:
                raise ValueError(f"{name} cannot be written: you may not write into the folder {path.parent}")
            written.add(path)

    def read(
        self,
        report: Report,
        id: str | None,
        columns: Sequence[str] | None = None,
        exact: bool = False,
        prefix: str = "",
    ) -> Iterator[Batch]:
        """The documents, in batches.

        Documents of a source whose first batch has no ids have their places there as ids, after the source's number if
        there are several: also a later one with an id, which could be the place of another one.

        report:  told a sentence for every line or file that cannot be read; all others are read.
        id:      the field that holds the id of a document; None for "_id" or "id".
        columns: the fields to read, where a piece can leave the others out; None for all.
        exact:   as for csv_and_json.read_rows.
        prefix:  what stands before a place as id, if not the number of the source.
        """
        for number, piece in enumerate(self.pieces):
            sayings = Sayings(report, str(piece) if isinstance(piece, Path) else "a source")
            before = prefix or (f"{number}:" if len(self.pieces) > 1 else "")
            done, has_ids = 0, False
            for batch in _batches(piece, sayings, columns, exact):
                names = [id_of(document, id) for document in batch]
                has_ids = has_ids or (not done and any(name != "" for name in names))
                places = range(done, done + len(batch))
                names = [name or None for name in names] if has_ids else [f"{before}{place}" for place in places]
                done += len(batch)
                yield Batch(batch, names)
            sayings.end()

    def kept(
        self, report: Report, id: str | None, columns: Sequence[str] | None = None, exact: bool = False
    ) -> Iterator[Batch]:
        """The same without documents that lack an id or have that of an earlier one, which are told at the end.

        Raises InvalidDocument if there are documents, and none has an id.
        """
        left_out, seen, there, place = LeftOut(self, id), set[str](), dict[str, None](), 0
        for batch in self.read(report, id, columns, exact):
            there = there or dict.fromkeys(name for document in batch.documents for name in document)
            documents, ids = list[Document](), list[str]()
            for name, document in zip(batch.ids, batch.documents, strict=True):
                place += 1
                if name is None or name in seen or not is_text(name):
                    left_out.add(place, name)
                else:
                    seen.add(name)
                    ids.append(name)
                    documents.append(document)
            yield Batch(documents, ids)
        left_out.tell(report, place - len(seen), len(seen), there)

    def named(self, numbers: Iterable[int]) -> dict[int, str]:
        """Return names of documents by their ascending numbers, from 1: those of files by their file and line.

        The files are read again, up to the last of these documents. Documents of other sources have no name.
        """
        names: dict[int, str] = {}
        wanted = iter(() if self.read_once else numbers)
        number, count = next(wanted, None), 0
        for piece in self.pieces:
            if number is None or isinstance(piece, IndexSource):  # which gives its documents in any order
                break
            for name in _names(piece):
                count += 1
                if count == number:
                    names |= {number: name} if name else {}
                    if (number := next(wanted, None)) is None:
                        break
        return names


class Batch(NamedTuple):
    """Some documents of a collection. ids: of each, None for one that lacks it."""

    documents: list[Document]
    ids: Sequence[str | None]


class Sayings:
    """Passes sentences on; of many about one source only the first, and how many more there were."""

    def __init__(self, report: Report, name: str) -> None:
        self._report, self._name, self._count = report, name, 0

    def __call__(self, sentence: str) -> None:
        """Pass a sentence on."""
        self._count += 1
        if self._count <= TOLD:
            self._report(sentence if self._name in sentence else f"{self._name}: {sentence}")

    def end(self) -> None:
        """Say how many were not passed on."""
        if self._count > TOLD:
            self._report(f"{self._name}: {self._count - TOLD:,} more of its lines or documents are left out")


class LeftOut:
    """The documents that a collection leaves out because of their ids.

    field: see id_of.
    """

    def __init__(self, pieces: Pieces, field: str | None) -> None:
        self._pieces = pieces
        self._fields = repr(field) if field else "'_id' or 'id'"
        self._first: dict[int, str | None] = {}
        self._has_ids = False

    def add(self, number: int, name: str | None) -> None:
        """Leave a document out. number: of the document, from 1. name: its id, None for one without."""
        self._has_ids |= name is not None
        if len(self._first) < TOLD:
            self._first[number] = name

    def tell(self, report: Report, count: int, kept: int, fields: Iterable[str]) -> None:
        """Say which they are and why. The sources are read again for the lines of the first.

        count: how many they are. kept: how many documents there are beside. fields: of the first documents.
        Raises InvalidDocument if no document has an id.
        """
        if count and not kept and not self._has_ids:
            there = ", ".join(fields)
            what = f"none of them has anything in {self._fields}" + (f"; the fields there are {there}" if there else "")
            raise InvalidDocument(many(count, "document"), what, "name the field that holds the ids")
        named = self._pieces.named(self._first) if self._first else {}
        for number, name in self._first.items():
            report(f"the collection: {named.get(number, f'document {number}')} is left out, {self._why(name)}")
        if count > len(self._first):
            more = f"{count - len(self._first):,} {'more ' if self._first else ''}of its lines or documents"
            report(f"the collection: {more} are left out, because of their ids")

    def _why(self, name: str | None) -> str:
        if name is None:
            return f"it has nothing in {self._fields}, which is to hold its id"
        name = name if len(name) <= _QUOTED else f"{name[: _QUOTED - 1]}…"
        if not is_text(name):
            return f"its id {name!r} has a lone surrogate, which UTF-8 cannot hold"
        return f"an earlier one has its id, {name!r}"


def id_of(document: Document, field: str | None) -> str | None:
    """The id of a document as text, None where the field that should hold it holds nothing.

    field: None for "_id" or "id"; a document with neither has the id "".
    """
    if field is not None:
        value = value_of(document, field)
        return None if value is None or value == "" else str(value)
    for name in ("_id", "id"):
        if (value := document.get(name)) not in (None, ""):
            return str(value)
    return None if "_id" in document or "id" in document else ""


def is_text(name: str) -> bool:
    """Whether UTF-8 can hold a text: it cannot hold a lone surrogate."""
    if name.isascii():
        return True
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_other_source(source: object) -> bool:
    if isinstance(source, IndexSource) or hasattr(source, "__arrow_c_stream__"):
        return True
    return isinstance(source, Iterable) and not isinstance(source, Mapping | bytes)


def _names(piece: object) -> Iterator[str]:
    """Yield a name for each document of a source, "" for one that is in no file of lines."""

    def nothing(sentence: str) -> None:
        """Do without what was told when the documents were read."""

    if isinstance(piece, Path) and piece.suffix != ".parquet" and not piece.is_dir():
        unit = unit_of(piece)
        yield from (f"{piece}, {unit} {number}," for number, _ in read_rows(piece, nothing, nothing))
    else:
        for batch in _batches(piece, nothing, None, exact=False):
            yield from (
                f"{piece / str(one['id'])}," if isinstance(piece, Path) and piece.is_dir() else "" for one in batch
            )


def _paths(source: str | Path) -> list[Path]:
    path = Path(source)
    if path.suffix == ".parquet" and path.is_dir():  # as Spark writes it
        if not (parts := sorted(path.glob("*.parquet"))):
            raise InvalidDocument(str(source), "it is a folder without .parquet files", "check the path")
        return parts
    if path.exists():
        return [path]
    found = sorted(map(Path, glob.glob(str(source), recursive=True)))
    if not found:
        raise InvalidDocument(str(source), "no file has this name or matches this pattern", "check the path")
    return found


def _batches(piece: object, report: Report, columns: Sequence[str] | None, exact: bool) -> Iterator[list[Document]]:
    if isinstance(piece, Path):
        return _parquet(piece, report, columns) if piece.suffix == ".parquet" else _file(piece, report, exact)
    if isinstance(piece, IndexSource):
        return _index(piece, columns, exact)
    if hasattr(piece, "__arrow_c_stream__"):
        return _arrow(piece, columns)
    return _mappings(piece)  # type: ignore[arg-type]


def _file(path: Path, report: Report, exact: bool) -> Iterator[list[Document]]:
    def documents() -> Iterator[Document]:
        try:
            if path.is_dir():
                yield from read_documents(path, SourceOptions(), report=report, note=report)
            else:
                yield from (document for _, document in read_rows(path, report, report, exact))
        except (InvalidDocument, OSError) as error:
            report(f"{path} is left out from here on: {error}")

    rest, is_empty = documents(), True
    while batch := list(islice(rest, BATCH)):
        is_empty = False
        yield batch
    if is_empty and path.is_dir():
        report(f"{path} holds no file of text, HTML or mails; name others by a pattern, such as {path / '*.jsonl'}")


def _parquet(path: Path, report: Report, columns: Sequence[str] | None) -> Iterator[list[Document]]:
    with importing("pyarrow", "reading Parquet", "pyarrow", "corpus"):
        import pyarrow as pa
        from pyarrow import parquet
    try:
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            for batch in file.iter_batches(BATCH, columns=_there(columns, file.schema_arrow.names)):
                yield _rows(batch, str(path))
    except (pa.ArrowException, OSError) as error:
        report(f"{path} is left out from here on: {str(error).splitlines()[0]}")


def _arrow(table: object, columns: Sequence[str] | None) -> Iterator[list[Document]]:
    with importing("pyarrow", "reading tables", "pyarrow", "corpus"):
        import pyarrow as pa
    whole = pa.table(table)
    for batch in whole.select(_there(columns, whole.column_names) or whole.column_names).to_batches(BATCH):
        yield _rows(batch, "the table")


def _rows(batch: Any, name: str) -> list[Document]:
    """The rows of a batch of pyarrow. name: of its source. Raises InvalidDocument for a value that cannot be read."""
    columns = {}
    for column, values in zip(batch.schema.names, batch.columns, strict=True):
        try:
            columns[column] = values.to_pylist()
        except (ValueError, OverflowError) as error:  # nanoseconds, which only pandas can hold, or a year beyond 9999
            what = f"a value of its column {column!r} cannot be read: {str(error).partition('. ')[0]}"
            raise InvalidDocument(name, what, "convert the column; nanoseconds can be read with pandas") from None
    if len(columns) < len(batch.columns):
        twice = max(columns, key=batch.schema.names.count)
        raise InvalidDocument(name, f"two of its columns are named {twice!r}", "rename one of them")
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _there(columns: Sequence[str] | None, names: Sequence[str]) -> list[str] | None:
    """The columns that hold some fields: a field "author.name" may be in a column "author"."""
    if columns is None:
        return None
    wanted = {one for name in columns for one in (name, name.partition(".")[0])}
    return [name for name in names if name in wanted or name in ("id", "_id")]


def _index(source: IndexSource, columns: Sequence[str] | None, exact: bool) -> Iterator[list[Document]]:
    from ndd_search.indexing.rate_and_retries import Retry
    from ndd_search.indexing.scan import Snapshot, snapshot, with_json

    client = with_json(source.client, json_with_written) if exact else source.client
    body = {"query": source.query or {"match_all": {}}, "_source": True if columns is None else list(columns)}
    point, number, count = source.slice or (None, 0, 1)
    given = Snapshot(client, source.index, point, Retry())
    with nullcontext(given) if source.slice else snapshot(client, source.index, Retry()) as now:
        for hits in now.pages(body, 1_000, (number, count)):
            yield [{**hit.get("_source", {}), "_id": hit["_id"]} for hit in hits]


def _mappings(source: Iterable[Document]) -> Iterator[list[Document]]:
    rest, read = iter(source), 0
    while batch := list(islice(rest, BATCH)):
        batch = [one if type(one) is dict else as_mapping(one) for one in batch]
        for place, document in enumerate(batch, read):
            if type(document) is not dict and not isinstance(document, Mapping):
                what = f"it is a {type(document).__name__}, not a mapping of fields"
                raise InvalidDocument(f"document {place} of an iterable", what, "give mappings, tables or paths")
        read += len(batch)
        yield batch
