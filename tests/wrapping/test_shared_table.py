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
from ndd_search.indexing.tables import TableCount
from ndd_search.matching.frequency_table import FrequencyTable
from ndd_search.middleware.learned import View
from ndd_search.middleware.stored_table import StoredTable, document, named, read_document
from ndd_search.sketching.field import SketchField
from tests.engines.find import Engine
from tests.wrapping.conftest import Caller, Connect, bulk, settings_of
from tests.wrapping.forms import FORMS, SEARCH, ask, counts, form, may_read, probes
from tests.wrapping.library import RECIPE, actions, mapping
from tests.wrapping.proxy import Harm, Passed, Proxy
from tests.wrapping.test_clients import ids
from tests.wrapping.test_learning import samples
from tests.wrapping.test_searches import MATCH

HOUR = 3601.0


@pytest.fixture(scope="module")
def forms(engine: Engine) -> Iterator[str]:
    """An index of different documents that all fill one form; it is only read."""
    name = f"ndd-test-{uuid.uuid4().hex[:12]}"
    with engine.client() as client:
        client.indices.create(index=name, body=mapping(engine))
        bulk(engine, client, actions(name, engine, where=[form(number) for number in range(FORMS)]))
        yield name
        client.indices.delete(index=name)


@pytest.fixture
def tables(engine: Engine) -> Iterator[str]:
    """A name for a companion index that no other test uses."""
    name = f"ndd-tables-{uuid.uuid4().hex[:12]}"
    yield name
    with engine.client() as client:
        client.indices.delete(index=name, ignore_unavailable=True)


def count(engine: Engine, index: str, tables: str) -> FrequencyTable:
    with engine.client() as client:
        return TableCount(index=index, tables=tables).run(client)


def store(engine: Engine, index: str, tables: str, table: FrequencyTable) -> None:
    """Replace the table of a companion index, with the view of the one that is there."""
    counting = TableCount(index=index, tables=tables)
    with engine.client() as client:
        before = counting.stored(client)
        assert before is not None
        counting._store(client, replace(before, frequency_table=table))


def connected(connect: Connect, tables: str, url: str | None = None, **settings: Any) -> Caller:
    """A wrapped client whose clock stands still until it is set."""
    caller = connect(url, **{"min_similarity": "auto", "cache": False, "window": 100, "tables": tables, **settings})
    settings_of(caller).clock = lambda: 0.0
    return caller


def later(caller: Caller, seconds: float) -> None:
    settings_of(caller).clock = lambda: seconds


def table_in(answer: dict[str, Any]) -> str:
    name: str = answer["ndd"]["table"]
    return name


def test_every_client_decides_by_the_stored_table(
    engine: Engine, forms: str, tables: str, connect: Connect, proxy: Proxy
) -> None:
    """Each reads it with one request, and compares 32 ids."""
    table = count(engine, forms, tables)
    for _ in range(2):
        caller = connected(connect, tables, proxy.url)
        proxy.reset()
        for _ in range(2):
            answer = caller.search(index=forms, body=SEARCH)
            assert (table_in(answer), len(ids(answer)), answer["ndd"]["hidden"]) == (table.digest[:8], 5, 0)
        assert (len(proxy.lookups), len(probes(proxy)), len(counts(proxy))) == (1, 1, 0)
        later(caller, HOUR)
        assert table_in(caller.search(index=forms, body=SEARCH)) == table.digest[:8]
        assert (len(proxy.lookups), len(probes(proxy)), len(counts(proxy))) == (2, 2, 0)


def test_the_searches_of_an_msearch_decide_by_it(
    engine: Engine, forms: str, tables: str, connect: Connect, proxy: Proxy
) -> None:
    lines = [{"index": forms, "preference": "_local"}, SEARCH, {"index": forms}, {**SEARCH, "size": 4}]
    caller = connected(connect, tables, proxy.url, write_tables=True)
    for answer in caller.msearch(body=lines)["responses"]:
        assert (len(ids(answer)) in (4, 5), answer["ndd"]["degraded"]) == (True, None)
    assert not [one for one in proxy.passed if one.method == "PUT"]
    table = count(engine, forms, tables)
    caller = connected(connect, tables, proxy.url, write_tables=True)
    answers = caller.msearch(body=lines)["responses"] + caller.msearch(body=lines)["responses"]
    assert table.digest[:8] in {table_in(answer) for answer in answers[:2]}  # the other one is not held up
    assert {table_in(answer) for answer in answers[2:]} == {table.digest[:8]}


def test_a_refreshed_table_is_read_within_an_hour(engine: Engine, forms: str, tables: str, connect: Connect) -> None:
    table = count(engine, forms, tables)
    caller = connected(connect, tables)
    assert table_in(caller.search(index=forms, body=SEARCH)) == table.digest[:8]
    other = FrequencyTable(table.documents, table.values[:5], table.counts[:5], table.recipe)
    store(engine, forms, tables, other)
    assert table_in(caller.search(index=forms, body=SEARCH)) == table.digest[:8]
    later(caller, HOUR)
    assert table_in(caller.search(index=forms, body=SEARCH)) == other.digest[:8]


def test_a_caller_who_sees_other_documents_counts_an_own_table(
    engine: Engine, forms: str, tables: str, connect: Connect, proxy: Proxy
) -> None:
    table = count(engine, forms, tables)
    proxy.rewrite = may_read({"few": {"range": {"price": {"lt": 40}}}})
    caller = connected(connect, tables, proxy.url, write_tables=True)
    assert table_in(ask(caller, forms, SEARCH, x_user="few")) not in (table.digest[:8], "list")
    assert len(counts(proxy)) == 1
    assert table_in(ask(caller, forms, SEARCH, x_user="all")) == table.digest[:8]
    with engine.client() as client:  # the caller with few rights has not replaced it
        stored = TableCount(index=forms, tables=tables).stored(client)
    assert stored is not None
    assert stored.frequency_table == table


def test_the_table_of_a_caller_with_few_rights_is_replaced_by_that_of_one_who_sees_more(
    engine: Engine, forms: str, tables: str, connect: Connect, proxy: Proxy
) -> None:
    """An index that has grown looks the same: the stored table is of fewer documents."""
    proxy.rewrite = may_read({"few": {"range": {"price": {"lt": 40}}}})
    caller = connected(connect, tables, proxy.url, write_tables=True)
    of_few = table_in(ask(caller, forms, SEARCH, x_user="few"))
    of_all = table_in(ask(caller, forms, SEARCH, x_user="all"))
    assert of_few != of_all
    with engine.client() as client:
        stored = TableCount(index=forms, tables=tables).stored(client)
    assert stored is not None
    assert (stored.frequency_table.digest[:8], stored.view.total) == (of_all, FORMS)


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
def test_without_the_stored_table_each_client_counts(
    name: str, forms: str, tables: str, connect: Connect, proxy: Proxy
) -> None:
    caller = connected(connect, tables, proxy.url, client={"max_retries": 0}, write_tables=name == "not allowed")
    proxy.reset(lambda _, request: HARM[name] if tables in request.target else None)
    answer = caller.search(index=forms, body=SEARCH)
    assert (len(ids(answer)), answer["ndd"]["hidden"], answer["ndd"]["degraded"]) == (5, 0, None)
    assert len(counts(proxy)) == 1
    assert table_in(answer) not in (None, "list")


def test_the_first_client_that_may_write_stores_its_table(
    engine: Engine, forms: str, tables: str, connect: Connect, proxy: Proxy
) -> None:
    first = connected(connect, tables, proxy.url, write_tables=True)
    table = table_in(first.search(index=forms, body=SEARCH))
    other = connected(connect, tables, proxy.url, write_tables=True)
    assert table_in(other.search(index=forms, body=SEARCH)) == table
    assert len(counts(proxy)) == 1
    assert named(f"/{forms}") == forms
    with engine.client() as client:
        stored = TableCount(index=forms, tables=tables).stored(client)
        everything = client.indices.get(index="ndd-t*")
    assert stored is not None
    assert stored.frequency_table.digest[:8] == table
    assert tables not in everything  # patterns do not match it
    settings_of(other).now = lambda: stored.counted + 25 * 3600
    later(other, HOUR)
    proxy.reset()
    assert table_in(other.search(index=forms, body=SEARCH)) == table
    assert len(counts(proxy)) == 1
    with engine.client() as client:
        again = TableCount(index=forms, tables=tables).stored(client)
    assert again is not None
    assert again.counted == stored.counted + 25 * 3600


def test_of_two_clients_that_count_at_once_both_use_the_table_that_was_stored_first(
    engine: Engine, forms: str, tables: str, connect: Connect, proxy: Proxy
) -> None:
    """The second client's look-up came before the first client's table was stored."""
    stored = count(engine, forms, tables)
    other = FrequencyTable(stored.documents, stored.values[:5], stored.counts[:5], stored.recipe)
    store(engine, forms, tables, other)
    caller = connected(connect, tables, proxy.url, write_tables=True)
    nothing = b'{"took": 1, "_shards": {"total": 1, "failed": 0}, "hits": {"hits": []}}'
    first: list[int] = []

    def too_early(_: int, request: Passed) -> Harm | None:
        if tables in request.target and not first:
            first.append(1)
            return Harm(status=200, body=nothing)
        return None

    proxy.reset(too_early)
    assert table_in(caller.search(index=forms, body=SEARCH)) == other.digest[:8]
    assert len(samples(proxy)) == 1


@pytest.mark.parametrize("seed", range(2))
def test_pages_of_one_stream_are_decided_by_one_table(
    seed: int, engine: Engine, forms: str, tables: str, connect: Connect, redis_url: str
) -> None:
    """Four clients with their own state are asked for pages at random, while the table changes."""
    rng, size = random.Random(seed), 20
    common = count(engine, forms, tables)
    rare = FrequencyTable(common.documents, common.values[:0], common.counts[:0], common.recipe)
    prefix = uuid.uuid4().hex
    caches = [ndd.RedisCache(redis_url, prefix=prefix, seconds=600.0, budget=20.0) for _ in range(4)]
    callers = [connected(connect, tables, strategy="one_phase", window=20, cache=cache) for cache in caches]
    body, now = {"query": MATCH, "size": size, "sort": ["price"]}, 0.0
    pages: dict[int, dict[str, Any]] = {}
    for step in range(50):
        if step % 5 == 4:
            store(engine, forms, tables, (rare, common)[step // 5 % 2])
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


def test_the_commands_store_a_table(
    engine: Engine, forms: str, tables: str, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--engine", engine.family, engine.url, forms, "--tables", tables]
    assert main(["count", *where, "--show"]) == 1
    assert main(["count", *where]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith(f"common values in {FORMS} documents")
    assert main(["count", *where, "--show", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    main(["doctor", *where, "--count"])
    assert shown["digest"][:8] in capsys.readouterr().out
    assert main(["backfill", *where, "--fields", "title,body", "--count"]) == 0
    assert f"table {shown['digest'][:8]}" in capsys.readouterr().out
    assert main(["count", *where, "--recipe", "w5-k128-v1"]) == 2
    assert "none of its documents has a sketch" in capsys.readouterr().err


def test_a_document_that_is_damaged_is_no_table() -> None:
    table = FrequencyTable(10.0, np.array([3, 5], np.int32), np.array([4.0, 5.0]), RECIPE.id)
    stored = StoredTable(table, View(frozenset({"a"}), 10), 1.5)
    whole = document("/b,a", SketchField(), stored)
    assert read_document({"_source": json.loads(json.dumps(whole))}, RECIPE.id) == stored
    assert whole["target"] == "a,b"
    for name, value in (
        ("version", 2),
        ("digest", "0"),
        ("table", {**whole["table"], "counts": [1.0]}),
        ("table", {**whole["table"], "counts": [4.0, 6.0]}),
        ("view", {}),
        ("counted", None),
    ):
        assert read_document({"_source": {**whole, name: value}}, RECIPE.id) is None
    assert read_document({"_source": whole}, "w5-k128-v1") is None
    assert read_document({}, RECIPE.id) is None
