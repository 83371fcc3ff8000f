"""How collections come into Spark and go out of it: see corpus.spark."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ndd_search.core.recipe import Recipe
from ndd_search.core.text.printable import many
from ndd_search.corpus import sketch_store
from ndd_search.corpus import spark_stages as stages
from ndd_search.corpus.document_batches import TOLD, LeftOut, Pieces, Report
from ndd_search.corpus.spark_pairs import Work
from ndd_search.errors import InvalidDocument, importing

with importing("pyspark", "a corpus on Spark", "pyspark", "spark"):
    from pyspark.sql import DataFrame, Window
    from pyspark.sql import functions as F  # noqa: N812 - its usual name

log = logging.getLogger("ndd_search")
_RECIPE = "ndd_search.core.recipe"  # in the metadata of the column of sketches
_DOCUMENTS = ("place", "id", "number", "sketch", "fields")


def read(
    work: Work, sources: Sequence[object], reading: stages.Reading, order_by: Sequence[str], report: Report | None
) -> tuple[DataFrame, DataFrame | tuple[str, ...]]:
    """The documents of a collection, numbered in their order, and the DataFrame or the files that were read.

    sources: a DataFrame, or paths. order_by: columns of the DataFrame. Raises ValueError for a DataFrame without id.
    """
    source: DataFrame | tuple[str, ...]
    if not any(isinstance(source, DataFrame) for source in sources):
        source = paths_of(sources)
        rows = from_files(work, source, reading)
    elif len(sources) == 1 and isinstance(sources[0], DataFrame) and reading.id:
        source = sources[0]
        rows = from_table(sources[0], reading, reading.id, order_by)
    else:
        raise ValueError("a collection on Spark is one DataFrame, with id= naming a column of it, or some paths")
    files = () if isinstance(source, DataFrame) else source
    return named(work, work.written("read", rows), reading.id, files, report or log.warning), source


def paths_of(sources: Sequence[object]) -> tuple[str, ...]:
    """The files that some paths and patterns name. Raises TypeError for anything else."""
    pieces = Pieces.of(sources).pieces
    if others := [piece for piece in pieces if not isinstance(piece, Path)]:
        raise TypeError(f"a collection on Spark is a DataFrame or paths, got {type(others[0]).__name__}")
    return tuple(str(Path(str(piece)).absolute()) for piece in pieces)


def from_files(work: Work, files: Sequence[str], reading: stages.Reading) -> DataFrame:
    """Rows that are read from files, each file by one task."""
    prefixes = [f"{part}:" if len(files) > 1 else "" for part in range(len(files))]
    rows = work.table({"part": np.arange(len(files), dtype=np.int32), "path": files, "prefix": prefixes})
    parts = rows.repartitionByRange(max(len(files), 1), "part")
    return parts.mapInArrow(reading.read_files, f"{stages.READ}, {reading.schema}")


def from_table(table: DataFrame, reading: stages.Reading, id: str, order_by: Sequence[str]) -> DataFrame:
    """Rows that are read from a DataFrame."""
    columns = dict.fromkeys(name.partition(".")[0] for name in [*(reading.wanted or table.columns), *order_by])
    ordered = table.select(*columns).sort(*order_by, id).withColumn(stages.PARTITION, F.spark_partition_id())
    return ordered.mapInArrow(reading.read_rows, f"{stages.READ}, {reading.schema}")


def named(work: Work, read: DataFrame, id: str | None, files: Sequence[str], report: Report) -> DataFrame:
    """What was read as documents of different ids, in their order: see SparkCorpus.documents.

    files: it was read from, none for a table.
    """
    for row in read.filter("said is not null").sort("part").collect():
        report(row["said"])
    rows = work.placed(read.filter("said is null").drop("said"))
    nameless = F.expr("if(id is null, number, null)")
    first = F.min("number").over(Window.partitionBy("id", nameless))
    later = rows.select("id", "number", first.alias("first")).filter("id is null or number != first")
    left_out = work.written("left-out", later.select("id", "number"))
    rows = rows.withColumn("place", F.col("number"))
    if named_first := left_out.sort("number").limit(TOLD).collect():
        told, count = LeftOut(Pieces(tuple(map(Path, files))), id), left_out.count()
        for row in named_first:
            told.add(row["number"] + 1, row["id"])
        told.tell(report, count, rows.count() - count, ())
        rest = rows.join(left_out.select("number"), "number", "left_anti").withColumnRenamed("number", "before")
        numbered = work.numbered(rest.drop("place"), [F.col("before")])
        rows = numbered.withColumnsRenamed({"number": "place", "before": "number"})
        rows = work.written("documents", rows)
    return rows.select("place", "id", *(name for name in rows.columns if name not in ("place", "id")))


def save(documents: DataFrame, recipe: Recipe, fields: Sequence[str], path: str) -> None:
    """Write documents as a stored collection: see corpus.sketch_store."""
    kept = F.from_json("fields", "map<string,string>")
    columns = [kept[name].alias(name) for name in fields]
    sketch = F.col("sketch").alias("sketch", metadata={_RECIPE: recipe.id})
    documents.sort("place").select("id", sketch, *columns).write.mode("overwrite").parquet(path)


def saved(work: Work, path: str) -> tuple[DataFrame, Recipe, tuple[str, ...]]:
    """What `save` or Corpus.save has written: documents, their recipe, and the fields that were kept."""
    table = work.spark.read.parquet(path)
    if not {"id", "sketch"} <= set(table.columns):
        raise InvalidDocument(path, "it holds no stored collection", "write one with Corpus.save")
    named = table.schema["sketch"].metadata.get(_RECIPE)
    recipe = Recipe.parse(named) if named else sketch_store.recipe_of(Path(path))
    fields = tuple(name for name in table.columns if name not in ("id", "sketch"))
    kept = F.to_json(F.struct(*fields)) if fields else F.lit(None).cast("string")
    rows = table.select("id", "sketch", kept.alias("fields"), "_metadata.file_path", "_metadata.row_index")
    documents = work.numbered(rows, [F.col("file_path"), F.col("row_index")]).withColumn("place", F.col("number"))
    return work.written("saved", documents.select(*_DOCUMENTS)), recipe, fields


def write_documents(rows: DataFrame, path: str, wanted: int) -> None:
    """Write documents, JSON texts or rows of several columns, as a folder of files of JSON lines.

    wanted: how many there should be. Raises InvalidDocument if there are fewer.
    """
    packed = {"compression": "gzip"} if path.endswith(".gz") else {}
    lines = rows if len(rows.columns) == 1 else rows.select(F.to_json(F.struct("*")))
    lines.write.mode("overwrite").options(**packed).text(path)
    missing = wanted - rows.sparkSession.read.text(path).count()
    if missing:
        what = "the sources no longer hold them: they have changed since they were read"
        raise InvalidDocument(many(missing, "document"), what, "read the collection again")
