"""What a wrapped client learns of an index: retried soon after a failure, per caller, and bounded in memory."""

from __future__ import annotations

import json

import numpy as np
import pytest

import ndd_search as ndd
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.paging.cache import cache_key
from ndd_search.search.flow.learned_targets import Facts, Learned
from ndd_search.search.rest.mapping import mapping_properties
from tests.engines.find import Engine
from tests.wrapping.conftest import Connect, Library, bulk
from tests.wrapping.library import FIELDS, actions, documents, mapping
from tests.wrapping.proxy import Harm, Passed, Proxy
from tests.wrapping.test_clients import ids
from tests.wrapping.test_searches import MATCH

pytestmark = pytest.mark.one_kind_of_client


def test_who_sees_no_sketch_switches_nothing_off_for_others(library: Library, connect: Connect, proxy: Proxy) -> None:
    """As with field-level security: the blind one's hits have no doc values, and nothing exists for him."""
    caller = connect(proxy.url, cache=False, frequency_table=False, splits=False)
    plain = connect(wrapped=False)
    seen = plain.search(index=library.news, body={"query": MATCH, "size": 20, "_source": False})

    def blind(_: int, request: Passed) -> Harm | None:
        if request.headers.get("x-user") != "blind":
            return None
        found = {**seen, "hits": {**seen["hits"], "hits": []}} if b"exists" in request.body else seen
        return Harm(status=200, body=json.dumps(found).encode())

    proxy.reset(blind)
    path, body = f"/{library.news}/_search", {"query": MATCH}
    for _ in range(2):
        assert "ndd" not in caller.ask("POST", path, body, headers={"x-user": "blind"})
        assert caller.ask("POST", path, body, headers={"x-user": "sees"})["ndd"]["hidden"] > 0
    blinds = [one for one in proxy.searches if one.headers.get("x-user") == "blind"]
    assert len(blinds) == 3  # two to find out, then as it comes


@pytest.mark.parametrize("splits", [False, True])
def test_an_index_that_stores_no_documents_is_collapsed_in_every_search(
    splits: bool, engine: Engine, index: str, library: Library, connect: Connect
) -> None:
    """Its sketches are in doc values; it refuses any `_source` that excludes something."""
    made = mapping(engine)
    made["mappings"]["_source"] = {"enabled": False}
    with engine.client() as client:
        client.indices.create(index=index, body=made)
        bulk(engine, client, actions(index, engine))
    caller = connect(cache=False, window=40, splits=splits)
    for target in (index, f"{index},{library.news}"):
        for start in (0, 10, 0):
            answer = caller.search(index=target, body={"query": MATCH, "size": 10, "from": start})
            assert answer["ndd"]["degraded"] is None
            assert answer["ndd"]["hidden"] > 0
        if engine.name != "opensearch2":  # which has no cursors
            page = caller.search(index=target, body={"query": MATCH, "size": 10, "ndd": {"cursor": True}})
            assert page["ndd"]["degraded"] is None


@pytest.mark.parametrize("splits", [False, True])
def test_a_recipe_mapped_as_text_is_read_out_of_the_documents(
    splits: bool, engine: Engine, index: str, library: Library, connect: Connect, proxy: Proxy
) -> None:
    """What dynamic mapping makes of the first sketch that comes before any template."""
    made = mapping(engine)
    made["mappings"]["properties"] = FIELDS
    with engine.client() as client:
        client.indices.create(index=index, body=made)
        bulk(engine, client, [{**one, "vector": None} for one in actions(index, engine)])
        mapped = client.indices.get_mapping(index=index)[index]["mappings"]["properties"]["ndd"]["properties"]
        assert mapped["recipe"]["type"] == "text"
    good, caller = connect(cache=False, window=40, splits=False), connect(proxy.url, window=40, splits=splits)
    body = {"query": MATCH, "size": 10, "sort": [{"published": "desc"}, {"price": "asc"}], "_source": ["title"]}
    for start in (0, 10, 40):
        answer = caller.search(index=index, body={**body, "from": start})
        whole = good.search(index=library.news, body={**body, "from": start})
        assert (ids(answer), answer["ndd"]["hidden"]) == (ids(whole), whole["ndd"]["hidden"])
        assert answer["ndd"]["degraded"] is None
        assert "ndd.recipe is mapped as text, so searches read it from each document" in ndd.info(answer).warnings[0]
        assert all(
            set(hit) == set(other) for hit, other in zip(answer["hits"]["hits"], whole["hits"]["hits"], strict=True)
        )
        assert all("fields" not in hit for hit in answer["hits"]["hits"])
    both = f"{index},{library.news}"  # where one index would be missing, and nothing else be wrong
    for _ in range(2):
        answer = caller.search(index=both, body={**body, "size": 156, "ndd": {"cache": False}})
        assert (answer["ndd"]["degraded"], answer["ndd"]["lacking"], answer["_shards"]["failed"]) == (None, {}, 0)
        assert (answer["ndd"]["examined"], answer["ndd"]["exhausted"]) == (2 * len(documents()), True)
    last = {"_index": "asc" if library.news < index else "desc"}  # it is met in a later round only
    rounds = connect(cache=False, splits=splits, window=100)
    late = rounds.search(index=both, body={**body, "size": 100, "sort": [last]})
    assert (late["ndd"]["degraded"], late["ndd"]["lacking"], late["ndd"]["exhausted"]) == (None, {}, True)
    for options, sort in (({"total": "estimate"}, body["sort"]), ({"window": 100}, [last])):
        if engine.name != "opensearch2":  # which has no cursors
            asked = {**body, "size": 100, "sort": sort, "ndd": {**options, "cursor": True}}
            page = connect(cache=False, splits=splits).search(index=both, body=asked)
            assert (page["ndd"]["degraded"], page["_shards"]["failed"], page["ndd"]["exhausted"]) == (None, 0, True)
    asked = {**body, "ndd": {"seen": answer["hits"]["hits"][:1]}}
    page = connect(cache=False, splits=splits).search(index=both, body=asked)
    assert page["ndd"]["degraded"] is None
    assert page["ndd"]["seen"]
    proxy.reset()
    caller.search(index=index, body={**body, "ndd": {"cache": False}})
    assert len(proxy.searches) == 1  # it knows by now


@pytest.mark.parametrize("splits", [False, True])
def test_an_index_that_refuses_what_we_read_loses_no_hit_beside_others(
    splits: bool, engine: Engine, index: str, library: Library, connect: Connect
) -> None:
    made = mapping(engine)
    made["mappings"]["properties"] = {**FIELDS, **mapping_properties(), "site": {"type": "text"}}
    made["mappings"]["properties"]["ndd"]["properties"]["sketch"] = {"type": "integer", "doc_values": False}
    with engine.client() as client:
        client.indices.create(index=index, body=made)
        bulk(engine, client, [{**one, "vector": None} for one in actions(index, engine)])
    both, plain = f"{index},{library.news}", connect(wrapped=False)
    caller = connect(cache=False, window=100, splits=splits)
    body = {"query": MATCH, "size": 40, "_source": False}
    answer, whole = caller.search(index=both, body=body), plain.search(index=both, body=body)
    assert (answer["hits"], answer["_shards"]) == (whole["hits"], whole["_shards"])
    assert answer["ndd"]["degraded"].startswith("the engine refused the wider request: Can't load fielddata")
    body["sort"] = ["site"]  # which that index refuses anyway
    answer, whole = caller.search(index=both, body=body), plain.search(index=both, body=body)
    assert (answer["_shards"]["failed"], answer["ndd"]["hidden"] > 0) == (whole["_shards"]["failed"], True)
    assert {hit["_index"] for hit in answer["hits"]["hits"]} == {library.news}


def test_what_is_known_of_many_targets_stays_within_bounds() -> None:
    values = np.arange(20_000, dtype=np.int32)
    knowledge, table = Learned(), FrequencyTable(5000, values, values, "w3-k64-v4")  # type: ignore[arg-type]
    digests = []
    for number in range(200):
        digests.append(knowledge.add_table(FrequencyTable(5000 + number, values, values, table.recipe)))  # type: ignore[arg-type]
        knowledge.learn(cache_key(number), window_limit=70)
    kept = [digest for digest in digests if knowledge.table(digest) is not None]
    assert 1 < len(kept) < 60
    assert kept == digests[-len(kept) :]
    assert knowledge.about(cache_key(199)).window_limit == 70
    for number in range(100_000):
        knowledge.learn(cache_key("index", number), whole_until=1.0)
        knowledge.learn(cache_key("caller", number), bypass_until=1.0)
    assert knowledge.about(cache_key("index", 0)) == knowledge.about(cache_key("caller", 0)) == Facts()
    assert knowledge.about(cache_key("caller", 99_999)).bypass_until == 1.0


@pytest.mark.parametrize("before", ["nothing", "documents without sketches"])
def test_documents_that_a_client_writes_are_collapsed_at_once_whatever_its_searches_found_before(
    before: str, engine: Engine, index: str, connect: Connect
) -> None:
    """That an index held no sketch says nothing of what was written into it since."""
    caller = connect(window=20)
    with engine.client() as client:
        client.indices.create(index=index, body=mapping(engine))
        if before != "nothing":
            old = [{"_index": index, "_id": f"old{n}", "body": f"the market of {n} towns"} for n in range(3)]
            bulk(engine, client, old)
    for start in (0, 5):
        page = caller.search(index=index, body={"query": MATCH, "from": start})
        assert "ndd" not in page or not page["hits"]["hits"]
    written = [{"_index": index, "_id": str(n), "body": "the market market market of one town"} for n in range(3)]
    for one in ndd.with_sketches(written, fields=["body"]):
        document = {"body": one["body"], "ndd": one["ndd"]}
        caller.ask("PUT", f"/{index}/_doc/{one['_id']}", document, {"refresh": "true"})
    answer = caller.search(index=index, body={"query": MATCH})
    assert answer["ndd"]["hidden"] == 2
    assert not [hit for hit in answer["hits"]["hits"] if "ndd" in hit["_source"]]
