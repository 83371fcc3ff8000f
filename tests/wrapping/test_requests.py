"""Options of a search beside the query are honoured, and what the middleware adds is not shown."""

from __future__ import annotations

import copy
import importlib
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.indexing.backfill import store_frequency_table
from ndd_search.search.flow.choose_frequency_table import TABLES, document_id
from ndd_search.search.flow.client_settings import settings_of
from ndd_search.search.flow.intercept_requests import Driver
from ndd_search.search.rest.read_answer import Answer
from ndd_search.search.rest.read_request import Request
from tests.engines.find import Engine
from tests.wrapping.conftest import Caller, Connect, Library, body_of, bulk
from tests.wrapping.library import RECIPE, actions, documents, expected, mapping
from tests.wrapping.proxy import Proxy
from tests.wrapping.test_searches import MATCH, as_plain, copies, pages

pytestmark = pytest.mark.one_kind_of_client

SKETCH = {"_source": {"excludes": ["ndd"]}}
OURS = ("ndd.sketch", "ndd.smallest", "ndd.recipe", "ndd.text")

# What to fetch of each hit: (body, parameters), and the same for a plain client that is to give the same hits.
FETCHES: dict[str, Any] = {
    "nothing said": ({}, {}, {}, {}),
    "no source": ({"_source": False}, {}, {"_source": False}, {}),
    "one field": ({"_source": "title"}, {}, {"_source": "title"}, {}),
    "a list": ({"_source": ["title", "pri*"]}, {}, {"_source": ["title", "pri*"]}, {}),
    "a star": ({"_source": ["*"]}, {}, {"_source": {"includes": ["*"], "excludes": ["ndd"]}}, {}),
    "includes and excludes": (
        {"_source": {"includes": ["*e"], "excludes": ["title"]}},
        {},
        {"_source": {"includes": ["*e"], "excludes": ["title", "ndd"]}},
        {},
    ),
    "the sketch itself": ({"_source": ["ndd.recipe"]}, {}, {"_source": ["ndd.recipe"]}, {}),
    "source off in the URL": ({}, {"_source": "false"}, {}, {"_source": "false"}),
    "source in the URL": ({}, {"_source": "title,price"}, {}, {"_source": "title,price"}),
    "includes in the URL": ({}, {"_source_includes": "p*"}, {}, {"_source_includes": "p*"}),
    "excludes in the URL": ({}, {"_source_excludes": "body"}, {}, {"_source_excludes": "body,ndd"}),
    "fields": ({"fields": ["price", "la*"], "_source": False}, {}, {"fields": ["price", "la*"], "_source": False}, {}),
    "all fields": ({"fields": ["*"]}, {}, {"fields": ["*"], **SKETCH}, {}),
    "all fields of ours": ({"fields": ["ndd.*"]}, {}, {"fields": ["ndd.*"], **SKETCH}, {}),
    "doc values": (
        {"docvalue_fields": [{"field": "published", "format": "yyyy"}, "site"]},
        {},
        {"docvalue_fields": [{"field": "published", "format": "yyyy"}, "site"], **SKETCH},
        {},
    ),
    "all doc values of ours": ({"docvalue_fields": ["ndd.*"]}, {}, {"docvalue_fields": ["ndd.*"], **SKETCH}, {}),
    "doc values in the URL": ({}, {"docvalue_fields": "site"}, SKETCH, {"docvalue_fields": "site"}),
    "stored fields": ({"stored_fields": ["_routing"]}, {}, {"stored_fields": ["_routing"]}, {}),
    "stored fields in the URL": ({}, {"stored_fields": "title"}, {}, {"stored_fields": "title"}),
    "total unlimited": ({"track_total_hits": True}, {}, {"track_total_hits": True, **SKETCH}, {}),
    "total up to": ({"track_total_hits": 50}, {}, {"track_total_hits": 50, **SKETCH}, {}),
    "no total": ({"track_total_hits": False}, {}, {"track_total_hits": False, **SKETCH}, {}),
    "no total in the URL": ({}, {"track_total_hits": "false"}, SKETCH, {"track_total_hits": "false"}),
    "total as a number": ({}, {"rest_total_hits_as_int": "true"}, SKETCH, {"rest_total_hits_as_int": "true"}),
    "typed keys": (
        {"aggs": {"x": {"terms": {"field": "site"}}}},
        {"typed_keys": "true"},
        {"aggs": {"x": {"terms": {"field": "site"}}}, **SKETCH},
        {"typed_keys": "true"},
    ),
}


@pytest.mark.parametrize("name", FETCHES)
def test_hits_look_as_the_user_asked_and_nothing_of_ours_is_left(
    name: str, library: Library, connect: Connect, plain: Caller
) -> None:
    wrapped = connect(cache=False, total="hits")
    body, params, same, same_params = FETCHES[name]
    path = f"/{library.news}/_search"
    whole = plain.ask("POST", path, {"query": MATCH, **same, "size": 1000}, same_params)
    of_engine = {hit["_id"]: hit for hit in whole["hits"]["hits"]}
    if name == "nothing said":
        assert all(hit["_source"].pop("ndd") for hit in of_engine.values())
    if name == "all fields":
        for hit in of_engine.values():
            assert all(hit["fields"].pop(path) for path in OURS)
    given = {"query": MATCH, **body, "size": 30}
    sent = copy.deepcopy(given)
    answer = wrapped.ask("POST", path, given, params)
    assert given == sent
    assert len(answer["hits"]["hits"]) == 30
    assert answer["ndd"]["hidden"] > 0
    for hit in answer["hits"]["hits"]:
        assert as_plain(hit) == of_engine[hit["_id"]]
        for one in copies(hit):
            del one["fields"]["ndd.similarity"]
            assert {**one, "fields": one["fields"]} == {"fields": {}, **of_engine[one["_id"]]}
    assert {**answer["hits"], "hits": 0} == {**whole["hits"], "hits": 0}
    assert answer.get("aggregations") == whole.get("aggregations")


@pytest.mark.parametrize(
    "paths",
    [
        *("hits.hits._id,took", "hits.hits._source.price,hits.total", "-hits.hits._source", "**._id"),
        "-hits.hits._source,hits.hits",
    ],
)
def test_filter_path_is_applied_to_our_answer(paths: str, library: Library, wrapped: Caller, plain: Caller) -> None:
    path, body = f"/{library.news}/_search", {"query": MATCH, "size": 30, **SKETCH}
    answer = wrapped.ask("POST", path, body, {"filter_path": paths})
    whole = wrapped.ask("POST", path, body)
    as_it_is = plain.ask("POST", path, body, {"filter_path": paths})
    assert len(answer["hits"]["hits"]) == len(whole["hits"]["hits"]) == 30
    assert answer.pop("ndd")["kept"] == whole["ndd"]["kept"]
    assert {key: sorted(value) if key == "hits" else 0 for key, value in answer.items()} == {
        key: sorted(value) if key == "hits" else 0 for key, value in as_it_is.items()
    }
    if "_id" in paths:
        assert [hit["_id"] for hit in answer["hits"]["hits"]] == [hit["_id"] for hit in whole["hits"]["hits"]]


def test_a_search_without_a_body_is_collapsed(library: Library, wrapped: Caller, plain: Caller) -> None:
    answer = wrapped.search(index=library.news, q="body:market", size=30)
    truth = expected(
        [hit["_id"] for hit in plain.search(index=library.news, q="body:market", size=200)["hits"]["hits"]]
    )
    got = [hit["_id"] for hit in answer["hits"]["hits"]]
    assert [one for one in got if one not in truth.doubtful] == truth.kept[
        : len([one for one in got if one not in truth.doubtful])
    ]
    assert answer["ndd"]["hidden"] > 0
    assert len(got) == 30


@pytest.mark.parametrize("written", [json.dumps, lambda body: json.dumps(body).encode()], ids=["text", "bytes"])
def test_a_body_of_json_as_text_is_collapsed_and_may_hold_options(
    written: Callable[[Any], Any], library: Library, wrapped: Caller, plain: Caller
) -> None:
    path, body = f"/{library.news}/_search", {"query": MATCH, "size": 30}
    answer = wrapped.ask("POST", path, written(body))
    assert answer["ndd"]["hidden"] > 0
    assert answer["hits"] == wrapped.ask("POST", path, body)["hits"]
    assert "inner_hits" not in str(wrapped.ask("POST", path, written({**body, "ndd": {"mode": "drop"}}))["hits"])
    own = wrapped.ask("POST", path, written({**body, "ndd": False}))
    assert own["hits"] == plain.ask("POST", path, written(body))["hits"]


def test_a_number_that_python_cannot_hold_is_sent_as_it_was_written() -> None:
    """Python would write 1e400 as Infinity, which engines refuse."""
    sent = list[Any]()

    def send(request: Request) -> Answer:
        sent.append(request.body)
        return Answer({"hits": {"hits": []}})

    body = '{"query": {"bool": {"must": [{"match": {"body": "fog"}}, {"range": {"price": {"lt": 1e400}}}]}}}'
    Driver(settings_of()).handle(Request("POST", "/news/_search", {}, {}, body), send)
    assert sent == [body]


def test_a_body_that_nests_too_deep_gets_the_engines_own_error(
    library: Library, wrapped: Caller, plain: Caller
) -> None:
    deep = '{"query": ' + '{"bool": {"must": ' * 600 + "{}" + "}}" * 600 + "}"
    for path, text in ((f"/{library.news}/_search", deep), (f"/{library.news}/_msearch", f"{{}}\n{deep}\n")):
        raised = []
        for caller in (plain, wrapped):
            with pytest.raises(Exception) as one:  # noqa: PT011 (OpenSearch closes the connection)
                caller.ask("POST", path, text)
            raised.append(one.type)
        assert raised[0] == raised[1]


def test_a_search_by_get_with_everything_in_the_url_is_collapsed(library: Library, wrapped: Caller) -> None:
    answer = wrapped.ask("GET", f"/{library.news}/_search", None, {"q": "market", "size": "12", "from": "3"})
    assert len(answer["hits"]["hits"]) == 12
    assert answer["ndd"]["examined"] >= 15


@pytest.mark.parametrize("size", ["7", b"7", 7])
def test_opensearch_takes_size_and_from_from_the_url_in_any_form(size: Any, library: Library, wrapped: Caller) -> None:
    if library.engine.family == "elasticsearch":
        pytest.skip("elasticsearch-py puts them into the body")
    answer = wrapped.search(index=library.news, body={"query": MATCH}, params={"size": size, "from": size})
    whole = wrapped.search(index=library.news, body={"query": MATCH}, size=14)
    assert [hit["_id"] for hit in answer["hits"]["hits"]] == [hit["_id"] for hit in whole["hits"]["hits"]][7:]


def test_the_body_brings_options_and_so_does_the_block_around_a_search(library: Library, wrapped: Caller) -> None:
    def search(**options: Any) -> dict[str, Any]:
        given = {"ndd": options} if options else {}
        return wrapped.search(index=library.news, body={"query": MATCH, "size": 156, **given})

    grouped = search()
    assert any(map(copies, grouped["hits"]["hits"]))
    dropped = search(mode="drop")
    assert not any(map(copies, dropped["hits"]["hits"]))
    with ndd.options(mode="annotate"):
        annotated = search()
        assert len(search(mode="drop")["hits"]["hits"]) == dropped["ndd"]["kept"]
    assert len(annotated["hits"]["hits"]) == 156
    named = [hit["fields"]["ndd.duplicate_of"][0] for hit in annotated["hits"]["hits"] if "fields" in hit]
    assert len(named) == grouped["ndd"]["hidden"]
    demoted = search(mode="demote")["hits"]["hits"]
    assert [hit["_id"] for hit in demoted[: grouped["ndd"]["kept"]]] == [hit["_id"] for hit in grouped["hits"]["hits"]]
    assert len(demoted) == 156
    assert search(min_similarity=1.0)["ndd"]["hidden"] < search(min_similarity=0.2)["ndd"]["hidden"]


def test_what_is_switched_off_stays_off_until_it_is_switched_on(library: Library, wrapped: Caller) -> None:
    def block() -> Any:
        return wrapped.search(index=library.news, body={"query": MATCH}).get("ndd")

    with ndd.options(mode="drop", window=30), ndd.options(enabled=False):
        assert block() is None
        with ndd.options(window=50):
            assert block() is None
            with ndd.options(enabled=True):
                assert block()["examined"] == 50
            assert block() is None
    assert block()["examined"] == 20


def test_an_unknown_option_is_named_with_those_there_are(library: Library, wrapped: Caller) -> None:
    known = r"the options are .*window.*, cache, explain, seen, cursor"
    with pytest.raises(TypeError, match=rf"'min_similarty' \(did you mean min_similarity\?\): {known}"):
        wrapped.search(index=library.news, body={"query": MATCH, "ndd": {"min_similarty": 1}})
    with pytest.raises(ValueError, match="mode must be one of group, ids, count, drop"):
        wrapped.search(index=library.news, body={"query": MATCH, "ndd": {"mode": "hide"}})


def test_a_block_names_the_options_that_it_takes_and_the_place_of_others() -> None:
    with pytest.raises(TypeError, match=r"the options are enabled, .*window.*, cache, explain, seen"), ndd.options(w=1):  # type: ignore[call-arg]
        pass
    with pytest.raises(TypeError, match=r'put it into the body, "ndd": {"cursor": true}'), ndd.options(cursor=True):  # type: ignore[call-arg]
        pass


def test_ndd_in_a_search_may_be_true_and_nothing_that_is_no_options(library: Library, wrapped: Caller) -> None:
    assert wrapped.search(index=library.news, body={"query": MATCH, "ndd": True})["ndd"]["hidden"] > 0
    for wrong in ("yes", [], 5):  # type: ignore[var-annotated]
        with pytest.raises(TypeError, match="must be an object of options, true or false, got"):
            wrapped.search(index=library.news, body={"query": MATCH, "ndd": wrong})


def test_keep_and_guards_read_fields_that_the_user_did_not_ask_for(library: Library, connect: Connect) -> None:
    body = {"query": MATCH, "size": 156, "_source": False}
    of = {one["_id"]: one for one in documents()}
    caller = connect(window=200)
    plain = caller.search(index=library.news, body=body)
    newest = caller.search(index=library.news, body={**body, "ndd": {"keep": ["newest:published"]}})
    matched = caller.search(index=library.news, body={**body, "ndd": {"guards": ["same:language"]}})
    groups = [(hit["_id"], [one["_id"] for one in copies(hit)]) for hit in newest["hits"]["hits"]]
    assert any(rest for _, rest in groups)
    assert all(of[id]["published"] >= of[other]["published"] for id, rest in groups for other in rest)
    assert len(groups) == plain["ndd"]["kept"]
    assert matched["ndd"]["kept"] > plain["ndd"]["kept"]
    lowest = caller.search(index=library.news, body={**body, "ndd": {"keep": ["lowest:language"]}})
    assert lowest["ndd"]["warnings"] == ["no hit has a number in the field 'language' that an option names"]
    assert not newest["ndd"]["warnings"]
    assert not matched["ndd"]["warnings"]
    for hit in matched["hits"]["hits"]:
        assert {of[one["_id"]]["language"] for one in copies(hit)} <= {of[hit["_id"]]["language"]}
    for hit in [*newest["hits"]["hits"], *matched["hits"]["hits"]]:
        assert "fields" not in hit
        assert all(list(one["fields"]) == ["ndd.similarity"] for one in copies(hit))


def test_a_lowered_max_result_window_narrows_ours_and_is_remembered(
    engine: Engine, index: str, connect: Connect, proxy: Proxy
) -> None:
    with engine.client() as client:
        made = mapping(engine)
        client.indices.create(index=index, body={**made, "settings": {**made["settings"], "max_result_window": 70}})
        bulk(engine, client, actions(index, engine))
        ranking = [hit["_id"] for hit in client.search(index=index, body={"query": MATCH, "size": 70})["hits"]["hits"]]
    caller = connect(proxy.url, window=100, cache=False)
    truth = expected(ranking)
    for _ in range(2):
        proxy.reset()
        answer = caller.search(index=index, body={"query": MATCH, "size": 60})
        shown = [hit["_id"] for hit in answer["hits"]["hits"]]
        assert [one for one in shown if one not in truth.doubtful] == truth.kept[: len(shown)]
        assert answer["ndd"]["capped"]
        assert answer["hits"]["total"] == {"value": answer["ndd"]["kept"], "relation": "gte"}
    assert len(proxy.searches) == 1
    with pytest.raises(Exception, match="Result window is too large"):
        caller.search(index=index, body={"query": MATCH, "size": 60, "from": 11})


@pytest.mark.parametrize("splits", [False, True])
def test_a_lowered_max_result_window_of_one_index_ends_the_list_of_several_without_a_fault(
    splits: bool, engine: Engine, index: str, library: Library, connect: Connect
) -> None:
    with engine.client() as client:
        made = mapping(engine)
        client.indices.create(index=index, body={**made, "settings": {**made["settings"], "max_result_window": 70}})
        bulk(engine, client, actions(index, engine))
    for target, window in ((index, 20), (f"{index},{library.news}", 20), (f"{index},{library.news}", 100)):
        caller = connect(cache=False, splits=splits, window=window)
        found = [caller.search(index=target, body={"query": MATCH, "size": 60, "from": start}) for start in (0, 5)]
        ids = [[(hit["_index"], hit["_id"]) for hit in answer["hits"]["hits"]] for answer in found]
        for answer in found:
            assert answer["_shards"]["failed"] == 0
            assert (answer["ndd"]["degraded"], answer["ndd"]["examined"], answer["ndd"]["capped"]) == (None, 70, True)
        assert 5 < len(ids[0]) < 60
        assert ids[1] == ids[0][5:]


def test_common_values_are_counted_in_as_many_documents_as_the_index_gives(engine: Engine, index: str) -> None:
    with engine.client() as client:
        made = mapping(engine)
        client.indices.create(index=index, body={**made, "settings": {**made["settings"], "max_result_window": 70}})
        bulk(engine, client, actions(index, engine))
        counted = store_frequency_table(client, index, SketchField(), RECIPE)
        assert counted is not None
        assert 20 < counted.documents <= 70  # copies count as fewer
        client.delete(index=TABLES, id=document_id(index, SketchField(), RECIPE.id), refresh=True)


def test_a_page_from_beyond_the_end_is_empty_and_says_so(library: Library, wrapped: Caller) -> None:
    answer = wrapped.search(index=library.news, body={"query": MATCH, "from": 5000, "size": 10})
    assert answer["hits"]["hits"] == []
    assert answer["ndd"]["exhausted"]
    assert answer["hits"]["total"] == {"value": answer["ndd"]["kept"], "relation": "eq"}


def test_max_window_ends_the_list_instead_of_mixing_it_with_the_engines(library: Library, wrapped: Caller) -> None:
    body = {"query": MATCH, "ndd": {"max_window": 50}}
    got = pages(wrapped, library.news, body)
    ids = [hit["_id"] for page in got for hit in page["hits"]["hits"]]
    assert len(ids) == len(set(ids)) == got[-1]["ndd"]["kept"]
    assert got[-1]["ndd"]["capped"]
    assert not got[-1]["ndd"]["exhausted"]
    assert wrapped.search(index=library.news, body={**body, "from": 60})["hits"]["hits"] == []


def test_rounds_pin_the_same_copies_unless_the_user_does(library: Library, connect: Connect, proxy: Proxy) -> None:
    caller = connect(proxy.url, cache=False)
    caller.search(index=library.news, body={"query": MATCH, "size": 60})
    sent = [re.search(r"preference=(\w+)", one.target)[1] for one in proxy.searches]  # type: ignore[index]
    assert len(sent) > 1
    assert len(set(sent)) == 1
    proxy.reset()
    caller.search(index=library.news, body={"query": MATCH, "size": 60}, preference="mine")
    assert all("preference=mine" in one.target for one in proxy.searches)


def test_aggregations_and_totals_are_asked_for_once(library: Library, connect: Connect, proxy: Proxy) -> None:
    body = {"query": MATCH, "size": 60, "aggs": {"mean": {"avg": {"field": "price"}}}, "profile": True}
    answer = connect(proxy.url, cache=False).search(index=library.news, body=body)
    first, *later = [json.loads(one.body) for one in proxy.searches]
    assert later
    assert "aggs" in first
    assert "profile" in first
    assert all("aggs" not in one and "profile" not in one and one["track_total_hits"] is False for one in later)
    assert "mean" in answer["aggregations"]
    assert answer["profile"]["shards"]


def test_the_unique_estimate_is_the_same_where_totals_are_plain_numbers(library: Library, wrapped: Caller) -> None:
    body = {"query": MATCH, "size": 60, "ndd": {"max_window": 120}}
    found = wrapped.search(index=library.news, body=body)
    plain = wrapped.search(index=library.news, body=body, rest_total_hits_as_int=True)
    assert plain["hits"]["total"] == found["hits"]["total"]["value"]
    assert found["ndd"]["examined"] == 120  # in more than one round
    assert plain["ndd"]["unique"] == found["ndd"]["unique"]
    assert plain["ndd"]["unique"]["relation"] == "estimate"


@pytest.mark.parametrize("as_int", ["true", "false"])
def test_hits_that_are_not_to_be_counted_have_the_total_of_the_engine(
    as_int: str, library: Library, wrapped: Caller, plain: Caller
) -> None:
    """Also once the whole result is known."""
    body, path = {"query": MATCH, "size": 1000, "track_total_hits": False}, f"/{library.news}/_search"
    params = {"rest_total_hits_as_int": as_int}
    found, own = (caller.ask("POST", path, body, params) for caller in (wrapped, plain))
    assert found["ndd"]["exhausted"]
    assert found["hits"].get("total") == own["hits"].get("total")


def test_script_fields_switch_the_source_off_as_without_us(library: Library, wrapped: Caller) -> None:
    if library.engine.family != "opensearch":
        pytest.skip("the published jars of Elasticsearch have no scripts")
    body = {"query": MATCH, "script_fields": {"double": {"script": "doc['price'].value * 2"}}}
    answer = wrapped.search(index=library.news, body=body)
    of = {one["_id"]: one for one in documents()}
    assert all("_source" not in hit for hit in answer["hits"]["hits"])
    assert all(hit["fields"] == {"double": [2 * of[hit["_id"]]["price"]]} for hit in answer["hits"]["hits"])


def test_dsl_objects_show_it_all(library: Library, connect: Connect) -> None:
    where = {
        ("elasticsearch", False): ("elasticsearch.dsl", "Search"),
        ("elasticsearch", True): ("elasticsearch.dsl", "AsyncSearch"),
        ("opensearch", False): ("opensearchpy", "Search"),
        ("opensearch", True): ("opensearchpy._async.helpers.search", "AsyncSearch"),
    }
    module, name = where[library.engine.family, connect().asynchronous]
    search = getattr(importlib.import_module(module), name)
    caller = connect(cache=False)
    wanted = search(using=caller.client, index=library.news).query("match", body="market").extra(size=20)
    wanted.aggs.bucket("languages", "terms", field="language")
    response = caller.run(wanted.execute())
    assert len(response.hits) == 20
    assert response.ndd.hidden > 0
    assert sum(bucket.doc_count for bucket in response.aggregations.languages.buckets) == len(documents())
    groups = [hit.meta.inner_hits.near_duplicates for hit in response if "inner_hits" in hit.meta]
    assert groups
    assert all(group.hits.total.value == len(group) for group in groups)
    raw = caller.search(index=library.news, body={"query": {"match": {"body": "market"}}, "size": 20})["hits"]["hits"]
    listed = [[(copy.of, copy.id, copy.similarity) for copy in ndd.copies(hit)] for hit in raw]
    assert [[(copy.of, copy.id, copy.similarity) for copy in ndd.copies(hit)] for hit in response] == listed
    dropped = caller.run(wanted.extra(ndd={"mode": "drop"}).execute())
    assert not any("inner_hits" in hit.meta for hit in dropped)
    assert "ndd" not in caller.run(wanted.extra(ndd=False).execute())


def test_objects_of_the_dsl_inside_a_body_are_read(library: Library, connect: Connect) -> None:
    """Clients of `connections.create_connection` send them: ids stay ids, and no two searches share a page."""
    family = library.engine.family
    dsl = pytest.importorskip("elasticsearch.dsl" if family == "elasticsearch" else "opensearchpy")
    module = "elasticsearch.dsl.serializer" if family == "elasticsearch" else "opensearchpy.serializer"
    caller = connect(client={"serializer": importlib.import_module(module).AttrJSONSerializer()})
    by_id = caller.search(index=library.news, body={"query": dsl.Q("ids", values=["7-0", "7-1"])})
    assert {hit["_id"] for hit in by_id["hits"]["hits"]} == {"7-0", "7-1"}
    for language in ("en", "de"):  # an AttrDict shows its first 60 characters
        query = dsl.AttrDict({"bool": {"must": [MATCH], "filter": [{"term": {"language": language}}]}})
        found = caller.search(index=library.news, body={"query": query})
        assert found["ndd"]["hidden"] > 0
        assert {hit["_source"]["language"] for hit in found["hits"]["hits"]} == {language}


def test_a_serializer_that_returns_bytes_is_used_for_several_searches_too(library: Library, connect: Connect) -> None:
    if library.engine.family != "opensearch":
        pytest.skip("elasticsearch-py joins the lines itself")
    serializer = importlib.import_module("opensearchpy.serializer").JSONSerializer()
    dumps = serializer.dumps
    serializer.dumps = lambda data: data if isinstance(data, str) else dumps(data).encode()
    caller = connect(client={"serializer": serializer}, cache=False, window=50)
    assert caller.search(index=library.news, body={"query": MATCH, "size": 5})["ndd"]["strategy"] == "two_phases"


def test_the_answer_of_elasticsearch_stays_the_clients_own_object(library: Library, connect: Connect) -> None:
    if library.engine.family != "elasticsearch":
        pytest.skip("opensearch-py answers with dicts")
    caller = connect()
    for _ in range(2):  # the second out of the cache
        answer = caller.run(caller.client.search(index=library.news, query=MATCH))
        assert type(answer).__name__ == "ObjectApiResponse"
        assert answer.meta.status == 200
        assert answer.meta.headers["x-elastic-product"] == "Elasticsearch"
        assert body_of(answer)["ndd"]["kept"]
    assert answer["ndd"]["cache"] == "hit"


def test_a_preset_of_a_search_that_is_meant_for_other_sketches_is_told(library: Library, connect: Connect) -> None:
    """A page from the cache says so too, and a search without the preset does not."""
    caller = connect()
    told = "preset messages is meant for sketches of recipe c5-k64-v4-nourls, these are of w3-k64-v4: use that recipe"
    for asked, warned in (({}, 0), ({"preset": "messages"}, 1), ({"preset": "messages"}, 1), ({"preset": "news"}, 0)):
        answer = caller.search(index=library.news, body={"query": MATCH, "ndd": asked or True})
        assert sum(told in sentence for sentence in answer["ndd"]["warnings"]) == warned
