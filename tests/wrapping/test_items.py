"""A wrapped client that compares hits by their fields: airports of two sources, each shown once."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import ndd_search as ndd
from tests import collections
from tests.engines.find import Engine
from tests.wrapping.conftest import Connect, bulk, settings_of

LEARNT_FROM = 750  # airports, two records each
AIRPORTS = 120  # of these in the index
_BASE32 = "0123456789bcdefghjkmnpqrstuvwxyz"


def geohash(lat: float, lon: float) -> str:
    """The geohash of a place, in 12 characters."""
    low, high, bits = [-180.0, -90.0], [180.0, 90.0], 0
    for place in range(60):
        axis = place % 2
        middle, value = (low[axis] + high[axis]) / 2, (lon, lat)[axis]
        bits = bits << 1 | (value >= middle)
        (low if value >= middle else high)[axis] = middle
    return "".join(_BASE32[bits >> shift & 31] for shift in range(55, -1, -5))


FORMS: tuple[Callable[[float, float], Any], ...] = (
    lambda lat, lon: {"lat": lat, "lon": lon},
    lambda lat, lon: f"{lat},{lon}",
    lambda lat, lon: [lon, lat],
    lambda lat, lon: {"type": "Point", "coordinates": [lon, lat]},
    geohash,
)


@dataclass(frozen=True)
class Airports:
    """An index with the records of some airports, and the airport of each record by its id."""

    index: str
    of: dict[str, int]
    schema: ndd.items.Items


@pytest.fixture(scope="session")
def learnt() -> tuple[list[list[tuple[str, dict[str, Any]]]], ndd.items.Items]:
    """The records of airports with their ids, and the schema that is learnt from them without labels."""
    fields = {one["id"]: one["fields"] for one in collections.read("airports")}
    airports: list[list[tuple[str, dict[str, Any]]]] = []
    for cluster in collections.read("airports", "clusters"):
        if len(cluster["members"]) == 2 and len(airports) < LEARNT_FROM:
            airports.append([(name, fields[name]) for name in cluster["members"]])
    schema = ndd.items.Items(
        name=ndd.items.Name(),
        city=ndd.items.Name(),
        country=ndd.items.Category(),
        location=ndd.items.Place(source=("lat", "lon")),
        elevation_ft=ndd.items.Number(),
    )
    learnt = ndd.items.Items.learn([record for airport in airports for _, record in airport], schema)
    stored: Any = {**learnt.fields, "location": ndd.items.Place()}  # the engine holds a geo_point
    return airports, ndd.items.Items(learnt=learnt.learnt, **stored)


@pytest.fixture(scope="session")
def airports(
    engine: Engine, learnt: tuple[list[list[tuple[str, dict[str, Any]]]], ndd.items.Items]
) -> Iterator[Airports]:
    """The index; places are written in every form that engines take."""
    records, schema = learnt
    made = Airports(f"ndd-items-{uuid.uuid4().hex[:8]}", {}, schema)
    kinds = {"name": "text", "city": "text", "country": "keyword", "elevation_ft": "integer", "location": "geo_point"}
    acts = []
    for place, airport in enumerate(records[:AIRPORTS]):
        for name, fields in airport:
            document = {field: value for field, value in fields.items() if field in kinds}
            if fields.get("lat") is not None:
                document["location"] = FORMS[len(made.of) % len(FORMS)](fields["lat"], fields["lon"])
            acts.append({"_index": made.index, "_id": name, "_source": document})
            made.of[name] = place
    with engine.client() as client:
        mapping = {field: {"type": kind} for field, kind in kinds.items()}
        one_shard = {"number_of_shards": 1, "number_of_replicas": 0}
        client.indices.create(index=made.index, body={"settings": one_shard, "mappings": {"properties": mapping}})
        bulk(engine, client, acts)
        yield made
        client.indices.delete(index=made.index)


ANY = {"query": {"match": {"name": "airport airfield field heliport aerodrome base strip"}}}


def test_each_airport_is_shown_once_whatever_is_asked_of_its_hits(airports: Airports, connect: Connect) -> None:
    plain = connect(wrapped=False)
    caller = connect(items=airports.schema, min_similarity="auto", window=40)
    wanted = plain.search(index=airports.index, body={**ANY, "size": 300, "_source": ["name"]})["hits"]
    own = {hit["_id"]: hit for hit in wanted["hits"]}
    assert len(own) > 1.5 * AIRPORTS

    shown: list[str] = []
    for start in range(0, 3 * AIRPORTS, 50):
        answer = caller.search(index=airports.index, body={**ANY, "from": start, "size": 50, "_source": ["name"]})
        for hit in answer["hits"]["hits"]:
            inner = hit.pop("inner_hits", {"near_duplicates": {"hits": {"hits": []}}})
            hidden = inner["near_duplicates"]["hits"]["hits"]
            assert {airports.of[one["_id"]] for one in hidden} <= {airports.of[hit["_id"]]}
            assert hit == own[hit["_id"]]  # the fields that were fetched for the comparison are not shown
            shown.append(hit["_id"])
    assert len({airports.of[name] for name in shown}) == len(shown) == len({airports.of[name] for name in own})
    assert answer["ndd"]["recipe"] == airports.schema.id
    assert answer["ndd"]["min_similarity"] == airports.schema.min_probability

    again = caller.search(index=airports.index, body={**ANY, "from": 50, "size": 50, "_source": ["name"]})
    assert again["ndd"]["cache"] == "hit"
    assert [hit["_id"] for hit in again["hits"]["hits"]] == shown[50:100]


def test_pages_of_a_cursor_show_each_thing_once(airports: Airports, connect: Connect, engine: Engine) -> None:
    if engine.name == "opensearch2":
        pytest.skip("OpenSearch orders points in time since 3.3")
    settings: Any = {"items": airports.schema, "min_similarity": "auto", "cache": False}
    body = {**ANY, "size": 300, "_source": False}
    whole = connect(**settings, window=300).search(index=airports.index, body=body)
    shown: list[str] = []
    cursor: Any = True
    while cursor:
        caller = connect(**settings, window=20)  # as in another process
        page = caller.search(index=airports.index, body={**body, "size": 15, "ndd": {"cursor": cursor}})
        shown += [hit["_id"] for hit in page["hits"]["hits"]]
        cursor = page["ndd"]["cursor"]
    assert shown == [hit["_id"] for hit in whole["hits"]["hits"]]


def test_modes_keep_guards_and_msearch_hold_for_items(airports: Airports, connect: Connect) -> None:
    caller = connect(items=airports.schema, min_similarity="auto", window=300)
    body = {**ANY, "size": 300, "_source": False}

    def ids(answer: dict[str, Any]) -> list[str]:
        return [hit["_id"] for hit in answer["hits"]["hits"]]

    shown = ids(caller.search(index=airports.index, body=body))
    annotated = caller.search(index=airports.index, body={**body, "ndd": {"mode": "annotate"}})
    marked = [hit for hit in annotated["hits"]["hits"] if "ndd.duplicate_of" in hit.get("fields", {})]
    assert len(shown) == len(ids(annotated)) - len(marked)
    assert set(shown) == set(ids(annotated)) - {hit["_id"] for hit in marked}
    longest = ids(caller.search(index=airports.index, body={**body, "ndd": {"keep": ["longest:name"]}}))
    assert [airports.of[name] for name in longest] == [airports.of[name] for name in shown]
    assert longest != shown
    about = caller.search(index=airports.index, body={**body, "size": 10, "ndd": {"total": "estimate", "window": 40}})
    assert about["ndd"]["unique"]["low"] <= len(shown) <= about["ndd"]["unique"]["high"]
    assert about["hits"]["total"]["value"] <= len(shown)
    strict = caller.search(index=airports.index, body={**body, "ndd": {"guards": ["same:name"], "window": 300}})
    assert len(ids(strict)) > len(shown)
    sure = caller.search(index=airports.index, body={**body, "ndd": {"min_similarity": 0.999}})
    assert len(ids(sure)) > len(shown)
    both = caller.msearch(body=[{"index": airports.index}, body, {"index": airports.index}, {**body, "ndd": False}])
    assert ids(both["responses"][0]) == shown
    assert len(ids(both["responses"][1])) == len(ids(annotated))
    with pytest.raises(ValueError, match="with items, min_similarity cannot be 'high': give a probability"):
        caller.search(index=airports.index, body={**body, "ndd": {"min_similarity": "high"}})
    other = connect(items=ndd.items.Items(title=ndd.items.Name()), min_similarity="auto")
    misspelt = other.search(index=airports.index, body=body)
    assert len(ids(misspelt)) == len(ids(annotated))
    assert misspelt["ndd"]["warnings"] == ["no hit has a field of the schema (title): check their spelling"]
    assert both["responses"][0]["ndd"]["warnings"] == []
    assert settings_of(caller).key != settings_of(other).key
