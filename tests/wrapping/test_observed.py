"""What observers of a wrapped client are given, and the metrics and spans that are made of it."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.search.flow.client_settings import settings_of
from ndd_search.search.flow.observer import Observation, PageFacts
from tests.wrapping.conftest import Caller, Connect, Library, body_of
from tests.wrapping.proxy import Harm, Proxy
from tests.wrapping.test_searches import MATCH

prometheus_client = pytest.importorskip("prometheus_client")
DOCS = Path(__file__).parents[2] / "docs"
SEARCH: dict[str, Any] = {"query": MATCH, "size": 5}
ONE = Observation(
    path="/news/_search",
    pages=(PageFacts(collapsed=True, examined=100, hidden=40, cache="miss"),),
    trips=2,
    own_seconds=0.0004,
    upstream_seconds=0.01,
    ended=1_700_000_000_000_000_000,
)


class Seen(list[Observation]):
    """An observer that keeps what it is given."""

    def observe(self, seen: Observation) -> None:
        self.append(seen)


class Broken:
    def observe(self, seen: Observation) -> None:
        raise LookupError("a bug of the observer")


def test_an_observer_is_given_the_facts_of_each_search(library: Library, connect: Connect, proxy: Proxy) -> None:
    seen = Seen()
    caller = connect(proxy.url, observers=[Broken(), seen], client={"max_retries": 0})
    for _ in range(2):
        answer = caller.search(index=library.news, body=SEARCH)
    passed = len(proxy.searches)
    miss, hit = seen
    block = answer["ndd"]
    for one, cache in ((miss, "miss"), (hit, "hit")):
        assert one.path == f"/{library.news}/_search"
        (page,) = one.pages
        assert (page.collapsed, page.cache, page.degraded) == (True, cache, "")
        assert (page.examined, page.hidden) == (block["examined"], block["hidden"])
    assert (miss.trips, hit.trips, hit.upstream_seconds) == (passed, 0, 0.0)
    assert miss.own_seconds > 0
    assert miss.upstream_seconds > 0
    caller.search(index=library.news, body={**SEARCH, "ndd": {"window": 20, "total": "groups"}})
    (whole,) = seen.pop().pages
    assert whole.examined > 100
    caller.search(index=library.bare, body=SEARCH)
    assert seen.pop().pages == (PageFacts(collapsed=False),)
    caller.msearch(body=[{"index": library.news}, SEARCH, {"index": library.news}, {**SEARCH, "ndd": False}])
    multi = seen.pop()
    assert [page.collapsed for page in multi.pages] == [True, False]
    assert seen == [miss, hit]
    caller.search(index=library.news, body={**SEARCH, "ndd": False})
    assert seen == [miss, hit]  # it is not ours


def test_a_degraded_page_and_a_failed_search_are_counted(library: Library, connect: Connect, proxy: Proxy) -> None:
    seen = Seen()
    caller = connect(proxy.url, observers=[seen], cache=False, splits=False, client={"max_retries": 0})
    proxy.reset(lambda number, request: Harm(status=503) if number == 1 else None)
    answer = caller.search(index=library.news, body={**SEARCH, "size": 60})
    (page,) = seen.pop().pages
    assert page.degraded == answer["ndd"]["degraded"].partition(":")[0]
    proxy.reset(lambda number, request: Harm(cut=True))
    with pytest.raises(Exception, match=r".") as raised:
        caller.search(index=library.news, body=SEARCH)
    failed = seen.pop()
    assert (failed.failed, failed.pages) == (type(raised.value).__name__, ())
    assert failed.trips > 0


def metrics(registry: Any) -> dict[str, float]:
    """Each sample by its name and labels."""
    return {
        "".join((sample.name, *map(str, sample.labels.values()))): sample.value
        for family in registry.collect()
        for sample in family.samples
    }


def test_prometheus_counts_what_was_observed() -> None:
    registry = prometheus_client.CollectorRegistry()
    counting = ndd.plugins.PrometheusMetrics(registry)
    counting.observe(ONE)
    counting.observe(
        Observation(
            path="/_msearch",
            pages=(PageFacts(collapsed=False, degraded="late"), *ONE.pages),
            trips=1,
            own_seconds=0.1,
            upstream_seconds=1.0,
            ended=ONE.ended,
        )
    )
    counting.observe(
        Observation(path="/", pages=(), trips=1, own_seconds=0, upstream_seconds=0, ended=0, failed="ConnectionError")
    )
    found = metrics(registry)
    expected = {
        "ndd_search_pages_totalcollapsed": 2,
        "ndd_search_pages_totalunchanged": 1,
        "ndd_search_pages_totalfailed": 1,
        "ndd_search_degraded_totallate": 1,
        "ndd_search_cache_totalmiss": 2,
        "ndd_search_hits_examined_total": 200,
        "ndd_search_hits_hidden_total": 80,
        "ndd_search_trips_total": 4,
        "ndd_search_own_seconds_count": 3,
        "ndd_search_upstream_seconds_count": 3,
    }
    assert {name: found[name] for name in expected} == expected
    assert found["ndd_search_own_seconds_sum"] == pytest.approx(0.1004)
    text = "".join(DOCS.joinpath(name).read_text() for name in ("grafana-dashboard.json", "alerts.yml"))
    json.loads(DOCS.joinpath("grafana-dashboard.json").read_text())
    named = set(re.findall(r"ndd_search_\w+", text))
    known = {re.match(r"\w+?_(?:total|bucket|sum|count|created)", name)[0] for name in found}  # type: ignore[index]
    assert named <= known


def test_prometheus_reads_all_processes_while_another_one_starts(tmp_path: Path) -> None:
    (tmp_path / "counter_1.db").touch()  # as a process leaves it for a moment
    told = (
        "import ndd_search as ndd; metrics = ndd.plugins.PrometheusMetrics();"
        "metrics.observe_unsketched('/', 3); print(metrics.exposition()[0].decode())"
    )
    environment = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", told], env=environment, check=True, capture_output=True, text=True)
    assert "ndd_search_documents_unsketched_total 3.0" in ran.stdout


def test_a_client_with_observers_can_be_copied_and_sent_to_another_process() -> None:
    pytest.importorskip("opentelemetry")
    metrics, spans = ndd.plugins.PrometheusMetrics(prefix="copied"), ndd.plugins.OpenTelemetrySpans()
    settings = settings_of(observers=[metrics, spans])
    assert deepcopy(settings.observers) == (metrics, spans)
    copied = pickle.loads(pickle.dumps(settings.observers))
    assert copied[0] is metrics
    copied[1].observe(ONE)
    assert ndd.plugins.PrometheusMetrics(prefix="another").registry is prometheus_client.REGISTRY


def test_a_span_is_below_that_of_the_caller(library: Library, connect: Connect) -> None:
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exported, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exported))
    caller: Caller = connect(observers=[ndd.plugins.OpenTelemetrySpans(provider)])
    with provider.get_tracer("test").start_as_current_span("outer") as outer:
        answer = body_of(caller.search(index=library.news, body=SEARCH))
    span, last = exported.get_finished_spans()
    assert last.name == "outer"
    assert span.name == "ndd_search.search"
    assert span.parent is not None
    assert span.parent.span_id == outer.get_span_context().span_id
    assert span.attributes is not None
    assert span.attributes["ndd.examined"] == answer["ndd"]["examined"]
    assert span.attributes["ndd.cache"] == "miss"
    assert span.start_time is not None
    assert span.end_time is not None
    assert span.start_time < span.end_time
    provider.shutdown()
