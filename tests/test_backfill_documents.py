"""A backfill and its removal keep all other content of documents: numbers, the user's own fields, marks."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import urllib.request
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.core.exact_numbers import holds_written, json_with_written
from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.core.text.numbers import number_signature
from ndd_search.corpus.group_marks import mark
from ndd_search.errors import IndexUnusable
from ndd_search.indexing.doctor import Doctor
from ndd_search.indexing.rate_and_retries import Retry
from ndd_search.indexing.scan import ODD, snapshot, with_json
from ndd_search.indexing.sketch_or_remove import SketchDocuments
from ndd_search.indexing.with_sketches import sketch_fields
from ndd_search.search.rest.mapping import mapping_properties
from ndd_search.search.writing.sketch_or_mark_stale import SketchSettings
from tests.backfilling import TEXT, backfill, fill
from tests.command_line import command, run
from tests.engines.find import Engine
from tests.indexed import RECIPE, stored

OTHER = "The home side scored twice in the last ten minutes to reach the final for the first time in forty years."
CHANGED = [
    "3.14159265358979323846",
    "1e400",
    "1e-9999999999999999999",
    "123456789012345678.5",
    '{"a": [[0.10000000000000000001]]}',
]
KEPT = [
    "0.1",
    "1.50",
    "1e22",
    "-0.0",
    "12345678901234567890123",
    "0.30000000000000004",
    "2.2250738585072014e-308",
    '"1e400"',
    "null",
]


def put(engine: Engine, index: str, documents: dict[str, str], encoding: str = "utf-8") -> None:
    """Index documents as raw JSON text, not serialised by a client."""
    lines = [line for key, text in documents.items() for line in (json.dumps({"index": {"_id": key}}), text)]
    request = urllib.request.Request(
        f"{engine.url}/{index}/_bulk?refresh=true",
        data="".join(f"{line}\n" for line in lines).encode(encoding),
        headers={"content-type": "application/x-ndjson"},
    )
    with urllib.request.urlopen(request) as answer:
        assert not json.load(answer)["errors"]


def source(engine: Engine, index: str, key: str) -> str:
    """The `_source` of a document as the engine keeps it."""
    with urllib.request.urlopen(f"{engine.url}/{index}/_source/{key}") as answer:
        text: str = answer.read().decode()
        return text


def numbers(engine: Engine, index: str) -> None:
    """An index of documents with numbers that an update changes (c0, c1, ...) and that it keeps (k0, k1, ...)."""
    with engine.client() as client:
        fields = {"text": {"type": "text"}, "data": {"type": "object", "enabled": False}}
        client.indices.create(index=index, body={"mappings": {"properties": fields}})
    given = {f"{kind}{i}": number for kind, these in (("c", CHANGED), ("k", KEPT)) for i, number in enumerate(these)}
    put(engine, index, {key: f'{{"text": "{TEXT}", "data": {{"number": {number}}}}}' for key, number in given.items()})


@pytest.mark.newest_servers
def test_a_document_of_as_many_levels_as_an_engine_takes_is_read(engine: Engine, index: str) -> None:
    """Python 3.11 reads them only with a higher limit than its own."""
    with engine.client() as client:
        fields = {"text": {"type": "text"}, "data": {"type": "object", "enabled": False}}
        client.indices.create(index=index, body={"mappings": {"properties": fields}})
    deep = '{"a":' * 990 + "1" + "}" * 990
    put(engine, index, {"deep": f'{{"text": "{TEXT}", "data": {deep}}}', "flat": '{"text": "a"}'})
    done = run("backfill", engine.url, index, "--fields", "text", process=True)
    assert "2 documents written" in done.stdout


def test_a_document_with_comments_that_no_client_can_read_is_left_alone_and_told(engine: Engine, index: str) -> None:
    """Engines keep them in `_source`; the others on its page are done, also with a sketch of the same text."""
    commented = f'{{"text": "{TEXT}", /* why */ "n": 1}}'
    documents = {str(number): f'{{"text": "{TEXT}", "n": {number}}}' for number in range(12)}
    put(engine, index, {**documents, "first": commented, "8": commented, "open": f"{commented}// end"})
    for _ in range(2):
        done = run("backfill", engine.url, index, "--fields", "text", code=3)
        assert "3 left" in done.stdout
        assert "not changed: 3 documents (" in done.stderr
        assert "its JSON holds comments, which an update would drop" in done.stderr
    assert source(engine, index, "8") == source(engine, index, "first") == commented
    assert json.loads(source(engine, index, "11"))["ndd"]["recipe"] == RECIPE.id
    found = json.loads(run("corpus", "unique", f"{engine.url}/{index}", "--text", "text").stdout)
    assert found["text"] == TEXT


def test_documents_behind_some_that_are_deleted_meanwhile_are_read_beside_one_with_comments(
    engine: Engine, index: str
) -> None:
    """Also where a search may have no more hits than a page."""
    with engine.client() as client:
        settings = {"number_of_shards": 1, "index.max_result_window": 10}
        client.indices.create(index=index, body={"settings": settings})
        put(engine, index, {str(n): f'{{"text": "{TEXT}"{" /* why */" * (10 <= n < 20)}}}' for n in range(30)})
        with snapshot(client, index, Retry()) as now:
            pages = now.pages({"query": {"match_all": {}}}, 10)
            read = next(pages)
            for hit in range(10, 20):
                client.delete(index=index, id=str(hit))
            client.indices.refresh(index=index)
            read += [hit for page in pages for hit in page]
    assert sorted(int(hit["_id"]) for hit in read) == [*range(10), *range(20, 30)]


def test_a_document_with_bytes_that_are_not_utf_8_is_left_alone_and_told(engine: Engine, index: str) -> None:
    """Engines store them in fields that they do not read; the others are done, and checked as usual."""
    documents = {str(number): f'{{"text": "{TEXT}", "n": {number}}}' for number in range(12)}
    odd = '{"text": "' + TEXT + '", "raw": {"x": "caf\xc0\x80"}}'
    with engine.client() as client:
        unread = {"raw": {"type": "object", "enabled": False}, **mapping_properties()}
        client.indices.create(index=index, body={"mappings": {"properties": unread}})
    put(engine, index, {**documents, "first": odd, "8": odd}, "latin-1")
    for _ in range(2):
        done = run("backfill", engine.url, index, "--fields", "text", code=3)
        assert "2 left" in done.stdout
        assert "not changed: 2 documents (" in done.stderr
        assert "it holds bytes that are not UTF-8: index it again" in done.stderr
    assert json.loads(source(engine, index, "11"))["ndd"]["recipe"] == RECIPE.id
    assert "11 of 14" not in run("doctor", engine.url, index, "--all", code=1).stdout


def test_a_document_with_numbers_that_an_update_would_change_is_left_alone_and_told(engine: Engine, index: str) -> None:
    """Of every document all is kept but the sketch: where the engine could not keep a number, the document is left as
    it is, byte for byte, and named.
    """
    numbers(engine, index)
    before = {key: source(engine, index, key) for key in [f"c{i}" for i in range(len(CHANGED))]}
    done = run("backfill", engine.url, index, "--fields", "text", "--slices", 1, code=3)
    assert "not changed: 5 documents (c0, c1, c2, c3, c4): a number has more digits than the engine" in done.stderr
    assert f"{len(KEPT)} documents written" in done.stdout
    assert {key: source(engine, index, key) for key in before} == before
    for i, number in enumerate(KEPT):
        after = json.loads(source(engine, index, f"k{i}"))
        assert repr(after["data"]["number"]) == repr(json.loads(number))
        assert after["ndd"]["recipe"] == RECIPE.id


def test_removing_sketches_leaves_such_documents_alone_too(engine: Engine, index: str) -> None:
    """--remove writes documents with the same care as the backfill."""
    numbers(engine, index)
    with engine.client() as client:
        client.indices.put_mapping(index=index, body={"properties": mapping_properties()})
    made = json.dumps(sketch_fields({"text": TEXT}, "text")["ndd"])
    put(engine, index, {"c0": f'{{"ndd": {made}, "data": {CHANGED[0]}}}', "k0": f'{{"ndd": {made}, "data": 0.5}}'})
    before = source(engine, index, "c0")
    done = run("backfill", engine.url, index, "--remove", "ndd", "--yes", code=3)
    assert "not changed: 1 document (c0): a number has more digits" in done.stderr
    assert source(engine, index, "c0") == before
    assert json.loads(source(engine, index, "k0")).get("ndd") is None


def test_the_reader_keeps_such_numbers_through_a_wrapped_client_and_changes_no_client(
    engine: Engine, index: str
) -> None:
    """The backfill bypasses the wrapping of a client and leaves it unchanged."""
    numbers(engine, index)
    with engine.client() as client:
        ndd.wrap(client)
        hits = with_json(client, json_with_written).search(index=index, body={"size": 100})["hits"]["hits"]
        assert {hit["_id"] for hit in hits if holds_written(hit["_source"])} == {f"c{i}" for i in range(len(CHANGED))}
        answer = client.search(index=index, body={"size": 100})
        assert not any(holds_written(hit["_source"]) for hit in answer["hits"]["hits"])
        report = backfill(client, index, ["text"])
        assert [len(ids) for ids in report.tally.left.values()] == [len(CHANGED)]
        assert report.remaining == len(CHANGED)


def test_no_document_is_lost_beside_one_with_comments_whose_id_other_indexes_have_too(
    engine: Engine, index: str
) -> None:
    """By scroll, documents of the page are read again by their ids."""
    names = [f"{index}-{letter}" for letter in "abcd"]
    with engine.client() as client:
        try:
            for name in names:
                put(engine, name, {str(number): f'{{"text": "{TEXT}"}}' for number in range(6)})
            put(engine, names[3], {"3": f'{{"text": "{TEXT}" /* why */}}'})
            with snapshot(client, f"{index}-*", Retry()) as now:
                read = [hit for page in now.pages({"query": {"match_all": {}}}, 5) for hit in page]
        finally:
            client.indices.delete(index=",".join(names))
    assert {(hit["_index"], hit["_id"]) for hit in read} == {(name, str(n)) for name in names for n in range(6)}
    assert [(hit["_index"], hit["_id"]) for hit in read if ODD in hit] == [(names[3], "3")]


def test_a_field_that_is_not_mapped_as_sketches_are_is_never_removed(engine: Engine, index: str) -> None:
    """--remove of an object that happens to have a subfield `recipe` is refused before anything is written."""
    dish = {"id": "1", "text": TEXT, "food": {"recipe": "Take two eggs.", "minutes": 5}}
    with engine.client() as client:
        fill(client, index, [dish])
        done = run("backfill", engine.url, index, "--remove", "food", "--yes", code=2)
        assert "food is not mapped as sketches are" in done.stderr
        assert stored(client, index)["1"]["_source"] == dish


def test_only_objects_that_hold_a_sketch_are_removed(engine: Engine, index: str) -> None:
    """If the mapping fits, the content of each document decides."""
    mapping = {"food": {"properties": {"sketch": {"type": "integer"}, "recipe": {"type": "keyword"}}}}
    documents = [
        {"id": "theirs", "food": {"recipe": "pancakes", "sketch": 7}},
        {"id": "ours", **sketch_fields({"text": TEXT}, "text", field="food", keys=8)},
        {"id": "keys", **sketch_fields({"text": TEXT}, "text", field="food"), "food_keys": "front door"},
    ]
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": mapping}})
        fill(client, index, documents)
        done = run("backfill", engine.url, index, "--remove", "food", "--yes", code=3)
        assert "not changed: 1 document (theirs): its field food is not a sketch" in done.stderr
        kept = {
            key: {k: v for k, v in hit["_source"].items() if v is not None}
            for key, hit in stored(client, index).items()
        }
        assert kept == {
            "theirs": documents[0],
            "ours": {"id": "ours", "text": TEXT},
            "keys": {"id": "keys", "text": TEXT, "food_keys": "front door"},
        }


def test_objects_that_hold_marks_alone_are_removed_too_or_named(engine: Engine, index: str) -> None:
    """`corpus mark` writes marks into documents that have no sketch, also where no document has one."""
    with engine.client() as client:
        for texts in ([TEXT, None], [None, None]):
            client.indices.delete(index=index, ignore_unavailable=True)
            fill(client, index, [{"id": "a", "text": texts[0]}])
            if texts[0]:
                backfill(client, index, ["text"])
            fill(client, index, [{"id": "b", "text": texts[1]}])
            mark(client, index, [{"document": name, "group": "a", "size": 2} for name in "ab"])
            report = backfill(client, index, [], remove=True)
            assert (report.tally.written, report.remaining) == (2, 0)
            assert [hit["_source"].get("ndd") for hit in stored(client, index).values()] == [None, None]
        mark(client, index, [{"document": "b", "group": "b", "size": 1}])
        client.update(index=index, id="b", body={"doc": {"ndd": {"own": 1}}}, refresh=True)
        report = backfill(client, index, [], remove=True)
        assert report.remaining == 1
        assert [*report.tally.left.values()] == [["b"]]


def test_a_text_in_a_dotted_key_beside_an_object_is_sketched_whole(engine: Engine, index: str) -> None:
    """An update with a dotted key leaves the object there, and the engine searches both."""
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": mapping_properties()}})
        ndd.wrap(client, indexes={index: {"text": ["page.body"]}})
        client.index(index=index, id="1", body={"page": {"body": TEXT}}, refresh=True)
        client.update(index=index, id="1", body={"doc": {"page.body": OTHER}}, refresh=True)
        ndd.wrap(client, enabled=False)
        assert stored(client, index)["1"]["_source"]["ndd"]["recipe"] == "stale"
        for _ in range(2):
            assert backfill(client, index, ["page.body"], recheck=True).remaining == 0
            found = stored(client, index)["1"]["_source"]
            assert (found["page"], found["page.body"]) == ({"body": TEXT}, OTHER)
            assert found["ndd"]["sketch"] == ndd.sketch(f"{OTHER}\n{TEXT}").tolist()


def test_a_key_with_dots_is_a_part_of_the_object_of_its_path(engine: Engine, index: str) -> None:
    """What the engine searches as parts of one object makes its sketch: in writes, backfills and the doctor."""
    parts, whole = {"page.body": OTHER, "page": {"head": TEXT}}, ndd.sketch(f"{OTHER}\n{TEXT}").tolist()
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": mapping_properties()}})
        ndd.wrap(client, indexes={index: {"text": ["page"]}})
        client.index(index=index, id="whole", body=parts)
        client.index(index=index, id="dotted", body={"page.body": OTHER, "page.head": TEXT})
        client.index(index=index, id="update", body={"page": {"head": TEXT}})
        client.update(index=index, id="update", body={"doc": {"page.body": OTHER}}, refresh=True)
        ndd.wrap(client, enabled=False)
        for field, text in (("page.body", OTHER), ("page.head", TEXT)):
            body = {"query": {"match": {field: {"query": text, "operator": "and"}}}}
            assert len(client.search(index=index, body=body)["hits"]["hits"]) == 3
        found = {id: hit["_source"] for id, hit in stored(client, index).items()}
        assert found["update"] == {**parts, "ndd": {**found["update"]["ndd"], "recipe": "stale"}, "ndd_keys": []}
        assert found["whole"]["ndd"]["sketch"] == whole
        assert found["dotted"]["ndd"]["sketch"] == whole
        assert backfill(client, index, ["page"]).tally.written == 1
        assert stored(client, index)["update"]["_source"]["ndd"]["sketch"] == whole
        assert backfill(client, index, ["page"], recheck=True).tally.written == 0
        findings = Doctor(index=index, fields=["page"]).examine(client).findings
        assert {one.level for one in findings} <= {"ok", "note"}, findings


@pytest.mark.newest_servers
def test_removing_asks_first_and_is_refused_where_there_is_nobody_to_ask(engine: Engine, index: str) -> None:
    """Without a terminal and without --yes nothing is removed, and on a terminal only after "y"."""
    with engine.client() as client:
        fill(client, index, [{"id": "1", "text": TEXT}])
        backfill(client, index, ["text"])
        done = run("backfill", engine.url, index, "--remove", "ndd", code=2)
        assert f"1 document of {index} would lose ndd: add --yes" in done.stderr
        assert "ndd" in stored(client, index)["1"]["_source"]
        for answer, code in (("n", 1), ("", 1), ("y", 0)):
            assert stored(client, index)["1"]["_source"].get("ndd")
            ours, theirs = pty.openpty()
            with os.fdopen(ours, "w") as keyboard, os.fdopen(theirs) as terminal:
                keyboard.write(f"{answer}\n")
                keyboard.flush()
                words = command("backfill", engine.url, index, "--remove", "ndd")
                asked = subprocess.run(words, stdin=terminal, capture_output=True, text=True, check=False, timeout=120)
            assert f"1 document of {index} would lose ndd. Continue? [y/N]" in asked.stderr
            assert asked.returncode == code
        assert not stored(client, index)["1"]["_source"].get("ndd")


@pytest.mark.parametrize("dynamic", [False, "runtime"])
@pytest.mark.parametrize("own", ["mine", 5, [1, 2], {"recipe": "pancakes"}, {"a": {"b": None}}])
@pytest.mark.newest_servers
def test_an_own_field_of_that_name_is_never_overwritten(engine: Engine, index: str, dynamic: Any, own: Any) -> None:
    """In an index whose mapping does not tell of it, too; it is refused before anything is written."""
    documents = [{"id": "1", "text": TEXT}, {"id": "2", "text": TEXT, "ndd": own}]
    with engine.client() as client:
        if dynamic == "runtime" and engine.family == "opensearch":
            pytest.skip("OpenSearch has no runtime fields")
        body = {"mappings": {"dynamic": dynamic, "properties": {"text": {"type": "text"}}}}
        client.indices.create(index=index, body=body)
        fill(client, index, documents)
        with pytest.raises(IndexUnusable, match=r"ndd.* that is not a sketch.*choose another name: --field"):
            backfill(client, index, ["text"])
        assert [hit["_source"] for _, hit in sorted(stored(client, index).items())] == documents
        assert "ndd" not in client.indices.get_mapping(index=index)[index]["mappings"].get("properties", {})
        assert backfill(client, index, ["text"], field="near").tally.written == 2
        if dynamic == "runtime":
            return
        client.indices.put_mapping(index=index, body={"properties": mapping_properties()})
        report = backfill(client, index, ["text"])  # somebody else has mapped it meanwhile
        assert report.tally.written == 1
        assert [*report.tally.left.values()] == [["2"]]
        assert stored(client, index)["2"]["_source"]["ndd"] == own


def test_an_own_field_of_one_document_in_many_is_found_before_the_mapping_is_put(engine: Engine, index: str) -> None:
    """With a mapping of sketches, the engine would refuse the next write of this document."""
    documents = [{"id": "0", "text": TEXT, "ndd": "mine"}, *({"id": str(n), "text": TEXT} for n in range(1, 2000))]
    with engine.client() as client:
        body = {"mappings": {"dynamic": False, "properties": {"text": {"type": "text"}}}}
        client.indices.create(index=index, body=body)
        fill(client, index, documents)
        with pytest.raises(IndexUnusable, match=r"document 0 has a field ndd that is not a sketch"):
            backfill(client, index, ["text"])
        client.index(index=index, id="0", body=documents[0])


def test_own_keys_are_never_overwritten(engine: Engine, index: str) -> None:
    """A field ndd_keys of the user's own is reported only if keys are to be written."""
    document = {"id": "1", "text": TEXT, "ndd_keys": ["front door"]}
    with engine.client() as client:
        body = {"mappings": {"dynamic": False, "properties": {"text": {"type": "text"}}}}
        client.indices.create(index=index, body=body)
        fill(client, index, [document])
        with pytest.raises(IndexUnusable, match="ndd_keys that is not a sketch"):
            backfill(client, index, ["text"])
        assert backfill(client, index, ["text"], keys=0).tally.written == 1
        after = stored(client, index)["1"]["_source"]
        assert after.pop("ndd")["recipe"] == RECIPE.id
        assert after == document


def test_a_recheck_adds_the_smallest_value_that_an_earlier_version_did_not_store(engine: Engine, index: str) -> None:
    mapping = mapping_properties()
    del mapping["ndd"]["properties"]["smallest"]
    made = sketch_fields({"text": TEXT}, "text")
    smallest = made["ndd"].pop("smallest")
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": mapping}})
        fill(client, index, [{"id": "1", **made}])
        assert backfill(client, index, ["text"]).tally.written == 0
        for written in (1, 0):
            assert backfill(client, index, ["text"], recheck=True).tally.written == written
        found = client.search(index=index, body={"docvalue_fields": ["ndd.smallest", "ndd.sketch"]})["hits"]["hits"][0]
        assert found["_source"]["ndd"] == {**made["ndd"], "smallest": smallest}
        assert found["fields"]["ndd.smallest"] == found["fields"]["ndd.sketch"][:1] == [smallest]


def test_resume_makes_keys_and_numbers_and_marks_fit_a_text_that_was_changed_without_them(
    engine: Engine, index: str
) -> None:
    """After updates that know nothing of sketches, all that is stored is of the new text; a document that lost its text
    loses its sketch; a mark stays only where the text did.
    """
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": mapping_properties()}})
        made = sketch_fields({"text": f"{TEXT} 42"}, "text", keys=8, numbers=True)
        made["ndd"] |= {"group": "0"}
        fill(client, index, [{"id": name, **made} for name in ("same", "changed", "emptied", "stale")])
        client.update(index=index, id="changed", body={"doc": {"text": f"{OTHER} 7"}})
        client.update(index=index, id="emptied", body={"doc": {"text": None}})
        client.update(index=index, id="stale", body={"doc": {"text": OTHER, "ndd": {"sketch": [], "recipe": "stale"}}})
        report = backfill(client, index, ["text"], recheck=True)
        assert (report.tally.written, report.remaining) == (3, 0)
        after = {key: hit["_source"] for key, hit in stored(client, index).items()}
        assert after["same"] == {"id": "same", **made}
        for name, text in (("changed", f"{OTHER} 7"), ("emptied", ""), ("stale", OTHER)):
            wanted = SketchField().parts(ndd.sketch(text), RECIPE, 8, number_signature(text, RECIPE), ["text"])
            found = {key: after[name][key] for key in ("ndd", "ndd_keys")}
            assert found["ndd"].pop("group") is None
            assert text or found["ndd"].pop("smallest") is None
            assert found == wanted
        assert backfill(client, index, ["text"], recheck=True).tally.written == 0
        backfill(client, index, ["text"], recipe="w5-k128-v4")  # the text is the same, so the mark stays
        assert stored(client, index)["same"]["_source"]["ndd"]["group"] == "0"


def test_numbers_and_keys_that_are_not_mapped_are_no_reason_to_write_again(engine: Engine, index: str) -> None:
    """What a document holds beside its sketch, and a run was not asked for, is compared in the document itself."""
    mapped = mapping_properties()
    del mapped["ndd"]["properties"]["numbers"]
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"dynamic": False, "properties": mapped}})
        fill(client, index, [{"id": "1", **sketch_fields({"text": f"{TEXT} 42"}, "text", keys=8, numbers=True)}])
        assert backfill(client, index, ["text"], recheck=True).tally.written == 0
        client.update(index=index, id="1", body={"doc": {"text": f"{TEXT} 43"}})
        assert backfill(client, index, ["text"], recheck=True).tally.written == 1
        assert backfill(client, index, ["text"], recheck=True).tally.written == 0


def test_a_backfill_makes_the_sketches_that_ingest_makes(engine: Engine, index: str) -> None:
    """Of strings, lists, objects in any order of their keys, numbers, booleans, null and what is missing."""
    words = TEXT.split()
    values: list[Any] = [
        *(TEXT, words, 12345, 1.5, True, None, [], {}, [1, "two", None, [3.25, {"b": "x", "a": "y"}]]),
        {"zebra": " ".join(words[:9]), "apple": words[9:], "mango": {"b": 1, "a": [2.0, "three"]}},
        {"b": {"d": OTHER, "c": TEXT}, "a": "first", "10": "ten", "9": "nine"},
    ]
    documents = [{"id": f"{number:02}", "body": value} for number, value in enumerate(values)]
    documents += [{"id": "20"}, {"id": "21", "title": "A title", "body": None}]
    fields = ["title", "body"]
    with engine.client() as client:
        mapping = {"dynamic": False, "properties": {"id": {"type": "keyword"}}}
        client.indices.create(index=index, body={"mappings": mapping})
        fill(client, index, documents)
        backfill(client, index, fields)
        found = {key: hit["_source"]["ndd"] for key, hit in stored(client, index).items()}
        made = {
            one["id"]: one.get("ndd") or {"sketch": [], "recipe": RECIPE.id, "text": "title,body"}
            for one in ndd.with_sketches(documents, fields)
        }
        assert found == made
        assert backfill(client, index, fields, recheck=True).tally.written == 0


@pytest.mark.newest_servers
def test_fields_without_text_are_refused_though_the_mapping_knows_them(engine: Engine, index: str) -> None:
    """Nothing is stored, the exit code is 2, and the fields that hold text are named."""
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": {"nope": {"type": "text"}}}})
        fill(client, index, [{"id": "1", "text": TEXT, "author": {"name": "Ann"}}])
        for fields in ("nope", "missing", "nope,missing"):
            done = run("backfill", engine.url, index, "--fields", fields, code=2)
            assert "(fields with text: author.name, id, text)" in done.stderr
        assert "ndd" not in stored(client, index)["1"]["_source"]
        assert "1 document written" in run("backfill", engine.url, index, "--fields", "text").stdout
        again = run("backfill", engine.url, index, "--fields", "missing", code=2)
        assert "(fields with text: author.name, id, text)" in again.stderr


def test_keys_and_numbers_that_are_asked_for_later_are_stored(engine: Engine, index: str) -> None:
    """Of documents whose sketch is that of their text; a run that asks for none leaves those that are there."""
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": mapping_properties()}})
        fill(client, index, [{"id": str(number), "text": f"{TEXT} {number}"} for number in range(3)])
        runs: list[tuple[dict[str, Any], set[str]]] = [
            ({"keys": 0}, set()),
            ({"keys": 8}, {"ndd_keys"}),
            ({"keys": 0, "numbers": True}, {"ndd_keys", "numbers"}),
            ({"keys": 0}, {"ndd_keys", "numbers"}),
        ]
        for settings, names in runs:
            report = backfill(client, index, ["text"], **settings)
            assert report.remaining == 0
            for hit in stored(client, index).values():
                source = hit["_source"]
                assert {"ndd_keys", "numbers"} & {*source, *source["ndd"]} == names


def test_a_recheck_stores_the_keys_that_a_document_with_its_sketch_lacks() -> None:
    document = sketch_fields({"text": TEXT}, "text", keys=0)
    stored = {f"ndd.{name}": value for name, value in document["ndd"].items()}
    stored["ndd.recipe"] = [stored["ndd.recipe"]]
    for keys in (0, 8):
        job = SketchDocuments(SketchSettings(fields=["text"], keys=keys), {}, compare=True)
        change: Any = job.changes([{"_id": "1", "_source": document, "fields": stored}])[0]
        assert (change is None) == (keys == 0)
        assert keys == 0 or len(change["doc"]["ndd_keys"]) == 8
