"""A text that somebody changed who knows nothing of sketches: what was stored for the old text shows soon, unasked."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.core.sketching.fits_text import misfits
from ndd_search.core.sketching.sketches import Lack, sketch_many
from ndd_search.indexing.backfill import Backfill
from ndd_search.indexing.doctor import Doctor
from ndd_search.indexing.with_sketches import sketch_fields
from ndd_search.search.flow.client_settings import settings_of
from ndd_search.search.rest.mapping import mapping_properties
from ndd_search.search.rest.read_request import Request
from tests.backfilling import fill
from tests.engines.find import Engine

OLD = "Ministers agreed on Friday to cut emissions from steel works by a third before the end of the decade."
NEW = "The home side scored twice in the last ten minutes to reach the final for the first time in forty years."


def document(id: str, text: str, **settings: Any) -> dict[str, Any]:
    return sketch_fields({"id": id, "title": f"Article {id}", "text": text}, ["title", "text"], **settings)


def values(document: dict[str, Any]) -> list[int]:
    return list(map(int, ndd.sketch(f"{document['title']}\n{document['text']}")))


@pytest.mark.newest_servers
def test_a_document_that_was_read_with_get_and_saved_has_the_sketch_of_its_new_text(engine: Engine, index: str) -> None:
    """Through any wrapped client, though nobody named the text fields: the stored sketch names them."""
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": mapping_properties()}})
        fill(client, index, [document(id, OLD) for id in ("index", "update", "bulk", "same")])
        marked = {"group": "7", "group_size": 2, "leads": True, "judged": ""}
        client.update(index=index, id="same", body={"doc": {"ndd": marked}}, refresh=True)
        ndd.wrap(client)

        def read(id: str) -> dict[str, Any]:
            return dict(client.get(index=index, id=id)["_source"])

        changed = {id: {**read(id), "text": f"{NEW} {id}"} for id in ("index", "update", "bulk")}
        client.index(index=index, id="index", body=changed["index"])
        client.update(index=index, id="update", body={"doc": changed["update"]})
        lines = {"index": {"_index": index, "_id": "bulk"}}, changed["bulk"]
        client.bulk(body="".join(f"{json.dumps(line)}\n" for line in lines))
        before = read("same")
        client.index(index=index, id="same", body={**before, "price": 3})
        for id in ("index", "update", "bulk"):
            found = read(id)
            assert found["ndd"]["sketch"] == values(found) == values(changed[id])
            assert found["ndd_keys"] == [f"{value:08x}" for value in values(found)[:8]]
        assert read("same") == {**before, "price": 3}


@pytest.mark.newest_servers
def test_a_sketch_that_a_plain_writer_left_behind_is_told_by_a_page_and_by_doctor_and_mended_by_backfill(
    engine: Engine, index: str
) -> None:
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": mapping_properties()}})
        fill(client, index, [document(str(number), f"{OLD} {number}") for number in range(1_500)])
        client.update(index=index, id="700", body={"doc": {"text": NEW}}, refresh=True)
        diagnosis = Doctor(index=index).examine(client)
        assert diagnosis.figures is not None
        assert diagnosis.figures.examples == ["700"]
        whole = Doctor(index=index, all=True).examine(client).figures
        assert whole is not None
        assert (whole.sampled, round((whole.wrong or 0) * 1_500), whole.examples) == (1_500, 1, ["700"])

        with engine.client() as searching:
            ndd.wrap(searching)

            def found(*ids: str, **options: Any) -> tuple[list[str], bool]:
                """The hits that are shown of some, and whether a warning names 700."""
                query: Any = {"bool": {"filter": {"terms": {"id": ids}}}}
                body: dict[str, Any] = {"query": query, "sort": [{"id.keyword": "asc"}]}
                page = searching.search(index=index, body={**body, "ndd": {"min_similarity": 0.7, **options}})
                warnings = [one for one in page["ndd"]["warnings"] if f"{index}/700;" in one]
                return [hit["_id"] for hit in page["hits"]["hits"]], bool(warnings)

            for options in ({}, {"cache": False}, {"cursor": True}, {}):
                assert found("1", "700", "900", **options) == (["1", "700"], True), "it is not hidden"
                assert found("700", "900", **options) == (["700", "900"], True), "and hides nothing"
            ndd.wrap(searching, mode="ids")  # anew: for a while, a search after one that found it reads all texts
            assert found("1", "700", "900") == (["1", "700"], True), "nor where copies are listed by id"
            ndd.wrap(searching)
            report = Backfill(index=index, fields=["title", "text"]).run(client)
            assert (report.tally.changed, report.remaining) == (1, 0)
            client.indices.refresh(index=index)
            assert found("1", "700", "900", cache=False) == (["1", "700"], False)
        assert Backfill(index=index, fields=["title", "text"]).run(client).tally.seen == 0
        assert Backfill(index=index, fields=["text"]).run(client).tally.changed == 1_500, "they were of other fields"


@pytest.mark.newest_servers
@pytest.mark.parametrize("options", [{}, {"window": 20}, {"mode": "drop"}])
@pytest.mark.parametrize("has_cursor", [False, True])
def test_all_pages_show_each_text_once_though_sketches_are_of_earlier_texts(
    engine: Engine, index: str, options: dict[str, Any], has_cursor: bool
) -> None:
    rng = random.Random(4)

    def drawn() -> str:
        return " ".join(f"w{rng.randrange(4000)}" for _ in range(80))

    texts = [drawn() for _ in range(20)]
    documents = [document(str(n), texts[n % 30] if n % 30 < 20 else drawn()) for n in range(120)]
    now = {one["id"]: one["text"] for one in documents} | {str(n): drawn() for n in rng.sample(range(120), 15)}
    with engine.client() as plain, engine.client() as client:
        plain.indices.create(index=index, body={"mappings": {"properties": mapping_properties()}})
        fill(plain, index, documents)
        for one in documents:
            if now[one["id"]] != one["text"]:
                plain.update(index=index, id=one["id"], body={"doc": {"text": now[one["id"]]}})
        plain.indices.refresh(index=index)
        ndd.wrap(client)
        shown, cursor = list[str](), has_cursor
        for start in range(0, 200, 10):
            paging = {"ndd": {**options, "cursor": cursor}} if has_cursor else {"ndd": options, "from": start}
            body = {"query": {"match": {"title": "article"}}, "sort": [{"id.keyword": "asc"}], "size": 10, **paging}
            page = client.search(index=index, body=body)
            shown += [now[hit["_id"]] for hit in page["hits"]["hits"]]
            cursor = page["ndd"].get("cursor")
            if not (cursor if has_cursor else page["hits"]["hits"]):
                break
    assert sorted(shown) == sorted(set(now.values()))


@pytest.mark.newest_servers
def test_a_page_judges_no_text_that_it_does_not_see_whole(engine: Engine, index: str) -> None:
    listed = sketch_fields({"id": "list", "title": ["One", "Two"], "text": OLD}, ["title", "text"])
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": mapping_properties()}})
        fill(client, index, [document("1", OLD), document("2", NEW), {**listed, "title": ["Two", "One"]}])
        ndd.wrap(client, cache=False)
        for source in (True, ["title", "ndd*"], {"excludes": ["text"]}, False):
            body: dict[str, Any] = {"query": {"match": {"text": "the"}}, "_source": source}
            assert client.search(index=index, body=body)["ndd"]["warnings"] == [], source


def test_a_source_compares_the_texts_whose_stored_sketches_are_of_others_and_says_so() -> None:
    """Such a hit is shown, not hidden under a copy of its earlier text, and hides copies of its own."""
    texts = [f"{OLD} {id}" for id in range(60)]
    rows = [{"id": id, "body": text, "sketch": ndd.sketch(text).tolist()} for id, text in enumerate(texts)]
    rows[0]["body"] = rows[57]["body"] = NEW

    def pages_of(hits: list[Any]) -> Any:
        return ndd.stream(lambda at, n: hits[at : at + n], text="body", sketch="sketch", min_similarity=0.7, window=50)

    for fetched, shown in ((rows[1:], [1, 57]), (rows, [0, 1]), (rows[1:57], [1])):
        page = pages_of(fetched).page()
        assert [hit["id"] for hit in page] == shown
        told = [one for one in page.info.warnings if "earlier text" in one]
        assert len(told) == (57 in shown or 0 in shown)
    assert "2, the first is hit 0" in pages_of(rows).page(5).info.warnings[0]


def test_the_texts_of_a_page_are_compared_up_to_a_bound() -> None:
    texts = [f"{OLD} {number} " * 200 for number in range(60)]  # 1,300,000 characters
    sketches: list[Any] = [ndd.sketch(text) for text in texts]
    order, read = range(59, -1, -1), list[int]()

    def texts_at(places: Sequence[int]) -> list[str]:
        read.extend(places)
        return [texts[place] for place in places]

    assert misfits(sketches, order, texts_at, ndd.Recipe()) == {}
    assert read == [*order]
    assert misfits(sketch_many(texts), order, texts_at, ndd.Recipe()) == {}
    for place, stored in ((59, sketches[1]), (58, Lack.EMPTY), (57, ndd.sketch(NEW))):
        others = [*sketches[:place], stored, *sketches[place + 1 :]]
        found: Any = misfits(others, order, texts_at, ndd.Recipe())
        assert {at: one.tolist() for at, one in found.items()} == {place: sketches[place].tolist()}
    assert misfits([ndd.sketch(NEW), *sketches[1:]], order, texts_at, ndd.Recipe()) == {}, "beyond the bound"
    for lack in (Lack.MISSING, Lack.FOREIGN, Lack.MALFORMED):
        assert misfits([lack], [0], texts_at, ndd.Recipe()) == {}
    assert misfits([], [], texts_at, ndd.Recipe()) == {}


@pytest.mark.parametrize("as_text", [False, True])
def test_a_carried_sketch_stays_if_it_fits_or_cannot_be_judged(as_text: bool) -> None:
    """A request with it is sent unchanged: the same object."""
    writes = settings_of().writes
    fitting = document("1", OLD)
    foreign = {**fitting, "text": NEW, "ndd": {**fitting["ndd"], "recipe": "w3-k64-v99"}}
    unnamed = {**fitting, "text": NEW, "ndd": {name: value for name, value in fitting["ndd"].items() if name != "text"}}
    own = {"text": NEW, "ndd": {"pancakes": 3}}
    for one in (fitting, foreign, unnamed, own, {"text": NEW}, {"text": 'about "ndd"'}):
        request = Request("PUT", "/news/_doc/1", {}, {}, json.dumps(one) if as_text else one)
        assert writes(request) is request
    stale = {**fitting, "text": NEW}
    made = writes(Request("PUT", "/news/_doc/1", {}, {}, json.dumps(stale) if as_text else stale)).body
    made = json.loads(made) if as_text else made
    assert made["ndd"]["sketch"] == values(stale)
    assert made.keys() == stale.keys()
