"""Mirrored hosts of a collection on Spark, by the functions of corpus.mirrored_hosts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from ndd_search.core.matching.similarity_measures import similarities
from ndd_search.core.matching.sketch_rows import rows_of
from ndd_search.core.recipe import Recipe
from ndd_search.corpus.mirrored_hosts import (
    MOST_HOSTS,
    Page,
    Shared,
    host_pair,
    is_shared,
    joined,
    page_of,
    shared_pages,
)
from ndd_search.corpus.spark_pairs import Work
from ndd_search.errors import importing

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from ndd_search.corpus.spark_stages import Batches
else:
    with importing("pyarrow", "a corpus on Spark", "pyarrow", "corpus"):
        import pyarrow as pa
with importing("pyspark", "a corpus on Spark", "pyspark", "spark"):
    from pyspark.sql import functions as F  # noqa: N812 - its usual name

_PAGES = "id string, place long, sketch binary, url string, host string"
_SHARED = (
    "first string, second string, leader long, first_pages long, second_pages long, first_count long, "
    "second_count long, first_urls array<string>, second_urls array<string>, similarities array<double>"
)
_PAIRS = (
    "first string, second string, first_pages long, second_pages long, first_share double, second_share double, "
    "holds string, same_path double, first_folder string, second_folder string, moved double, resemblance double, "
    "first_example string, second_example string, mirror boolean"
)


@dataclass(frozen=True, eq=False)
class SparkHosts:
    """The pairs of hosts with the same pages.

    table: a DataFrame with the columns of Hosts.rows, in that order.
    without_host, ubiquitous: as in Hosts.
    """

    table: DataFrame
    without_host: int
    ubiquitous: int


@dataclass(frozen=True)
class Hosting:
    """How hosts are compared. url: the field with the URL, None for the id. min_share: see Corpus.hosts."""

    url: str | None
    recipe: Recipe
    min_share: float

    def locate(self, batches: Batches) -> Batches:
        """Documents to rows of _PAGES; `host` is null where the URL names none."""
        for batch in batches:
            rows = batch.to_pylist()
            for row in rows:
                row["url"] = row["id"] if self.url is None else json.loads(row["fields"] or "{}").get(self.url)
                page = page_of(row["place"], row["url"])
                row["host"], row["url"] = (page.host, page.url) if page else (None, None)
            yield _batch(rows, _PAGES)

    def share(self, batches: Batches) -> Batches:
        """Pages with `leader` and `total` (pages of the host), ordered by leader and place, to rows of _SHARED."""
        for leader, members in groupby(_rows(batches), lambda row: row["leader"]):
            yield _batch(list(self._shared(int(leader), list(members))), _SHARED)

    def _shared(self, leader: int, members: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        totals = {row["host"]: row["total"] for row in members}
        sketches = {row["place"]: np.frombuffer(row["sketch"], np.int32) for row in members}
        pages = [page for row in members if (page := page_of(row["place"], row["url"]))]
        for (first, second), shared in (shared_pages(pages, totals) or {}).items():
            places = [page.place for match in shared.matches for page in match]
            rows = rows_of([sketches[place] for place in places], self.recipe.k)
            at = np.arange(0, len(places), 2)
            alike = similarities(rows, at, at + 1, self.recipe.measure)
            yield {
                **{"first": first, "second": second, "leader": leader, "similarities": alike.tolist()},
                **{"first_pages": totals[first], "second_pages": totals[second]},
                **{"first_count": shared.counts[0], "second_count": shared.counts[1]},
                **{"first_urls": [one.url for one, _ in shared.matches]},
                **{"second_urls": [other.url for _, other in shared.matches]},
            }

    def pair(self, batches: Batches) -> Batches:
        """Rows of _SHARED, ordered by the hosts and the leader, to rows of _PAIRS."""
        for hosts, members in groupby(_rows(batches), lambda row: (row["first"], row["second"])):
            rows = list(members)
            totals = rows[0]["first_pages"], rows[0]["second_pages"]
            shared = joined([Shared((row["first_count"], row["second_count"]), _matches(row)) for row in rows])
            if is_shared(totals, shared, self.min_share):
                alike = np.array([one for row in rows for one in row["similarities"]])
                found = host_pair(hosts, totals, shared, alike)
                yield _batch([{**asdict(found), "mirror": found.is_mirror}], _PAIRS)


def hosts_on_spark(work: Work, documents: DataFrame, groups: DataFrame, hosting: Hosting) -> SparkHosts:
    """The hosts of the documents of a collection that was grouped. See Corpus.hosts."""
    pages = documents.select("id", "place", "sketch", "fields").mapInArrow(hosting.locate, _PAGES)
    pages = work.written("pages", pages)
    totals = pages.groupBy("host").agg(F.count("*").alias("total"))
    leaders = pages.select(F.col("id").alias("group"), F.col("place").alias("leader"))
    members = groups.filter("size > 1").select(F.col("document").alias("id"), "group")
    members = members.join(leaders, "group").join(pages.filter("host is not null"), "id").join(totals, "host")
    ordered = work.written("members", members).repartition("leader").sortWithinPartitions("leader", "place")
    shared = work.written("shared", ordered.mapInArrow(hosting.share, _SHARED))
    order = ("first", "second", "leader")
    pairs = shared.repartition("first", "second").sortWithinPartitions(*order).mapInArrow(hosting.pair, _PAIRS)
    largest = F.greatest("first_share", "second_share").desc()
    hosts_of_group = members.groupBy("leader").agg(F.countDistinct("host").alias("hosts"))
    return SparkHosts(
        work.written("hosts", pairs).sort(largest, F.col("second_pages").desc(), "first", "second"),
        pages.filter("host is null").count(),
        hosts_of_group.filter(F.col("hosts") > MOST_HOSTS).count(),
    )


def _matches(row: dict[str, Any]) -> list[tuple[Page, Page]]:
    """The matches of a row of _SHARED."""
    pages = ([page for url in row[name] if (page := page_of(0, url))] for name in ("first_urls", "second_urls"))
    return list(zip(*pages, strict=True))


def _rows(batches: Batches) -> Iterator[dict[str, Any]]:
    return (row for batch in batches for row in batch.to_pylist())


_KINDS = {
    "string": pa.string(),
    "long": pa.int64(),
    "double": pa.float64(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "array<string>": pa.list_(pa.string()),
    "array<double>": pa.list_(pa.float64()),
}


def _batch(rows: list[dict[str, Any]], schema: str) -> pa.RecordBatch:
    """Rows as a batch of a schema of Spark."""
    columns = [column.split(" ") for column in schema.split(", ")]
    return pa.RecordBatch.from_pylist(rows, pa.schema([(name, _KINDS[kind]) for name, kind in columns]))
