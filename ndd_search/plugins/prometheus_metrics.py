"""Metrics of wrapped clients for Prometheus: `ndd_search.wrap(client, observers=[PrometheusMetrics()])`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from ndd_search.errors import importing
from ndd_search.search.flow.observer import Observation

with importing("prometheus_client", "PrometheusMetrics", "prometheus-client", "metrics"):
    from prometheus_client import (
        CONTENT_TYPE_LATEST,
        REGISTRY,
        CollectorRegistry,
        Counter,
        Histogram,
        Metric,
        generate_latest,
    )
    from prometheus_client.multiprocess import MultiProcessCollector

_OWN = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1)  # seconds
_UPSTREAM = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class PrometheusMetrics:
    """An observer that counts searches. One object may be given to any number of clients.

    registry: where the metrics are registered; one object a registry. prefix: of every name. A copy is the same object.
    Another process uses its own object in its own default registry.
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY, prefix: str = "ndd_search") -> None:
        def counter(name: str, what: str, *labels: str) -> Counter:
            return Counter(f"{prefix}_{name}", what, labels, registry=registry)

        self.registry, self._prefix = registry, prefix
        self._pages = counter("pages", "Pages, by result: collapsed, unchanged (the engine's own), failed.", "result")
        self._degraded = counter("degraded", "Pages that may show near-duplicates, by reason.", "reason")
        self._cache = counter("cache", "Collapsed pages, by result of the cache: hit, miss, off.", "result")
        self._examined = counter("hits_examined", "Hits examined.")
        self._hidden = counter("hits_hidden", "Hits listed under another hit.")
        self._trips = counter("trips", "Requests to the engine.")
        self._unsketched = counter("documents_unsketched", "Documents that a proxy passed without their sketch.")
        self._own = Histogram(f"{prefix}_own_seconds", "Own work of a search.", registry=registry, buckets=_OWN)
        self._upstream = Histogram(
            f"{prefix}_upstream_seconds", "Waiting of a search for the engine.", registry=registry, buckets=_UPSTREAM
        )

        if registry is REGISTRY:
            _OF_PROCESS[prefix] = self

    def __deepcopy__(self, memo: object) -> PrometheusMetrics:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_process, (self._prefix,)

    def observe(self, seen: Observation) -> None:
        """Count a search."""
        if seen.failed:
            self._pages.labels("failed").inc()
        for page in seen.pages:
            self._pages.labels("collapsed" if page.collapsed else "unchanged").inc()
            if page.degraded:
                self._degraded.labels(page.degraded).inc()
            if page.collapsed:
                self._cache.labels(page.cache).inc()
                self._examined.inc(page.examined)
                self._hidden.inc(page.hidden)
        self._trips.inc(seen.trips)
        self._own.observe(seen.own_seconds)
        self._upstream.observe(seen.upstream_seconds)

    def exposition(self) -> tuple[bytes, str]:
        """Return all metrics of the registry in Prometheus' text format, and its media type.

        Where PROMETHEUS_MULTIPROC_DIR is set, they are those of all processes that write to that folder.
        """
        registry = self.registry
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            registry = CollectorRegistry()
            registry.register(_AllProcesses(os.environ["PROMETHEUS_MULTIPROC_DIR"]))
        return generate_latest(registry), CONTENT_TYPE_LATEST

    def observe_unsketched(self, path: str, documents: int) -> None:
        """Count documents that a proxy passed without their sketch."""
        self._unsketched.inc(documents)


class _AllProcesses:
    """Reads the metrics of all processes that write to a folder."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def collect(self) -> Iterable[Metric]:
        # A process that starts makes its file empty before it gives it a size; the library fails on an empty file.
        files = [str(file) for file in self._folder.glob("*.db") if file.stat().st_size]
        return MultiProcessCollector.merge(files)  # type: ignore[no-untyped-call,no-any-return]


_OF_PROCESS: dict[str, PrometheusMetrics] = {}  # those in the default registry, by prefix


@cache
def metrics_of_process() -> PrometheusMetrics:
    """Return the metrics of the proxies of this process, in a registry of their own."""
    return PrometheusMetrics(CollectorRegistry())


def _of_process(prefix: str) -> PrometheusMetrics:
    return _OF_PROCESS.get(prefix) or PrometheusMetrics(prefix=prefix)
