"""Answers of a server to the later requests of a search are changed at random: nothing is raised, no hit is lost."""

from __future__ import annotations

import copy
import json
import os
import random
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
import urllib3

import ndd_search as ndd
from ndd_search.search.flow.client_settings import settings_of
from ndd_search.search.flow.intercept_requests import Driver
from ndd_search.search.rest.mapping import mapping_properties
from ndd_search.search.rest.read_answer import Answer
from ndd_search.search.rest.read_request import Request
from tests.conftest import LONG
from tests.engines.find import Engine
from tests.prove.answers import BODIES, OWN_ERRORS, STATUSES, changed
from tests.searching import in_one_phase
from tests.wrapping.conftest import bulk

# For each changed answer.
CASES = 2000 if LONG else 30 if os.environ.get("NDD_TEST_EXAMPLES") == "large" else 10
GROUPS, COPIES = 30, 3
SEARCH: dict[str, Any] = {
    "query": {"function_score": {"field_value_factor": {"field": "weight"}, "boost_mode": "replace"}},
    "aggs": {"sites": {"terms": {"field": "site"}}, "ages": {"range": {"field": "day", "ranges": [{"to": 50}, {}]}}},
    "size": 5,
}
SORTED = {"sort": [{"day": "asc"}, "_score"]}
OPTIONS: dict[str, dict[str, Any]] = {
    "total": {"ndd": {"total": "estimate"}},
    "facets": {"ndd": {"facets": ["sites", "ages"]}},
    "explain": {"ndd": {"explain": ["1-0", "3-2", "20-1", "29-2", "none"]}},
    "members": {"ndd": {"members": "all", "keep": ["newest:day"]}, **SORTED},
    "values": {"ndd": {"members": "all", "group_by": "isbn", "max_per": ["site:2"]}},
    "seen": {"ndd": {"seen": [{"_id": "0-0"}, {"_id": "1-2"}, {"_id": "29-0"}]}},
    "cursor": {"ndd": {"cursor": True, "members": "all", "keep": ["newest:day"]}},
    "all": {"ndd": {"total": "estimate", "facets": ["sites"], "explain": ["29-2"], "members": "all", "seen": ["x"]}},
}
AS_WITHOUT = ("total", "facets", "explain")  # options that never change which hits are shown


@pytest.fixture(scope="module")
def index(engine: Engine) -> Iterator[str]:
    """Groups of three copies; the copies of a group rank far apart."""
    rng, name = random.Random(5), f"ndd-malformed-{uuid.uuid4().hex[:12]}"
    number, keyword = {"type": "integer"}, {"type": "keyword"}
    properties = {**mapping_properties(), "weight": number, "day": number, "site": keyword, "isbn": keyword}
    found = []
    for group in range(GROUPS):
        body = " ".join(f"word{rng.randrange(900)}" for _ in range(40))
        for one in range(COPIES):
            fields = {"weight": 1000 - GROUPS * one - group, "day": rng.randrange(100), "site": f"site{group % 7}"}
            found.append({"_index": name, "_id": f"{group}-{one}", "body": body, **fields, "isbn": f"{group // 2}"})
    with engine.client() as client:
        client.indices.create(index=name, body={"mappings": {"properties": properties}})
        bulk(engine, client, list(ndd.with_sketches(found, fields=["body"], keys=8)))
        yield name
        client.indices.delete(index=name)


class Server:
    """Sends requests to a server, and repeats an answer for an equal request. changing: the number of a request."""

    def __init__(self, url: str) -> None:
        self._url, self._http = url, urllib3.PoolManager()
        self._answers: dict[str, tuple[Any, int]] = {}
        self.rng, self.changing, self.sent = random.Random(0), -1, 0

    def send(self, request: Request) -> Answer:
        lines = request.body if isinstance(request.body, list) else [request.body]
        text = "" if request.body is None else "".join(f"{json.dumps(line)}\n" for line in lines)
        target = f"{self._url}{request.path}?{urlencode(request.params)}"
        key = f"{request.method} {target} {text}"
        if key not in self._answers:
            kind = "application/x-ndjson" if isinstance(request.body, list) else "application/json"
            found = self._http.request(request.method, target, body=text or None, headers={"Content-Type": kind})
            self._answers[key] = found.json(), found.status
        body, status = copy.deepcopy(self._answers[key])
        number, self.sent = self.sent, self.sent + 1
        if number == self.changing:
            body, status = self._changed(body, status, "_msearch" in target and number == 0)
        return Answer(body, status, raw=body)

    def _changed(self, body: Any, status: int, is_sample: bool) -> tuple[Any, int]:
        """Change an answer. is_sample: of an `_msearch` for hits and the sample of a result, only the sample."""
        rng = self.rng
        if is_sample:
            for _ in range(rng.choice([1, 2, 5])):
                body["responses"][-1] = changed(body["responses"][-1], rng)
            return body, status
        if rng.random() < 0.1:
            return copy.deepcopy(rng.choice(BODIES)), rng.choice(STATUSES)
        for _ in range(rng.choice([1, 2, 5])):
            body = changed(body, rng)
        return body, status


def group_of(id: str) -> str:
    return id.partition("-")[0]


def named(body: dict[str, Any]) -> set[str]:
    """The ids that an answer shows, lists or names."""
    hits = body["hits"]["hits"]
    found = [hit["_id"] for hit in hits]
    for hit in hits:
        inner = hit.get("inner_hits", {}).get("near_duplicates", {"hits": {"hits": []}})
        found += [one["_id"] for one in inner["hits"]["hits"]]
    return {*found, *(one["_id"] for name in ("late", "seen") for one in body.get("ndd", {}).get(name, ()))}


@pytest.mark.newest_servers
@pytest.mark.parametrize("option", OPTIONS)
def test_a_changed_answer_to_a_later_request_raises_nothing_and_loses_no_hit(
    engine: Engine, index: str, option: str, caplog: pytest.LogCaptureFixture
) -> None:
    if option == "cursor" and engine.name == "opensearch2":
        pytest.skip("OpenSearch orders points in time since 3.3")
    caplog.set_level("ERROR")  # the library warns of each changed answer
    server = Server(engine.url)

    def search(body: dict[str, Any]) -> Any:
        settings = in_one_phase(settings_of(cache=False, window=15, frequency_table=False))
        settings.family = "elasticsearch" if engine.family == "elasticsearch" else "opensearch"
        return Driver(settings).handle(Request("POST", f"/{index}/_search", {}, {}, body), server.send).body

    body = {**SEARCH, **OPTIONS[option]}
    if option == "cursor":
        body["ndd"] = {**body["ndd"], "cursor": search(body)["ndd"]["cursor"]}
    without = search({**body, "ndd": {}})
    server.sent = 0
    usual, trips = search(body), server.sent
    assert not usual["ndd"]["degraded"]
    of_option = range(0 if body["ndd"].get("total") == "estimate" else 1, trips)
    if option == "seen":  # they are looked up first
        of_option = range(1)
    assert of_option, "the option has no request of its own"
    groups = {group_of(hit["_id"]) for hit in (usual if option == "cursor" else without)["hits"]["hits"]}
    for number in of_option:
        for seed in range(CASES):
            server.rng, server.changing, server.sent = random.Random(seed), number, 0
            try:
                found = search(body)
            except OWN_ERRORS:
                assert option == "cursor"
                continue
            case = f"answer {number} changed with seed {seed}"
            ids = [hit["_id"] for hit in found["hits"]["hits"]]
            if option in AS_WITHOUT:
                assert ids == [hit["_id"] for hit in without["hits"]["hits"]], case
            assert groups <= {group_of(one) for one in named(found)}, case
    server._http.clear()
