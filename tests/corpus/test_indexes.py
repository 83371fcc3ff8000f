"""An index as a collection, and groups that are written into one."""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.corpus.document_batches import IndexSource
from ndd_search.corpus.group_marks import mark
from ndd_search.corpus.spark_index import SparkIndex
from ndd_search.errors import IndexUnusable
from ndd_search.indexing import concurrent_updates
from ndd_search.indexing.backfill import Backfill
from ndd_search.indexing.concurrent_updates import Rewriter
from ndd_search.indexing.doctor import Doctor
from ndd_search.indexing.rate_and_retries import Retry
from tests.backfilling import fill, writing
from tests.corpus import made
from tests.corpus.made import DOCUMENTS
from tests.corpus.test_commands import run


def test_an_index_is_a_collection(engine: Any, index: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of either engine, read as it is at one moment; the address of an index is a source of the commands."""
    with engine.client() as client:
        lines = [line for one in DOCUMENTS for line in ({"index": {"_index": index, "_id": one["id"]}}, one)]
        client.bulk(body=lines, refresh=True)
        corpus = ndd.Corpus.read(IndexSource(client, index), text="body")
        groups = corpus.groups(0.5)
        assert len(groups) == 3
        assert {one["_id"] for one in groups.unique_documents()} <= {"a", "b", "c", "d"}
        few = ndd.Corpus.read(IndexSource(client, index, {"ids": {"values": ["c"]}}), text="body")
        assert few.ids == ["c"]
        unread = {"properties": {"long": {"type": "object", "enabled": False}}}
        client.indices.put_mapping(index=index, body=unread)
        exact = '{"x": 12345678901234567890.5, "y": [1e400, 12345678901234567890123]}'
        client.index(index=index, id="exact", body=f'{{"body": "a", "long": {exact}}}', refresh=True)
        one = ndd.Corpus.read(IndexSource(client, index, {"ids": {"values": ["exact"]}}), text="body")
        one.groups().unique(tmp_path / "unique.jsonl")
        assert f'"long": {exact}' in (tmp_path / "unique.jsonl").read_text()
    assert run("groups", f"{engine.url}/{index}", "--text", "body", "--min-similarity", "0.5") == 0
    assert "5 documents in 4 groups" in capsys.readouterr().out


def test_groups_are_those_of_paging_through_an_index_in_the_same_order(engine: Any, index: str) -> None:
    """The decision is the same, and the frequency table of a small index counts all of its documents, too."""
    texts = made.texts(80, seed=3, frames=2, copies=0.5)
    documents = [{"id": f"{number:03}", "body": text, "place": number} for number, text in enumerate(texts)]
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": ndd.indexing.mapping_properties()}})
        lines = []
        for one in ndd.with_sketches([{"_id": one["id"], **one} for one in documents], fields=["body"]):
            lines += [{"index": {"_index": index, "_id": one.pop("_id")}}, one]
        client.bulk(body=lines, refresh=True)
        groups = ndd.Corpus.read(documents, text="body").groups()
        expected = {row["document"]: row["group"] for row in groups.rows()}
        wrapped = ndd.wrap(client, mode="annotate", window=100)
        found = {}
        for start in range(0, 80, 40):
            body = {"query": {"match_all": {}}, "sort": ["place"], "from": start, "size": 40, "ndd": True}
            for hit in wrapped.search(index=index, body=body)["hits"]["hits"]:
                found[hit["_id"]] = hit.get("fields", {}).get("ndd.duplicate_of", [hit["_id"]])[0]
        ndd.wrap(wrapped, enabled=False)
    assert len(set(expected.values())) < 60
    assert found == expected


def test_groups_are_written_into_an_index_only_where_they_changed_and_taken_away_again(
    engine: Any, index: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with engine.client() as client:
        lines = [line for one in DOCUMENTS for line in ({"index": {"_index": index, "_id": one["id"]}}, one)]
        client.bulk(body=lines, refresh=True)
        groups = ndd.Corpus.read(IndexSource(client, index), text="body").groups(0.5)
        assert groups.write_back(client, index).written == 4
        assert groups.write_back(client, index).written == 0
        client.indices.refresh(index=index)
        found = client.search(index=index, body={"collapse": {"field": "ndd.group"}, "size": 10})
        assert len(found["hits"]["hits"]) == 3
        marks = {hit["_source"]["ndd"]["group_size"] for hit in found["hits"]["hits"]}
        assert marks == {1, 2}
        client.index(index=index, id="c", body={**DOCUMENTS[2], "ndd": {"recipe": "mine"}}, refresh=True)
        own = {"ndd": {"group": "blue", "group_size": "12", "leads": "true"}}  # the engine converts them
        client.index(index=index, id="own", body=own, refresh=True)
        groups.write(tmp_path / "groups.jsonl")
        assert run("mark", tmp_path / "groups.jsonl", f"{engine.url}/{index}", "--json") == 0
        assert json.loads(capsys.readouterr().out) == {"written": 1}
        assert client.get(index=index, id="own")["_source"] == own
        assert client.get(index=index, id="c")["_source"]["ndd"]["recipe"] == "mine"


def test_a_document_whose_text_changed_since_it_was_grouped_is_not_marked_but_told(
    engine: Any, index: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    groups, target = tmp_path / "groups.parquet", f"{engine.url}/{index}"
    with engine.client() as client:
        fill(client, index, DOCUMENTS)
        assert run("groups", target, "--text", "body", "--min-similarity", "0.5", "--out", groups) == 0
        client.index(index=index, id="b", body={"id": "b", "body": "now about something else"}, refresh=True)
        assert run("mark", groups, target) == 3
        told = "not changed: 1 document (b): the text has changed since it was grouped; make the groups again"
        assert told in capsys.readouterr().err
        assert "ndd" not in client.get(index=index, id="b")["_source"]
        assert client.get(index=index, id="a")["_source"]["ndd"]["group_size"] == 2


def test_a_mark_of_another_text_is_found_by_doctor_and_removed_by_a_backfill(engine: Any, index: str) -> None:
    with engine.client() as client:
        fill(client, index, DOCUMENTS)
        Backfill(index=index, fields=["body"]).run(client)
        ndd.Corpus.read(IndexSource(client, index), text="body").groups(0.5).write_back(client, index)
        fitting = {"doc": {"ndd": SketchField().encode(ndd.sketch("now about something else"), ndd.Recipe())}}
        client.update(index=index, id="b", body={"doc": {"body": "now about something else"}})
        client.update(index=index, id="b", body=fitting, refresh=True)  # the sketch is right, the mark is not
        (found,) = (one for one in Doctor(index=index, fields=["body"]).examine(client).findings if "mark" in one.what)
        assert found.what == "1 of 4 checked sketches, with their keys and marks, are not of the text in body: b"
        assert Backfill(index=index, fields=["body"], recheck=True).run(client).tally.changed == 1
        client.indices.refresh(index=index)
        assert client.get(index=index, id="b")["_source"]["ndd"]["group"] is None
        assert client.get(index=index, id="a")["_source"]["ndd"]["group"] in ("a", "b")
        findings = Doctor(index=index, fields=["body"]).examine(client).findings
        assert not [one for one in findings if "mark" in one.what]


@pytest.mark.newest_servers
def test_marking_reads_the_index_once_and_only_twice_while_others_write_all_the_time(engine: Any, index: str) -> None:
    documents = {str(number): {"body": f"text {number}"} for number in range(500)}
    rows = [{"document": key, "group": "0", "size": 500} for key in documents]
    over = threading.Event()

    def write(client: Any) -> None:
        for key in cycle([*documents][:20]):
            if over.is_set():
                return
            client.index(index=index, id=key, body={"body": "changed"})

    with engine.client() as client:
        fill(client, index, [{"id": key, **document} for key, document in documents.items()])
        with writing(engine, index, write):
            try:
                tally = mark(client, index, rows)
            finally:
                over.set()
        assert tally.seen < 3 * len(documents)
        assert mark(client, index, rows).seen == len(documents)
        client.indices.refresh(index=index)
        marked = client.count(index=index, body={"query": {"term": {"ndd.group": "0"}}})
        assert marked["count"] == len(documents)


def test_a_document_that_others_change_each_time_it_is_read_is_told(
    engine: Any, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @dataclass(frozen=True)
    class Beside:
        """Marks documents that somebody else writes between reading and updating."""

        search: Mapping[str, Any]

        def changes(self, hits: Any) -> list[Mapping[str, Any] | str | None]:
            for hit in hits:
                client.index(index=index, id=hit["_id"], body={"body": "another"})
            return [{"doc": {"ndd": {"group": "0"}}} for _ in hits]

    monkeypatch.setattr(concurrent_updates, "ROUNDS", 2)
    with engine.client() as client:
        fill(client, index, DOCUMENTS)
        rewriter = Rewriter(client, index, size=10, slices=1, retry=Retry(), on_progress=lambda count: None)
        tally = rewriter.follow(Beside({"query": {"ids": {"values": ["a"]}}, "_source": True}))
    assert (tally.seen, tally.written, tally.refused.total()) == (3, 0, 1)


class Refusing:
    """The real client; its bulks refuse the first updates of one document, and others may write meanwhile."""

    def __init__(self, client: Any, refused: str, times: int, meanwhile: Callable[[], Any] = lambda: None) -> None:
        self._client, self._refused, self._times, self._meanwhile = client, refused, times, meanwhile
        self.tries = 0  # to update that document

    def __copy__(self) -> Any:
        return copy.copy(self._client)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def bulk(self, body: list[dict[str, Any]]) -> Any:
        error = {"update": {"status": 400, "error": {"type": "refused"}}}
        pairs = list(zip(body[::2], body[1::2], strict=True))
        is_it = [pair[0]["update"]["_id"] == self._refused for pair in pairs]
        self.tries += any(is_it)
        refuses = [one and self.tries <= self._times for one in is_it]
        taken = [line for pair, no in zip(pairs, refuses, strict=True) if not no for line in pair]
        items = iter(self._client.bulk(body=taken)["items"] if taken else ())
        self._meanwhile()
        return {"items": [error if no else next(items) for no in refuses]}


@pytest.mark.parametrize(("times", "tries", "refused"), [(1, 2, 0), (99, 2, 1)])
def test_a_document_refused_once_is_tried_again_and_no_more_often_than_it_helps(
    engine: Any, index: str, times: int, tries: int, refused: int
) -> None:
    with engine.client() as client:
        fill(client, index, DOCUMENTS)
        refusing = Refusing(client, DOCUMENTS[0]["id"], times)
        tally = mark(refusing, index, [{"document": one["id"], "group": "g", "size": 9} for one in DOCUMENTS])
        assert (tally.written, tally.refused.total()) == (len(DOCUMENTS) - refused, refused)
        assert refusing.tries == tries


def test_a_document_that_several_passes_leave_alone_counts_once(engine: Any, index: str) -> None:
    """Also one that the first pass refuses counts as it is after the last one."""
    with engine.client() as client:
        fill(client, index, [{"id": "1", "body": "a", "ndd": "blue"}, {"id": "2", "body": "b"}])
        written: list[str] = []

        def meanwhile() -> None:
            if not written:
                for id, source in (("1", {"body": "c", "ndd": "blue"}), ("2", {"body": "d"})):
                    written.append(id)
                    client.index(index=index, id=id, body=source)

        class Colouring:
            """Leaves blue documents alone."""

            search: Mapping[str, Any] = {"query": {"match_all": {}}, "_source": True}

            def changes(self, hits: Any) -> list[Any]:
                colours = [hit["_source"].get("ndd") for hit in hits]
                of = {"blue": "it is blue", "red": None}
                return [of.get(colour, {"doc": {"ndd": "red"}}) for colour in colours]

        refusing = Refusing(client, "2", 1, meanwhile)
        rewriter = Rewriter(refusing, index, size=10, slices=1, retry=Retry(), on_progress=lambda count: None)
        tally = rewriter.follow(Colouring())
    assert (tally.written, tally.refused.total()) == (1, 0)
    assert [*tally.left.values()] == [["1"]]


def test_a_document_that_an_update_would_change_otherwise_gets_no_mark(
    engine: Any, index: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The engine would round its numbers, or replace the user's own value."""
    exact, own = '{"body": "a", "long": {"x": 3.14159265358979323846}}', {"body": "b", "ndd": "blue"}
    unread = {"dynamic": False, "properties": {"body": {"type": "text"}}}
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": unread})
        client.index(index=index, id="exact", body=exact)
        client.index(index=index, id="own", body=own, refresh=True)
        ndd.Corpus.read(IndexSource(client, index), text="body").groups().write(tmp_path / "groups.jsonl")
        assert run("mark", tmp_path / "groups.jsonl", f"{engine.url}/{index}") == 3
        told = capsys.readouterr().err
        assert "not changed: 1 document (exact): a number has more digits" in told
        assert "not changed: 1 document (own): its field ndd holds a value of your own" in told
        assert client.get(index=index, id="own")["_source"] == own
        assert client.get(index=index, id="exact")["_version"] == 1


def test_an_index_whose_updates_would_lose_fields_is_not_marked(engine: Any, index: str) -> None:
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"_source": {"excludes": ["body"]}}})
        client.index(index=index, id="a", body=DOCUMENTS[0], refresh=True)
        groups = ndd.Corpus.read([DOCUMENTS[0]], text="body").groups()
        with pytest.raises(IndexUnusable, match="_source leaves out body"):
            groups.write_back(client, index)
        assert client.count(index=index, body={"query": {"match": {"body": "minister"}}})["count"] == 1


def test_groups_of_other_documents_than_those_of_the_index_are_an_error(engine: Any, index: str) -> None:
    with engine.client() as client:
        client.index(index=index, id="7", body=DOCUMENTS[0], refresh=True)
        groups = ndd.Corpus.read(DOCUMENTS, text="body").groups()
        with pytest.raises(IndexUnusable, match="it holds none of the documents of the groups, such as 'a'"):
            groups.write_back(client, index)
        client.index(index=index, id="a", body=DOCUMENTS[0], refresh=True)
        assert groups.write_back(client, index).written == 1


def test_an_index_that_was_marked_first_gets_its_sketches_and_keeps_its_marks(engine: Any, index: str) -> None:
    with engine.client() as client:
        for one in DOCUMENTS:
            client.index(index=index, id=one["id"], body={"body": one["body"]}, refresh=True)
        ndd.Corpus.read(IndexSource(client, index), text="body").groups(0.5).write_back(client, index)
        client.indices.refresh(index=index)
        marked = client.get(index=index, id="a")["_source"]
        assert dict(next(iter(ndd.with_sketches([marked], "body"))))["ndd"]["recipe"] == ndd.Recipe().id
        for written in (4, 0):
            report = Backfill(index=index, fields=["body"]).run(client)
            assert (report.tally.written, report.tally.left, report.remaining) == (written, {}, 0)
        after = client.get(index=index, id="a")["_source"]["ndd"]
        assert after == {
            **marked["ndd"],
            **SketchField().encode(ndd.sketch(DOCUMENTS[0]["body"]), ndd.Recipe(), text=["body"]),
        }
        assert len(after["sketch"]) > 5


def test_an_index_on_spark_that_no_task_would_read_is_refused() -> None:
    """With no slices the collection was empty."""
    with pytest.raises(ValueError, match="slices must be at least 1, got 0"):
        SparkIndex(engine="opensearch", url="http://localhost:9200", index="news", slices=0)
    with pytest.raises(ValueError, match="engine must be one of elasticsearch, opensearch, got 'solr'"):
        SparkIndex(engine="solr", url="http://localhost:9200", index="news")
