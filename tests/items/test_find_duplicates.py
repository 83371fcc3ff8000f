"""Documents of a whole index that are one thing with a record: in a folder and on servers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ndd_search as ndd
from ndd_search.core.paging.records_of_one_thing import Candidate
from tests.engines.find import Engine
from tests.items.made import PEOPLE, people

RECORDS = people(100, seed=3).records[:200]
PLACES = ndd.items.Items(
    name=ndd.items.Name(synonyms="english-abbreviations"),
    location=ndd.items.Place(within_km=1.0),
    height=ndd.items.Number(within=2.0),
    code=ndd.items.Exact(veto=True),
)
CATHEDRALS: list[dict[str, Any]] = [
    {"id": "cork", "name": "Saint Fin Barre’s Cathedral", "location": {"lat": 51.8944, "lon": -8.48064}, "height": 73},
    {"id": "city", "name": "Cork City Hall", "location": {"lat": 51.8971, "lon": -8.4658}, "height": 40},
    {
        "id": "other",
        "name": "St. Finbarr's Cathedral Cork",
        "location": {"lat": 51.8944, "lon": -8.4806},
        "code": ["X1"],
    },
    *({"id": f"p{n}", "name": f"Saint Patrick's {n}", "location": {"lat": n / 3, "lon": 5 - n}} for n in range(60)),
]
WANTED = {"name": "St. Finbarr's Cathedral Cork", "location": "51.894401, -8.480640", "height": "73 m", "code": "y-7"}


def expected(place: int) -> set[str]:
    """Return the ids of the people that are one thing with one of them."""
    probability = PEOPLE.probabilities((RECORDS[place], other) for other in RECORDS)
    return {RECORDS[i]["id"] for i in np.flatnonzero(probability >= PEOPLE.min_probability).tolist()}


def recall(found: dict[int, list[Candidate]]) -> float:
    """Return the share of the documents to find that were found; nothing else may be found."""
    wanted = {place: expected(place) for place in found}
    assert all({one.id for one in of} <= wanted[place] for place, of in found.items())
    assert all(of == sorted(of, key=lambda one: -one.similarity) for of in found.values())
    return sum(map(len, found.values())) / sum(map(len, wanted.values()))


def test_an_index_in_a_folder_finds_the_documents_that_are_one_thing_with_a_record(tmp_path: Path) -> None:
    with ndd.Index.open(tmp_path / "people", text=["surname", "birth_place"]) as index:
        index.add(RECORDS)
        found = {place: index.find_duplicates(RECORDS[place], items=PEOPLE) for place in range(0, 200, 10)}
        assert recall(found) > 0.95
        assert index.find_duplicates({"nothing": 1}, items=PEOPLE) == []
        with pytest.raises(ValueError, match="examined must be 1"):
            index.find_duplicates(RECORDS[0], items=PEOPLE, examined=0)
    with ndd.Index.open(tmp_path / "places", text=["name"]) as index:
        index.add(CATHEDRALS)
        assert [one.id for one in index.find_duplicates(WANTED, items=PLACES)] == ["cork"]
        by_place = {"location": WANTED["location"], "height": 72}
        assert index.find_duplicates(by_place, items=PLACES, min_similarity=0.6)[0].id == "cork"


def test_a_server_finds_the_documents_that_are_one_thing_with_a_record(engine: Engine, index: str) -> None:
    points = {"name": {"type": "text"}, "location": {"type": "geo_point"}, "height": {"type": "float"}}
    objects = {"name": {"type": "text"}, "code": {"type": "keyword"}}  # the place is an object with two numbers
    with engine.client() as client:
        for name, mapping, documents in (
            (f"{index}-people", {}, RECORDS),
            (f"{index}-points", points, CATHEDRALS),
            (f"{index}-objects", objects, CATHEDRALS),
        ):
            client.indices.create(index=name, body={"mappings": {"properties": mapping}})
            lines = [line for one in documents for line in ({"index": {"_index": name, "_id": one["id"]}}, one)]
            assert not client.bulk(body=lines, refresh=True)["errors"]
        try:
            wrapped = ndd.wrap(engine.client(), items=PEOPLE)
            found = {
                place: ndd.find_duplicates(wrapped, f"{index}-people", RECORDS[place], items=PEOPLE)
                for place in range(0, 200, 10)
            }
            assert recall(found) > 0.95
            assert found[0][0].index == f"{index}-people"
            with pytest.raises(ndd.NDDError, match="it has no index on nothing"):
                ndd.find_duplicates(
                    client, index + "-people", {"nothing": "1"}, items=ndd.items.Items(nothing=ndd.items.Name())
                )
            with pytest.raises(ValueError, match="with items, keys does not apply"):
                ndd.find_duplicates(client, index, WANTED, items=PLACES, keys=8)
            for name in (f"{index}-points", f"{index}-objects"):
                assert [one.id for one in ndd.find_duplicates(client, name, WANTED, items=PLACES)] == ["cork"]
                by_place = {"location": WANTED["location"], "height": 72}
                same = ndd.find_duplicates(client, name, by_place, items=PLACES, examined=5, min_similarity=0.6)
                assert {one.id for one in same} == {"cork", "other"}
        finally:
            for name in ("people", "points", "objects"):
                client.indices.delete(index=f"{index}-{name}")
            wrapped.close()
