"""Random searches of a real engine, directly and through the proxy: same status, same type, same failures of parts.

NDD_TEST_EXAMPLES=large sends 400 requests to each engine instead of 150, NDD_TEST_FUZZED=100000 as many as it says;
with `-s` the rate is printed.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import time
from typing import Any

import pytest

from tests.engines.find import Engine as RealEngine
from tests.proxy.serving import Got, ask, serving
from tests.wrapping.conftest import Library

COUNT = int(os.environ.get("NDD_TEST_FUZZED") or (400 if os.environ.get("NDD_TEST_EXAMPLES") == "large" else 150))
QUERIES: list[Any] = [
    {"match": {"body": "market"}},
    {"match_all": {}},
    {"bool": {"must": [{"match": {"body": "steel"}}], "filter": []}},
    {"nope": {}},
    {"query_string": {"query": "a OR ("}},
]
MEMBERS: list[tuple[str, list[Any]]] = [
    ("size", [0, 1, 10, "5", "x", 20000, None, 1.5]),
    ("from", [0, 3, 9999, "2", "x"]),
    ("sort", [["_doc"], ["_score"], [{"nope": "asc"}], {"body": "desc"}]),
    ("_source", [False, True, ["body"], "*", {"excludes": ["body"]}]),
    ("fields", [["body"], "body", [{"field": "body"}]]),
    ("aggs", [{"a": {"value_count": {"field": "price"}}}]),
    ("search_after", [[1]]),
    ("track_total_hits", [True, False, 5]),
    ("unknown", [1]),
    ("timeout", ["1s", "x"]),
    ("docvalue_fields", [["price"], "x"]),
    ("stored_fields", ["_none_", [], ["x"]]),
    ("min_score", [0.1]),
    ("rescore", [{"window_size": 3, "query": {"rescore_query": {"match_all": {}}}}]),
]
PARAMETERS = ["pretty", "size=3", "from=2", "q=body:market", "filter_path=hits.hits._id", "rest_total_hits_as_int=true"]
PARAMETERS += [
    "typed_keys",
    "routing=1",
    "unknown=2",
    "search_type=dfs_query_then_fetch",
    "format=yaml",
    "_source=false",
]
PARAMETERS += [
    "size=4",
    "terminate_after=5",
    "human",
    "error_trace=true",
    "track_total_hits=false",
    "ignore_unavailable",
]
SPELLINGS = [
    "/{}/_search",
    "//{}/_search",
    "/{}//_search",
    "/{}/%5Fsearch",
    "/{}/_search%3Fq",
    "/{}/_search/",
    "/_search/{}",
]
SPELLINGS += [
    "/{}/_Search",
    "/{}/_search/none",
    "/{}/./_search",
    "/{}/../{}/_search",
    "/{}/_msearch/template",
    "/{}%00/_search",
]
TYPES = [*["application/json"] * 6, "application/x-ndjson", "text/plain", "application/yaml", ""]
ACCEPT = [*[""] * 6, "*/*", "application/yaml", "text/html", "application/vnd.elasticsearch+json;compatible-with=9"]


def drawn(rng: random.Random, index: str) -> tuple[str, str, bytes | None, dict[str, str]]:
    """A request: method, target, body and headers."""
    name = rng.choice([*[index] * 6, f"{index},{index}", f"{index}*", "ndd-none", index.upper(), f"{index}%2C{index}"])
    bodies = [
        {"query": rng.choice(QUERIES), **{key: rng.choice(values) for key, values in MEMBERS if rng.random() < 0.1}}
        for _ in range(3)
    ]
    headers = {"content-type": rng.choice(TYPES), "accept": rng.choice(ACCEPT)}
    body: bytes | None = json.dumps(bodies[0]).encode()
    kind = rng.choice(["_search", "_search", "_msearch", "", "/_search/"])
    if kind == "_msearch":
        heads: list[Any] = [{}, {"index": index}, {"index": "ndd-none"}, {"indx": 1}]
        lines = [json.dumps(line) for one in bodies for line in (rng.choice(heads), one)]
        body = "\n".join([*lines, *[""] * rng.choice([0, 1, 1, 1])]).encode()
    elif kind != "_search":
        body, kind = None, kind or rng.choice(["_count", "_mapping", "_doc/1", "_search"])
    if body and rng.random() < 0.1:
        place = rng.randrange(len(body))
        body = body[:place] + bytes([rng.randrange(256)]) + body[place + 1 :]
    if body and rng.random() < 0.1:
        body, headers["content-encoding"] = gzip.compress(body), "gzip"
    query = "&".join(rng.sample(PARAMETERS, rng.choice([0, 0, 1, 2])))
    method = rng.choice(["GET", "POST"]) if body else "GET"
    given = {header: value for header, value in headers.items() if value and (body or header != "content-type")}
    path = f"/{name}/{kind}"
    if rng.random() < 0.1:  # searches that no engine has, and other spellings of those that it has
        method = rng.choice(["HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", method, method])
        path = rng.choice(SPELLINGS).replace("{}", name)
        given |= {"x-odd": rng.choice(["", "a" * 2000, '"', "a,b;c"])}
    return method, f"{path}{f'?{query}' if query else ''}", body, given


def outcome(got: Got) -> tuple[Any, ...]:
    """Status, type, and statuses of parts. A `filter_path` may leave out any of these, but never our block `ndd`."""
    try:
        statuses = (one.get("status") for one in json.loads(got.body)["responses"])
        parts = [status for status in statuses if status is not None]
    except (ValueError, KeyError, TypeError):
        parts = []
    return got.status, got.header("content-type"), parts


@pytest.mark.newest_servers
def test_random_searches_succeed_and_fail_alike(engine: RealEngine, library: Library) -> None:
    rng, began = random.Random(1), time.monotonic()
    with serving(engine.url, cache=False) as served:
        for _ in range(COUNT):
            request = drawn(rng, library.news)
            direct, passed = ask(engine.url, *request), ask(served.url, *request)
            assert outcome(passed) == outcome(direct), request
    print(f"{engine.name}: {COUNT / (time.monotonic() - began):,.0f} requests/s, each directly and through the proxy")
