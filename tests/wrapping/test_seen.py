"""What was shown before, in searches of real servers."""

from __future__ import annotations

from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.search.rest.mapping import mapping_properties
from tests.engines.find import Engine
from tests.wrapping.conftest import Connect, Library, bulk
from tests.wrapping.library import documents, mapping, text_of
from tests.wrapping.test_searches import MATCH

pytestmark = pytest.mark.one_kind_of_client


def ids(answer: dict[str, Any]) -> list[str]:
    return [hit["_id"] for hit in answer["hits"]["hits"]]


def test_hits_that_resemble_what_was_seen_are_not_shown_again(library: Library, connect: Connect) -> None:
    """The ten searches of an agent show ten different pages; what was passed over is listed."""
    caller, plain = connect(window=50), connect(wrapped=False)
    body: dict[str, Any] = {"query": MATCH, "size": 5}
    every = plain.search(index=library.news, body={**body, "size": 500})
    seen: list[Any] = []
    stories: list[str] = []
    for _ in range(4):
        answer = caller.search(index=library.news, body={**body, "ndd": {"seen": seen}})
        seen += answer["hits"]["hits"]
        stories += ids(answer)
    assert answer["ndd"]["cache"] == "off"
    assert stories == ids(caller.search(index=library.news, body={**body, "size": 20}))
    listed = answer["ndd"]["seen"]
    assert {one["_id"] for one in listed} >= set(stories[:15])
    assert all(stories[one["item"]].split("-")[0] == one["_id"].split("-")[0] for one in listed)
    texts = {one["_id"]: text_of(one) for one in documents()}
    given = {
        "texts": [texts[id] for id in stories[:5]],
        "sketches": [ndd.sketch(texts[id]).tolist() for id in stories[:5]],
        "ids": [{"_id": id} for id in stories[:5]],
    }
    for form, items in given.items():
        assert ids(caller.search(index=library.news, body={**body, "ndd": {"seen": items}})) == stories[5:10], form
    with ndd.options(seen=given["ids"]):
        second = caller.search(index=library.news, body={**body, "from": 5})
        assert ids(second) == stories[10:15]
        assert ids(caller.msearch(body=[{"index": library.news}, body])["responses"][0]) == stories[5:10]
    annotate = {"seen": given["ids"], "mode": "annotate", "window": 500}
    marked = caller.search(index=library.news, body={**body, "size": 500, "ndd": annotate})
    assert sorted(ids(marked)) == sorted(ids(every))
    fields = {hit["_id"]: hit.get("fields", {}) for hit in marked["hits"]["hits"]}
    found = {id: own["ndd.seen"] for id, own in fields.items() if "ndd.seen" in own}
    assert found == {id: [item] for item, id in enumerate(stories[:5])}
    demoted = {"seen": given["ids"], "mode": "demote", "window": 500}
    moved = caller.search(index=library.news, body={**body, "size": 500, "ndd": demoted})
    assert sorted(ids(moved)) == sorted(ids(every))
    last = [hit["_id"] for hit in moved["hits"]["hits"] if "ndd.seen" in hit.get("fields", {})]
    assert ids(moved)[-len(last) :] == last
    assert set(stories[:5]) <= set(last)
    for wrong in ("a text", [3], [{"id": "1"}], ["x"] * 1001):
        with pytest.raises((TypeError, ValueError), match="seen"):
            caller.search(index=library.news, body={**body, "ndd": {"seen": wrong}})


def test_ids_that_are_given_as_texts_are_told(library: Library, connect: Connect) -> None:
    """ "Not what I saw", with plain ids: they are read as texts, and hide nothing."""
    caller = connect(window=50)
    body: dict[str, Any] = {"query": MATCH, "size": 5}
    first = ids(caller.search(index=library.news, body=body))
    told = caller.search(index=library.news, body={**body, "ndd": {"seen": [text_of(documents()[0]), *first]}})
    assert 'items [1, 2, 3, 4, 5] of "seen" are read as texts of a few words' in ndd.info(told).warnings[0]
    named = caller.search(index=library.news, body={**body, "ndd": {"seen": [{"_id": id} for id in first]}})
    assert ndd.info(named).warnings == ()
    assert not {*ids(named)} & {*first}
    absent = caller.search(index=library.news, body={**body, "ndd": {"seen": [{"_id": first[0]}, {"_id": "nobody"}]}})
    assert 'items [1] of "seen" are not in the index' in ndd.info(absent).warnings[0]
    alone = caller.search(index=library.news, body={**body, "ndd": {"seen": [{"_id": "nobody"}]}})
    assert (ids(alone), alone["ndd"]["seen"]) == (first, [])
    nothing = caller.search(index=library.news, body={**body, "ndd": {"seen": []}})
    assert (ids(nothing), nothing["ndd"]["seen"]) == (first, [])


def test_pages_of_a_cursor_show_nothing_that_was_seen(library: Library, connect: Connect) -> None:
    if library.engine.name == "opensearch2":
        pytest.skip("OpenSearch orders points in time since 3.3")
    caller = connect(window=50)
    body: dict[str, Any] = {"query": MATCH, "size": 5}
    stories = ids(caller.search(index=library.news, body={**body, "size": 20}))
    seen, cursor = [{"_id": id} for id in stories[:5]], True
    for start in (5, 10):
        page = caller.search(index=library.news, body={**body, "ndd": {"seen": seen, "cursor": cursor}})
        assert ids(page) == stories[start : start + 5]
        cursor = page["ndd"]["cursor"]


def test_documents_without_a_sketch_are_known_by_their_id_and_missing_ones_hide_nothing(
    library: Library, connect: Connect, index: str, engine: Engine
) -> None:
    with engine.client() as client:
        client.indices.create(index=index, body=mapping(engine))
        text = "the market opened late on Friday after a fire in the engine room of the ferry"
        acts = [{"_index": index, "_id": id, "body": f"{text} {id * 3}"} for id in "ab"]
        sketched = list(ndd.with_sketches([{"_index": index, "_id": "c", "body": "the market closed early"}], ["body"]))
        bulk(engine, client, [*acts, *sketched])
    caller = connect(cache=False)
    search: dict[str, Any] = {"query": MATCH, "size": 5}
    seen = [{"_index": index, "_id": "a"}, {"_index": index, "_id": "gone"}, {"_index": f"{index}-gone", "_id": "b"}]
    answer = caller.search(index=index, body={**search, "ndd": {"seen": seen}})
    assert (sorted(ids(answer)), answer["ndd"]["seen"]) == (
        ["b", "c"],
        [{"_index": index, "_id": "a", "item": 0, "similarity": 1.0}],
    )
    elsewhere = caller.search(index=index, body={**search, "ndd": {"seen": [{"_index": "_Wrong", "_id": "a"}]}})
    assert (sorted(ids(elsewhere)), elsewhere["ndd"]["degraded"]) == (["a", "b", "c"], None)
    foreign = {"seen": [{"_index": f"{index}/_doc#", "_id": "a"}]}  # a POST to this path would write a document
    named = caller.search(index=index, body={**search, "ndd": foreign})
    assert (sorted(ids(named)), named["ndd"]["degraded"]) == (["a", "b", "c"], None)


def test_a_document_beyond_a_filtered_alias_is_not_compared(engine: Engine, index: str, connect: Connect) -> None:
    """Whatever index the item names: it is looked up through the alias that is searched."""
    text = "the market opened late on Friday after a fire in the engine room of the ferry to the islands"
    found = [{"_index": index, "_id": id, "team": team, "body": text} for id, team in (("mine", "a"), ("theirs", "b"))]
    other = [{"_index": index, "_id": "other", "team": "a", "body": "the market closed early for the holidays of May"}]
    properties = {**mapping_properties(), "team": {"type": "keyword"}}
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": properties}})
        bulk(engine, client, list(ndd.with_sketches([*found, *other], ["body"])))
        client.indices.put_alias(index=index, name=f"{index}-a", body={"filter": {"term": {"team": "a"}}})
    caller = connect(cache=False)
    for seen, shown in (("theirs", ["mine", "other"]), ("mine", ["other"])):
        body = {"query": MATCH, "ndd": {"seen": [{"_index": index, "_id": seen}]}}
        assert sorted(ids(caller.search(index=f"{index}-a", body=body))) == shown
