"""Searches read only the form in which an index stores sketches, and notice a hit that has another."""

from __future__ import annotations

import json
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search import native
from ndd_search.indexing.mapping import mapping_properties
from ndd_search.sketching.field import SketchField, Storage
from tests.engines.find import Engine
from tests.wrapping.conftest import Connect, bulk
from tests.wrapping.proxy import Passed, Proxy

FIELD = SketchField()
FORMS: dict[Storage, str] = {"integers": FIELD.sketch, "packed": FIELD.packed}
STORIES = [" ".join(f"{name}{n}" for n in range(60)) for name in ("steel", "final", "storm")]
BODY = {"query": {"match": {"kind": "story"}}, "size": 2, "sort": [{"rank": "asc"}]}

pytestmark = pytest.mark.skipif(native.core is None, reason="without the native core all forms are always read")


def documents(index: str, storage: Storage, *texts: str, first: int = 0) -> list[dict[str, Any]]:
    """Return bulk actions; texts are ranked in this order."""
    given = [
        {"_index": index, "_id": f"{first + n}", "text": text, "kind": "story", "rank": first + n}
        for n, text in enumerate(texts)
    ]
    return list(ndd.with_sketches(given, "text", storage=storage))


def forms_read(request: Passed) -> list[str]:
    """Return the forms that a search reads."""
    lines = [json.loads(line) for line in request.body.splitlines()]
    (read,) = {
        tuple(name for name in one["docvalue_fields"] if name in FIELD.values) for one in lines if "query" in one
    }
    return list(read)


def shown(answer: dict[str, Any]) -> list[tuple[str, Any, list[Any]]]:
    """Return the hits of a page: the id, the document, and the duplicates listed."""
    hits = [
        (hit, hit.get("inner_hits", {}).get("near_duplicates", {"hits": {"hits": []}}))
        for hit in answer["hits"]["hits"]
    ]
    return [
        (hit["_id"], hit["_source"], [(one["_id"], one["_source"]) for one in under["hits"]["hits"]])
        for hit, under in hits
    ]


@pytest.mark.parametrize("strategy", ["one_phase", "one_trip"])
@pytest.mark.parametrize("storage", ["integers", "packed"])
def test_the_form_of_an_index_is_read_alone_until_a_hit_has_another(
    engine: Engine, connect: Connect, proxy: Proxy, index: str, storage: Storage, strategy: str
) -> None:
    other: Storage = "integers" if storage == "packed" else "packed"
    steel, final, storm = STORIES
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": mapping_properties()}})
        bulk(engine, client, documents(index, storage, steel, f"again {steel}", final, storm))
        caller = connect(proxy.url, cache=False, window=4, strategy=strategy)

        def search(start: int = 0) -> list[list[str]]:
            """Compare a page with that of a new client, and return the forms that each request read."""
            proxy.reset()
            found = caller.search(index=index, body={**BODY, "from": start})
            requests = [forms_read(one) for one in proxy.searches]
            fresh = connect(cache=False, window=4, strategy=strategy)
            assert shown(found) == shown(fresh.search(index=index, body={**BODY, "from": start}))
            assert all(document == whole[id] for id, document in documents_in(found))
            return requests

        def documents_in(answer: dict[str, Any]) -> list[tuple[str, Any]]:
            return [pair for id, document, under in shown(answer) for pair in [(id, document), *under]]

        whole = sources(client, index)
        assert search()[0] == list(FIELD.values)
        assert search()[0] == [FORMS[storage]]
        assert search(2)[0] == [FORMS[storage]]
        bulk(engine, client, documents(index, other, f"once more {steel}", final, first=4))
        whole = sources(client, index)
        requests = search(2)  # the page lies in the second window
        assert requests[0] == [FORMS[storage]]
        assert requests[-1] == list(FIELD.values)
        assert search()[0] == list(FIELD.values)  # for an hour


@pytest.mark.parametrize("storage", ["integers", "packed"])
def test_where_an_empty_text_is_found_all_forms_are_read(
    engine: Engine, connect: Connect, proxy: Proxy, index: str, storage: Storage
) -> None:
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": mapping_properties()}})
        bulk(engine, client, documents(index, storage, STORIES[0], "!", STORIES[0], "?"))
        caller = connect(proxy.url, cache=False)
        for _ in range(3):
            proxy.reset()
            assert [hit[0] for hit in shown(caller.search(index=index, body={**BODY, "size": 10}))] == ["0", "1", "3"]
            assert [forms_read(one) for one in proxy.searches] == [list(FIELD.values)]


def sources(client: Any, index: str) -> dict[str, Any]:
    """Return all documents as their owner wrote them."""
    hits = client.search(index=index, body={"size": 100, "_source": {"excludes": ["ndd"]}})["hits"]["hits"]
    return {hit["_id"]: hit["_source"] for hit in hits}
