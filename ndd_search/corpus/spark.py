"""The groups of a collection that is too large for one machine, found by a Spark cluster.

The stages are those of one machine: sketch, look up, compare, group. What a process of the cluster does to a partition
is in `spark_stages`, which calls the functions that one machine calls; `spark_pairs` says how rows travel:

1. Documents are read and sketched where they lie, and numbered in their order.
2. Each document is entered into the lists of its values, those with few holders first (prefix filter). Lists are
   shuffled. A list of more than lists.LISTED documents is cut into blocks, and any two blocks meet as a list of their
   own.
3. The different pairs of documents that share a list are joined with both sketches and compared.
4. Pairs are contracted to chains in rounds, each with an eighth of the partitions of the one before. All pairs of one
   chain then come together, and groups are made of them.

The stages are written to the work folder before others read them, so a worker that fails costs only the tasks that it
was busy with, and the result stays the same.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from ndd_search.collapse_options import Keep, collapse_options
from ndd_search.corpus import spark_stages as stages
from ndd_search.corpus.collection import Method, Settings
from ndd_search.corpus.guards import Guards
from ndd_search.corpus.reading import Fields
from ndd_search.corpus.search import BUDGET, Effort, Search, sample_of
from ndd_search.corpus.sources import TOLD, Pieces, Report, Sayings
from ndd_search.corpus.spark_pairs import PairsOnSpark, Work
from ndd_search.errors import InvalidDocument, importing
from ndd_search.matching.decision import Decision, Setting
from ndd_search.matching.document_frequency import count_document_frequency
from ndd_search.matching.frequency_table import FrequencyTable
from ndd_search.recipe import Recipe

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
with importing("pyspark", "a corpus on Spark", "pyspark", "spark"):
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as F  # noqa: N812 - its usual name

log = logging.getLogger("ndd_search")


@dataclass(frozen=True, eq=False)
class SparkCorpus:
    """The sketches of a collection on a cluster; make one with `read`.

    documents: a DataFrame of place, id, sketch (bytes of int32) and fields (JSON).
    recipe:    of the sketches.
    fields:    whose values were kept.
    work:      where stages are written.
    """

    documents: DataFrame
    recipe: Recipe
    fields: tuple[str, ...]
    work: Work

    @classmethod
    def read(  # noqa: PLR0913 - the arguments of Corpus.read, and two more
        cls,
        spark: SparkSession,
        *sources: str | Path | DataFrame,
        text: str | Sequence[str],
        work: str | Path,
        id: str | None = None,
        order_by: Sequence[str] = (),
        recipe: Recipe | str | None = None,
        fields: Sequence[str] = (),
        numbers: bool = False,
        report: Report | None = None,
    ) -> SparkCorpus:
        """Read a collection and sketch its documents on the cluster.

        sources:  a DataFrame; or paths of files that every worker sees under the same name, each read by one task.
        work:     a folder that every worker sees. It takes the stages, and is not emptied.
        order_by: columns of a DataFrame that give the order of its documents, before their ids. Documents of paths have
                  the order of Corpus.read.
        text, id, recipe, fields, numbers, report: as for Corpus.read. A DataFrame needs `id`.
        Raises InvalidDocument when no document has words, ValueError for a DataFrame without id.
        """
        kept = Fields((text,) if isinstance(text, str) else tuple(text), Recipe.of(recipe), tuple(fields), numbers)
        reading, folder = stages.Reading(kept, id), Work(spark, str(work))
        if not any(isinstance(source, DataFrame) for source in sources):
            read = _from_files(spark, reading, sources)
        elif len(sources) == 1 and isinstance(sources[0], DataFrame) and id:
            read = _from_table(sources[0], reading, id, order_by)
        else:
            raise ValueError("a collection on Spark is one DataFrame, with id= naming a column of it, or some paths")
        documents = _named(folder, folder.written("read", read), id, report or log.warning)
        if documents.head(1) and not documents.filter(F.length("sketch") > 0).head(1):
            what = f"none of them has words in {', '.join(kept.text)}"
            raise InvalidDocument(f"{documents.count():,} documents", what, "name the fields that hold text")
        return cls(documents, kept.recipe, kept.kept, folder)

    @cached_property
    def count(self) -> int:
        """How many documents there are."""
        count: int = self.documents.count()
        return count

    @cached_property
    def frequency_table(self) -> FrequencyTable:
        """The frequency table of the collection itself, the same as that of Corpus."""
        places = self.work.spark.createDataFrame([(place,) for place in sample_of(self.count).tolist()], "place long")
        sample = self.documents.join(F.broadcast(places), "place").select("place", "sketch").toArrow().sort_by("place")
        return count_document_frequency(list(stages.sketches_of(sample.column("sketch"))), self.recipe)

    def groups(
        self,
        min_similarity: Setting = "auto",
        method: Method = "leaders",
        *,
        keep: Sequence[Keep] = ("score",),
        **settings: Unpack[Settings],
    ) -> SparkGroups:
        """The groups of near-duplicates, the same as those of Corpus.groups. Arguments as there."""
        if method not in ("leaders", "connected", "communities"):
            raise ValueError(f'method is one of "leaders", "connected" and "communities", got {method!r}')
        pairs = self._pairs(min_similarity, keep, settings)
        return SparkGroups(self, pairs.groups(method), pairs.effort, pairs.search.decision, method)

    def pairs(self, min_similarity: Setting = "auto", **settings: Unpack[Settings]) -> DataFrame:
        """All pairs of near-duplicates: first, second (ids) and similarity. Arguments as for `groups`.

        Of documents with equal sketches the first one stands for all, and is a pair with each of the others.
        """
        return self._pairs(min_similarity, ("score",), settings).with_ids()

    def _pairs(self, min_similarity: Setting, keep: Sequence[Keep], settings: Settings) -> PairsOnSpark:
        if self.recipe.measure != "kmv":
            raise ValueError(f"a collection on Spark needs a recipe that measures resemblance, not {self.recipe.id}")
        guarded: dict[str, Any] = {
            name: value for name, value in settings.items() if name not in ("budget", "progress")
        }
        options = collapse_options(**guarded, keep=tuple(keep))
        search = Search(
            recipe=self.recipe,
            decision=Decision.of(
                min_similarity, self.recipe, self.frequency_table if min_similarity == "auto" else None
            ),
            min_shingles=options.min_shingles,
            guards=Guards(apart=options.max_seconds_apart or 0.0),
            budget=settings.get("budget", BUDGET),
        )
        pairs = PairsOnSpark(self.work, self.documents, self.count, self.fields, search, options)
        pairs.check_fields()
        return pairs


@dataclass(frozen=True, eq=False)
class SparkGroups:
    """The groups of a collection on Spark.

    corpus:   the collection.
    table:    a DataFrame of document, group (the id of its leader), size and similarity to the leader, as Groups.table.
    effort:   what the search cost; `met` and `compared` are pairs of documents that share a list.
    decision: which pairs counted.
    method:   how groups were made of them.
    """

    corpus: SparkCorpus
    table: DataFrame
    effort: Effort
    decision: Decision
    method: str

    def unique(self, documents: DataFrame, id: str) -> DataFrame:
        """Those of the collection's documents that stand for a group. id: the column with their id."""
        leads = self.table.filter("document = group").select(F.col("document").alias("ndd leader"))
        return documents.join(leads, documents[id].cast("string") == F.col("ndd leader"), "left_semi")


def _from_files(spark: SparkSession, reading: stages.Reading, sources: Sequence[object]) -> DataFrame:
    """Rows of stages.READ from files."""
    pieces = Pieces.of(sources).pieces
    if others := [piece for piece in pieces if not isinstance(piece, Path)]:
        raise TypeError(f"a collection on Spark is a DataFrame or paths, got {type(others[0]).__name__}")
    tasks = [(part, str(Path(str(piece)).absolute())) for part, piece in enumerate(pieces)]
    rows = spark.createDataFrame(tasks, "part int, path string").repartitionByRange(max(len(tasks), 1), "part")
    return rows.mapInArrow(reading.read_files, stages.READ)


def _from_table(table: DataFrame, reading: stages.Reading, id: str, order_by: Sequence[str]) -> DataFrame:
    """Rows of stages.READ from a DataFrame."""
    columns = dict.fromkeys(name.partition(".")[0] for name in [*reading.fields.wanted(id), *order_by])
    ordered = table.select(*columns).sort(*order_by, id).withColumn(stages.PARTITION, F.spark_partition_id())
    return ordered.mapInArrow(reading.read_rows, stages.READ)


def _named(work: Work, read: DataFrame, id: str | None, report: Report) -> DataFrame:
    """What was read as documents of different ids, in their order: place, id, sketch and fields."""
    for row in read.filter("said is not null").sort("part").collect():
        report(row["said"])
    rows = work.placed(read.filter("said is null").drop("said"))
    rows = rows.withColumn("id", F.when(F.col("id") == "", F.col("number").cast("string")).otherwise(F.col("id")))
    nameless = rows.filter("id is null").select("id", "number")
    names = rows.filter("id is not null").select("id", "number")
    first = names.groupBy("id").agg(F.min("number").alias("first"), F.count("*").alias("holders"))
    later = names.join(first.filter("holders > 1"), "id").filter("number != first").select("id", "number")
    left_out = work.written("left-out", later.union(nameless))
    told = Sayings(report, "the collection")
    for row in left_out.sort("number").limit(TOLD).collect():
        why = f"it has nothing in {id!r}, which is to hold its id" if row["id"] is None else (
            f"an earlier one has its id, {row['id']!r}"
        )  # fmt: skip
        told(f"document {row['number'] + 1} is left out, {why}")
    if count := left_out.count():
        if count > TOLD:
            report(f"the collection: {count - TOLD:,} more of its lines or documents are left out")
        rest = rows.join(left_out.select("number"), "number", "left_anti").withColumnRenamed("number", "before")
        rows = work.numbered(rest, [F.col("before")])
    return work.written("documents", rows.select(F.col("number").alias("place"), "id", "sketch", "fields"))
