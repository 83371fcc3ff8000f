"""Entries of a wrapped client in a cache that other clients and processes share."""

import asyncio
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import elastic_transport
import pytest
from elasticsearch import Elasticsearch
from hypothesis import given
from hypothesis import strategies as st
from opensearchpy import AsyncOpenSearch, OpenSearch

from ndd_search.core.paging.cache import MemoryCache
from ndd_search.core.recipe import Recipe
from ndd_search.search.flow.client_settings import settings_of
from ndd_search.search.flow.intercept_requests import Driver
from ndd_search.search.flow.page_cache import Origin, indexes_written, origin_of
from ndd_search.search.rest.read_answer import Answer
from ndd_search.search.rest.read_request import Request
from tests.searching import in_one_phase

MATCH = {"match": {"body": "x"}}
ALIASES = {"news": "news-1", "old": "news-1", "blogs": "blogs-1"}


def elasticsearch(**given: Any) -> Origin:
    return origin_of(Elasticsearch(**{"hosts": "http://engine:9200", **given}).transport)


def opensearch(**given: Any) -> Origin:
    return origin_of(OpenSearch(**{"hosts": "http://engine:9200", **given}).transport)


def sign(*_: Any) -> dict[str, str]:
    return {}


def test_clients_made_in_the_same_way_are_one_caller_and_others_are_not() -> None:
    """The key of an entry holds the credentials that a client was made with, not only those of its requests."""
    for made in (elasticsearch, opensearch):
        assert made() == made()
    users = [opensearch(http_auth=("user", secret)) for secret in ("a", "b")]
    users += [opensearch(hosts="http://ann:a@engine:9200"), opensearch(headers={"x-user": "ann"}), opensearch()]
    users += [elasticsearch(hosts="http://ann:a@engine:9200"), elasticsearch()]
    assert len({one.caller for one in users}) == len(users)
    assert len({one.cluster for one in users}) == 1
    assert elasticsearch().cluster != elasticsearch(hosts="http://other:9200").cluster


def test_an_asynchronous_client_that_has_sent_a_request_is_still_the_same_caller() -> None:
    """So it shares a cache with those of other processes also if it was wrapped after its first request."""

    async def origins() -> list[Origin]:
        async with AsyncOpenSearch("http://127.0.0.1:9") as client:  # nothing answers there
            before = origin_of(client.transport)
            await client.ping()
            return [before, origin_of(client.transport)]

    before, after = asyncio.run(origins())
    assert before == after


def test_a_client_that_signs_its_requests_shares_nothing() -> None:
    assert opensearch(http_auth=sign).caller != opensearch(http_auth=sign).caller


class Bare(elastic_transport.BaseNode):
    """A node of a class of the user's own, which keeps no settings."""

    def __init__(self, config: Any) -> None:
        pass


def test_a_client_whose_nodes_keep_no_settings_shares_nothing() -> None:
    made = [elasticsearch(node_class=Bare) for _ in range(2)]
    assert made[0].caller != made[1].caller
    assert made[0].cluster != made[1].cluster


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("/news/_doc/1", {"_index": "news-1"}, {"news", "news-1"}),
        ("/_bulk", {"items": [{"index": {"_index": "a"}}, {"delete": {"_index": "b"}}]}, {"a", "b"}),
        ("/news/_bulk", {"items": [{"index": {"_index": "a"}}]}, {"news", "a"}),
        ("/_bulk", {"errors": False}, None),
        ("/_bulk", "not JSON", None),
        ("/news/_refresh", {"_shards": {}}, None),
        ("/news/_delete_by_query", {"deleted": 1}, None),
        ("/_aliases", {"acknowledged": True}, None),
        ("/news", {"acknowledged": True}, None),
        ("/%3Cnews-%7Bnow%7D%3E/_doc", {"_index": "news-2026"}, None),
    ],
)
def test_a_write_tells_which_indexes_it_changed_or_counts_for_all(path: str, body: Any, expected: Any) -> None:
    assert indexes_written(Request("POST", path, {}, {}, None), Answer(body)) == expected
    assert indexes_written(Request("POST", path, {}, {}, None), None) is None


class Flaky(MemoryCache):
    """A cache whose server is unavailable at times."""

    away = False

    def get(self, key: bytes) -> bytes | None:
        return self._checked() or super().get(key)

    def get_many(self, keys: Any) -> list[bytes | None]:
        return self._checked() or super().get_many(keys)

    def put(self, key: bytes, value: bytes, seconds: float | None = None) -> None:
        self._checked()
        super().put(key, value, seconds)

    def _checked(self) -> Any:
        if self.away:
            raise ConnectionError("away")


class Cluster:
    """Two indexes with aliases; each counts what was written to it, and a search finds those counts."""

    def __init__(self) -> None:
        self.written = {"news-1": 0, "blogs-1": 0}

    def answer(self, request: Request) -> Answer:
        name = request.path.split("/")[1]
        if request.path.endswith("_search"):
            return Answer({"took": 1, "hits": {"total": {"value": 1, "relation": "eq"}, "hits": self.hits(name)}})
        if name == "_refresh":
            self.written = {index: count + 1 for index, count in self.written.items()}
            return Answer({"_shards": {}})
        index = ALIASES.get(name, name)
        self.written[index] += 1
        return Answer({"_index": index, "result": "updated"})

    def hits(self, name: str) -> list[dict[str, Any]]:
        wanted = [index for index in self.written if name in ("*", index) or ALIASES.get(name) == index]
        fields = {"ndd.sketch": [1, 2], "ndd.recipe": [Recipe().id]}
        return [
            {"_index": one, "_id": "1", "_score": 1.0, "_source": {"count": self.written[one]}, "fields": dict(fields)}
            for one in wanted
        ]


targets = st.sampled_from(["news", "old", "news-1", "blogs", "blogs-1", "*"])
written = st.sampled_from(["news", "old", "news-1", "blogs", "_refresh"])
steps = st.tuples(st.sampled_from(["search", "search", "write"]), st.integers(0, 1), targets, written, st.booleans())


@given(st.lists(steps, max_size=30))
def test_nobody_is_shown_what_was_before_a_write(taken: list[tuple[str, int, str, str, bool]]) -> None:
    """Two clients with one cache that fails at times: after a write by either, through whatever alias, both read it.

    While the cache is away, what one client writes is told to the other only when the first uses the cache again.
    """
    cache, cluster = Flaky(seconds=3600), Cluster()
    hooks = [Driver(in_one_phase(settings_of(frequency_table=False, cache=cache, mode="annotate"))) for _ in range(2)]
    for driver in hooks:
        driver.settings.memory.serve(Elasticsearch("http://engine:9200").transport)
    known: list[dict[str, int]] = [dict(cluster.written), dict(cluster.written)]  # what each has a right to read
    for action, who, target, index, cache.away in taken:
        if action == "search":
            body = (
                hooks[who].handle(Request("POST", f"/{target}/_search", {}, {}, {"query": MATCH}), cluster.answer).body
            )
            for hit in body["hits"]["hits"]:
                assert hit["_source"]["count"] >= known[who][hit["_index"]]
        else:
            path = "/_refresh" if index == "_refresh" else f"/{index}/_doc/1"
            hooks[who].handle(Request("POST", path, {}, {}, {"body": "new"}), cluster.answer)
            for one in {who} if cache.away else {0, 1}:
                known[one] = dict(cluster.written)


def test_an_empty_page_found_through_an_alias_is_gone_after_an_own_write_through_another() -> None:
    """No hit says which index the alias means, and the write names another alias."""
    stored: list[dict[str, Any]] = []
    fields = {"ndd.sketch": [1, 2], "ndd.recipe": [Recipe().id]}

    def answer(request: Request) -> Answer:
        if request.path.endswith("_search"):
            total = {"value": len(stored), "relation": "eq"}
            return Answer({"took": 1, "hits": {"total": total, "hits": [dict(hit) for hit in stored]}})
        stored.append({"_index": "news-1", "_id": "1", "_score": 1.0, "fields": fields})
        return Answer({"_index": "news-1", "result": "created"})

    driver = Driver(in_one_phase(settings_of(frequency_table=False)))
    found = []
    for path in ("/news/_search", "/old/_doc/1", "/news/_search"):
        body = driver.handle(Request("POST", path, {}, {}, {"query": MATCH}), answer).body
        found.append(len(body["hits"]["hits"]) if "hits" in body else None)
    assert found == [0, None, 1]


def test_a_write_to_one_index_leaves_what_others_remember_of_another() -> None:
    cache, cluster = MemoryCache(), Cluster()
    reader, writer = (
        Driver(in_one_phase(settings_of(frequency_table=False, cache=cache, mode="annotate"))) for _ in range(2)
    )
    for driver in (reader, writer):
        driver.settings.memory.serve(Elasticsearch("http://engine:9200").transport)

    def cache_said(target: str) -> str:
        request = Request("POST", f"/{target}/_search", {}, {}, {"query": MATCH})
        return str(reader.handle(request, cluster.answer).body["ndd"]["cache"])

    assert [cache_said(target) for target in ("news", "blogs", "*")] == ["miss"] * 3
    writer.handle(Request("PUT", "/old/_doc/1", {}, {}, {"body": "new"}), cluster.answer)
    assert [cache_said(target) for target in ("news", "blogs", "*")] == ["miss", "hit", "miss"]


class Engine(BaseHTTPRequestHandler):
    """As much of Elasticsearch as one search takes."""

    searches = 0

    def do_POST(self) -> None:
        type(self).searches += 1
        self.rfile.read(int(self.headers["content-length"]))
        body = (
            b'{"took":1,"timed_out":false,"hits":{"total":{"value":1,"relation":"eq"},"hits":[{"_index":"news",'
            b'"_id":"1","_score":1.5,"_source":{"body":"new"},"fields":{"ndd.sketch":[1,2],"ndd.recipe":["%s"]}}]}}'
        ) % Recipe().id.encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("x-elastic-product", "Elasticsearch")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Engine)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


PROCESS = textwrap.dedent("""
    import sys
    from pathlib import Path
    import ndd_search
    from elasticsearch import Elasticsearch

    class Files:
        '''The smallest cache that several processes can share.'''
        folder = Path(sys.argv[2])
        def get(self, key):
            file = self.folder / key.hex()
            return file.read_bytes() if file.exists() else None
        def get_many(self, keys):
            return [self.get(key) for key in keys]
        def put(self, key, value, seconds=None):
            (self.folder / key.hex()).write_bytes(value)

    with Elasticsearch(sys.argv[1], basic_auth=("user", sys.argv[3])) as client:
        client = ndd_search.wrap(client, cache=Files(), frequency_table=False, min_similarity=0.8)
        print(client.search(index="news", query={"match": {"body": "new"}}, timeout="1m")["ndd"]["cache"])
""")


@pytest.mark.once
def test_another_process_finds_what_one_has_remembered_and_another_user_does_not(address: str, tmp_path: Path) -> None:
    def cache_said(secret: str) -> str:
        given = [sys.executable, "-W", "ignore", "-c", PROCESS, address, str(tmp_path), secret]
        return subprocess.run(given, capture_output=True, text=True, check=True).stdout.strip()

    assert [cache_said(secret) for secret in ("a", "a", "b")] == ["miss", "hit", "miss"]
    assert Engine.searches == 2
    for file in tmp_path.iterdir():
        file.write_bytes(b"\x80\x04damaged")
    assert [cache_said(secret) for secret in ("a", "a")] == ["miss", "hit"]
