"""Optional parts that are given to a wrapped client: a cache in Redis, metrics, traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ndd_search.lazy_names import later

if TYPE_CHECKING:
    from ndd_search.plugins.opentelemetry_spans import OpenTelemetrySpans
    from ndd_search.plugins.prometheus_metrics import PrometheusMetrics
    from ndd_search.plugins.redis_cache import RedisCache
    from ndd_search.plugins.seen_memory import SeenMemory

_LATER = {
    "OpenTelemetrySpans": "opentelemetry_spans",
    "PrometheusMetrics": "prometheus_metrics",
    "RedisCache": "redis_cache",
    "SeenMemory": "seen_memory",
}

__all__ = ["OpenTelemetrySpans", "PrometheusMetrics", "RedisCache", "SeenMemory"]

if not TYPE_CHECKING:  # otherwise a type checker would accept any name
    __getattr__ = later(__name__, _LATER)
