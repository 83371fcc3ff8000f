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
from ndd_search.corpus.spark_index import SparkIndex
from ndd_search.corpus.spark_pairs import Work
from ndd_search.errors import InvalidDocument, importing

with importing("pyspark", "a corpus on Spark", "pyspark", "spark"):
    from pyspark.sql import DataFrame, Window
    from pyspark.sql import functions as F  # noqa: N812 - its usual name

log = logging.getLogger("ndd_search")
_RECIPE = "ndd_search.core.recipe"  # in the metadata of the column of sketches
_DOCUMENTS = ("place", "id", "number", "sketch", "fields")


Sources = tuple[str | SparkIndex, ...]


def read(
    work: Work, sources: Sequence[object], reading: stages.Reading, order_by: Sequence[str], report: Report | None
) -> tuple[DataFrame, DataFrame | Sources]:
    """The documents of a collection, numbered in their order, and the DataFrame or the sources that were read.

    sources: a DataFrame, or paths and indexes. order_by: columns of the DataFrame. Raises ValueError for a DataFrame
    without id.
    """
    source: DataFrame | Sources
    files: Sequence[str] = ()
    if not any(isinstance(source, DataFrame) for source in sources):
        source = sources_of(sources)
        rows = from_sources(work, source, reading)
        paths = [one for one in source if isinstance(one, str)]
        files = paths if len(paths) == len(source) else ()  # behind an index, no number tells the line of a file
    elif len(sources) == 1 and isinstance(sources[0], DataFrame) and reading.id:
        source = sources[0]
        rows = from_table(source, reading, reading.id, order_by)
    else:
        raise ValueError("a collection on Spark is one DataFrame, with id= naming a column of it, or some paths")
    return named(work, work.written("read", rows), reading.id, files, report or log.warning), source


def sources_of(sources: Sequence[object]) -> Sources:
    """The files that some paths and patterns name, and indexes. Raises TypeError for anything else."""
    found: list[str | SparkIndex] = []
    for source in sources:
        if isinstance(source, SparkIndex):
            found.append(source)
        elif isinstance(source, str | Path):
            found += [str(Path(str(one)).absolute()) for one in Pieces.of([source]).pieces]
        else:
            raise TypeError(f"a collection on Spark is a DataFrame, paths or SparkIndexes, got {type(source).__name__}")
    return tuple(found)


def from_sources(work: Work, sources: Sources, reading: stages.Reading) -> DataFrame:
    """Rows that are read from sources, each file, and each slice of an index, by one task."""
    tasks = [task for one in sources for task in (one.tasks() if isinstance(one, SparkIndex) else [one])]
    rows = work.table({"part": np.arange(len(tasks), dtype=np.int32)})
    parts = rows.repartitionByRange(max(len(tasks), 1), "part")
    return parts.mapInArrow(lambda part: reading.read_sources(tasks, part), f"{stages.READ}, {reading.schema}")


def from_table(table: DataFrame, reading: stages.Reading, id: str, order_by: Sequence[str]) -> DataFrame:
    """Rows that are read from a DataFrame."""
    columns = dict.fromkeys(name.partition(".")[0] for name in [*(reading.wanted or table.columns), *order_by])
    ordered = table.select(*columns).sort(*order_by, id).withColumn(stages.PARTITION, F.spark_partition_id())
    return ordered.mapInArrow(reading.read_rows, f"{stages.READ}, {reading.schema}")


def named(work: Work, read: DataFrame, id: str | None, files: Sequence[str], report: Report) -> DataFrame:
    """What was read as documents of different ids, in their order: see SparkCorpus.documents.

    files: it was read from, none for a table or an index.
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
