"""Options in random combinations, on pages by from and size, by a cursor and by search_after, with and without a cache.

A combination works on every page or is refused with a sentence. What a page promises holds whatever is combined.
"""

from __future__ import annotations

import os
import random
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.indexing.mapping import mapping_properties
from tests.engines.find import Engine
from tests.wrapping.conftest import Connect, bulk
from tests.wrapping.walks import DOCUMENTS, SEED, Walks, document

pytestmark = [pytest.mark.one_kind_of_client, pytest.mark.newest_servers]

STORAGES = ("integers", "packed", "both")
COMBINATIONS = 60 if os.environ.get("NDD_TEST_LONG") else 1  # of each form of storage
FAULTS: list[dict[str, Any]] = [  # combinations that once failed, with the size of their pages
    {"size": 5, "group_by": ["isbn"], "window": 4},
    {"size": 3, "members": "all", "max_per": {"source": 3, "isbn": 1}, "window": 15},
    {"size": 5, "mode": "annotate", "seen": "texts", "window": 15},
    {"size": 5, "mode": "demote", "seen": "texts", "window": 4},
    {"size": 12, "max_window": 17, "window": 4},
    {"size": 12, "facets": ["sources"], "seen": "texts", "window": 60},
]
SCORED: dict[str, Any] = {
    "function_score": {"query": {"match": {"body": "market"}}, "field_value_factor": {"field": "weight"}}
}
SCORED["function_score"]["boost_mode"] = "replace"
CHOICES: dict[str, list[Any]] = {
    "min_similarity": [0.6, "auto", "identical", "high"],
    "mode": ["group", "drop", "demote", "annotate"],
    "window": [4, 15, 60],
    "max_window": [60, 60, 17],
    "max_per_group": [1, 1, 2],
    "members": ["window", "all"],
    "keep": [["score"], ["newest:day"], ["longest"], ["preferred:source=site2,site1", "oldest:day"], ["longest:body"]],
    "must_match": [[], ["language"]],
    "group_by": [[], ["isbn"], ["isbn", "work"]],
    "max_per": [{}, {"source": 2}, {"source": 3, "isbn": 1}],
    "numbers_must_match": [False, True],
    "min_length_ratio": [0.0, 0.9],
    "seen_mode": ["hide", "demote", "annotate"],
    "strategy": ["auto", "one_phase", "one_trip"],
    "total": ["hits", "groups", "estimate"],
    "facets": [[], ["sources"]],
    "duplicates": ["documents", "ids", "count"],
    "seen": ["texts", "hits", "sketches"],
}
ITEMS = ndd.Items(body=ndd.Text(), isbn=ndd.Exact(), needs=[("body",), ("body", "isbn")])
GUARD = {"time_field": "day", "max_seconds_apart": 10 * 86400}


@pytest.fixture(scope="module")
def indexes(engine: Engine) -> Iterator[dict[str, str]]:
    """An index for each form of storage; every seventh document has no sketch."""
    prefix = f"ndd-options-{uuid.uuid4().hex[:8]}"
    number, keyword = {"type": "integer"}, {"type": "keyword"}
    fields = {"place": number, "weight": number, "day": {"type": "date"}}
    fields |= dict.fromkeys(("source", "isbn", "work", "language"), keyword) | {"body": {"type": "text"}}
    names = {storage: f"{prefix}-{storage}" for storage in STORAGES}
    with engine.client() as client:
        for storage, name in names.items():
            body = {"mappings": {"properties": {**mapping_properties(keys=True), **fields}}}
            client.indices.create(index=name, body={**body, "settings": {"number_of_shards": 2}})
            made = [{"_index": name, "_id": str(place), **document(place)} for place in range(DOCUMENTS)]
            sketched = [one for one in made if one["place"] % 7]
            rest = [one for one in made if not one["place"] % 7]
            given: Any = {"fields": ["body"], "keys": 8, "numbers": True, "storage": storage}
            bulk(engine, client, [*ndd.with_sketches(sketched, **given), *rest])
        yield names
        client.indices.delete(index=",".join(names.values()))


def drawn(draw: random.Random) -> dict[str, Any]:
    """A few options; no more, so that most combinations are allowed."""
    names = draw.sample(list(CHOICES), draw.randrange(2, 7))
    options = {name: draw.choice(CHOICES[name]) for name in names} | {"window": draw.choice(CHOICES["window"])}
    if options.get("max_window") == 17 and options["window"] > 17:
        del options["max_window"]
    return options | (GUARD if draw.random() < 0.15 else {})


def seen_of(form: str | None, index: str) -> list[Any] | None:
    """What was shown before: four documents, one of them without a sketch."""
    places = (1, 7, 16, 23)
    match form:
        case "texts":
            return [document(place)["body"] for place in places]
        case "sketches":
            return [ndd.sketch(document(place)["body"]).tolist() for place in places]
        case "hits":
            return [{"_index": index, "_id": str(place)} for place in places]
    return None


CASES: list[tuple[str, dict[str, Any] | None, int]]
CASES = [(storage, None, number) for storage in STORAGES for number in range(COMBINATIONS)]
CASES += [("integers", options, number) for number, options in enumerate(FAULTS)]


@pytest.mark.parametrize(("storage", "fault", "number"), CASES)
def test_pages_keep_their_promises_whatever_is_combined(
    storage: str, fault: dict[str, Any] | None, number: int, indexes: dict[str, str], connect: Connect
) -> None:
    draw = random.Random(f"{SEED} {storage} {number}")
    index, settings = indexes[storage], dict[str, Any]()
    options = drawn(draw) if fault is None else dict(fault)
    size = options.pop("size", 5)
    body: dict[str, Any] = {"size": size, "query": {"match": {"body": "market"}}, "sort": [{"place": "asc"}]}
    if fault is None:
        body["size"] = draw.choice((3, 5, 12))
        if draw.random() < 0.3:
            body = {"size": body["size"], "query": SCORED}
        settings = {"items": ITEMS} if draw.random() < 0.1 else {}
        if draw.random() < 0.3:  # options in a rule for the index, beside those that only a search can have
            settings["indexes"] = {f"{index}*": {name: value for name, value in options.items() if name != "seen"}}
            options = {name: value for name, value in options.items() if name == "seen"}
    if draw.random() < 0.5 or "facets" in str((options, settings)):
        body["aggs"] = {"sources": {"terms": {"field": "source"}}}
    described = f"{settings} {storage} {number}: {body} {options}"
    if (seen := seen_of(options.get("seen"), index)) is not None:
        options = {**options, "seen": seen}
    walks, problem = None, ""
    try:
        walks = Walks(connect, index, body, options, settings)
        walks.check()
    except AssertionError as error:
        raise AssertionError(described) from error
    except (ValueError, TypeError) as refused:
        problem = str(refused)
        if walks is not None and walks.pages_made:
            raise AssertionError(f"refused on a later page: {described}") from refused
    assert not problem or problem.count(" ") > 3
