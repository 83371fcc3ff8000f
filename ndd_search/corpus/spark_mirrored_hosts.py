"""Mirrored hosts of a collection on Spark, by the functions of corpus.mirrored_hosts."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from ndd_search.core.recipe import Recipe
from ndd_search.corpus.mirrored_hosts import (
    MOST_HOSTS,
    HostPair,
    Page,
    Shared,
    host_pair,
    is_shared,
    joined,
    page_of,
    shared_pages,
    similarities_of,
)
from ndd_search.corpus.spark_pairs import SparkTable, Work
from ndd_search.errors import importing

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
else:
    with importing("pyarrow", "a corpus on Spark", "pyarrow", "corpus"):
        import pyarrow as pa
with importing("pyspark", "a corpus on Spark", "pyspark", "spark"):
    from pyspark.sql import functions as F  # noqa: N812 - its usual name
    from pyspark.sql.pandas.types import from_arrow_schema

_PAGE = "url string, host string"
_SHARED = pa.schema({"first": pa.string(), "second": pa.string(), "leader": pa.int64(), "shared": pa.string()})
_KINDS = {"str": pa.string(), "str | None": pa.string(), "int": pa.int64(), "float": pa.float64()}
_PAIRS = pa.schema({**{one.name: _KINDS[str(one.type)] for one in fields(HostPair)}, "mirror": pa.bool_()})


@dataclass(frozen=True, eq=False)
class SparkHosts(SparkTable):
    """The pairs of hosts with the same pages: a table with the columns of Hosts.rows, in that order.

    without_host, ubiquitous: as in Hosts.
    """

    without_host: int
    ubiquitous: int

    @property
    def mirrors(self) -> int:
        """How many pairs are mirrors."""
        count: int = self.table.filter("mirror").count()
        return count


@dataclass(frozen=True)
class Hosting:
    """How hosts are compared. url: the field with the URL, None for the id. min_share: see Corpus.hosts."""

    url: str | None
    recipe: Recipe
    min_share: float

    def locate(self, id: str, fields: str | None) -> tuple[str, str] | None:
        """The URL and the host of a document, None where the URL names none."""
        page = page_of(0, id if self.url is None else json.loads(fields or "{}").get(self.url))
        return (page.url, page.host) if page else None

    def share(self, members: pa.Table) -> pa.Table:
        """The pages of one group, with `leader` and `total` (pages of the host), to rows of _SHARED.

        shared: as JSON the pages of the two hosts, the fields of Shared, and the similarity of each match.
        """
        rows = members.sort_by("place").to_pylist()
        totals = {row["host"]: row["total"] for row in rows}
        sketches = {row["place"]: np.array(row["sketch"], np.int32) for row in rows}
        pages = [page for row in rows if (page := page_of(row["place"], row["url"]))]
        found: list[dict[str, Any]] = []
        for (first, second), shared in (shared_pages(pages, totals) or {}).items():
            alike = similarities_of(shared.matches, sketches, self.recipe)
            text = json.dumps([(totals[first], totals[second]), shared.counts, shared.matches, alike.tolist()])
            found.append({"first": first, "second": second, "leader": rows[0]["leader"], "shared": text})
        return pa.Table.from_pylist(found, _SHARED)

    def pair(self, parts: pa.Table) -> pa.Table:
        """What two hosts share, rows of _SHARED, to a row of _PAIRS or none."""
        hosts = parts.column("first")[0].as_py(), parts.column("second")[0].as_py()
        texts = parts.sort_by("leader").column("shared").to_pylist()
        totals, counts, matches, alike = zip(*map(json.loads, texts), strict=True)
        paired = [[(Page(*one), Page(*other)) for one, other in pages] for pages in matches]
        both, found = joined([Shared(*shared) for shared in zip(counts, paired, strict=True)]), list[dict[str, Any]]()
        if is_shared(totals[0], both, self.min_share):
            pair = host_pair(hosts, totals[0], both, np.concatenate(alike))
            found.append({**asdict(pair), "mirror": pair.is_mirror})
        return pa.Table.from_pylist(found, _PAIRS)


def hosts_on_spark(work: Work, documents: DataFrame, groups: SparkTable, hosting: Hosting) -> SparkHosts:
    """The hosts of the documents of a collection that was grouped. See Corpus.hosts."""
    page = F.udf(hosting.locate, _PAGE)("id", "fields").alias("page")
    pages = work.written("pages", documents.select("id", "place", "sketch", page).select("*", "page.*").drop("page"))
    totals = pages.groupBy("host").agg(F.count("*").alias("total"))
    leaders = pages.select(F.col("id").alias("group"), F.col("place").alias("leader"))
    members = groups.table.filter("size > 1").select(F.col("document").alias("id"), "group")
    members = members.join(leaders, "group").join(pages.filter("host is not null"), "id").join(totals, "host")
    members = work.written("members", members)
    # Of a method, Spark would count `self` as an argument, and give it the key of the group, too.
    share, pair = (lambda rows: hosting.share(rows)), (lambda rows: hosting.pair(rows))  # noqa: PLW0108
    shared = work.written("shared", members.groupBy("leader").applyInArrow(share, from_arrow_schema(_SHARED)))
    pairs = shared.groupBy("first", "second").applyInArrow(pair, from_arrow_schema(_PAIRS))
    largest = F.greatest("first_share", "second_share").desc()
    hosts_of_group = members.groupBy("leader").agg(F.countDistinct("host").alias("hosts"))
    return SparkHosts(
        work.written("hosts", pairs).sort(largest, F.col("second_pages").desc(), "first", "second"),
        groups.effort,
        pages.filter("host is null").count(),
        hosts_of_group.filter(F.col("hosts") > MOST_HOSTS).count(),
    )
