"""What a wrapped client learns of an index: retried soon after a failure, per caller, and bounded in memory."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import ndd_search as ndd
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.paging.cache import cache_key
from ndd_search.search.flow.learned_targets import Counted, Learned, LearnedOfCaller, LearnedOfTarget, View
from ndd_search.search.rest.mapping import mapping_properties
from tests.engines.find import Engine
from tests.wrapping.conftest import Connect, Library, bulk, settings_of
from tests.wrapping.library import FIELDS, actions, documents, mapping
from tests.wrapping.proxy import Harm, Passed, Proxy
from tests.wrapping.test_clients import ids
from tests.wrapping.test_searches import MATCH

pytestmark = pytest.mark.one_kind_of_client


def samples(proxy: Proxy) -> list[Passed]:
    """The requests that count common values."""
    return [one for one in proxy.searches if b"random_score" in one.body]


def test_a_count_of_common_values_that_fails_is_tried_again_soon(
    library: Library, connect: Connect, proxy: Proxy
) -> None:
    now = [0.0]
    caller = connect(proxy.url, min_similarity="auto", cache=False, client={"max_retries": 0})
    settings_of(caller).clock = lambda: now[0]
    target = cache_key(f"/{library.news}/_search")
    for time, harm, sent in (
        (0, Harm(status=503), 1),
        (59, None, 0),
        (61, Harm(cut=True), 1),
        (122, None, 1),
        (200, None, 0),
        (3000, None, 0),
        (3800, Harm(status=429), 1),  # now there is a table, which serves on
        (3830, None, 0),
        (3900, None, 1),
    ):
        now[0] = time
        proxy.reset(lambda _, request, harm=harm: harm if b"random_score" in request.body else None)  # type: ignore[misc]
        answer = caller.search(index=library.news, body={"query": MATCH})
        assert (len(ids(answer)), answer["ndd"]["degraded"]) == (10, None)
        assert len(samples(proxy)) == sent, time
        assert bool(settings_of(caller).known.about(target).tables) == (time >= 122)
        assert (answer["ndd"]["table"] == "list") == (time < 122)


def test_one_of_many_searches_counts_anew_while_the_others_go_on(
    library: Library, engine: Engine, proxy: Proxy
) -> None:
    now = [0.0]
    at_proxy = Engine(**{**engine.__dict__, "url": proxy.url})
    with at_proxy.client() as plain, ThreadPoolExecutor(8) as pool:
        client = ndd.wrap(plain, cache=False)
        settings_of(client_like(client)).clock = lambda: now[0]
        client.search(index=library.news, body={"query": MATCH})
        now[0] = 4000
        proxy.reset(lambda _, request: Harm(delay=0.3) if b"random_score" in request.body else None)
        answers = list(pool.map(lambda _: client.search(index=library.news, body={"query": MATCH}), range(8)))
        assert len({json.dumps(answer["hits"]["hits"]) for answer in answers}) == 1
        assert len(samples(proxy)) == 1


def client_like(client: Any) -> Any:
    """What settings_of takes, for a client that no Caller holds."""
    return type("Holder", (), {"client": client, "settings": None})


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
    caller.search(index=both, body={**body, "ndd": {"min_similarity": "auto"}})
    assert settings_of(caller).known.about(cache_key(f"/{both}/_search")).tables
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
    counted = Counted(table, View(frozenset(), 0), until=1.0)
    for number in range(200):
        assert knowledge.add_table(cache_key(number), counted) == table.digest
        knowledge.learn(cache_key(number), window_limit=70)
    kept = [knowledge.table(cache_key(number), table.digest) for number in range(200)]
    assert (kept[0], kept[-1]) == (None, counted)
    assert sum(one.bytes for one in kept if one) <= 64 * 2**20
    assert knowledge.about(cache_key(199)).window_limit == 70
    for number in range(100_000):
        knowledge.learn(cache_key("index", number), whole_until=1.0)
        knowledge.learn_of_caller(cache_key("caller", number), bypass_until=1.0)
    assert knowledge.about(cache_key("index", 0)) == LearnedOfTarget()
    assert knowledge.of_caller(cache_key("caller", 0)) == LearnedOfCaller()
    assert knowledge.of_caller(cache_key("caller", 99_999)).bypass_until == 1.0


def test_a_count_that_never_ends_is_not_waited_for_for_ever() -> None:
    """As in the copy of a process that was made while another thread counted."""
    knowledge, target, caller = Learned(), cache_key("index"), cache_key("caller")
    assert knowledge.claim_count(target, caller, now=0.0)
    assert not knowledge.claim_count(target, caller, now=30.0)
    assert knowledge.claim_count(target, caller, now=90.0)


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
