"""Three nodes, one of them killed under a loop of searches."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

import ndd_search as ndd
from tests.engines.find import Engine, check_client
from tests.engines.jars import RELEASES, Unavailable
from tests.engines.launch import cluster
from tests.wrapping.conftest import bulk
from tests.wrapping.library import BAR, actions, documents, expected, mapping

ORDER = ["price", "key"]  # the same on every copy of a shard: scores and ties need not be


@pytest.mark.engine
def test_a_node_that_is_killed_costs_no_hit_and_makes_no_wrong_page() -> None:
    opensearchpy = pytest.importorskip("opensearchpy")
    try:
        check_client(RELEASES["opensearch3"])
        with cluster(RELEASES["opensearch3"], 3) as servers:
            hosts = [server.url for server in servers]
            engine = Engine(name="opensearch3", family="opensearch", major=3, url=hosts[0], source="jars")
            with opensearchpy.OpenSearch(hosts, timeout=30, max_retries=5, retry_on_timeout=True) as client:
                made = mapping(engine)
                made["settings"] = {"number_of_shards": 3, "number_of_replicas": 1}
                made["mappings"]["properties"]["key"] = {"type": "keyword"}
                client.indices.create(index="news", body=made, wait_for_active_shards="all")
                bulk(engine, client, [{**one, "key": one["_id"]} for one in actions("news", engine)])
                client.cluster.health(wait_for_status="green", timeout=60)
                kill_under_searches(client, servers[1])
    except Unavailable as reason:
        pytest.skip(f"opensearch3 {reason}")


def pages(client: Any) -> list[Any]:
    """All pages of one search. The time it takes an engine to notice a dead node is the client's."""
    body = {"query": {"match_all": {}}, "sort": ORDER, "size": 20}
    return [client.search(index="news", body={**body, "from": start}) for start in range(0, 160, 20)]


def kill_under_searches(client: Any, victim: Any) -> None:
    whole = client.search(index="news", body={"sort": ORDER, "size": 1000})
    truth = expected([hit["_id"] for hit in whole["hits"]["hits"]])
    ndd.wrap(client, min_similarity=BAR, window=20, cache=False)
    healthy = [hits(page) for page in pages(client)]
    shown = [id for page in healthy for id in page]
    assert [id for id in shown if id not in truth.doubtful] == truth.kept

    threading.Timer(1.0, victim.kill).start()
    deadline, loops, flagged, refused = time.monotonic() + 8, 0, 0, 0
    while time.monotonic() < deadline or loops < 6:
        loops += 1
        try:
            got = pages(client)
        except Exception as error:
            assert type(error).__module__.startswith("opensearchpy"), error  # noqa: PT017 - others are allowed
            refused += 1
            continue
        for page, right in zip(got, healthy, strict=True):
            if page["_shards"]["failed"] or page["ndd"]["degraded"]:
                flagged += 1  # it says itself that something is missing
            else:
                assert hits(page) == right
    assert victim.process.poll() is not None
    assert flagged + refused < loops
    assert [hits(page) for page in pages(client)] == healthy
    assert len(documents()) == client.count(index="news")["count"]


def hits(page: Any) -> list[str]:
    return [hit["_id"] for hit in page["hits"]["hits"]]
