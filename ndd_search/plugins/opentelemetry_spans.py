"""Spans of wrapped clients for OpenTelemetry: `ndd_search.wrap(client, observers=[OpenTelemetrySpans()])`."""

from __future__ import annotations

from typing import Any

from ndd_search.errors import importing
from ndd_search.search.flow.observer import Observation

with importing("opentelemetry", "OpenTelemetrySpans", "opentelemetry-api", "tracing"):
    from opentelemetry import trace


class OpenTelemetrySpans:
    """An observer that records one span for each search, below the span of its caller.

    Attributes: ndd.trips, ndd.own_seconds, ndd.upstream_seconds, ndd.pages, and of all its pages together ndd.examined
    and ndd.hidden; for a search with one page also ndd.cache, ndd.strategy and ndd.degraded.
    provider: None for the one that is set for the process, which another process always uses.
    """

    def __init__(self, provider: trace.TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer("ndd_search", tracer_provider=provider)

    def __deepcopy__(self, memo: object) -> OpenTelemetrySpans:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return OpenTelemetrySpans, ()

    def observe(self, seen: Observation) -> None:
        began = seen.ended - round((seen.own_seconds + seen.upstream_seconds) * 1e9)
        span = self._tracer.start_span("ndd_search.search", start_time=began)
        span.set_attributes(
            {
                "ndd.trips": seen.trips,
                "ndd.own_seconds": seen.own_seconds,
                "ndd.upstream_seconds": seen.upstream_seconds,
                "ndd.pages": len(seen.pages),
                "ndd.examined": sum(page.examined for page in seen.pages),
                "ndd.hidden": sum(page.hidden for page in seen.pages),
            }
        )
        if len(seen.pages) == 1:
            (page,) = seen.pages
            span.set_attributes({"ndd.cache": page.cache, "ndd.strategy": page.strategy, "ndd.degraded": page.degraded})
        if seen.failed:
            span.set_status(trace.StatusCode.ERROR, seen.failed)
        span.end(seen.ended)
