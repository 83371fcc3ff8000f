"""The templates: as files, as mappings of live servers, and the checks of other mappings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.indexing.backfill import Backfill
from ndd_search.indexing.with_sketches import sketch_fields
from ndd_search.search.rest.mapping import check_mapping, component_template, mapping_properties, with_sketch_fields
from tests.engines.find import Engine
from tests.index_templates import files, index_template

FOLDER = Path(__file__).resolve().parents[1] / "index_templates"
BODY = "Ministers agreed on Friday to cut emissions from steel works by a third before the end of the decade."
ARTICLE = {"title": "Steel", "body": BODY, "url": "https://example.org/steel"}
SKETCHED = sketch_fields(ARTICLE, ["title", "body"], keys=8)
READ = {"docvalue_fields": ["ndd.sketch", "ndd.recipe"], "query": {"match": {"body": "steel"}}}


@pytest.fixture
def component(engine: Engine, index: str) -> Iterator[str]:
    """The name of our component template on the server, keys and all, and the start of all names of a test."""
    with engine.client() as client:
        client.cluster.put_component_template(name=index, body=component_template())
        yield index
        # Elasticsearch from published jars cannot delete a data stream, nor then what it is composed of.
        for delete in (
            lambda: client.indices.delete_data_stream(name=f"{index}*"),
            lambda: client.indices.delete(index=f"{index}-*"),
            lambda: client.indices.delete_index_template(name=f"{index}*"),
            lambda: client.cluster.delete_component_template(name=index),
        ):
            with suppress(Exception):
                delete()  # type: ignore[no-untyped-call]


def read(client: Any, index: str) -> tuple[dict[str, Any], list[int] | str]:
    """The source and the sketch of the one document of an index."""
    client.indices.refresh(index=index)
    (hit,) = client.search(index=index, body=READ)["hits"]["hits"]
    (sketch,) = SketchField().decode([hit], ndd.Recipe())
    return hit["_source"], sketch if isinstance(sketch, str) else sketch.tolist()


def test_the_files_are_what_the_package_makes() -> None:
    on_disk = {path.name: json.loads(path.read_text()) for path in FOLDER.glob("*.json")}
    assert on_disk == files()


def test_an_index_made_from_the_example_holds_sketches_below_dynamic_strict(engine: Engine, component: str) -> None:
    template = {**index_template(component), "index_patterns": [f"{component}-*"]}
    with engine.client() as client:
        client.indices.put_index_template(name=component, body=template)
        client.index(index=f"{component}-1", id="1", body=SKETCHED)
        mapping = client.indices.get_mapping(index=f"{component}-1")[f"{component}-1"]["mappings"]
        assert mapping["dynamic"] == "strict"
        assert list(check_mapping(mapping)) == []
        assert mapping["properties"]["ndd"]["properties"]["sketch"] == {"type": "integer", "index": False}
        assert mapping["properties"]["ndd_keys"] == {"type": "keyword", "doc_values": False}
        source, sketch = read(client, f"{component}-1")
        assert source == SKETCHED
        assert sketch == SKETCHED["ndd"]["sketch"]


def test_whatever_else_is_written_into_the_object_makes_no_new_fields(engine: Engine, component: str) -> None:
    template = {**index_template(component), "index_patterns": [f"{component}-*"]}
    with engine.client() as client:
        client.indices.put_index_template(name=component, body=template)
        odd = {**ARTICLE, "ndd": {**SKETCHED["ndd"], **{f"field{number}": number for number in range(2_000)}}}
        client.index(index=f"{component}-1", id="1", body=odd)
        mapping = client.indices.get_mapping(index=f"{component}-1")[f"{component}-1"]["mappings"]
        assert set(mapping["properties"]["ndd"]["properties"]) == {
            "sketch",
            "smallest",
            "numbers",
            "recipe",
            "text",
            "group",
        }


def test_a_data_stream_made_from_the_example_holds_sketches(engine: Engine, component: str) -> None:
    template = {**index_template(component, data_stream=True), "index_patterns": [f"{component}-stream*"]}
    with engine.client() as client:
        client.indices.put_index_template(name=component, body=template)
        document = {"@timestamp": "2031-05-01T12:00:00Z", **SKETCHED}
        client.bulk(index=f"{component}-stream", body=[{"create": {"_id": "1"}}, document])
        assert read(client, f"{component}-stream") == (document, SKETCHED["ndd"]["sketch"])


def test_a_template_the_user_has_keeps_all_it_says_and_has_our_fields_too(engine: Engine, component: str) -> None:
    theirs = {
        "index_patterns": [f"{component}-*"],
        "priority": 777,
        "version": 3,
        "composed_of": [],
        "template": {"settings": {"number_of_shards": 2}, "mappings": {"properties": {"body": {"type": "text"}}}},
        "_meta": {"owner": "them"},
    }
    with engine.client() as client:
        client.indices.put_index_template(name=component, body=theirs)
        for _ in range(2):  # a second time changes nothing
            found = client.indices.get_index_template(name=component)["index_templates"][0]["index_template"]
            client.indices.put_index_template(name=component, body=with_sketch_fields(found))
        after = client.indices.get_index_template(name=component)["index_templates"][0]["index_template"]
        properties = after["template"]["mappings"]["properties"]
        assert (properties.keys(), properties["body"]) == ({"body", *mapping_properties()}, {"type": "text"})
        assert {key: after[key] for key in ("priority", "version", "_meta", "index_patterns")} == {
            key: theirs[key] for key in ("priority", "version", "_meta", "index_patterns")
        }
        client.index(index=f"{component}-1", id="1", body=SKETCHED)
        made = client.indices.get(index=f"{component}-1")[f"{component}-1"]
        assert made["settings"]["index"]["number_of_shards"] == "2"
        assert list(check_mapping(made["mappings"])) == []


@pytest.mark.parametrize("kind", ["synthetic", "derived"])
def test_a_source_rebuilt_from_doc_values_still_holds_the_sketch(engine: Engine, index: str, kind: str) -> None:
    stored: dict[str, Any] = {"type": "text", "store": True}
    mapping = mapping_properties()
    if kind == "synthetic":
        if engine.family != "elasticsearch":
            pytest.skip("synthetic _source is Elasticsearch's")
        settings: dict[str, Any] = {"index": {"mapping": {"source": {"mode": "synthetic"}}}}
    else:
        if engine.family != "opensearch" or engine.major < 3:
            pytest.skip("derived _source is OpenSearch 3's")
        settings = {"index": {"derived_source": {"enabled": True}}}
        mapping["ndd_keys"]["store"] = True
    fields = {"title": stored, "body": stored, "url": {"type": "keyword"}, **mapping}
    with engine.client() as client:
        client.indices.create(index=index, body={"settings": settings, "mappings": {"properties": fields}})
        client.index(index=index, id="1", body=SKETCHED)
        source, sketch = read(client, index)
        assert sketch == SKETCHED["ndd"]["sketch"]
        assert source["ndd"] == SKETCHED["ndd"]
        assert source["body"] == BODY
        for recheck, written in ((False, 1), (True, 0)):
            report = Backfill(index=index, fields=["body"], keys=8, recheck=recheck).run(client)
            assert (recheck, report.tally.written, report.remaining) == (recheck, written, 0)


def test_two_recipes_live_side_by_side_under_two_names(engine: Engine, index: str) -> None:
    other = ndd.Recipe.characters(k=128)
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": mapping_properties()}})
        client.indices.put_mapping(index=index, body={"properties": mapping_properties("ndd_next")})
        document = sketch_fields(SKETCHED, "body", recipe=other, field="ndd_next")
        client.index(index=index, id="1", body=document)
        client.indices.refresh(index=index)
        (hit,) = client.search(index=index, body={"docvalue_fields": ["ndd*.sketch", "ndd*.recipe"]})["hits"]["hits"]
        (first,) = SketchField().decode([hit], ndd.Recipe())
        (second,) = SketchField("ndd_next").decode([hit], other)
        assert (len(first), len(second)) == (len(SKETCHED["ndd"]["sketch"]), len(ndd.sketch(BODY, other)))


GOOD = mapping_properties()
KEYWORD = {"type": "keyword"}


def mapped(sketch: dict[str, Any], recipe: dict[str, Any] = KEYWORD) -> dict[str, Any]:
    return {"properties": {"ndd": {"properties": {"sketch": sketch, "recipe": recipe}}}}


@pytest.mark.parametrize(
    ("mapping", "level", "words"),
    [
        ({"properties": {}}, "error", "there is no field ndd"),
        (
            {"properties": {"ndd": {"type": "text"}}},
            "error",
            "ndd is a field of type text, not an object with sketches",
        ),
        ({"properties": {"ndd": {"type": "nested", **GOOD["ndd"]}}}, "error", "of type nested"),
        ({"properties": {"ndd": {"properties": {"recipe": KEYWORD}}}}, "error", "sketch is not mapped"),
        (mapped({"type": "long"}), "warning", "indexed long"),
        (mapped({"type": "float"}), "error", "ndd.sketch is float"),
        (mapped({"type": "integer", "index": False, "doc_values": False}), "error", "no doc values"),
        (mapped({"type": "integer", "index": False}, {"type": "text"}), "error", "ndd.recipe is text, not keyword"),
        (mapped(GOOD["ndd"]["properties"]["sketch"], {**KEYWORD, "doc_values": False}), "error", "no doc values"),
        ({"properties": {**GOOD, "ndd_keys": {"type": "text"}}}, "error", "ndd_keys is text"),
        ({"properties": {**GOOD, "ndd_keys": {"properties": {}}}}, "error", "ndd_keys is an object, not keyword"),
        ({"_source": {"enabled": False}, "properties": GOOD}, "error", "_source is disabled"),
        ({"_source": {"excludes": ["ndd.sketch"]}, "properties": GOOD}, "warning", "drops the sketch"),
        ({"_source": {"excludes": ["vector"]}, "properties": GOOD}, "warning", "_source excludes vector"),
        ({"_source": {"includes": ["body"]}, "properties": GOOD}, "warning", "all but body"),
    ],
)
def test_a_mapping_that_hurts_is_told_with_what_to_do(mapping: dict[str, Any], level: str, words: str) -> None:
    finding = next(check_mapping(mapping))
    assert finding.level == level
    assert words in finding.what
    assert finding.remedy
