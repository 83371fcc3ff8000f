"""Which searches are split, and what their requests ask for. Live tests check that the page is the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ndd_search import native
from ndd_search.core.options import CollapseOptions
from ndd_search.core.paging.fill_page import Fetch
from ndd_search.core.paging.stream import NO_HITS
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.stored_sketch import SketchField, StoredSketches
from ndd_search.search.flow.client_settings import settings_of
from ndd_search.search.flow.msearch import multi_conversation
from ndd_search.search.flow.plan import AskAnew, is_worth_splitting, plan_of, sketches_only
from ndd_search.search.flow.round_trips import together
from ndd_search.search.rest.read_answer import Answer, HitReader
from ndd_search.search.rest.read_request import Request, Search, is_write, read_search
from ndd_search.search.rest.wider_requests import sketch_reading
from tests.searching import MATCH, hit_of, in_one_phase

SKETCH = sketch_reading(StoredSketches(SketchField(), Recipe()))
NESTED = {"nested": {"path": "offers", "query": MATCH, "inner_hits": {}}}
SCORED = {"function_score": {"query": MATCH, "random_score": {}}}


def search(body: dict[str, Any], **params: str) -> Search:
    found = read_search(Request("POST", "/news/_search", params, {}, body))
    assert found is not None
    return found


def is_split(body: dict[str, Any], params: dict[str, str] | None = None, **options: Any) -> bool:
    made = CollapseOptions(**options)
    reading = SKETCH.and_of((), made.document_fields)
    return is_worth_splitting(search(body, **(params or {})), made, reading)


WHOLE: dict[str, dict[str, Any]] = {
    "rescore": {"query": MATCH, "rescore": {"window_size": 50, "query": {"rescore_query": MATCH}}},
    "retriever": {"retriever": {"standard": {"query": MATCH}}},
    "nearest neighbours": {"knn": {"field": "v", "query_vector": [1.0], "k": 10, "num_candidates": 20}},
    "nearest neighbours of OpenSearch": {"query": {"bool": {"should": [{"knn": {"v": {"vector": [1.0], "k": 9}}}]}}},
    "hybrid": {"query": {"hybrid": {"queries": [MATCH, MATCH]}}},
    "a model": {"query": {"sparse_vector": {"field": "v", "inference_id": "elser", "query": "market"}}},
    "chance": {"query": SCORED},
    "chance among functions": {"query": {"function_score": {"functions": [{"random_score": {"field": "_seq_no"}}]}}},
    "chance in a tuple": {"query": {"bool": {"should": (MATCH, SCORED)}}},
    "a script": {"query": {"script_score": {"query": MATCH, "script": {"source": "Math.random()"}}}},
    "a script that sorts": {"query": MATCH, "sort": {"_script": {"type": "number", "script": "1"}}},
    "nested hits": {"query": {"bool": {"must": [MATCH], "filter": [NESTED]}}},
    "a limit on what is looked at": {"query": MATCH, "terminate_after": 1000},
    "a time limit": {"query": MATCH, "timeout": "50ms"},
    "an explanation of the query": {"query": MATCH, "explain": True},
    "groups of the engine": {"query": MATCH, "collapse": {"field": "site"}},
    "profile": {"query": MATCH, "profile": True},
    "something unheard of": {"query": MATCH, "ext": {"rerank": {}}},
}


@pytest.mark.parametrize("name", WHOLE)
def test_what_two_requests_may_answer_differently_is_asked_in_one(name: str) -> None:
    assert not is_split(WHOLE[name])


def test_settings_and_parameters_that_need_whole_hits_are_asked_in_one() -> None:
    assert not is_split({"query": MATCH}, keep=[lambda hit: 0])
    assert not is_split({}, params={"q": "market"})
    assert not is_split({"query": MATCH}, params={"stored_fields": "title"})


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"query": MATCH, "aggs": {"a": {"max": {"field": "price"}}}, "highlight": {"fields": {"body": {}}}},
        {"query": MATCH, "sort": ["price"], "_source": False, "fields": ["price"], "version": True},
        {"query": {"function_score": {"query": MATCH, "random_score": {"seed": 4, "field": "_seq_no"}}}},
        {"query": MATCH, "from": 20, "min_score": 1},
    ],
)
def test_ordinary_searches_come_apart(body: dict[str, Any]) -> None:
    assert is_split(body)
    assert is_split(body, params={"preference": "mine", "routing": "a", "filter_path": "hits", "size": "5"})
    assert is_split(body, params={"_source_includes": "title", "sort": "price:desc"})  # which are moved to the body


def test_a_search_is_split_where_that_spares_documents() -> None:
    assert is_split({"size": 40})
    assert not is_split({"size": 50})  # most of the window is shown
    assert not is_split({"size": 10}, keep=["newest:published"])  # every document is read anyway


def test_sketches_are_asked_for_without_any_document() -> None:
    body = {
        "query": MATCH,
        "sort": ["price"],
        "aggs": {"a": {"max": {"field": "price"}}},
        "highlight": {"fields": {"body": {}}},
        "_source": ["title"],
        "fields": ["price"],
    }
    beside = sketches_only(search(body), Fetch(0, 100), SketchField(), SKETCH).body
    assert beside == {
        "query": MATCH,
        "sort": ["price"],
        "from": 0,
        "size": 100,
        "_source": False,
        "stored_fields": "_none_",
        "docvalue_fields": ["ndd.sketch", "ndd.recipe"],
        "seq_no_primary_term": True,
        "track_total_hits": False,
    }
    assert sketches_only(search(body), Fetch(0, 100), SketchField(), SKETCH, first=True).body["aggs"] == body["aggs"]
    more = SKETCH.and_of(["ndd.numbers"], ["site"])
    with_fields = sketches_only(search(body), Fetch(0, 100), SketchField(), more).body
    assert with_fields["fields"] == ["site"]
    assert "stored_fields" not in with_fields  # the engines refuse both
    assert with_fields["docvalue_fields"] == ["ndd.sketch", "ndd.recipe", "ndd.numbers"]


def test_documents_are_asked_for_by_the_numbers_of_their_versions() -> None:
    """Hits of other shards with one of these numbers come too, as far as they rank before the last wanted hit."""
    numbers = [4, 9, 7, 4, 1, 9, 7]
    hits = [{**hit_of(str(rank)), "_seq_no": number} for rank, number in enumerate(numbers)]
    reader = HitReader(Recipe(), SketchField(), None, SketchField().decode(hits, Recipe()))
    stream = NO_HITS.extend(hits, len(hits), reader, CollapseOptions())
    body = {"query": MATCH, "from": 20, "sort": ["price"], "aggs": {"a": {"max": {"field": "price"}}}, "_source": ["a"]}
    plan = plan_of(search(body), CollapseOptions(), settings_of())
    request, wanted, found = plan.documents(stream, {1, 3})
    assert (wanted, found) == ({1, 3}, [0, 1, 3])
    filtered = {"bool": {"must": [MATCH], "filter": [{"terms": {"_seq_no": [4, 9]}}]}}
    assert (request.body["query"], request.body["from"], request.body["size"]) == (filtered, 0, 3)
    assert (request.body["sort"], request.body["track_total_hits"], "aggs" in request.body) == (["price"], False, False)
    assert request.body["_source"] == ["a"]
    with pytest.raises(AskAnew):  # an engine that tells no numbers
        plan.documents(NO_HITS.extend([{"_index": "news"}], 1, reader, CollapseOptions()), {0})


def test_several_searches_travel_as_one_msearch_for_their_target() -> None:
    params = {"preference": "x", "routing": "r", "typed_keys": "true"}
    parts = [Request("POST", "/news/_search", params, {"a": "b"}, {"size": size}) for size in (1, 2)]
    one = together(parts)
    assert (one.method, one.path, one.params, one.headers) == (
        "POST",
        "/news/_msearch",
        {"typed_keys": "true"},
        {"a": "b"},
    )
    header = {"preference": "x", "routing": "r"}
    assert one.body == [header, {"size": 1}, header, {"size": 2}]
    assert one.parts == tuple(parts)
    assert together([Request("GET", "/_search", {}, {}, None)] * 2).path == "/_msearch"
    assert together(parts[:1]) is parts[0]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["\u2028", "\u0085"])
def test_an_msearch_as_text_is_read_though_a_query_holds_what_python_takes_for_the_end_of_a_line(
    mark: str, end: str
) -> None:
    query = {"query": {"match": {"body": f"market{mark}news"}}}
    text = "".join(json.dumps(line, ensure_ascii=False) + end for line in ({"index": "news"}, query))
    for body in (text, text.encode()):
        talk = multi_conversation(Request("POST", "/_msearch", {}, {}, body), settings_of(), {})
        assert talk is not None
        assert [one.body for one in talk.searches] == [query]
    assert multi_conversation(Request("POST", "/_msearch", {}, {}, b"\xff"), settings_of(), {}) is None


def test_an_msearch_that_engines_read_otherwise_or_refuse_is_left_alone() -> None:
    """An empty line is a header without keys. It must not be skipped, for then a query would be read as a header."""
    query = json.dumps({"query": MATCH})
    for text in (
        f"{{}}\n{query}\n\n{query}\n",
        f"{{}}\n{query}\n\n{{}}\n\n{query}\n",
        f"\n{query}\n",
        f'{{}}\n{{"size": 1, "size": 2, "query": {json.dumps(MATCH)}}}\n',
    ):
        assert multi_conversation(Request("POST", "/news/_msearch", {}, {}, text), settings_of(), {}) is None
    ends = multi_conversation(Request("POST", "/news/_msearch", {}, {}, f"{{}}\n{query}\n\n"), settings_of(), {})
    assert ends is not None
    assert len(ends.searches) == 1


def test_sketches_are_cut_out_of_no_answer_that_holds_what_a_caller_requests() -> None:
    """One text holds the answers to all searches of an `_msearch`, also to those that are left alone."""
    shown = {"query": MATCH, "docvalue_fields": ["ndd.sketch"]}

    def is_cut(*bodies: dict[str, Any]) -> bool:
        lines = [line for body in bodies for line in ({"index": "news"}, body)]
        talk = multi_conversation(Request("POST", "/_msearch", {}, {}, lines), in_one_phase(settings_of()), {})
        assert talk is not None
        first = next(talk.flow())
        assert isinstance(first, Request)
        return first.cut is not None

    assert is_cut({"query": MATCH}, {"query": MATCH, "size": 5})
    assert not is_cut({"query": MATCH}, {**shown, "ndd": False})
    assert not is_cut({"query": MATCH}, shown)


def test_answers_to_several_searches_are_told_apart_or_all_wrong() -> None:
    hits: dict[str, Any] = {"hits": {"hits": []}}
    good = Answer({"responses": [{**hits, "status": 200}, {"error": "x", "status": 404}]})
    first, second = good.apart(2)
    assert first.has_hits
    assert first.body == hits
    assert (second.ok, second.status) == (False, 404)
    for odd in (good.apart(3), Answer(hits).apart(2), Answer({"responses": [hits, 1]}).apart(2), Answer("no").apart(2)):
        assert not any(one.has_hits for one in odd)
    assert [one.status for one in Answer("busy", 429).apart(2)] == [429, 429]


class OwnDict(dict[str, Any]):
    """What a client's parser may make of an object."""


@pytest.mark.parametrize(
    ("odd", "is_hit"),
    [
        ({"_id": "2", "_routing": "a", "fields": {}, "_source": {}, "sort": None}, True),
        (OwnDict(_index="news", fields=OwnDict()), True),
        *(({name: 7}, False) for name in ("_index", "_id", "_routing", "fields", "_source")),
        *(({name: None}, False) for name in ("_index", "_id", "_routing", "fields", "_source")),
        ("hit", False),
    ],
)
def test_the_core_and_python_tell_hits_alike(odd: Any, is_hit: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    hit = {"_index": "news", **odd} if type(odd) is dict else odd
    for core in (native.core, None):
        monkeypatch.setattr(native, "core", core)
        assert Answer({"hits": {"hits": [hit_of("1"), hit]}}).has_hits == is_hit
        assert not Answer({"hits": {"hits": [{"_id": "1"}]}}).has_hits


def test_which_requests_may_change_what_searches_find() -> None:
    writes = [
        *("PUT /news", "POST /news/_doc", "PUT /news/_doc/_search", "DELETE /news/_doc/_count", "POST /_bulk"),
        *("POST /news/_refresh", "POST /news/_update/_mget", "POST /_aliases", "POST /_all/_delete_by_query"),
    ]
    reads = [
        *("GET /news/_doc/1", "HEAD /news", "POST /_search", "POST /news/_search", "POST /_all/_count"),
        *("POST /_search/scroll", "DELETE /_search/scroll", "DELETE /_pit", "POST /news/_explain/_doc", "POST /_mget"),
    ]
    for wanted, requests in ((True, writes), (False, reads)):
        for request in requests:
            method, path = request.split()
            assert is_write(method, path) is wanted, request
