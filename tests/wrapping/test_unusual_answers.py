"""What comes back in a shape that no engine gives, or with values of the user's own, reaches the user as it came."""

from __future__ import annotations

import copy
import importlib
import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

import ndd_search as ndd
from tests.engines.find import MODULES, Engine
from tests.wrapping.conftest import Connect
from tests.wrapping.library import mapping
from tests.wrapping.pair import Outcome, Pair
from tests.wrapping.recorder import HIT, NO_HITS, Received, Reply

pytestmark = pytest.mark.one_kind_of_client

MATCH = {"match": {"body": "common"}}
SKETCHED = {**HIT, "_source": {"body": "x"}, "fields": {"ndd.sketch": [1, 2], "ndd.recipe": ["w3-k64-v4"]}}


def holding(*hits: Any, **others: Any) -> dict[str, Any]:
    """The answer to a search with such hits."""
    return {**NO_HITS, "hits": {"total": {"value": len(hits), "relation": "eq"}, "hits": list(hits)}, **others}


MALFORMED: dict[str, Any] = {
    "a number for a hit": holding(1, 2),
    "null for a hit": holding(SKETCHED, None),
    "a list of shards": holding(SKETCHED, _shards=[1]),
    "failures that are numbers": holding(SKETCHED, _shards={"failed": 1, "failures": [1]}),
    "a failure without a cause": holding(SKETCHED, _shards={"failed": 1, "failures": [{"reason": "why"}]}),
    "a list of clusters": holding(SKETCHED, _clusters=[1]),
    "a list of fields": holding({**SKETCHED, "fields": [1]}),
    "a text for a document": holding({**SKETCHED, "_source": "x"}),
    "a hit of no index": holding({name: value for name, value in SKETCHED.items() if name != "_index"}),
    "an id that is an object": holding({**SKETCHED, "_id": {}}),
    "a total that is a text": {**NO_HITS, "hits": {"total": "x", "hits": [SKETCHED]}},
    "no hits at all": {"took": 1},
}


def saying(answer: Any) -> Any:
    def reply(request: Received) -> Reply:
        if not request.path.endswith("_msearch"):
            return 200, answer
        return 200, {"took": 1, "responses": [{**answer, "status": 200}] * (len(request.body.splitlines()) // 2)}

    return reply


@pytest.mark.parametrize("name", MALFORMED)
def test_an_answer_in_another_shape_comes_back_as_it_is(pair: Pair, name: str) -> None:
    """A proxy that changed the answer to a search raises no error of ours; two requests are the most it costs."""
    pair.at.reply = saying(MALFORMED[name])

    def found_by(client: Any) -> Outcome:
        return pair.outcome(lambda: client.search(index="idx", body={"query": MATCH}))

    plain, wrapped = found_by(pair.plain), found_by(pair.wrapped)
    assert wrapped.returned == plain.returned
    assert len(wrapped.received) <= 2
    assert json.loads(wrapped.received[-1].body) == {"query": MATCH}


def test_inner_hits_in_another_shape_raise_no_error(pair: Pair) -> None:
    pair.at.reply = saying(
        holding({**SKETCHED, "inner_hits": {"x": 5, "y": {"hits": 5}, "z": {"hits": {"hits": [5]}}}})
    )
    found = pair.run(lambda: pair.wrapped.search(index="idx", body={"query": MATCH}))
    assert found["hits"]["hits"][0]["inner_hits"] == {"x": 5, "y": {"hits": 5}, "z": {"hits": {"hits": [5]}}}


def test_times_and_scores_that_are_no_numbers_raise_no_error(pair: Pair) -> None:
    """They come back as they are; none of ours is added to them, and `max_score` of duplicates leaves them out."""
    hits = [{**SKETCHED, "_id": str(number), "_score": score} for number, score in enumerate((1.0, [2], 0.5))]
    pair.at.reply = saying(holding(*hits, took={"ms": 1}))
    found = pair.run(lambda: pair.wrapped.search(index="idx", body={"query": MATCH}))
    duplicates = found["hits"]["hits"][0]["inner_hits"]["near_duplicates"]["hits"]
    assert (found["took"], duplicates["max_score"]) == ({"ms": 1}, 0.5)
    assert [copy["_score"] for copy in duplicates["hits"]] == [[2], 0.5]
    pair.at.reply = lambda request: (200, {**saying(holding(*hits))(request)[1], "took": []})
    lines: list[Any] = [{"index": "idx"}, {"query": MATCH}]
    assert pair.run(lambda: pair.wrapped.msearch(body=lines))["took"] == 0


def test_a_page_that_comes_as_the_engine_gave_it_does_not_show_sketches(pair: Pair) -> None:
    """Where the wider request is refused, and the user's own is sent, documents come without the sketch as ever."""
    stored = {"body": "x", "ndd": {"sketch": [1, 2], "recipe": "w3-k64-v4"}}

    def reply(request: Received) -> Reply:
        if b"docvalue_fields" in request.body:
            return 400, {"error": {"root_cause": [{"reason": "no"}]}, "status": 400}
        return 200, holding({**HIT, "_source": copy.deepcopy(stored)})

    pair.at.reply = reply
    found = pair.run(lambda: pair.wrapped.search(index="idx", body={"query": MATCH}))
    assert found["ndd"]["degraded"]
    assert found["hits"]["hits"][0]["_source"] == {"body": "x"}


def test_a_search_beside_ours_in_an_msearch_keeps_its_text(pair: Pair) -> None:
    """A decimal with more digits than a double has reaches the engine as it was written, and so do its spaces."""
    header, ours = '{"index": "idx"}', json.dumps({"query": MATCH})
    other = '{"size":0,  "min_score": 0.12345678901234567890123}'
    text = "\n".join((header, ours, '{"index":"idx" }', other)) + "\n"
    if pair.family == "elasticsearch":
        pytest.skip("this client gives its transport parsed lines")
    sent = pair.outcome(lambda: pair.wrapped.msearch(body=text)).received[0].body.decode()
    assert sent.endswith('{"index":"idx" }\n' + other + "\n")
    assert not sent.startswith(header + "\n" + ours)


@pytest.fixture
def index(engine: Engine) -> Iterator[str]:
    name = f"ndd-unusual-{uuid.uuid4().hex[:8]}"
    with engine.client() as client:
        made = mapping(engine)
        made.setdefault("settings", {})["number_of_shards"] = 5
        client.indices.create(index=name, body=made)
        yield name
        client.indices.delete(index=name)


def filled(engine: Engine, actions: Any) -> None:
    with engine.client() as client:
        importlib.import_module(f"{MODULES[engine.family]}.helpers").bulk(client, actions, refresh=True)


@pytest.mark.parametrize("splits", [False, True])
def test_documents_of_one_id_on_several_shards_are_all_shown(
    engine: Engine, connect: Connect, index: str, splits: bool
) -> None:
    """With routing an id may be there once on each shard: these are different documents."""
    texts = [" ".join(f"{letter}{number}" for number in range(40)) + " common" for letter in "abcdefgh"]
    written = [{"_index": index, "_id": "1", "routing": text[0], "body": text} for text in texts]
    filled(engine, ndd.with_sketches(written, fields=["body"]))

    def routings(wrapped: bool, **settings: Any) -> set[str]:
        found = connect(wrapped=wrapped, **settings).search(index=index, body={"query": MATCH})
        return {hit["_routing"] for hit in found["hits"]["hits"]}

    assert routings(True, cache=False, window=40, splits=splits) == routings(False)


def test_an_index_whose_field_ndd_is_the_users_own_is_left_alone(engine: Engine, connect: Connect, index: str) -> None:
    """An `ndd.recipe` that names no recipe is no sketch: pages come back as they are, and one request each suffices."""
    filled(engine, [{"_index": index, "_id": str(n), "body": "common", "ndd": {"recipe": "beans"}} for n in range(12)])
    plain, wrapped = connect(wrapped=False), connect(cache=False)
    for query in (MATCH, {"match": {"body": "nothing"}}, MATCH):
        pages = [caller.search(index=index, body={"query": query}) for caller in (plain, wrapped)]
        for page in pages:
            page.pop("took")
        assert pages[0] == pages[1]
