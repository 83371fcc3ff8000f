"""Pairs and groups of a collection on Spark, and how rows travel between the stages: see corpus.spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np

from ndd_search.core.matching.sketch_rows import Ranks
from ndd_search.core.options import CollapseOptions
from ndd_search.core.sketching.sketches import Sketches
from ndd_search.corpus import spark_stages as stages
from ndd_search.corpus.collection import Method
from ndd_search.corpus.collection_pairs import Effort, Search
from ndd_search.corpus.sketch_store import sketches_of
from ndd_search.corpus.spark_parts import Parts
from ndd_search.errors import importing

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession
else:
    with importing("pyarrow", "a corpus on Spark", "pyarrow", "corpus"):
        import pyarrow as pa
with importing("pyspark", "a corpus on Spark", "pyspark", "spark"):
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812 - its usual name
with importing("pandas", "a corpus on Spark", "pandas", "spark"):
    import_module("pandas")  # Spark asks for it where Python functions are called

SAMPLED = 200_000  # documents in which the holders of values are counted
_FEWER = 8  # times as few partitions in each round of contraction
_PAIR = "first long, second long"


@dataclass(frozen=True)
class Work:
    """The folder that takes the stages. folder: a path that all processes of the cluster can read and write."""

    spark: SparkSession
    folder: str

    def table(self, columns: Mapping[str, Sequence[str] | Ranks]) -> DataFrame:
        """Rows that the driver holds. A list of Python's values would be handed over by Python workers."""
        return self.spark.createDataFrame(pa.table(dict(columns)))

    def written(self, name: str, rows: DataFrame) -> DataFrame:
        """The same rows, read from where they have been written to."""
        path = f"{self.folder}/{name}-{uuid4().hex[:8]}"
        rows.write.parquet(path)
        return self.spark.read.schema(rows.schema).parquet(path)  # without a job that reads the schema

    def numbered(self, rows: DataFrame, order: Sequence[Column]) -> DataFrame:
        """The rows with their number in an order, `number`, from 0."""
        schema = f"{rows.schema.simpleString()[7:-1].replace(':', ' ')}, part int, row long"
        ordered = rows.sort(*order).withColumn("part", F.spark_partition_id())
        return self.placed(self.written("numbered", ordered.mapInArrow(stages.number, schema)))

    def placed(self, rows: DataFrame) -> DataFrame:
        """Rows with `part` and `row` (from 0 in each part), with their number, `number`."""
        sizes = {row["part"]: row["size"] for row in rows.groupBy("part").agg(F.count("*").alias("size")).collect()}
        parts = sorted(sizes)
        ends = np.cumsum([0, *(sizes[part] for part in parts)])[: len(parts)]
        starts = self.table({"part": np.array(parts, np.int32), "start": ends})
        numbered = rows.join(F.broadcast(starts), "part").withColumn("number", F.col("start") + F.col("row"))
        return numbered.drop("part", "row", "start")

    def chained(self, pairs: DataFrame) -> DataFrame:
        """Pairs of `first` and `second` as chains: the first rank of a chain with each other one of it, as pairs."""
        chains, parts = pairs.select("first", "second"), int(self.spark.conf.get("spark.sql.shuffle.partitions") or 1)
        while parts > 1:
            chains = chains.repartition(parts, "first").mapInArrow(stages.contract, _PAIR)
            parts //= _FEWER
        return self.written("chains", chains.repartition(1).mapInArrow(stages.contract, _PAIR))

    def grouped(self, names: DataFrame, leaders: DataFrame) -> DataFrame:
        """Rows with `leader`, a rank, also with `group`, the name of the leader, and the `size` of its group.

        names: `rank` and `id`.
        """
        sized = leaders.withColumn("size", F.count("*").over(Window.partitionBy("leader")))
        return sized.join(names.withColumnsRenamed({"rank": "leader", "id": "group"}), "leader")


def write_rows(rows: DataFrame, path: str) -> int:
    """Write rows as a folder of Parquet files, in place of what is there. Returns how many."""
    rows.write.mode("overwrite").parquet(path)
    count: int = rows.sparkSession.read.parquet(path).count()
    return count


@dataclass(frozen=True, eq=False)
class SparkTable:
    """What was found on Spark.

    table:  a DataFrame.
    effort: what the search cost, and what it left out; `met` and `compared` count a pair in each part that finds it.
    """

    table: DataFrame
    effort: Effort

    def write(self, path: str) -> int:
        """Write the table as a folder of Parquet files, in place of what is there. Returns how many rows it has."""
        return write_rows(self.table, path)


@dataclass(frozen=True, eq=False)
class PairsOnSpark:
    """The pairs of a collection that count. The rank of a document is its number in the order of `keep`.

    documents: place, id, sketch and fields: see SparkCorpus.
    count:     how many there are.
    fields:    whose values they have.
    search:    without the codes and times of guards, but with `apart`.
    options:   `keep` and the guards.
    old:       so many documents at the head are leaders whatever they share.
    text:      the fields that were sketched, for fingerprints; empty for none.
    """

    work: Work
    documents: DataFrame
    count: int
    fields: tuple[str, ...]
    search: Search
    options: CollapseOptions
    old: int
    text: tuple[str, ...]

    @cached_property
    def found(self) -> DataFrame:
        """first, second (ranks) and similarity, of documents with different sketches."""
        pairs = self._met.filter("effort is null").drop("effort")
        return pairs if self._meeting.parts.number == 1 else self.work.written("pairs", pairs.distinct())

    @cached_property
    def effort(self) -> Effort:
        """What the search cost, in all parts; a document that is in several of them is met in each."""
        efforts = [row["effort"] for row in self._met.filter("effort is not null").select("effort").collect()]
        met, compared, cut = (sum(column) for column in zip((0, 0, 0), *efforts, strict=True))
        if self._meeting.parts.number > 1:
            rows = self._different.mapInArrow(self._meeting.count_cut, "cut long")
            cut += rows.agg(F.sum("cut").alias("cut")).collect()[0]["cut"] or 0
        return Effort(self._count, met, compared, cut)

    def with_ids(self) -> DataFrame:
        """All pairs by id, equal sketches included: first, second, similarity."""
        equal = self._same.select(F.col("same").alias("first"), F.col("rank").alias("second"), F.lit(1.0))
        rows = self.found.union(equal)
        for side in ("first", "second"):
            rows = rows.join(self._ids.withColumnsRenamed({"rank": side, "id": f"{side} id"}), side).drop(side)
        return rows.select(F.col("first id").alias("first"), F.col("second id").alias("second"), "similarity")

    def groups(self, method: Method) -> DataFrame:
        """The table of groups: document, group (the id of its leader), size, similarity, fingerprint."""
        rows = self.work.grouped(self._ids, self._with_leaders(method))
        rows = rows.join(self._ranked.select("rank", "fingerprint"), "rank")
        return self.work.written("groups", rows.select("document", "group", "size", "similarity", "fingerprint"))

    def newcomers(self) -> DataFrame:
        """The table of documents that are not old: document, duplicate_of, earlier, similarity."""
        rows = self._with_leaders("leaders").filter(F.col("rank") >= self.old)
        names = self._ids.withColumnsRenamed({"rank": "leader", "id": "duplicate_of"})
        rows = rows.join(names, "leader").withColumn("earlier", F.col("leader") < self.old)
        return self.work.written("newcomers", rows.select("document", "duplicate_of", "earlier", "similarity"))

    def _with_leaders(self, method: Method) -> DataFrame:
        """rank, document (its id), leader (a rank) and similarity to the leader."""
        led = self._led(method).withColumnRenamed("rank", "same")
        rows = self._ids.join(self._same, "rank", "left").withColumn("same", F.coalesce("same", "rank"))
        similarity = F.coalesce("similarity", F.lit(1.0)) if method == "leaders" else F.lit(None).cast("double")
        leader = F.coalesce("leader", "same").alias("leader")
        columns = ("rank", F.col("id").alias("document"), leader, similarity.alias("similarity"))
        return rows.join(led, "same", "left").select(*columns)

    def _led(self, method: Method) -> DataFrame:
        """`rank`, `leader` and `similarity` of the documents that do not lead a group, but for equal ones."""
        chains = self.work.chained(self.found)
        roots = chains.withColumnsRenamed({"first": "root", "second": "first"})
        rows = self.found.join(roots, "first", "left").withColumn("root", F.coalesce("root", "first"))
        grouping = stages.Grouping(method)
        led = rows.repartition("root").mapInArrow(grouping.lead, "rank long, leader long, similarity double")
        return self.work.written("led", led)

    @cached_property
    def _ranked(self) -> DataFrame:
        """Rows of stages.PREPARED, with `rank` in place of `key`."""
        preparing = stages.Preparing(self.options, self.fields, self.search, self.text)
        rows = self.documents.select("place", "id", "sketch", "fields").mapInArrow(preparing.prepare, stages.PREPARED)
        if self.options.keep == ("score",):
            rows = rows.withColumn("number", F.col("place"))
        else:
            rows = self.work.numbered(rows, [F.col("key"), F.col("place")])
        rows = rows.withColumnRenamed("number", "rank").drop("key")
        return self.work.written("ranked", rows)

    @property
    def _ids(self) -> DataFrame:
        return self._ranked.select("rank", "id")

    @cached_property
    def _same(self) -> DataFrame:
        """The `rank` of each document with the sketch of an earlier one, and the rank of the first of these, `same`."""
        keyed = self._ranked.filter("same_key is not null").select("rank", "same_key")
        same = F.min("rank").over(Window.partitionBy("same_key")).alias("same")
        return self.work.written("same", keyed.select("rank", same).filter("rank != same"))

    @property
    def _different(self) -> DataFrame:
        """Rows of stages.PAIRING, of documents that may pair with another one, one for each sketch."""
        rows = self._ranked.filter("same_key is not null").select("rank", "sketch", "code", "time")
        return rows.join(self._same.select("rank"), "rank", "left_anti")

    @cached_property
    def _count(self) -> int:
        count: int = self._different.count()
        return count

    @cached_property
    def _meeting(self) -> stages.Meeting:
        def sample() -> Sketches:
            rows = self._different.filter(F.pmod(F.xxhash64("rank"), F.lit(self._count)) < SAMPLED)
            return sketches_of(rows.select("sketch").toArrow().column("sketch"))

        return stages.Meeting(self.search, Parts.of(self.search, self.count, self._count, sample), self.old)

    @cached_property
    def _met(self) -> DataFrame:
        """Pairs that count, maybe several times, and for each part what the search in it cost: stages.MET."""
        meeting = self._meeting
        if meeting.parts.number == 1:
            entered = self._different.withColumn("part", F.lit(0).cast("long"))
        else:
            entered = self._different.mapInArrow(meeting.enter, stages.ENTERED)
        meet = lambda rows: meeting.meet(rows)  # noqa: E731, PLW0108 - Spark counts `self` of a method as an argument
        return self.work.written("met", entered.groupBy("part").applyInArrow(meet, stages.MET))
