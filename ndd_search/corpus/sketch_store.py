"""Sketches of a collection on disk.

A stored collection is a Parquet file with a row for each document: `id` (text), `sketch` (a list of int32), and a
column for each field that was kept. The schema's metadata names the recipe of the sketches (`ndd_search.core.recipe`),
so sketches of two recipes are never compared.

A Store is a folder that is filled while a collection is read: parts of that form, each with the position in the sources
that the next part begins at, and `reading.json`, which says how the collection is read. A part is written under another
name and renamed when it is whole, so a reading that was killed at any moment goes on after the last whole part. Its
name ends in its checksum. Two readings of the same sources at the same time write equal parts. The pages of every file
have checksums, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from ndd_search.atomic_file import replacing
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import Sketches
from ndd_search.errors import IndexUnusable, InvalidDocument, importing

if TYPE_CHECKING:
    import pyarrow as pa

PART = 50_000  # documents in a part of a store, about
_RECIPE, _NEXT = b"ndd_search.core.recipe", b"ndd_search.next"
_OF_SPARK = b"org.apache.spark.sql.parquet.row.metadata"  # the schema of Spark as JSON
_READING, _PART = "reading.json", "part-{:06}"
_CHUNK = 2**20  # bytes


@dataclass(frozen=True)
class Rows:
    """Some documents of a collection. columns: values of fields, by field."""

    ids: list[str]
    sketches: Sketches
    columns: Mapping[str, list[Any]]

    @classmethod
    def joined(cls, parts: Sequence[Rows], names: Sequence[str]) -> Rows:
        """All of some parts, with these columns."""
        ids = [name for part in parts for name in part.ids]
        columns = {name: [value for part in parts for value in part.columns[name]] for name in names}
        return cls(ids, _read_only(Sketches.joined(part.sketches for part in parts)), columns)


class Store:
    """A folder of sketches that a reading fills.

    folder:  made where there is none.
    reading: how the collection is read, as JSON values; the same each time that a reading goes on.
    Raises IndexUnusable for a folder that holds something else, or another reading.
    """

    def __init__(self, folder: str | Path, recipe: Recipe, reading: Mapping[str, Any]) -> None:
        self.folder, self._recipe, self._count = Path(folder), recipe, 0
        told = {"recipe": recipe.id, **reading}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            there = {path.name for path in self.folder.iterdir() if not path.name.endswith(".new")}
        except (FileExistsError, NotADirectoryError):
            raise IndexUnusable(str(folder), "it is a file, not a folder of sketches", "name another folder") from None
        manifest = self.folder / _READING
        if _READING not in there:
            if there:
                raise IndexUnusable(str(folder), "it holds other files", "name a new or an empty folder")
            with replacing(manifest) as partial:
                partial.write_text(json.dumps(told, indent=1), "utf-8")
            return
        try:
            before = json.loads(manifest.read_text("utf-8"))
        except ValueError:
            raise IndexUnusable(str(manifest), "it is damaged", "delete the folder, and read again") from None
        if different := sorted(name for name in {*told, *before} if told.get(name) != before.get(name)):
            what = f"{', '.join(different)} were others when its first part was written"
            raise IndexUnusable(str(folder), what, "delete the folder, or name another one")

    def parts(self) -> list[tuple[Rows, tuple[int, int, int]]]:
        """The whole parts in their order, each with where the next one begins: see `add`."""
        found = []
        for name in self._names():
            if f"{_checksum(self.folder / name):08x}" not in name:
                raise IndexUnusable(str(self.folder), f"{name} is damaged", "delete the folder, and read again")
            rows, recipe, metadata = read_rows(self.folder / name)
            if recipe != self._recipe or _NEXT not in metadata:
                raise IndexUnusable(str(self.folder), f"{name} is of another reading", "delete the folder")
            piece, done, place = json.loads(metadata[_NEXT])
            found.append((rows, (piece, done, place)))
        self._count = len(found)
        return found

    def add(self, rows: Rows, following: tuple[int, int, int]) -> None:
        """Write the part after those of `parts` and of earlier calls.

        following: the position in the sources after it, and the documents read up to there.
        """
        path, self._count = self.folder / f"{_PART.format(self._count)}.parquet", self._count + 1
        write_rows(path, rows, self._recipe, {_NEXT: json.dumps(following).encode()})
        path.replace(path.with_stem(f"{path.stem}-{_checksum(path):08x}"))

    def _names(self) -> list[str]:
        names = sorted(path.name for path in self.folder.glob("part-*-*.parquet"))
        if any(not name.startswith(_PART.format(number)) for number, name in enumerate(names)):
            raise IndexUnusable(str(self.folder), "one of its parts is missing", "delete the folder, and read again")
        return names


def check_saved(path: str | Path) -> None:
    """Raise ValueError for a file of sketches whose name does not end in .parquet."""
    if not str(path).endswith(".parquet"):
        raise ValueError(f"{path}: sketches are saved as Parquet, in a file whose name ends in .parquet")


def write_rows(path: Path, rows: Rows, recipe: Recipe, more: Mapping[bytes, bytes] | None = None) -> None:
    """Write documents as Parquet; a file that is there is replaced when the new one is whole.

    Raises InvalidDocument if a column cannot hold the values of a field, ValueError for another ending than .parquet.
    """
    check_saved(path)
    with importing("pyarrow", "storing sketches", "pyarrow", "corpus"):
        import pyarrow as pa
    offsets = pa.array(rows.sketches.offsets, pa.int64())
    sketches = pa.LargeListArray.from_arrays(offsets, pa.array(rows.sketches.values))
    columns = {"id": pa.array(rows.ids, pa.string()), "sketch": sketches}
    for name, values in rows.columns.items():
        try:
            columns[name] = pa.array(values)
        except (pa.ArrowException, UnicodeEncodeError, OverflowError) as error:
            what = f"a column cannot hold all values of the field {name!r}: {str(error).splitlines()[0]}"
            raise InvalidDocument(str(path), what, "make them of one type, or leave the field out") from None
    write_table(path, pa.table(columns).replace_schema_metadata({_RECIPE: recipe.id.encode(), **(more or {})}))


def write_table(path: Path, table: pa.Table) -> None:
    """Write a table as Parquet; a file that is there is replaced when the new one is whole."""
    from pyarrow import parquet

    try:
        with replacing(path) as partial:
            parquet.write_table(table, partial, compression="zstd", write_page_checksum=True)
    except OSError as error:
        raise IndexUnusable(str(path), f"it cannot be written: {error}", "check free space and permissions") from error


def read_rows(path: Path) -> tuple[Rows, Recipe, Mapping[bytes, bytes]]:
    """What write_rows wrote, and the metadata. Raises InvalidDocument for a file that is no stored collection."""
    with importing("pyarrow", "reading stored sketches", "pyarrow", "corpus"):
        import pyarrow as pa
        from pyarrow import parquet
    if not path.exists():
        raise InvalidDocument(str(path), "there is no such file", "check its name")
    try:
        table = parquet.read_table(path, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        what = f"it is no Parquet file, or damaged: {str(error).splitlines()[0]}"
        raise InvalidDocument(str(path), what, "write it again with Corpus.save") from None
    recipe = _recipe_in(path, table.schema)
    sketches = _read_only(Sketches.joined(map(sketches_of, table.column("sketch").chunks)))
    others = {name: table.column(name).to_pylist() for name in table.column_names if name not in ("id", "sketch")}
    return Rows(table.column("id").to_pylist(), sketches, others), recipe, table.schema.metadata


def sketches_of(column: pa.Array | pa.ChunkedArray) -> Sketches:
    """Sketches from a column of lists of pyarrow, without nulls."""
    lists = column.combine_chunks() if hasattr(column, "chunks") else column
    offsets = lists.offsets.to_numpy().astype(np.int64)
    return Sketches(lists.values.to_numpy()[offsets[0] : offsets[-1]], offsets - offsets[0])


def recipe_of(path: Path) -> Recipe:
    """The recipe of a stored collection: a file, or a folder that Spark wrote. Raises InvalidDocument for another."""
    with importing("pyarrow", "reading stored sketches", "pyarrow", "corpus"):
        import pyarrow as pa
        from pyarrow import parquet
    try:
        return _recipe_in(path, parquet.read_schema(path))
    except (pa.ArrowException, OSError) as error:
        what = f"it is no Parquet file: {str(error).splitlines()[0]}"
        raise InvalidDocument(str(path), what, "write it again with Corpus.save") from None


def _recipe_in(path: Path, schema: pa.Schema) -> Recipe:
    """The recipe that the metadata of a file names, or of the column of sketches where Spark wrote it."""
    metadata = schema.metadata or {}
    found = metadata.get(_RECIPE, b"").decode()
    for column in json.loads(metadata.get(_OF_SPARK, "{}")).get("fields", ()):
        found = found or column["metadata"].get(_RECIPE.decode(), "")
    if not found or not {"id", "sketch"} <= set(schema.names):
        raise InvalidDocument(str(path), "it holds no stored collection", "write one with Corpus.save")
    return Recipe.parse(found)


def _read_only(sketches: Sketches) -> Sketches:
    """The same in arrays that a Corpus need not copy."""
    sketches.values.flags.writeable = sketches.offsets.flags.writeable = False
    return sketches


def _checksum(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            checksum = crc32(chunk, checksum)
    return checksum
