"""The frequency table that is stored beside an index: every client decides by it, and no stream by two tables."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import ndd_search as ndd
from ndd_search.cli import main
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.paging.cache import MemoryCache
from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.indexing.backfill import Backfill, store_frequency_table
from ndd_search.search.flow.choose_frequency_table import TABLES, document, document_id, read_document
from tests.engines.find import Engine
from tests.wrapping.conftest import Caller, Connect, bulk, settings_of
from tests.wrapping.forms import SEARCH, ask, at_once
from tests.wrapping.library import FORMS, RECIPE, actions, mapping
from tests.wrapping.proxy import Harm, Passed, Proxy
from tests.wrapping.test_clients import ids
from tests.wrapping.test_searches import MATCH

pytestmark = pytest.mark.one_kind_of_client

HOUR = 3601.0


@pytest.fixture(autouse=True)
def no_table_left(engine: Engine, forms: str) -> Iterator[None]:
    """After each test, no table of the index is stored."""
    yield
    with engine.client() as client:
        client.indices.refresh(index=TABLES, ignore_unavailable=True)
        if held(client, forms) is not None:
            client.delete(index=TABLES, id=document_id(forms, SketchField(), RECIPE.id), refresh=True)


def held(client: Any, index: str) -> FrequencyTable | None:
    """The table that is stored for an index, None if there is none."""
    body = {"query": {"ids": {"values": [document_id(index, SketchField(), RECIPE.id)]}}, "size": 1}
    found = client.search(index=TABLES, body=body, ignore_unavailable=True)["hits"]["hits"]
    return read_document(found[0], RECIPE.id) if found else None


def count(engine: Engine, index: str) -> FrequencyTable:
    """Store the table of an index, as a backfill does."""
    with engine.client() as client:
        table = store_frequency_table(client, index, SketchField(), RECIPE)
    assert table is not None
    return table


def store(engine: Engine, index: str, table: FrequencyTable) -> None:
    """Replace the stored table of an index."""
    with engine.client() as client:
        line = {"index": {"_index": TABLES, "_id": document_id(index, SketchField(), RECIPE.id)}}
        assert not client.bulk(body=[line, document(index, SketchField(), table)], refresh=True)["errors"]


def connected(connect: Connect, url: str | None = None, **settings: Any) -> Caller:
    """A wrapped client whose clock stands still until it is set."""
    caller = connect(url, **{"min_similarity": "auto", "cache": False, "window": 100, **settings})
    settings_of(caller).clock = lambda: 0.0
    return caller


def later(caller: Caller, seconds: float) -> None:
    settings_of(caller).clock = lambda: seconds


def table_in(answer: dict[str, Any]) -> str:
    name: str = answer["ndd"]["table"]
    return name


def test_every_client_decides_by_the_stored_table(engine: Engine, forms: str, connect: Connect, proxy: Proxy) -> None:
    """Each reads it with one request an hour."""
    table = count(engine, forms)
    for _ in range(2):
        caller = connected(connect, proxy.url)
        proxy.reset()
        for _ in range(2):
            answer = caller.search(index=forms, body=SEARCH)
            assert (table_in(answer), len(ids(answer)), answer["ndd"]["hidden"]) == (table.digest[:8], 5, 0)
        assert len(proxy.lookups) == 1
        later(caller, HOUR)
        assert table_in(caller.search(index=forms, body=SEARCH)) == table.digest[:8]
        assert len(proxy.lookups) == 2


def test_the_searches_of_an_msearch_decide_by_it(engine: Engine, forms: str, connect: Connect, proxy: Proxy) -> None:
    lines = [{"index": forms, "preference": "_local"}, SEARCH, {"index": forms}, {**SEARCH, "size": 4}]
    caller = connected(connect, proxy.url)
    for answer in caller.msearch(body=lines)["responses"]:
        assert (len(ids(answer)) in (4, 5), answer["ndd"]["degraded"]) == (True, None)
    table = count(engine, forms)
    caller = connected(connect, proxy.url)
    answers = caller.msearch(body=lines)["responses"] + caller.msearch(body=lines)["responses"]
    assert table.digest[:8] in {table_in(answer) for answer in answers[:2]}  # the other one is not held up
    assert {table_in(answer) for answer in answers[2:]} == {table.digest[:8]}


def test_a_refreshed_table_is_read_within_an_hour(engine: Engine, forms: str, connect: Connect) -> None:
    table = count(engine, forms)
    caller = connected(connect)
    assert table_in(caller.search(index=forms, body=SEARCH)) == table.digest[:8]
    other = FrequencyTable(table.documents, table.values[:5], table.counts[:5], table.recipe)
    store(engine, forms, other)
    assert table_in(caller.search(index=forms, body=SEARCH)) == table.digest[:8]
    later(caller, HOUR)
    assert table_in(caller.search(index=forms, body=SEARCH)) == other.digest[:8]


def test_the_total_that_is_asked_for_does_not_change_which_hits_are_shown(
    engine: Engine, index: str, connect: Connect
) -> None:
    """Three hits are too few to show that 30 texts fill one form, although an exact total examines all of them."""
    form = " ".join(f"form{place}" for place in range(100))
    own = [" ".join(f"own{number}word{place}" for place in range(20)) for number in range(30)]
    made = [{"id": str(number), "title": "", "body": f"market {form} {words}"} for number, words in enumerate(own)]
    with engine.client() as client:
        client.indices.create(index=index, body=mapping(engine))
        bulk(engine, client, actions(index, engine, where=made))
    caller = connected(connect, window=3)
    few, exact = (caller.search(index=index, body={**SEARCH, "ndd": {"total": total}}) for total in ("hits", "groups"))
    assert table_in(few) == table_in(exact) == "list"
    assert exact["ndd"]["hidden"] == 29
    assert ids(few) == ids(exact)


def test_each_caller_reads_the_table_with_own_rights(
    engine: Engine, forms: str, connect: Connect, proxy: Proxy
) -> None:
    table = count(engine, forms)
    proxy.reset(lambda _, request: HARM["not allowed"] if is_lookup(request, "few") else None)
    caller = connected(connect, proxy.url)
    assert table_in(ask(caller, forms, SEARCH, x_user="all")) == table.digest[:8]
    assert table_in(ask(caller, forms, SEARCH, x_user="few")) == "list"
    assert table_in(ask(caller, forms, SEARCH, x_user="all")) == table.digest[:8]


def is_lookup(request: Passed, user: str | None = None) -> bool:
    return TABLES in request.target and user in (None, request.headers.get("x-user"))


def test_a_table_that_cannot_be_read_is_asked_for_again_soon(
    engine: Engine, forms: str, connect: Connect, proxy: Proxy
) -> None:
    table = count(engine, forms)
    caller = connected(connect, proxy.url, client={"max_retries": 0})
    for time, harm, sent in (
        (0, Harm(status=503), 1),
        (59, None, 0),
        (61, Harm(cut=True), 1),
        (122, None, 1),
        (3000, None, 0),
        (3800, Harm(status=429), 1),  # now there is a table, which serves on
        (3830, None, 0),
        (3900, None, 1),
    ):
        later(caller, time)
        proxy.reset(lambda _, request, harm=harm: harm if is_lookup(request) else None)  # type: ignore[misc]
        answer = caller.search(index=forms, body=SEARCH)
        assert (len(ids(answer)), answer["ndd"]["hidden"], answer["ndd"]["degraded"]) == (5, 0, None)
        assert len(proxy.lookups) == sent, time
        assert table_in(answer) == ("list" if time < 122 else table.digest[:8])


def test_first_searches_at_once_read_the_table_once_and_wait_for_nobody(
    engine: Engine, forms: str, connect: Connect, proxy: Proxy
) -> None:
    table, caller = count(engine, forms), connected(connect, proxy.url)
    proxy.reset(lambda _, request: Harm(delay=1.0) if is_lookup(request) else None)
    bodies = [{**SEARCH, "_source": [f"price{number}"]} for number in range(20)]
    answers = at_once(caller, forms, bodies, lambda _: {})
    assert len(proxy.lookups) == 1
    assert {(len(ids(answer)), answer["ndd"]["hidden"]) for answer in answers} == {(5, 0)}
    assert {table_in(answer) for answer in answers} == {"list", table.digest[:8]}


def test_all_pages_of_a_search_are_decided_by_one_table(engine: Engine, forms: str, connect: Connect) -> None:
    """A table that is there a moment later decides the next search, and not the next page of this one."""
    body = {"query": MATCH, "size": 20, "sort": ["price"]}
    caller = connected(connect, window=50, splits=False, cache=MemoryCache(seconds=36000.0))
    first = caller.search(index=forms, body=body)
    count(engine, forms)
    later(caller, HOUR)
    other = caller.search(index=forms, body={**body, "query": {"match": {"body": "field1"}}})
    second = caller.search(index=forms, body={**body, "from": 20})
    third = caller.search(index=forms, body={**body, "from": 60})  # for which the stream grows
    assert table_in(other) not in (None, "list")
    assert [table_in(one) for one in (first, second, third)] == ["list"] * 3
    assert [one["ndd"]["cache"] for one in (first, second, third)] == ["miss", "hit", "miss"]
    shown = ids(first) + ids(second) + ids(third)
    assert len(set(shown)) == len(shown)


HARM = {
    "not allowed": Harm(status=403, body=b'{"error": "no", "status": 403}'),
    "missing": Harm(status=404, body=b'{"error": "no such index", "status": 404}'),
    "busy": Harm(status=503),
    "cut": Harm(cut=True),
    "garbage": Harm(status=200, body=b'{"took": 1}'),
    "another version": Harm(
        status=200,
        body=json.dumps(
            {
                "_shards": {"total": 1, "failed": 0},
                "hits": {"hits": [{"_index": "t", "_id": "1", "_source": {"version": 99}}]},
            }
        ).encode(),
    ),
}


@pytest.mark.parametrize("name", HARM)
def test_without_the_stored_table_each_search_counts_its_hits(
    name: str, forms: str, connect: Connect, proxy: Proxy
) -> None:
    caller = connected(connect, proxy.url, client={"max_retries": 0})
    proxy.reset(lambda _, request: HARM[name] if is_lookup(request) else None)
    answer = caller.search(index=forms, body=SEARCH)
    assert (len(ids(answer)), answer["ndd"]["hidden"], answer["ndd"]["degraded"]) == (5, 0, None)
    assert table_in(answer) == "list"


@pytest.mark.parametrize("seed", range(2))
def test_pages_of_one_stream_are_decided_by_one_table(
    seed: int, engine: Engine, forms: str, connect: Connect, redis_url: str
) -> None:
    """Four clients with their own state are asked for pages at random, while the table changes."""
    rng, size = random.Random(seed), 20
    common = count(engine, forms)
    rare = FrequencyTable(common.documents, common.values[:0], common.counts[:0], common.recipe)
    prefix = uuid.uuid4().hex
    caches = [ndd.plugins.RedisCache(redis_url, prefix=prefix, seconds=600.0, budget=20.0) for _ in range(4)]
    callers = [connected(connect, splits=False, window=20, cache=cache) for cache in caches]
    body, now = {"query": MATCH, "size": size, "sort": ["price"]}, 0.0
    pages: dict[int, dict[str, Any]] = {}
    for step in range(50):
        if step % 5 == 4:
            store(engine, forms, (rare, common)[step // 5 % 2])
            now += HOUR
            for caller in callers:
                later(caller, now)
        number = min(rng.randrange(10), len(pages))  # each page extends the stream once, at some step
        answer = rng.choice(callers).search(index=forms, body={**body, "from": size * number})
        assert ids(pages.setdefault(number, answer)) == ids(answer)
    assert len({table_in(page) for page in pages.values()}) == 1
    shown = [id for number in sorted(pages) for id in ids(pages[number])]
    assert len(set(shown)) == len(shown)
    assert len(pages) > 8  # eight hold every document
    for cache in caches:
        cache.close()
    assert set(shown) | hidden(pages) == {str(number) for number in range(FORMS)}


def hidden(pages: dict[int, dict[str, Any]]) -> set[str]:
    """The ids of the hits that pages list under another, or name as found late."""
    found = {late["_id"] for page in pages.values() for late in page["ndd"]["late"]}
    for page in pages.values():
        for hit in page["hits"]["hits"]:
            copies = hit.get("inner_hits", {}).get("near_duplicates", {}).get("hits", {}).get("hits", [])
            found |= {copy["_id"] for copy in copies}
    return found


def test_a_backfill_stores_the_table_and_run_again_refreshes_it(
    engine: Engine, forms: str, connect: Connect, capsys: pytest.CaptureFixture[str]
) -> None:
    where = [engine.url, forms, "--fields", "title,body", "--keys", "0"]
    with engine.client() as client:
        assert held(client, forms) is None
    for _ in range(2):
        capsys.readouterr()
        assert main(["backfill", *where, "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert (report["written"], report["table"]["documents"]) == (0, FORMS)
        with engine.client() as client:
            stored = held(client, forms)
            assert stored is not None
            assert stored.digest == report["table"]["digest"]
            assert TABLES not in client.indices.get(index="ndd-t*")  # patterns do not match it
        table = stored
        answer = connected(connect).search(index=forms, body=SEARCH)
        assert table_in(answer) == table.digest[:8]
        store(engine, forms, FrequencyTable(table.documents, table.values[:5], table.counts[:5], table.recipe))
    assert main(["backfill", *where]) == 0
    assert f"table {table.digest[:8]} stored: " in capsys.readouterr().out


def test_an_alias_has_a_table_of_its_own(engine: Engine, forms: str) -> None:
    with engine.client() as client:
        client.indices.put_alias(index=forms, name=f"{forms}-some", body={"filter": {"range": {"price": {"lt": 40}}}})
        try:
            table = store_frequency_table(client, f"{forms}-some", SketchField(), RECIPE)
            assert table is not None
            assert table.documents == 40
            assert held(client, forms) is None
        finally:
            client.delete(index=TABLES, id=document_id(f"{forms}-some", SketchField(), RECIPE.id), refresh=True)
            client.indices.delete_alias(index=forms, name=f"{forms}-some")


def test_a_table_that_the_server_does_not_store_is_a_note(engine: Engine, forms: str, proxy: Proxy) -> None:
    """The sketches are written, and each search counts in its hits."""
    proxy.reset(lambda _, request: HARM["not allowed"] if request.target.startswith(f"/{TABLES}") else None)
    with replace(engine, url=proxy.url).client() as client:
        report = Backfill(index=forms, fields=["title", "body"]).run(client)
    assert (report.remaining, report.table) == (0, None)
    assert any(f"{TABLES}: the frequency table was not stored" in note for note in report.notes)


def test_an_index_without_sketches_of_the_recipe_stores_no_table(engine: Engine, forms: str) -> None:
    with engine.client() as client:
        assert store_frequency_table(client, forms, SketchField(), ndd.Recipe.words(k=128)) is None


def test_a_document_that_is_damaged_is_no_table() -> None:
    table = FrequencyTable(10.0, np.array([3, 5], np.int32), np.array([4.0, 5.0]), RECIPE.id)
    whole = document("/b,a", SketchField(), table)
    assert read_document({"_source": json.loads(json.dumps(whole))}, RECIPE.id) == table
    assert whole["target"] == "a,b"
    for name, value in (
        ("version", 2),
        ("digest", "0"),
        ("table", {**whole["table"], "counts": [1.0]}),
        ("table", {**whole["table"], "counts": [4.0, 6.0]}),
    ):
        assert read_document({"_source": {**whole, name: value}}, RECIPE.id) is None
    assert read_document({"_source": whole}, "w5-k128-v4") is None
    assert read_document({}, RECIPE.id) is None
