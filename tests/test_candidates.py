"""Near-duplicates in a whole index: search by keys."""

from __future__ import annotations

import asyncio
from math import cos, pi
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ndd_search as ndd
from ndd_search.core.methods.simhash import as_sketches
from ndd_search.core.sketching import resemblance
from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.errors import IndexUnusable, RecipeMismatch
from ndd_search.indexing import find_duplicates
from ndd_search.indexing.backfill import Backfill
from ndd_search.indexing.doctor import Doctor
from ndd_search.indexing.duplicates_in_index import CandidateSearch
from ndd_search.search.rest.mapping import mapping_properties
from ndd_search.search.rest.stored_keys import shared_keys
from tests.engines.find import Engine
from tests.keyed import COPY, DOCUMENTS, TEXT, create, store


def test_a_text_and_a_sketch_find_what_resembles_them_most_similar_first(engine: Engine, index: str) -> None:
    with engine.client() as client:
        create(client, index)
        found = find_duplicates(client, index, TEXT)
        assert [(one.id, one.index) for one in found] == [("a", index), ("b", index)]
        assert found[0].similarity == 1.0
        assert found[1].similarity == pytest.approx(resemblance(ndd.sketch(TEXT), ndd.sketch(COPY), 64))
        assert find_duplicates(client, index, ndd.sketch(TEXT), size=1) == found[:1]
        assert find_duplicates(client, index, TEXT, min_similarity=1.0) == found[:1]
        assert find_duplicates(client, index, "Something else altogether, of which nothing is known.") == []
        assert find_duplicates(client, index, "") == []


def test_a_wrapped_client_finds_them_too(engine: Engine, index: str) -> None:
    with engine.client() as client:
        create(client, index)
        ndd.wrap(client)
        assert [one.id for one in find_duplicates(client, index, TEXT)] == ["a", "b"]


def test_a_copy_in_capitals_is_found_whatever_shows_its_edges(engine: Engine, index: str) -> None:
    text = "Note: a place is free at Leeds for a child of four whose parents work [Green Homes]"
    with engine.client() as client:
        create(client, index, [{"_id": "1", "body": text}])
        (found,) = find_duplicates(client, index, text.upper(), min_similarity="identical")
        assert (found.id, found.similarity) == ("1", 1.0)


def test_short_texts_are_found_only_when_they_are_identical(engine: Engine, index: str) -> None:
    with engine.client() as client:
        create(client, index, [{"_id": "1", "body": "red shoes for men"}, {"_id": "2", "body": "red shoes for boys"}])
        assert [one.id for one in find_duplicates(client, index, "Red shoes, for men")] == ["1"]
        assert find_duplicates(client, index, "red shoes for all") == []


@pytest.mark.parametrize("recipe", ["w3-k128-v4", "w3-k16-v4-minhash", "w1-k4-v4-simhash"])
def test_the_recipe_is_that_of_the_index_and_a_wrong_one_is_an_error_that_names_both(
    engine: Engine, index: str, recipe: str
) -> None:
    with engine.client() as client:
        create(client, index, recipe=recipe)
        assert find_duplicates(client, index, TEXT, min_similarity=0.9)[0].id == "a"
        assert find_duplicates(client, index, TEXT, recipe=recipe, min_similarity=0.9)[0].id == "a"
        wrong = f"holds sketches of recipe {recipe}, this call uses w5-k64-v4"
        with pytest.raises(RecipeMismatch, match=wrong):
            find_duplicates(client, index, TEXT, recipe="w5-k64-v4")


@pytest.mark.parametrize("bits", [3, 6, 8, 15])
def test_no_fingerprint_within_the_bits_asked_for_is_missed(engine: Engine, index: str, bits: int) -> None:
    recipe, bar = ndd.Recipe.simhash(), cos((bits + 0.5) * pi / 64)
    generator = np.random.default_rng(bits)
    wanted, noise = (int(one) for one in generator.integers(0, 2**63, 2))
    turned = [generator.permutation(64)[: at % 20].tolist() for at in range(200)]
    prints = [wanted ^ sum(1 << bit for bit in one) for one in turned] + [noise]
    sketches = as_sketches(np.array(prints, np.uint64))
    documents = [SketchField().parts(one, recipe, 4) | {"_id": str(at)} for at, one in enumerate(sketches)]
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": mapping_properties()}})
        body = [part for one in documents for part in ({"index": {"_id": one.pop("_id")}}, one)]
        client.bulk(index=index, body=body, refresh=True)
        found = find_duplicates(
            client, index, as_sketches([wanted])[0], recipe=recipe, min_similarity=bar, size=200, keys=2
        )
        expected = {str(at) for at, one in enumerate(prints) if (one ^ wanted).bit_count() <= bits}
        assert {one.id for one in found} == expected
        with pytest.raises(ValueError, match="16 differing bits are too many for stored keys: 15 at most"):
            find_duplicates(client, index, TEXT, recipe=recipe, min_similarity=cos(16 * pi / 64))


def test_documents_of_another_recipe_are_not_compared_which_is_said(
    engine: Engine, index: str, caplog: pytest.LogCaptureFixture
) -> None:
    with engine.client() as client:
        create(client, index)
        store(client, index, ndd.with_sketches([{"_id": "other", "body": TEXT}], "body", keys=8, recipe="w3-k128-v4"))
        assert [one.id for one in find_duplicates(client, index, TEXT)] == ["a", "b"]
        assert "several recipes (w3-k64-v4, w3-k128-v4): only the first is compared" in caplog.text
        assert [one.id for one in find_duplicates(client, index, TEXT, recipe="w3-k128-v4")] == ["other"]


@given(st.integers(1, 64), st.floats(0.01, 1))
def test_the_keys_that_must_be_shared_are_at_least_one_and_at_most_all(keys: int, bar: float) -> None:
    assert 1 <= shared_keys(keys, bar) <= keys
    assert shared_keys(keys, 1.0) == keys


def test_copies_of_one_id_in_two_indexes_are_found(engine: Engine, index: str) -> None:
    other = f"{index}-other"
    with engine.client() as client:
        create(client, index)
        create(client, other, DOCUMENTS[:1])
        try:
            found = find_duplicates(client, f"{index}*", TEXT)
        finally:
            client.indices.delete(index=other)
    assert sorted((one.id, one.index) for one in found) == [("a", index), ("a", other), ("b", index)]


@pytest.mark.parametrize("keys", [8, 16])
def test_at_most_one_in_a_hundred_pairs_at_the_bar_shares_too_few_keys(keys: int) -> None:
    rng, bar, shingles = np.random.default_rng(7), 0.5, 300
    union = round(2 * shingles / (1 + bar))
    values = rng.random((2_000, union))
    first, second = np.sort(values[:, :shingles])[:, :keys], np.sort(values[:, union - shingles :])[:, :keys]
    shared = (first[:, :, None] == second[:, None, :]).sum(axis=(1, 2))
    assert (shared < shared_keys(keys, bar)).mean() <= 0.015
    assert (shared < shared_keys(keys, bar) + 1).mean() > 0.01, "more could be asked for"


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"keys": 0}, "keys must be 1"), ({"examined": 0}, "examined must be"), ({"min_similarity": 0.0}, "above 0")],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CandidateSearch(**settings)


@pytest.mark.newest_servers
def test_as_many_duplicates_of_a_document_are_found_as_are_asked_for(
    engine: Engine, index: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """More candidates are compared until the requested number is found; if a limit ends that, it is reported."""
    with engine.client() as client:
        create(client, index, [{"_id": str(number), "body": TEXT} for number in range(250)])
        assert len(find_duplicates(client, index, TEXT, size=1_000)) == 250
        assert len(find_duplicates(client, index, TEXT, size=150)) == 150
        with pytest.raises(ValueError, match=r"size must be 1\.\.10000, got 0"):
            find_duplicates(client, index, TEXT, size=0)
        with pytest.raises(TypeError, match="takes a text or a sketch, got NoneType"):
            find_duplicates(client, index, None)  # type: ignore[arg-type]
        assert not caplog.messages
        monkeypatch.setattr("ndd_search.indexing.duplicates_in_index.MOST_EXAMINED", 100)
        assert len(find_duplicates(client, index, TEXT, size=100, examined=20)) == 100
        assert not caplog.messages
        assert len(find_duplicates(client, index, TEXT, size=150)) == 100
        assert "documents that share most keys with it were compared: there may be more" in caplog.text


def test_keys_are_added_to_sketches_that_were_made_without(engine: Engine, index: str) -> None:
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": mapping_properties(keys=False)}})
        store(client, index, ndd.with_sketches([*DOCUMENTS, {"_id": "empty", "body": "?"}], "body", keys=0))
        with pytest.raises(IndexUnusable, match=r"has no keys \(ndd_keys\); store them"):
            find_duplicates(client, index, TEXT)
        settings = Backfill(index=index, fields=["body"])
        assert settings.run(client).tally.written == 3
        assert settings.run(client).tally.written == 0
        client.indices.refresh(index=index)
        assert [one.id for one in find_duplicates(client, index, TEXT)] == ["a", "b"]


def test_an_asynchronous_client_is_refused_before_it_is_asked(engine: Engine) -> None:
    async def refused() -> None:
        async with engine.async_client() as client:
            for take in (
                lambda one: find_duplicates(one, "news", TEXT),
                Backfill(index="news", fields=["body"]).run,
                Doctor(index="news").examine,
            ):
                with pytest.raises(TypeError, match="a synchronous client is needed"):
                    take(client)

    asyncio.run(refused())


def test_settings_of_find_duplicates_that_cannot_be_are_named() -> None:
    with pytest.raises(TypeError, match="size must be a whole number, got '3'"):
        find_duplicates(None, "news", TEXT, size="3")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"unknown option 'sise'.*the options are recipe, field"):
        find_duplicates(None, "news", TEXT, sise=3)
