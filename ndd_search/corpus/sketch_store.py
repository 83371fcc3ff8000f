"""Sketches of a collection on disk.

A stored collection is a Parquet file with a row for each document: `id` (text), `sketch` (a list of int32), and a
column for each field that was kept. The schema's metadata names the recipe of the sketches (`ndd_search.core.recipe`),
so sketches of two recipes are never compared. The pages of the file have checksums.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ndd_search.atomic_file import replacing
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import Sketches
from ndd_search.errors import IndexUnusable, InvalidDocument, importing

if TYPE_CHECKING:
    import pyarrow as pa

_RECIPE = b"ndd_search.core.recipe"
_OF_SPARK = b"org.apache.spark.sql.parquet.row.metadata"  # the schema of Spark as JSON


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


def check_saved(path: str | Path) -> None:
    """Raise ValueError for a file of sketches whose name does not end in .parquet."""
    if not str(path).endswith(".parquet"):
        raise ValueError(f"{path}: sketches are saved as Parquet, in a file whose name ends in .parquet")


def write_rows(path: Path, rows: Rows, recipe: Recipe) -> None:
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
    write_table(path, pa.table(columns).replace_schema_metadata({_RECIPE: recipe.id.encode()}))


def write_table(path: Path, table: pa.Table) -> None:
    """Write a table as Parquet; a file that is there is replaced when the new one is whole."""
    from pyarrow import parquet

    try:
        with replacing(path) as partial:
            parquet.write_table(table, partial, compression="zstd", write_page_checksum=True)
    except OSError as error:
        raise IndexUnusable(str(path), f"it cannot be written: {error}", "check free space and permissions") from error


def read_rows(path: Path) -> tuple[Rows, Recipe]:
    """What write_rows wrote. Raises InvalidDocument for a file that is no stored collection."""
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
    return Rows(table.column("id").to_pylist(), sketches, others), recipe


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
