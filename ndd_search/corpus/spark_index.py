"""An index of Elasticsearch or OpenSearch that the workers of a Spark cluster read, in slices of one point in time.

No jar is needed: each task reads a slice with the Python client of the engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Any

from ndd_search.core.setting_values import check_one_of, check_whole
from ndd_search.corpus.document_batches import IndexSource
from ndd_search.errors import importing
from ndd_search.indexing.rate_and_retries import Retry
from ndd_search.indexing.scan import open_point

_CLIENTS = {"elasticsearch": ("elasticsearch", "Elasticsearch"), "opensearch": ("opensearchpy", "OpenSearch")}


@dataclass(frozen=True, kw_only=True)
class SparkIndex:
    """An index as a source of SparkCorpus.read. A document is its `_source` with its `_id`.

    engine: "elasticsearch" or "opensearch".
    url:    its address.
    index, query: as for IndexSource.
    client: further arguments of the engine's client, such as {"basic_auth": ("user", "password")}.
    slices: tasks that read it, at least 1.
    slice:  the one of a task: see IndexSource; None for the whole index.
    """

    engine: str
    url: str
    index: str
    query: Mapping[str, Any] | None = None
    client: Mapping[str, Any] = field(default_factory=dict, repr=False)
    slices: int = 2
    slice: tuple[str | None, int, int] | None = None

    def __post_init__(self) -> None:
        check_one_of("engine", self.engine, _CLIENTS)
        check_whole("slices", self.slices, 1)

    def tasks(self) -> list[SparkIndex]:
        """The slices of one point in time, which the engine closes when it is not used."""
        with self.opened() as source:
            point = Retry().call(partial(open_point, source.client, self.index))
        count = self.slices if point else 1
        return [replace(self, slice=(point, number, count)) for number in range(count)]

    @contextmanager
    def opened(self) -> Iterator[IndexSource]:
        """What reads it, with a client of the engine."""
        package, name = _CLIENTS[self.engine]
        with importing(package, f"an index of {self.engine}", package, self.engine):
            library = import_module(package)
        with getattr(library, name)(self.url, **self.client) as client:
            yield IndexSource(client, self.index, self.query, self.slice)
