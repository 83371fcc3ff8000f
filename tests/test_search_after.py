"""Pages of a caller's own search_after over a small engine, compared with a model of sets."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndd_search.errors import CursorUnusable
from ndd_search.middleware.driver import Driver
from ndd_search.middleware.settings import settings_of
from ndd_search.rest.answers import Answer
from ndd_search.rest.request import Request
from tests.test_cursor import DOCUMENTS, SEARCH, Document, duplicates_of, hit_of, model

UNIQUE, TIED = [{"score": "desc"}, {"place": "asc"}], [{"score": "desc"}]


class Engine:
    """Sorts documents by score and place, and continues after the values of the sort that it is given."""

    def __init__(self, documents: dict[str, Document]) -> None:
        self.documents = documents

    def send(self, request: Request) -> Answer:
        body, count = request.body, len(request.body["sort"])
        rows = [(-score, place, id, text) for place, (id, (score, text)) in enumerate(self.documents.items())]
        given = body.get("search_after")
        after = None if given is None else (-given[0], *given[1:])
        found = [row for row in sorted(rows) if after is None or row[:count] > after][: body["size"]]
        hits = [hit_of(id, -negative, place, text) for negative, place, id, text in found]
        hits = [{**hit, "sort": hit["sort"][:count]} for hit in hits]
        total = {"value": len(rows), "relation": "eq"}
        return Answer({"took": 1, "hits": {"total": total, "max_score": None, "hits": hits}})


def read(
    documents: dict[str, Document], sort: list[Any], sizes: list[int], **settings: Any
) -> tuple[list[str], list[str]]:
    """The ids shown and the ids named, of pages that a program reads in a loop of its own."""
    shown: list[str] = []
    named: list[str] = []
    engine, token, pages = Engine(documents), True, 0
    body: dict[str, Any] = {**SEARCH, "sort": sort}
    while token:
        size = sizes[pages % len(sizes)]
        driver = Driver(settings_of(frequency_table=False, min_similarity=0.8, **settings))  # another process
        request = Request("POST", "/news/_search", {}, {}, {**body, "size": size, "ndd": {"search_after": token}})
        answer = driver.handle(request, engine.send).body
        hits = answer["hits"]["hits"]
        shown += [hit["_id"] for hit in hits]
        named += [copy["_id"] for hit in hits for copy in duplicates_of(hit)]
        named += [copy["_id"] for copy in answer["ndd"]["late"]]
        token, pages = answer["ndd"]["search_after"], pages + 1
        assert len(hits) == size or not token
        assert pages <= len(documents) + 1
        body["search_after"] = hits[-1]["sort"] if hits else None
    return shown, named


@given(DOCUMENTS, st.lists(st.integers(1, 7), min_size=1, max_size=4), st.sampled_from([3, 5, 20]))
def test_pages_show_what_one_window_would(found: list[Document], sizes: list[int], window: int) -> None:
    documents = {str(number): one for number, one in enumerate(found)}
    shown, named = read(documents, UNIQUE, sizes, window=window)
    expected, hidden = model(documents, 1)
    assert shown == expected
    assert sorted(named) == sorted(hidden)


@given(DOCUMENTS, st.lists(st.integers(1, 7), min_size=1, max_size=4), st.sampled_from([3, 5, 20]))
def test_equal_sort_values_lose_no_document(found: list[Document], sizes: list[int], window: int) -> None:
    documents = {str(number): one for number, one in enumerate(found)}
    expected, _ = model(documents, 1)
    with suppress(CursorUnusable):  # more of them than were fetched at a time
        shown, named = read(documents, TIED, sizes, window=window)
        assert set(shown) | set(named) == set(documents)
        assert set(shown) == set(expected)
        sketched = [id for id in shown if documents[id][1]]
        assert len(sketched) == len(set(sketched))


def test_a_hidden_hit_is_named_once_if_its_id_is_that_of_a_shown_hit_of_another_index() -> None:
    class TwoIndexes(Engine):
        def send(self, request: Request) -> Answer:
            answer = super().send(request)
            for hit in answer.hits:
                hit["_index"], hit["_id"] = hit["_id"].split("/")
            return answer

    engine = TwoIndexes({"news/1": (9, 1), "news/2": (8, 2), "news/3": (7, 3), "blogs/1": (6, 1)})
    driver = Driver(settings_of(frequency_table=False, min_similarity=0.8))
    body = {**SEARCH, "sort": UNIQUE, "size": 2, "ndd": {"search_after": True}}
    first = driver.handle(Request("POST", "/news,blogs/_search", {}, {}, body), engine.send).body
    assert [copy["_index"] for copy in duplicates_of(first["hits"]["hits"][0])] == ["blogs"]
    body |= {"search_after": first["hits"]["hits"][-1]["sort"], "ndd": {"search_after": first["ndd"]["search_after"]}}
    second = driver.handle(Request("POST", "/news,blogs/_search", {}, {}, body), engine.send).body
    assert [hit["_id"] for hit in second["hits"]["hits"]] == ["3"]
    assert second["ndd"]["late"] == []


def test_the_first_page_may_begin_anywhere_and_a_token_needs_its_search() -> None:
    documents = {str(number): (10 - number, 1 + number % 4) for number in range(10)}
    engine, driver = Engine(documents), Driver(settings_of(frequency_table=False, min_similarity=0.8))

    def page(**body: Any) -> dict[str, Any]:
        given = {**SEARCH, "sort": UNIQUE, "size": 2, **body}
        answer: dict[str, Any] = driver.handle(Request("POST", "/news/_search", {}, {}, given), engine.send).body
        return answer

    first = page(search_after=[8, 2], ndd={"search_after": True})
    assert [hit["_id"] for hit in first["hits"]["hits"]] == ["3", "4"]
    token = first["ndd"]["search_after"]
    jumped = page(search_after=[4, 6], ndd={"search_after": token})  # still compared with the hits shown
    assert [hit["_id"] for hit in jumped["hits"]["hits"]] == ["9"]
    assert jumped["ndd"]["search_after"] is None
    with pytest.raises(CursorUnusable, match="another search"):
        page(query={"match": {"body": "other"}}, ndd={"search_after": token})
    with pytest.raises(CursorUnusable, match="another search"):
        page(ndd={"cursor": token})
    with pytest.raises(TypeError, match="must be true or the token"):
        page(ndd={"search_after": 5})
    for after in (5, "82", {"score": 8}):  # a text would be read as a list of its characters
        with pytest.raises(TypeError, match="must be a list, the sort values of a hit"):
            page(search_after=after, ndd={"search_after": True})
