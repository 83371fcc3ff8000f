"""`copies` and `info` read every kind of page alike: lists, folders, passages, engines; also a search left alone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import ndd_search as ndd
from tests.ui.news import STORIES, documents
from tests.wrapping.conftest import Caller, Library


def ids_of(copies: list[Any]) -> list[tuple[Any, Any]]:
    return [(copy.of, copy.id) for copy in copies]


def test_a_list_a_folder_and_passages_tell_the_same(tmp_path: Path) -> None:
    """Each story stands for its copies, with their texts; a form of it that reads otherwise has a lower similarity."""
    pytest.importorskip("tantivy", reason="the embedded index needs tantivy")
    given = documents()
    page = ndd.collapse(given, text="body", size=len(STORIES))
    listed = {page.hits[n]["id"]: ndd.copies(group) for n, group in enumerate(page.groups)}
    assert {id: [given[copy.id]["id"] for copy in found] for id, found in listed.items()} == {
        **{"00": ["01", "02", "03"], "10": ["11", "12"], "20": ["21"], "30": [], "40": []},
    }
    passages = ndd.passages(given, text="body", contained=False)
    assert {one.id: [copy.id for copy in ndd.copies(one)] for one in passages} == {
        id: [given[copy.id]["id"] for copy in found] for id, found in listed.items()
    }
    with ndd.Index.open(tmp_path / "news.idx", text=["title", "body"]) as index:
        index.add(given)
        answer = index.search("climate")
        in_folder = {hit["_id"]: ndd.copies(hit) for hit in answer["hits"]["hits"]}
        counted = [ndd.copies(hit) for hit in index.search("climate", mode="count")["hits"]["hits"]]
    assert {id: sorted(copy.id for copy in found) for id, found in in_folder.items()} == {
        id: [given[copy.id]["id"] for copy in found] for id, found in listed.items()
    }
    assert all(
        copy.document["id"] == copy.id and 0 < copy.similarity <= 1 for found in in_folder.values() for copy in found
    )
    assert sorted((len(found), found.total) for found in counted) == [(0, 0), (0, 0), (0, 1), (0, 2), (0, 3)]
    for told in (ndd.info(page), ndd.info(passages), ndd.info(answer)):
        assert (told.collapsed, told.reason, told.examined, told.kept, told.hidden) == (True, "", 11, 5, 6)
    assert ndd.info(answer).unique == ndd.info(page).unique == {"value": 5, "relation": "eq", "low": 5, "high": 5}


def test_annotate_says_what_would_be_hidden(tmp_path: Path) -> None:
    """Of all examined hits their number, of those on the page also which hit each repeats; as grouping then does."""
    pytest.importorskip("tantivy", reason="the embedded index needs tantivy")
    given = documents()
    page = ndd.info(ndd.collapse(given, text="body", size=5, mode="annotate"))
    assert (page.would_hide, page.hidden, ids_of(list(page.repeats))) == (6, 0, [(0, 1), (0, 2), (0, 3)])
    with ndd.Index.open(tmp_path / "news.idx", text=["title", "body"]) as index:
        index.add(given)
        marked = ndd.info(index.search("climate", size=20, mode="annotate"))
        grouped = index.search("climate", size=20)
    assert marked.would_hide == ndd.info(grouped).hidden == 6
    assert sorted(ids_of(list(marked.repeats))) == sorted(
        pair for hit in grouped["hits"]["hits"] for pair in ids_of(ndd.copies(hit))
    )


def test_an_answer_of_an_engine_is_read_also_where_the_search_was_left_alone(library: Library, wrapped: Caller) -> None:
    """The reason is told to a search that asks to be collapsed; every other one gets the engine's own answer."""
    match: dict[str, Any] = {"query": {"match": {"body": "market"}}, "size": 5}
    answer = wrapped.search(index=library.news, body=match)
    told = ndd.info(answer)
    assert (told.collapsed, told.reason, told.block) == (True, "", answer["ndd"])
    listed = [copy for hit in answer["hits"]["hits"] for copy in ndd.copies(hit)]
    assert listed
    assert all(copy.id and copy.index == library.news and copy.document["body"] for copy in listed)
    plain: dict[str, Any] = {**match, "sort": ["_score", "_doc"], "search_after": [99.0, 0]}
    assert "ndd" not in wrapped.search(index=library.news, body=plain)
    assert "left alone, or did not go through" in ndd.info(wrapped.search(index=library.news, body=plain)).reason
    paging = ndd.info(wrapped.search(index=library.news, body={**plain, "ndd": True}))
    assert (paging.collapsed, paging.examined) == (False, 0)
    assert paging.reason == (
        "the search was left alone: it has a page of its own (scroll, pit, search_after, slice): use a cursor"
    )
    empty = ndd.info(wrapped.search(index=library.news, body={**match, "size": 0, "ndd": True}))
    assert empty.reason == "the search was left alone: its size is 0, so it shows no hits"
    named = {"query": {"ids": {"values": ["1"]}}, "ndd": {"mode": "drop"}}
    assert "it names documents by id" in ndd.info(wrapped.search(index=library.news, body=named)).reason


def test_what_is_neither_a_hit_nor_an_answer_is_told() -> None:
    answer: dict[str, Any] = {"hits": {"hits": []}}
    for whole in (answer, SimpleNamespace(body=answer)):  # as clients return it
        with pytest.raises(TypeError, match="copies takes one hit: for hit in answer"):
            ndd.copies(whole)
    with pytest.raises(TypeError, match="copies takes a hit of an answer, a group of a page, or a passage, got str"):
        ndd.copies("a text")
    with pytest.raises(TypeError, match="info takes the answer to a search or a page, got list"):
        ndd.info([])


def test_pages_of_an_asynchronous_client_are_no_list() -> None:
    elasticsearch = pytest.importorskip("elasticsearch")
    client = ndd.wrap(elasticsearch.AsyncElasticsearch("http://127.0.0.1:9"))
    with pytest.raises(TypeError, match="the client is asynchronous: async for page in pages"):
        list(ndd.pages(client, index="news", body={"query": {"match": {"body": "market"}}}))
