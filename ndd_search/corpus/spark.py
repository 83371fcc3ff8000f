"""The groups of a collection that is too large for one machine, found by a Spark cluster.

The stages are those of one machine: sketch, look up, compare, group. What a process of the cluster does to a partition
is in `spark_stages`, which calls the functions that one machine calls; `spark_pairs` says how rows travel:

1. Documents are read and sketched where they lie, and numbered in their order.
2. Each document goes to the parts of its rarest values, see `spark_parts`; a small collection is one part.
3. The pairs of each part are found as one machine finds those of a collection. Of a pair in several parts one stays.
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
from typing import TYPE_CHECKING, Unpack

from ndd_search.core.matching.decision import Setting
from ndd_search.core.matching.document_frequency import count_document_frequency
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.options import Keep
from ndd_search.core.presets import Preset
from ndd_search.core.recipe import Recipe
from ndd_search.core.setting_values import fields_in
from ndd_search.corpus import spark_reading as reading_of
from ndd_search.corpus import spark_stages as stages
from ndd_search.corpus.collection import Method, Settings, check_method, read_by, search_of
from ndd_search.corpus.collection_pairs import sample_of
from ndd_search.corpus.document_batches import Report
from ndd_search.corpus.guard_columns import check_kept
from ndd_search.corpus.mirrored_hosts import check_hosts
from ndd_search.corpus.read_collection import Fields
from ndd_search.corpus.sketch_store import sketches_of
from ndd_search.corpus.spark_index import SparkIndex
from ndd_search.corpus.spark_mirrored_hosts import Hosting, SparkHosts, hosts_on_spark
from ndd_search.corpus.spark_pairs import PairsOnSpark, SparkTable, Work
from ndd_search.errors import RecipeMismatch, importing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
with importing("pyspark", "a corpus on Spark", "pyspark", "spark"):
    from pyspark.sql import DataFrame, Window
    from pyspark.sql import functions as F  # noqa: N812 - its usual name

log = logging.getLogger("ndd_search")


@dataclass(frozen=True, eq=False)
class SparkCorpus:
    """The sketches of a collection on a cluster; make one with `read`.

    documents: a DataFrame of place, id, number (the place among all that were read), sketch and fields (JSON).
    recipe:    of the sketches.
    fields:    whose values were kept.
    work:      where stages are written.
    source:    the DataFrame, or the files and indexes, that were read; None for a loaded collection.
    id_field:  the field that holds the id, or None.
    text:      the fields that were sketched; empty for a loaded collection.
    order_by:  columns of the DataFrame that gave the order of its documents, before their ids.
    """

    documents: DataFrame
    recipe: Recipe
    fields: tuple[str, ...]
    work: Work
    source: DataFrame | reading_of.Sources | None = None
    id_field: str | None = None
    text: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()

    def __len__(self) -> int:
        return self.count

    @classmethod
    def read(  # noqa: PLR0913 - the arguments of Corpus.read, and two more
        cls,
        spark: SparkSession,
        *sources: str | Path | SparkIndex | DataFrame,
        text: str | Sequence[str],
        work: str | Path,
        id: str | None = None,
        order_by: Sequence[str] = (),
        recipe: Recipe | str | None = None,
        fields: Sequence[str] = (),
        numbers: bool = False,
        preset: str | Preset | None = None,
        report: Report | None = None,
    ) -> SparkCorpus:
        """Read a collection and sketch its documents on the cluster.

        sources:  a DataFrame; or paths of files that every worker sees under the same name, each read by one task, and
                  indexes.
        work:     a folder that every worker sees. It takes the stages, and is not emptied.
        order_by: columns of a DataFrame that give the order of its documents, before their ids. Documents of paths have
                  the order of Corpus.read.
        text, id, recipe, fields, numbers, preset, report: as for Corpus.read. A DataFrame needs `id`.
        Raises InvalidDocument when no document has words, ValueError for a DataFrame without id.
        """
        recipe, numbers = read_by(preset, recipe, numbers)
        kept = Fields(fields_in("text", text), recipe, fields_in("fields", fields), numbers)
        folder = Work(spark, str(work))
        documents, source = reading_of.read(folder, sources, stages.ReadingTexts(id, kept), order_by, report)
        if not documents.filter(F.size("sketch") > 0).head(1) and (count := documents.count()):
            raise kept.without_text(count)
        return cls(documents, kept.recipe, kept.kept, folder, source, id, kept.text, tuple(order_by))

    @classmethod
    def load(cls, spark: SparkSession, path: str, work: str | Path) -> SparkCorpus:
        """A collection that `save`, or Corpus.save, has written. Raises InvalidDocument for another file."""
        documents, recipe, fields = reading_of.saved(Work(spark, str(work)), path)
        return cls(documents, recipe, fields, Work(spark, str(work)))

    def save(self, path: str) -> None:
        """Write ids, sketches and kept fields (as text) as a folder of Parquet files, which Corpus.load reads, too."""
        reading_of.save(self.documents, self.recipe, self.fields, path)

    @cached_property
    def count(self) -> int:
        """How many documents there are."""
        count: int = self.documents.count()
        return count

    def has_value(self, field: str) -> bool:
        """Whether any document has a value in a field that was kept."""
        value = F.from_json("fields", "map<string,string>")[field]
        return not self.documents.filter(value.isNotNull()).isEmpty()

    @cached_property
    def frequency_table(self) -> FrequencyTable:
        """The frequency table of the collection itself, the same as that of Corpus."""
        places = self.work.table({"place": sample_of(self.count)})
        sample = self.documents.join(F.broadcast(places), "place").select("place", "sketch").toArrow().sort_by("place")
        return count_document_frequency(list(sketches_of(sample.column("sketch"))), self.recipe)

    def groups(
        self,
        min_similarity: Setting | None = None,
        method: Method = "leaders",
        *,
        keep: Sequence[Keep] | None = None,
        **settings: Unpack[Settings],
    ) -> SparkGroups:
        """The groups of near-duplicates, the same as those of Corpus.groups. Arguments as there."""
        check_method(method)
        if method == "inclusive":
            raise ValueError('method "inclusive" is not on Spark: it compares texts, on one machine')
        pairs = self._pairs(min_similarity, settings, keep=keep)
        return SparkGroups(pairs.groups(method), pairs.effort, self)

    def pairs(self, min_similarity: Setting | None = None, **settings: Unpack[Settings]) -> SparkTable:
        """All pairs of near-duplicates: first, second (ids) and similarity. Arguments as for `groups`.

        Of documents with equal sketches the first one stands for all, and is a pair with each of the others.
        """
        found = self._pairs(min_similarity, settings)
        return SparkTable(found.with_ids(), found.effort)

    def new(
        self, against: SparkCorpus | None, min_similarity: Setting | None = None, **settings: Unpack[Settings]
    ) -> SparkNewcomers:
        """Which documents are new since an earlier collection, the same as those of Corpus.new. Arguments as there."""
        if against is None:
            against = SparkCorpus(self.documents.limit(0), self.recipe, self.fields, self.work)
        if against.recipe != self.recipe:
            raise RecipeMismatch("the earlier collection", against.recipe.id, self.recipe.id)
        fields = tuple(name for name in self.fields if name in against.fields)
        later = self.documents.withColumn("place", F.col("place") + against.count)
        both = SparkCorpus(against.documents.unionByName(later), self.recipe, fields, self.work)
        pairs = both._pairs(min_similarity, settings, against.count)
        without = [one.documents.filter(F.size("sketch") == 0).select("id") for one in (self, against)]
        known = without[0].join(without[1], "id").select(F.col("id").alias("document"), F.lit(True).alias("known"))
        rows = pairs.newcomers().join(known, "document", "left")
        earlier = F.coalesce("known", "earlier").alias("earlier")  # a document without text is its own leader
        table = rows.select("document", "duplicate_of", earlier, "similarity")
        return SparkNewcomers(table, pairs.effort, self, against)

    def hosts(
        self,
        url: str = "url",
        min_similarity: Setting | None = None,
        *,
        min_share: float = 0.5,
        **settings: Unpack[Settings],
    ) -> SparkHosts:
        """The pairs of hosts that have the same pages, the same as those of Corpus.hosts. Arguments as there."""
        check_hosts(url, (*self.fields, self.id_field), min_share)
        groups = self.groups(min_similarity, **settings)
        hosting = Hosting(url if url in self.fields else None, self.recipe, min_share)
        return hosts_on_spark(self.work, self.documents, groups, hosting)

    def documents_of(self, ids: DataFrame) -> DataFrame:
        """Documents with all their fields, in order; the source is read again.

        ids: a DataFrame of `id`. Returns rows of the DataFrame that was read; of files and indexes `document`, JSON
        texts. Raises ValueError for a loaded collection.
        """
        if self.source is None:
            raise ValueError("a collection that was loaded knows no documents: read it from its sources")
        wanted = self.documents.join(ids, "id", "left_semi").select("number", "id")
        if isinstance(self.source, DataFrame):
            wanted = wanted.withColumnsRenamed({"number": "ndd number", "id": "ndd id"})
            rows = wanted.join(self.source, F.col("ndd id") == self.source[self.id_field or ""].cast("string"))
            same_id = Window.partitionBy("ndd number").orderBy(*(self.source[name] for name in self.order_by), "ndd id")
            rows = rows.withColumn("ndd nth", F.row_number().over(same_id)).filter("`ndd nth` = 1")
            return rows.sort("ndd number").select(self.source["*"])
        read = reading_of.from_sources(self.work, self.source, stages.ReadingWhole(self.id_field))
        rows = self.work.placed(self.work.written("whole", read).filter("said is null"))
        if any(isinstance(one, SparkIndex) for one in self.source):  # whose documents come in another order
            rows = rows.withColumnRenamed("number", "now").join(wanted, "id")
            rows = rows.withColumn("first", F.min("now").over(Window.partitionBy("id"))).filter("now = first")
        else:
            rows = rows.join(wanted, ["number", "id"], "left_semi")
        return rows.sort("number").select("document")

    def write_documents(self, ids: DataFrame, path: str, count: int) -> int:
        """Write documents as a folder of JSON lines, also gzipped. count: how many there should be, and are.

        Raises InvalidDocument if there are fewer.
        """
        reading_of.write_documents(self.documents_of(ids), path, count)
        return count

    def _pairs(
        self, min_similarity: Setting | None, settings: Settings, old: int = 0, keep: Sequence[Keep] | None = None
    ) -> PairsOnSpark:
        search, options = search_of(self.recipe, min_similarity, settings, lambda: self.frequency_table, keep=keep)
        check_kept(options, self.fields)
        return PairsOnSpark(self.work, self.documents, self.count, self.fields, search, options, old, self.text)


@dataclass(frozen=True, eq=False)
class SparkGroups(SparkTable):
    """The groups of a collection on Spark: document, group (the id of its leader), size, similarity to the leader and
    fingerprint, as Groups.table.

    corpus: the collection.
    """

    corpus: SparkCorpus

    @cached_property
    def _count(self) -> int:
        count: int = self.leaders.count()
        return count

    def __len__(self) -> int:
        """How many groups there are, those of one document included."""
        return self._count

    @property
    def leaders(self) -> DataFrame:
        """The `id` of each document that stands for a group."""
        return self.table.filter("document = group").select(F.col("document").alias("id"))

    def unique_documents(self) -> DataFrame:
        """The documents that stand for a group: see SparkCorpus.documents_of."""
        return self.corpus.documents_of(self.leaders)

    def unique(self, path: str) -> int:
        """Write the documents that stand for a group as a folder of JSON lines. Returns how many."""
        return self.corpus.write_documents(self.leaders, path, len(self))


@dataclass(frozen=True, eq=False)
class SparkNewcomers(SparkTable):
    """A collection on Spark beside an earlier one: document, duplicate_of (an id; its own for a new document), earlier
    (whether that one is in `against`) and similarity.

    corpus, against: the collection and the earlier one.
    """

    corpus: SparkCorpus
    against: SparkCorpus

    @property
    def new(self) -> DataFrame:
        """The `id` of each new document."""
        return self.table.filter("document = duplicate_of and not earlier").select(F.col("document").alias("id"))

    @cached_property
    def _count(self) -> int:
        count: int = self.new.count()
        return count

    def __len__(self) -> int:
        """How many documents are new."""
        return self._count

    def documents(self) -> DataFrame:
        """The new documents: see SparkCorpus.documents_of."""
        return self.corpus.documents_of(self.new)

    def write(self, path: str) -> int:
        """Write the new documents as a folder of JSON lines. Returns how many."""
        return self.corpus.write_documents(self.new, path, len(self))

    def save(self, path: str) -> None:
        """Write the sketches of both collections as one, as Newcomers.save does."""
        stay = self.against.documents.join(self.corpus.documents.select("id"), "id", "left_anti")
        later = self.corpus.documents.withColumn("place", F.col("place") + self.against.count)
        fields = tuple(name for name in self.corpus.fields if name in self.against.fields)
        reading_of.save(stay.unionByName(later), self.corpus.recipe, fields, path)
