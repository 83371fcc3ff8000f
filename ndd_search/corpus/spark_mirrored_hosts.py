"""Mirrored hosts of a collection on Spark, by the functions of corpus.mirrored_hosts."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from ndd_search.core.recipe import Recipe
from ndd_search.corpus.collection_pairs import Effort
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
from ndd_search.corpus.spark_pairs import Work, write_rows
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
_TEXT, _NUMBER, _SHARE = pa.string(), pa.int64(), pa.float64()
_SHARED = pa.schema(
    {
        **{"first": _TEXT, "second": _TEXT, "first_pages": _NUMBER, "second_pages": _NUMBER},
        **{"leader": _NUMBER, "first_count": _NUMBER, "second_count": _NUMBER},
        **{"first_urls": pa.list_(_TEXT), "second_urls": pa.list_(_TEXT), "similarities": pa.list_(_SHARE)},
    }
)
_KINDS = {"str": _TEXT, "str | None": _TEXT, "int": _NUMBER, "float": _SHARE}
_PAIRS = pa.schema({**{one.name: _KINDS[str(one.type)] for one in fields(HostPair)}, "mirror": pa.bool_()})


@dataclass(frozen=True, eq=False)
class SparkHosts:
    """The pairs of hosts with the same pages.

    table: a DataFrame with the columns of Hosts.rows, in that order.
    without_host, ubiquitous, effort: as in Hosts.
    """

    table: DataFrame
    without_host: int
    ubiquitous: int
    effort: Effort

    @property
    def mirrors(self) -> int:
        """How many pairs are mirrors."""
        count: int = self.table.filter("mirror").count()
        return count

    def write(self, path: str) -> int:
        """Write the table as a folder of Parquet files. Returns how many pairs there are."""
        return write_rows(self.table, path)


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
        """The pages of one group, with `leader` and `total` (pages of the host), to rows of _SHARED."""
        rows = members.sort_by("place").to_pylist()
        totals = {row["host"]: row["total"] for row in rows}
        sketches = {row["place"]: np.array(row["sketch"], np.int32) for row in rows}
        pages = [page for row in rows if (page := page_of(row["place"], row["url"]))]
        found: list[dict[str, Any]] = []
        for (first, second), shared in (shared_pages(pages, totals) or {}).items():
            found.append(
                {
                    **{"first": first, "second": second, "leader": rows[0]["leader"]},
                    **{"first_pages": totals[first], "second_pages": totals[second]},
                    **{"first_count": shared.counts[0], "second_count": shared.counts[1]},
                    **{"first_urls": [one.url for one, _ in shared.matches]},
                    **{"second_urls": [other.url for _, other in shared.matches]},
                    **{"similarities": similarities_of(shared.matches, sketches, self.recipe).tolist()},
                }
            )
        return pa.Table.from_pylist(found, _SHARED)

    def pair(self, parts: pa.Table) -> pa.Table:
        """What two hosts share, rows of _SHARED, to a row of _PAIRS or none."""
        rows = parts.sort_by("leader").to_pylist()
        hosts, totals = ((rows[0][f"first{name}"], rows[0][f"second{name}"]) for name in ("", "_pages"))
        shared = joined([Shared((row["first_count"], row["second_count"]), _matches(row)) for row in rows])
        found: list[dict[str, Any]] = []
        if is_shared(totals, shared, self.min_share):
            pair = host_pair(hosts, totals, shared, np.array([one for row in rows for one in row["similarities"]]))
            found.append({**asdict(pair), "mirror": pair.is_mirror})
        return pa.Table.from_pylist(found, _PAIRS)


def hosts_on_spark(work: Work, documents: DataFrame, groups: DataFrame, hosting: Hosting, effort: Effort) -> SparkHosts:
    """The hosts of the documents of a collection that was grouped. See Corpus.hosts."""
    page = F.udf(hosting.locate, _PAGE)("id", "fields").alias("page")
    pages = work.written("pages", documents.select("id", "place", "sketch", page).select("*", "page.*").drop("page"))
    totals = pages.groupBy("host").agg(F.count("*").alias("total"))
    leaders = pages.select(F.col("id").alias("group"), F.col("place").alias("leader"))
    members = groups.filter("size > 1").select(F.col("document").alias("id"), "group")
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
        pages.filter("host is null").count(),
        hosts_of_group.filter(F.col("hosts") > MOST_HOSTS).count(),
        effort,
    )


def _matches(row: dict[str, Any]) -> list[tuple[Page, Page]]:
    """The matches of a row of _SHARED."""
    pages = ([page for url in row[name] if (page := page_of(0, url))] for name in ("first_urls", "second_urls"))
    return list(zip(*pages, strict=True))
