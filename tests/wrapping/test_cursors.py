"""Cursors on real servers: pages while documents are written and deleted, by several clients, through `pages`."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.errors import CursorExpired, CursorUnusable
from ndd_search.search.rest.mapping import mapping_properties
from tests.engines.find import Engine
from tests.wrapping.conftest import Caller, Connect, body_of, bulk
from tests.wrapping.proxy import Harm, Proxy

pytestmark = pytest.mark.one_kind_of_client

SEARCH: dict[str, Any] = {"query": {"match": {"body": "market"}}, "sort": [{"place": "asc"}], "size": 7}
TEXTS = 30
WORDS = [f"word{number}" for number in range(500)]


def document(place: int, text: int) -> dict[str, Any]:
    """A document of one of 30 texts; no two of these are alike."""
    words = random.Random(text).choices(WORDS, k=80)
    rare = {"half": place // 20, "desk": f"desk{place % 3}"} if place % 2 else {}
    fields = {"place": place, "site": f"site{place % 2}", **rare}
    return {"_id": f"{text}-{place}", "body": " ".join([*words, "market"]), **fields}


def written(index: str, engine: Engine, client: Any, found: list[dict[str, Any]]) -> None:
    acts = [{"_index": index, **one} for one in found]
    bulk(engine, client, list(ndd.with_sketches(acts, fields=["body"])))


@pytest.fixture
def filled(engine: Engine, index: str) -> Iterator[list[dict[str, Any]]]:
    """An index of three shards with 90 documents, three of each text, in any order."""
    if engine.name == "opensearch2":
        pytest.skip("OpenSearch orders points in time since 3.3")
    rng = random.Random(5)
    found = [document(place, rng.randrange(TEXTS)) for place in range(100, 190)]
    properties = {**mapping_properties(), "place": {"type": "integer"}, "site": {"type": "keyword"}}
    properties |= {"half": {"type": "integer"}, "desk": {"type": "keyword"}}
    with engine.client() as client:
        body = {"settings": {"number_of_shards": 3}, "mappings": {"properties": properties}}
        client.indices.create(index=index, body=body)
        written(index, engine, client, found)
        yield found


def shown(answer: dict[str, Any]) -> list[str]:
    return [hit["_id"] for hit in answer["hits"]["hits"]]


def leaders(found: list[dict[str, Any]], *fields: str) -> list[str]:
    """The first document of each text, and of each value of the fields."""
    first: dict[tuple[str, ...], str] = {}
    for one in sorted(found, key=lambda one: int(one["place"])):
        first.setdefault((one["_id"].partition("-")[0], *(one[name] for name in fields)), one["_id"])
    return list(first.values())


def page_by_page(caller: Caller, **given: Any) -> list[dict[str, Any]]:
    """All the pages that `pages` gives, with `for` or with `async for`."""
    pages = ndd.pages(caller.client, **given)

    async def collect() -> list[dict[str, Any]]:
        return [body_of(page) async for page in pages]

    return caller.run(collect()) if caller.asynchronous else [body_of(page) for page in pages]


def test_pages_are_those_of_the_moment_when_the_first_was_made_whatever_is_written_meanwhile(
    engine: Engine, index: str, filled: list[dict[str, Any]], connect: Connect
) -> None:
    cursor: Any = True
    found, totals = [], []
    with engine.client() as writer:
        while cursor:
            caller = connect(window=10, cursor_key="secret", frequency_table=False)  # another process each time
            answer = caller.search(index=index, body={**SEARCH, "ndd": {"cursor": cursor}})
            found += shown(answer)
            totals.append(answer["hits"]["total"]["value"])
            cursor = answer["ndd"]["cursor"]
            assert len(shown(answer)) == 7 or cursor is None
            assert all(len(hit["sort"]) == 1 for hit in answer["hits"]["hits"])
            number = len(totals)
            written(index, engine, writer, [document(number, number), document(200 + number, 100 + number)])
            for id in (leaders(filled)[-number], leaders(filled)[number]):
                writer.delete(index=index, id=id, refresh=True)
    assert found == leaders(filled)
    assert all(total > 7 * number for number, total in enumerate(totals[:-1], 1))  # a paginator goes on
    assert totals[-1] == len(found)


def test_the_groups_of_a_cursor_are_as_exact_as_its_total(
    index: str, filled: list[dict[str, Any]], connect: Connect
) -> None:
    options = {"cursor": True, "total": "groups"}
    caller, count = connect(window=10, cursor_key="secret", frequency_table=False), len(leaders(filled))
    first = caller.search(index=index, body={**SEARCH, "ndd": options})
    second = caller.search(index=index, body={**SEARCH, "ndd": {**options, "cursor": first["ndd"]["cursor"]}})
    for answer in (first, second):
        assert answer["hits"]["total"] == {"value": count, "relation": "eq"}
        assert answer["ndd"]["unique"] == {"value": count, "relation": "eq", "low": count, "high": count}


@pytest.mark.parametrize("ordered", [True, False])
def test_the_pages_of_an_iterator_hold_every_text_once(
    ordered: bool, index: str, filled: list[dict[str, Any]], connect: Connect
) -> None:
    body = SEARCH if ordered else {name: value for name, value in SEARCH.items() if name != "sort"}
    answers = page_by_page(connect(window=10), index=index, body=body)
    ids = [id for answer in answers for id in shown(answer)]
    assert len(ids) == len(leaders(filled))
    assert {id.partition("-")[0] for id in ids} == {id.partition("-")[0] for id in leaders(filled)}
    if ordered:
        assert ids == leaders(filled)
    else:
        assert not any("sort" in hit for answer in answers for hit in answer["hits"]["hits"])
        assert answers[0]["hits"]["max_score"] is not None
    one = connect(window=100, cache=False).search(index=index, body={**body, "size": 50})
    assert sorted(id.partition("-")[0] for id in shown(one)) == sorted(id.partition("-")[0] for id in ids)


def test_guards_and_modes_hold_over_pages(index: str, filled: list[dict[str, Any]], connect: Connect) -> None:
    caller = connect(window=10)
    guarded = page_by_page(caller, index=index, body={**SEARCH, "ndd": {"guards": ["same:site"]}})
    assert [id for answer in guarded for id in shown(answer)] == leaders(filled, "site")
    annotated = page_by_page(caller, index=index, body={**SEARCH, "ndd": {"mode": "annotate"}})
    hits = [hit for answer in annotated for hit in answer["hits"]["hits"]]
    assert [hit["_id"] for hit in hits] == [one["_id"] for one in sorted(filled, key=lambda one: int(one["place"]))]
    named = {hit["_id"]: hit["fields"]["ndd.duplicate_of"][0] for hit in hits if "fields" in hit}
    first = {id.partition("-")[0]: id for id in leaders(filled)}
    assert named == {
        one["_id"]: first[one["_id"].partition("-")[0]] for one in filled if one["_id"] not in first.values()
    }


def test_sorts_by_fields_that_many_documents_lack_lose_no_document(
    index: str, filled: list[dict[str, Any]], connect: Connect
) -> None:
    """OpenSearch leaves out hits after such a value, or fails, if it does not count all hits."""
    caller = connect(min_similarity="identical", mode="annotate", window=10)
    for sort in (["half"], [{"half": "desc"}], ["desk"]):
        body = {**SEARCH, "sort": sort, "size": 9, "track_total_hits": False}
        answers = page_by_page(caller, index=index, body=body)
        assert sorted(id for answer in answers for id in shown(answer)) == sorted(one["_id"] for one in filled), sort
        assert not any("total" in answer["hits"] for answer in answers)


def test_a_point_in_time_is_freed_at_the_end_and_when_an_iteration_stops(
    index: str, filled: list[dict[str, Any]], connect: Connect
) -> None:
    caller = connect(window=10)
    whole = page_by_page(caller, index=index, body=SEARCH)
    pages = ndd.pages(caller.client, index=index, body=SEARCH)

    async def first_of() -> dict[str, Any]:
        iterator = pages.__aiter__()
        answer = body_of(await anext(iterator))
        await iterator.aclose()
        return dict(answer)

    if caller.asynchronous:
        stopped = caller.run(first_of())
    else:
        iterator = iter(pages)
        stopped = body_of(next(iterator))
        iterator.close()
    for last in (whole[-2], stopped):
        with pytest.raises(CursorExpired):
            caller.search(index=index, body={**SEARCH, "ndd": {"cursor": last["ndd"]["cursor"]}})


def test_an_engine_that_opens_no_further_point_in_time_gives_the_first_page_without_a_cursor(
    index: str, filled: list[dict[str, Any]], connect: Connect, proxy: Proxy
) -> None:
    """Pages that would end there are refused, for `pages` leaves none out.

    The proxy answers as OpenSearch does above its limit. The limit itself holds for a whole server, so for other tests.
    """
    caller = connect(proxy.url, window=10, frequency_table=False)
    refused = Harm(status=429, body=b'{"error": {"type": "search_phase_execution_exception"}, "status": 429}')
    opens = re.compile(r"/(_pit|_search/point_in_time)\b")
    proxy.reset(lambda _, request: refused if request.method == "POST" and opens.search(request.target) else None)
    body = {**SEARCH, "ndd": {"cursor": True, "total": "groups"}}
    answer = caller.search(index=index, body=body)
    filtered = caller.search(index=index, body=body, filter_path="hits.hits._id")
    numbers = {"cursor": True, "guards": ["numbers"]}
    both = caller.search(index=index, body={**SEARCH, "ndd": numbers})["ndd"]["degraded"]
    with pytest.raises(CursorUnusable, match="no further point in time"):
        page_by_page(caller, index=index, body=SEARCH)
    assert shown(answer) == leaders(filled)[:7]
    assert answer["hits"]["total"] == {"value": len(leaders(filled)), "relation": "eq"}
    assert answer["ndd"]["cursor"] is None
    assert "no further point in time" in answer["ndd"]["degraded"]
    assert "no further point in time" in both
    assert "hits without stored numbers stand alone" in both
    assert filtered["hits"] == {"hits": [{"_id": id} for id in shown(answer)]}
    assert filtered["ndd"]["degraded"] == answer["ndd"]["degraded"]


def test_pages_need_a_wrapped_client(connect: Connect) -> None:
    with pytest.raises(TypeError, match="wrapped"):
        ndd.pages(connect(wrapped=False).client, index="news", body=SEARCH)


def test_pages_after_an_empty_cursor_do_not_begin_again(connect: Connect) -> None:
    """A token that was stored as an empty text is an error, not the first page once more."""
    caller = connect()
    pages = ndd.pages(caller.client, index="news", body=SEARCH, cursor="")
    with pytest.raises(CursorUnusable, match="it is empty"):
        caller.run(anext(aiter(pages))) if caller.asynchronous else next(iter(pages))


def test_pages_and_explanations_of_a_search_that_is_to_be_left_alone_are_refused(connect: Connect) -> None:
    caller = connect()
    with pytest.raises(CursorUnusable, match="leave it out"):
        ndd.pages(caller.client, index="news", body={**SEARCH, "ndd": False})
    with pytest.raises(TypeError, match="must be an object of options"):
        ndd.pages(caller.client, index="news", body={**SEARCH, "ndd": "drop"}).explain("1")


def test_a_cursor_goes_on_where_a_window_is_longer_than_an_index_allows(
    engine: Engine, index: str, filled: list[dict[str, Any]], connect: Connect
) -> None:
    with engine.client() as client:
        client.indices.put_settings(index=index, body={"index": {"max_result_window": 12}})
    answers = page_by_page(connect(window=50), index=index, body=SEARCH)
    assert [id for answer in answers for id in shown(answer)] == leaders(filled)
