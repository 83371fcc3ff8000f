"""Three nodes, one of them killed and started again under a loop of searches, writes and cursors."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.errors import CursorExpired, CursorUnusable
from tests.engines.find import Engine, check_client
from tests.engines.jars import RELEASES, Unavailable
from tests.engines.launch import cluster
from tests.wrapping.conftest import bulk
from tests.wrapping.library import BAR, actions, documents, expected, mapping

FIRST = {"bool": {"must_not": [{"exists": {"field": "added"}}]}}  # the documents that were there before
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


class Walk:
    """The pages of cursors over the first documents, one after another; a new cursor when one has ended or expired."""

    def __init__(self, client: Any) -> None:
        self.client, self.named, self.cursor, self.whole = client, list[str](), True, 0

    def step(self) -> None:
        body = {"query": FIRST, "sort": ORDER, "size": 20, "ndd": {"cursor": self.cursor}}
        try:
            answer = self.client.search(index="news", body=body)
        except CursorExpired:
            self.named, self.cursor = [], True
            return
        for hit in answer["hits"]["hits"]:
            copies = hit["inner_hits"]["near_duplicates"]["hits"]["hits"] if "inner_hits" in hit else []
            self.named += [one["_id"] for one in (hit, *copies)]
        self.named += [one["_id"] for one in answer["ndd"]["late"]]
        self.cursor = answer["ndd"]["cursor"]
        if self.cursor is None:
            assert sorted(self.named) == sorted(one["_id"] for one in documents())
            self.named, self.cursor, self.whole = [], True, self.whole + 1


def pages(client: Any) -> list[Any]:
    """All pages of one search. The time it takes an engine to notice a dead node is the client's."""
    body = {"query": FIRST, "sort": ORDER, "size": 20}
    return [client.search(index="news", body={**body, "from": start}) for start in range(0, 160, 20)]


def kill_under_searches(client: Any, victim: Any) -> None:
    whole = client.search(index="news", body={"sort": ORDER, "size": 1000})
    truth = expected([hit["_id"] for hit in whole["hits"]["hits"]])
    ndd.wrap(client, min_similarity=BAR, window=20, cache=False)
    healthy = [hits(page) for page in pages(client)]
    shown = [id for page in healthy for id in page]
    assert [id for id in shown if id not in truth.doubtful] == truth.kept

    walk, written = Walk(client), list[str]()
    walk.step()
    threading.Timer(1.0, victim.kill).start()
    deadline, loops, flagged, refused = time.monotonic() + 8, 0, 0, 0
    while time.monotonic() < deadline or loops < 6:
        loops += 1
        try:
            got = pages(client)
            for _ in range(3):
                walk.step()
            client.index(index="news", id=f"added-{loops}", body={"added": True})
            written.append(f"added-{loops}")
        except CursorUnusable as error:
            assert "partial" in str(error)  # noqa: PT017 - it says to send the same cursor again
            refused += 1
            continue
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
    victim.start_again()
    client.cluster.health(wait_for_status="green", wait_for_nodes="3", timeout=120)
    assert [hits(page) for page in pages(client)] == healthy
    before = walk.whole
    while walk.whole == before:
        walk.step()
    client.indices.refresh(index="news")
    stored = client.search(index="news", body={"query": {"exists": {"field": "added"}}, "size": 1000, "ndd": False})
    assert set(written) <= set(hits(stored))
    assert client.count(index="news", body={"query": FIRST})["count"] == len(documents())


def hits(page: Any) -> list[str]:
    return [hit["_id"] for hit in page["hits"]["hits"]]
