"""Search pipelines of OpenSearch and search templates of both engines, collapsed where that is asked for and safe."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.search.flow.pipelines_and_templates import obstacle, reorders
from ndd_search.search.rest.read_request import Request, read_search
from tests.engines.find import Engine
from tests.wrapping.conftest import Caller, Connect, Library
from tests.wrapping.pair import Pair
from tests.wrapping.recorder import NO_HITS, Received, Reply, usual
from tests.wrapping.test_searches import MATCH

SEARCH: dict[str, Any] = {"query": MATCH, "size": 10, "sort": [{"price": "asc"}, {"site": "asc"}, {"published": "asc"}]}
FILTER = {"request_processors": [{"filter_query": {"query": {"term": {"language": "de"}}}}]}


@pytest.mark.parametrize(
    ("definition", "told"),
    [
        ({}, ""),
        ({"description": "none", "version": 3, **FILTER}, ""),
        ({"phase_results_processors": [{"normalization-processor": {}}], "response_processors": [{"rerank": {}}]}, ""),
        ({"response_processors": [{"rerank": {}}, {"truncate_hits": {}}]}, "truncate_hits"),
        ({"request_processors": [{"rerank": {}}]}, "rerank"),  # it has another meaning there
        ({"request_processors": "x"}, "request_processors"),
        ({"other_processors": []}, ""),
        (None, "cannot be read"),
    ],
)
def test_only_processors_that_filter_normalise_or_rerank_are_safe(definition: Any, told: str) -> None:
    assert told in obstacle(definition)
    assert bool(obstacle(definition)) == bool(told)


def test_a_reranked_search_has_one_window_for_all_of_its_pages() -> None:
    assert reorders({"response_processors": [{"rerank": {}}]})
    assert not reorders(FILTER)
    request = Request("GET", "/news/_search", {"search_pipeline": "p"}, {}, SEARCH)
    assert read_search(request) is None
    for pipeline, expected in (("safe", False), ("reorders", True)):
        search = read_search(request, pipeline)  # type: ignore[arg-type]
        assert search is not None
        assert search.limits.bounded == expected


@pytest.fixture
def pipeline(engine: Engine) -> Iterator[Callable[[Any], str]]:
    """pipeline(definition): the name of a new search pipeline."""
    if engine.name != "opensearch3":
        pytest.skip("search pipelines are of OpenSearch; the jars of version 2 have none")
    made: list[str] = []
    with engine.client() as client:
        caller = Caller(client, asynchronous=False)

        def put(definition: Any) -> str:
            made.append(f"ndd-{uuid.uuid4().hex[:8]}")
            caller.ask("PUT", f"/_search/pipeline/{made[-1]}", definition)
            return made[-1]

        yield put
        for name in made:
            caller.ask("DELETE", f"/_search/pipeline/{name}")


@pytest.mark.one_kind_of_client
def test_a_search_is_collapsed_after_a_safe_pipeline(
    library: Library, connect: Connect, pipeline: Callable[[Any], str]
) -> None:
    filtered, busy = pipeline(FILTER), pipeline({"request_processors": [{"oversample": {"sample_factor": 2}}]})
    caller, plain = connect(cache=False, window=40), connect(wrapped=False)
    asking = {**SEARCH, "ndd": True}
    german = {"bool": {"must": [MATCH], "filter": [{"term": {"language": "de"}}]}}
    expected = caller.search(index=library.news, body={**SEARCH, "query": german})
    assert expected["ndd"]["hidden"]
    for body, params in (
        (asking, {"search_pipeline": filtered}),
        ({**asking, "search_pipeline": FILTER}, {}),  # a definition in the search itself
        ({**asking, "query": german}, {"search_pipeline": "_none"}),
    ):
        found = caller.search(index=library.news, body=body, params=params)
        assert found["hits"]["hits"] == expected["hits"]["hits"]
        assert found["ndd"]["strategy"] == "one_phase"
    second = [
        client.search(index=library.news, body={**body, "from": 10}, params=params)["hits"]["hits"]
        for client, body, params in (
            (caller, asking, {"search_pipeline": filtered}),
            (caller, {**SEARCH, "query": german}, {}),
        )
    ]
    assert second[0] == second[1]
    own = plain.search(index=library.news, body=SEARCH, params={"search_pipeline": busy})
    left = caller.search(index=library.news, body=asking, params={"search_pipeline": busy})
    assert left["hits"] == own["hits"]
    assert f"{busy} is not collapsed after: its processor oversample" in left["ndd"]["degraded"]
    unasked = caller.search(index=library.news, body=SEARCH, params={"search_pipeline": filtered})
    assert "ndd" not in unasked
    with ndd.options(enabled=["pipelines"]):
        unasked = caller.search(index=library.news, body=SEARCH, params={"search_pipeline": filtered})
    assert unasked["hits"]["hits"] == expected["hits"]["hits"]


@pytest.mark.one_kind_of_client
def test_a_template_is_rendered_and_its_search_collapsed(library: Library, connect: Connect, engine: Engine) -> None:
    if engine.family == "elasticsearch":
        pytest.skip("the published jars of Elasticsearch have no templates; see the test with a small server")
    caller, plain = connect(cache=False, window=40), connect(wrapped=False)
    source = json.dumps({**SEARCH, "size": "{{size}}"}).replace('"{{size}}"', "{{size}}{{^size}}10{{/size}}")
    template = {"source": source, "params": {"size": 10}}
    path = f"/{library.news}/_search/template"
    expected = caller.search(index=library.news, body=SEARCH)
    collapsed = caller.ask("POST", path, {**template, "ndd": {"mode": "group"}})
    assert collapsed["hits"] == expected["hits"]
    assert collapsed.keys() == expected.keys()
    for body in (template, {**template, "ndd": False}, {**template, "explain": True, "ndd": True}):
        asked = {name: value for name, value in body.items() if name != "ndd"}
        assert caller.ask("POST", path, body)["hits"] == plain.ask("POST", path, asked)["hits"]
    with ndd.options(enabled=["templates"]):
        assert caller.ask("POST", path, template)["hits"] == expected["hits"]
    ruled = connect(cache=False, window=40, indexes={library.news: {"enabled": ["templates"]}})
    assert ruled.ask("POST", path, template)["hits"] == expected["hits"]
    refused = {"source": '{"query": {"nonsense": {}}}', "ndd": True}
    with pytest.raises(Exception, match="nonsense"):
        caller.ask("POST", path, refused)


def test_the_requests_for_a_template_and_for_a_pipeline(pair: Pair) -> None:
    """A template costs one rendering; without the right to render it is sent as it came. A pipeline is read once."""
    rights = [True]

    def reply(request: Received) -> Reply:
        if request.path == "/_render/template":
            return (200, {"template_output": SEARCH}) if rights[0] else (403, {"error": "no", "status": 403})
        if request.path.startswith("/_search/pipeline/"):
            return 200, {"mine": {"response_processors": [{"rerank": {"ml_opensearch": {"model_id": "m"}}}]}}
        return (200, NO_HITS) if "_search" in request.path else usual(request)

    pair.at.reply = reply

    def sent(method: str, path: str, body: Any, params: dict[str, str] | None = None) -> list[Received]:
        pair.at.take()
        caller = Caller(pair.wrapped, asynchronous=False)
        call: Any = lambda: caller.ask(method, path, body, params)  # noqa: E731
        if pair.asynchronous:
            caller.run = lambda awaitable: awaitable  # type: ignore[method-assign]
        pair.run(call)
        return pair.at.take()

    template = {"id": "t", "params": {"q": "x"}}
    first, *rest = sent("POST", "/news/_search/template", {**template, "ndd": {"window": 30}})
    assert (first.path, json.loads(first.body)) == ("/_render/template", template)
    assert rest
    assert all(one.path.startswith(("/news/_search", "/news/_msearch", "/ndd-tables")) for one in rest)
    rights[0] = False
    first, second = sent("POST", "/news/_search/template", {**template, "ndd": True})
    assert (second.path, json.loads(second.body)) == ("/news/_search/template", template)
    (only,) = sent("POST", "/news/_search/template", {**template, "ndd": False})
    assert json.loads(only.body) == template
    piped = {"search_pipeline": "mine"}
    received = [one for _ in range(2) for one in sent("POST", "/piped/_search", {**SEARCH, "ndd": True}, piped)]
    assert [one.path for one in received].count("/_search/pipeline/mine") == 1
    searches = [one for one in received if "search_pipeline=mine" in one.target]
    assert json.loads(searches[0].body)["size"] == 100
