"""An index of Elasticsearch or OpenSearch as a DataFrame, read in slices of one point in time.

    spark.dataSource.register(IndexDataSource)
    documents = (spark.read.format("ndd_search").schema("_id string, title string, body string")
                 .option("engine", "opensearch").option("url", "http://localhost:9200").option("index", "news").load())

No jar is needed: every partition is a slice that one process reads with the Python client of the engine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ndd_search.core.document_fields import text_of, value_of
from ndd_search.core.exact_numbers import json_with_written
from ndd_search.corpus.write_files import line_of
from ndd_search.errors import importing
from ndd_search.indexing.rate_and_retries import Retry
from ndd_search.indexing.scan import Snapshot, open_point, with_json

if TYPE_CHECKING:
    from pyspark.sql.types import StructType
with importing("pyspark", "an index on Spark", "pyspark", "spark"):
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

_CLIENTS = {"elasticsearch": ("elasticsearch", "Elasticsearch"), "opensearch": ("opensearchpy", "OpenSearch")}
_SIZE = 1_000  # documents of a page
WHOLE = "_source"  # the column of an index that takes whole documents


class IndexDataSource(DataSource):
    """The data source "ndd_search". The schema names `_id` and fields of `_source`. A text column takes
    any value, and of a list a line for each of its members. The column `_source` takes the whole document with its
    `_id`, as JSON.

    Options: engine ("elasticsearch" or "opensearch"), url, index; query (JSON), slices (2), and client: further
    arguments of the engine's client as JSON, such as {"basic_auth": ["user", "password"]}.
    """

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "ndd_search"

    def reader(self, schema: StructType) -> IndexReader:
        """A reader of the columns of a schema."""
        options = {name.lower(): value for name, value in self.options.items()}
        for name in ("engine", "url", "index"):
            if name not in options:
                raise ValueError(f"reading an index needs .option({name!r}, ...)")
        if options["engine"] not in _CLIENTS:
            raise ValueError(f"engine is one of {', '.join(_CLIENTS)}, got {options['engine']!r}")
        columns = tuple((one.name, one.dataType.typeName() == "string") for one in schema.fields)
        return IndexReader(options, columns)


@dataclass
class IndexReader(DataSourceReader):
    """Reads the slices. columns: the name of each column, and whether it takes text."""

    options: dict[str, str]
    columns: tuple[tuple[str, bool], ...]

    def partitions(self) -> list[InputPartition]:
        """A slice for each partition, all of one point in time, which the engine closes when it is not used."""
        with self._client() as client:
            point = Retry().call(partial(open_point, client, self.options["index"]))
        count = int(self.options.get("slices", "2")) if point else 1
        return [InputPartition((number, count, point)) for number in range(count)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """The documents of a slice."""
        number, count, point = partition.value
        fields = [name for name, _ in self.columns if name != "_id"]
        wanted = True if WHOLE in fields else fields
        body = {"query": json.loads(self.options.get("query", '{"match_all": {}}')), "_source": wanted}
        with self._client() as client:
            reader = with_json(client, json_with_written) if wanted is True else client
            for hits in Snapshot(reader, self.options["index"], point, Retry()).pages(body, _SIZE, (number, count)):
                for hit in hits:
                    yield tuple(_cell(hit, name, is_text) for name, is_text in self.columns)

    def _client(self) -> Any:
        package, name = _CLIENTS[self.options["engine"]]
        with importing(package, f"an index of {self.options['engine']}", package, self.options["engine"]):
            library = import_module(package)
        return getattr(library, name)(self.options["url"], **json.loads(self.options.get("client", "{}")))


def _cell(hit: dict[str, Any], name: str, is_text: bool) -> Any:
    if name == "_id":
        return hit["_id"]
    source = hit.get("_source", {})
    if name == WHOLE:
        return line_of({**source, "_id": hit["_id"]})
    return text_of(source, (name,)) if is_text else value_of(source, name)
