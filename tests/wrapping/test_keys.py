"""group_by and max_per on real servers: pages by from and size, pages of a cursor, and merged answers."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.search.rest.mapping import mapping_properties
from tests.engines.find import Engine
from tests.wrapping.conftest import Caller, Connect, body_of, bulk

pytestmark = pytest.mark.one_kind_of_client

SEARCH: dict[str, Any] = {"query": {"match": {"body": "market"}}, "sort": [{"place": "asc"}], "size": 5}
WORDS = [f"word{number}" for number in range(900)]


def book(place: int) -> dict[str, Any]:
    """A document: every fifth has no sketch, every third no isbn; nine editions of four sources."""
    words = random.Random(place // 2 if place % 7 == 1 else 1000 + place).choices(WORDS, k=50)
    isbn = {"isbn": f"isbn{place % 9}"} if place % 3 else {}
    return {"place": place, "source": f"site{place % 4}", "body": " ".join([*words, "market"]), **isbn}


@pytest.fixture(scope="module")
def books(engine: Engine) -> Iterator[str]:
    index = f"ndd-books-{uuid.uuid4().hex[:8]}"
    keyword = {"type": "keyword"}
    properties = {**mapping_properties(), "place": {"type": "integer"}, "isbn": keyword, "source": keyword}
    documents = [{"_index": index, "_id": str(place), **book(place)} for place in range(60)]
    with engine.client() as client:
        body = {"settings": {"number_of_shards": 2}, "mappings": {"properties": properties}}
        client.indices.create(index=index, body=body)
        sketched = list(ndd.with_sketches([one for one in documents if one["place"] % 5], fields=["body"]))
        bulk(engine, client, [*sketched, *(one for one in documents if not one["place"] % 5)])
        yield index
        client.indices.delete(index=index)


def by_list(places: Sequence[int] = range(60), **settings: Any) -> list[str]:
    """The ids that `collapse` shows of the same documents, ranked so; no sketch where the index has none."""
    hits = [{**book(place), **({} if place % 5 else {"body": None})} for place in places]
    page = ndd.collapse(hits, text="body", size=60, min_similarity=0.6, **settings)
    return [str(places[group.rank]) for group in page.groups]


@pytest.mark.parametrize("settings", [{"group_by": "isbn"}, {"max_per": ["source:3"]}])
def test_pages_are_those_of_the_list_and_nothing_is_lost(
    settings: dict[str, Any], books: str, connect: Connect, engine: Engine
) -> None:
    caller = connect(window=10, **settings)
    expected = by_list(**settings)
    answers = [caller.search(index=books, body={**SEARCH, "from": start}) for start in range(0, 60, 5)]
    check(answers, expected)
    assert answers[-1]["hits"]["total"]["value"] == len(expected)
    whole = caller.search(index=books, body={**SEARCH, "ndd": {"window": 60}})["hits"]["hits"]
    fields = [hit.get("fields", {}) for hit in whole]
    assert not any({"isbn", "source"} & one.keys() for one in fields)  # only we asked for them
    shares = {str(copy["fields"].get("ndd.shares")) for hit in whole for copy in copies(hit)}
    assert shares >= {"['isbn']" if "group_by" in settings else "['source']"}
    if engine.name != "opensearch2":  # it has no cursors
        check(list_of(caller, books), expected)


@pytest.mark.parametrize("settings", [{"group_by": "isbn"}, {"max_per": ["source:3"]}])
@pytest.mark.parametrize("cache", [True, False])
def test_so_are_those_of_a_result_that_begins_with_hits_without_a_sketch(
    settings: dict[str, Any], cache: bool, books: str, connect: Connect
) -> None:
    caller = connect(window=5, cache=cache, **settings)
    search = {**SEARCH, "sort": [{"ndd.smallest": {"order": "asc", "missing": "_first"}}, "place"]}
    every = caller.search(index=books, body={**search, "size": 60, "ndd": False})["hits"]["hits"]
    places = [int(hit["_id"]) for hit in every]
    assert not any(place % 5 for place in places[:12])
    expected = by_list(places, **settings)
    answers = [caller.search(index=books, body={**search, "from": start}) for start in range(0, 60, 5)]
    check(answers, expected)
    assert not any(one["ndd"]["degraded"] for one in answers)


def test_fields_of_nested_documents_are_compared_and_not_shown(engine: Engine, index: str, connect: Connect) -> None:
    author = {"name": {"type": "keyword"}, "born": {"type": "integer"}, "prize": {"type": "nested"}}
    properties = {**mapping_properties(), "by": {"type": "nested", "properties": author}}
    names = [["Ann", "Bob"], ["Cid"], ["Bob", "Dot"], [], ["Cid"]]
    documents = [
        {
            "_index": index,
            "_id": str(place),
            **book(place),
            "by": [{"name": name, "born": 1900 + place, "prize": [{"of": name}]} for name in authors],
        }
        for place, authors in enumerate(names)
    ]
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": properties}})
        bulk(engine, client, list(ndd.with_sketches(documents, fields=["body"])))
    caller = connect()
    for asked in ({}, {"fields": ["by.born"]}):
        search = {**SEARCH, **asked}
        plain = {hit["_id"]: hit for hit in caller.search(index=index, body={**search, "ndd": False})["hits"]["hits"]}
        for field in ("by.name", "by.prize.of.keyword"):
            answer = caller.search(index=index, body={**search, "ndd": {"group_by": field}})
            assert [hit["_id"] for hit in answer["hits"]["hits"]] == ["0", "1", "3"], field
            assert answer["ndd"]["warnings"] == []
            for hit in answer["hits"]["hits"]:
                assert hit.get("fields") == plain[hit["_id"]].get("fields")


def list_of(caller: Caller, index: str) -> list[dict[str, Any]]:
    """The pages of a cursor."""
    answers, cursor = [], True
    while cursor:
        answers.append(caller.search(index=index, body={**SEARCH, "ndd": {"cursor": cursor}}))
        cursor = answers[-1]["ndd"]["cursor"]
    return answers


def check(answers: list[dict[str, Any]], expected: list[str]) -> None:
    """Each document is shown once, or listed under a hit, or in `late`."""
    hits = [hit for one in answers for hit in one["hits"]["hits"]]
    assert [hit["_id"] for hit in hits] == expected
    listed = [copy for hit in hits for copy in copies(hit)]
    late = {copy["_id"] for one in answers for copy in one["ndd"]["late"]}
    named = [copy["_id"] for copy in listed if copy["_id"] not in late]
    assert sorted([*expected, *named, *late], key=int) == [str(place) for place in range(60)]


def copies(hit: dict[str, Any]) -> list[dict[str, Any]]:
    inner = hit.get("inner_hits", {"near_duplicates": {"hits": {"hits": []}}})
    found: list[dict[str, Any]] = inner["near_duplicates"]["hits"]["hits"]
    return found


def test_merge_groups_by_a_key_too(books: str, engine: Engine) -> None:
    with engine.client() as client:
        search = {**SEARCH, "size": 60, "docvalue_fields": ["ndd.sketch", "ndd.recipe"]}
        answer = body_of(client.search(index=books, body=search))
    page = ndd.merge({"one": [answer]}, by="round_robin", size=60, min_similarity=0.6, group_by="isbn")
    assert [hit["_id"] for hit in page["hits"]["hits"]] == by_list(group_by="isbn")
