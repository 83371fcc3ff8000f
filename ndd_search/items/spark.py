"""The groups of records that are too many for one machine, found by a Spark cluster.

The stages are those of one machine: read, find candidates, compare, group. What a process of the cluster does is
in `spark_stages`, which calls the functions that one machine calls:

1. Records are read where they lie, and numbered in their order. Records with equal values are found.
2. Tokens are counted, each by one task. Each record chooses the rare ones that it looks up, and joins common ones. The
   driver numbers common tokens, each of which more records hold than `Bounds.holders`.
3. The records that look up a token are sent to all ranges of records that hold one of them. There each record keeps its
   best candidates.
4. Records are divided into sides. For each two sides, one task compares the pairs between them.
5. All pairs of a chain come together, and one task makes groups of them.

Tokens travel as 63 bits of a hash. Two tokens with one hash, which a thousand million tokens have in one of ten cases,
may add a candidate pair. Everything else is computed from the same numbers as on one machine.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ndd_search.core.setting_values import check_one_of
from ndd_search.core.text.printable import many
from ndd_search.corpus import spark_reading as reading_of
from ndd_search.corpus.document_batches import Report
from ndd_search.corpus.spark_pairs import Work
from ndd_search.errors import InvalidDocument, importing
from ndd_search.items.candidate_pairs import Bounds
from ndd_search.items.record_groups import METHODS, Method
from ndd_search.items.schema import Schema
from ndd_search.items.spark_stages import ReadingRecords, Stages

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pyspark.sql import SparkSession
with importing("pyspark", "records on Spark", "pyspark", "spark"):
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as F  # noqa: N812 - its usual name

log = logging.getLogger("ndd_search")


@dataclass(frozen=True, eq=False)
class SparkRecords:
    """The records of a collection on a cluster, as a schema reads them; make one with `read`.

    records: a DataFrame of place, id, fields (a text for each field of the schema) and bad (fields that could not be
             read).
    work:    where stages are written.
    count:   how many records there are.
    range:   records that one task looks at.
    """

    schema: Schema
    records: DataFrame
    work: Work
    count: int
    range: int = 30_000

    @classmethod
    def read(
        cls,
        spark: SparkSession,
        *sources: str | Path | DataFrame,
        schema: Schema,
        work: str | Path,
        id: str | None = None,
        order_by: Sequence[str] = (),
        report: Report | None = None,
    ) -> SparkRecords:
        """Read records on the cluster.

        schema: of their fields, learnt on one machine.
        sources, work, id, order_by, report: as for SparkCorpus.read.
        Raises InvalidDocument if no record has a value in any field of the schema.
        """
        folder = Work(spark, str(work))
        records, _ = reading_of.read(folder, sources, ReadingRecords(id, schema.fields), order_by, report)
        bad = [F.count_if(F.get("bad", F.lit(place)) != "") for place in range(len(schema.fields))]
        some = F.bool_or(F.exists("fields", lambda text: text != ""))
        count, has_some, *counts = records.agg(F.count("*"), some, *bad).collect()[0]
        if count and not has_some and not any(counts):
            what = f"none of them has a value in {', '.join(schema.fields)}"
            raise InvalidDocument(many(count, "record"), what, "name the fields of the records: Name(source=FIELD)")
        for name, times in zip(schema.fields, counts, strict=True):
            if times:
                log.warning("%d values of %s could not be read and count as missing", times, name)
        return cls(schema, records, folder, count)

    def groups(self, method: Method = "correlation", *, bounds: Bounds | None = None) -> DataFrame:
        """The groups of records that are one thing: record (its id), group (the id of its first record) and size.

        Items.groups finds the same groups on one machine, and takes the same arguments. It also logs doubts about
        verdicts; nothing does so here.
        Raises ValueError for 1,000 records or more if the schema is not learnt.
        """
        check_one_of("method", method, METHODS)
        stages = Stages(self.schema, bounds or Bounds.of(self.count), self.count, self.range)
        copies = self._copies(stages)
        wanted = self.records.join(copies, "place", "left_anti").select("place", "fields")
        candidates = self._candidates(stages, wanted)
        pairs = self._judged(stages, candidates)
        led = self._led(stages, pairs, method)
        names = self.records.select(F.col("place").alias("rank"), "id")
        same = copies.select(F.col("place").alias("rank"), "same")
        rows = names.join(same, "rank", "left").withColumn("same", F.coalesce("same", "rank"))
        rows = rows.join(led.withColumnRenamed("rank", "same"), "same", "left")
        rows = rows.withColumn("leader", F.coalesce("leader", "same"))
        table = self.work.grouped(names, rows.select(F.col("id").alias("record"), "leader"))
        return self.work.written("groups", table.select("record", "group", "size"))

    def _copies(self, stages: Stages) -> DataFrame:
        """The `place` of each record with the values of an earlier one, and of the first of these, `same`."""
        equal = self.records.groupBy("fields").agg(F.collect_list("place").alias("places")).filter("size(places) > 1")
        one_thing = equal.mapInArrow(stages.check_copies, "places array<long>")
        rows = one_thing.select(F.array_min("places").alias("same"), F.explode("places").alias("place"))
        return self.work.written("copies", rows.filter("place != same").select("place", "same"))

    def _candidates(self, stages: Stages, wanted: DataFrame) -> DataFrame:
        """Blocks of candidate pairs, for the parts that compare them. A pair may be there twice."""
        looked_up = ("token", "record")
        entered = wanted.mapInArrow(stages.enter, _blocks(*looked_up, "turn"))
        held = self.work.written("held", _each(entered, stages.count_holders, *looked_up, "turn", "held"))
        stages = stages.numbering(held.filter("part = -1").toArrow())
        chosen = self.work.written("chosen", _each(held.filter("part >= 0"), stages.choose, *looked_up))
        is_joined = F.col("part") >= stages.joined_from
        counted = _each(chosen.filter(is_joined), stages.count_joined, *looked_up, "held")
        joined = _each(counted, stages.choose_joined, *looked_up)
        lists = _each(chosen.filter(~is_joined).union(joined), stages.list_holders, "told")
        return _each(lists, stages.meet, "pair")

    def _judged(self, stages: Stages, candidates: DataFrame) -> DataFrame:
        """`first`, `second` and `odds` of the candidates that are no clear negatives."""
        records = self.records.select("place", "fields").mapInArrow(stages.pack, "part int, records binary")
        judged = _both(candidates, records, stages.judge, "first long, second long, odds double")
        return self.work.written("pairs", judged)

    def _led(self, stages: Stages, pairs: DataFrame, method: Method) -> DataFrame:
        """`rank` and `leader` of the records that do not lead a group, but for copies."""
        chains = self.work.chained(pairs.filter("odds >= 0"))
        roots = chains.select(F.col("first").alias("root"), F.col("second").alias("place"))
        roots = roots.union(roots.select("root", "root").distinct())
        part = F.pmod(F.hash("root"), F.lit(1 + self.count // self.range)).alias("part")
        members = self.records.join(roots, "place").select(part, "place", "fields")
        rows = pairs.join(roots.withColumnRenamed("place", "first"), "first")
        other = roots.withColumnsRenamed({"place": "second", "root": "other"})
        rows = rows.join(other, "second").filter("root = other").select(part, "first", "second", "odds")
        led = _both(rows, members, lambda pairs, of: stages.lead(method, pairs, of), "rank long, leader long")
        return self.work.written("led", led)


def _blocks(*columns: str) -> str:
    return ", ".join(["part int", *(f"{name} binary" for name in columns)])


def _each(rows: DataFrame, stage: Callable[[Any], Any], *columns: str) -> DataFrame:
    """Blocks of other columns, from all blocks of each part."""
    apply = lambda table: stage(table)  # noqa: E731, PLW0108 - Spark counts `self` of a method as an argument
    return rows.groupBy("part").applyInArrow(apply, _blocks(*columns))


def _both(rows: DataFrame, others: DataFrame, stage: Callable[[Any, Any], Any], schema: str) -> DataFrame:
    """Rows of a schema, from all rows and all others of each part."""
    apply = lambda some, other: stage(some, other)  # noqa: E731, PLW0108 - as above
    return rows.groupBy("part").cogroup(others.groupBy("part")).applyInArrow(apply, schema)
