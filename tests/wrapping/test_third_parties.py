"""Retrievers of other libraries over a wrapped client: `make test-third-parties` installs them and runs this."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.core.sketching import sketch_many
from ndd_search.search.rest.mapping import mapping_properties
from tests.engines.find import Engine
from tests.examples import BLOCK, ROOT
from tests.wrapping.conftest import Library
from tests.wrapping.library import BAR, RECIPE, documents, expected, text_of

WHERE = "run `make test-third-parties`"


def check(ids: list[str], wanted: int) -> None:
    """As many as wanted, and no near-duplicates among them but those in doubt."""
    assert len(ids) == len(set(ids)) == wanted
    truth = expected(ids)
    assert [one for one in ids if one not in truth.doubtful] == truth.kept


def unique(engine: Engine, index: str, body: dict[str, Any]) -> int:
    """How many hits a search has without near-duplicates."""
    with engine.client() as client:
        answer = ndd.wrap(client, min_similarity=BAR).search(index=index, body={**body, "size": 200})
        return int(answer["ndd"]["kept"])


def test_langchain_elasticsearch_retrieves_no_near_duplicates(library: Library) -> None:
    retrievers = pytest.importorskip("langchain_elasticsearch", reason=WHERE)
    if library.engine.family != "elasticsearch":
        pytest.skip("a retriever of Elasticsearch")
    with library.engine.client() as client:
        retriever = retrievers.ElasticsearchRetriever(
            index_name=library.news,
            body_func=lambda query: {"query": {"match": {"body": query}}, "size": 30},
            content_field="body",
            client=ndd.wrap(client, min_similarity=BAR, window=40),
        )
        found = retriever.invoke("market")
    check([one.metadata["_id"] for one in found], 30)
    assert all("ndd" not in one.metadata["_source"] for one in found)


def test_a_paginator_of_django_counts_the_hits_of_its_pages(library: Library) -> None:
    """The class is that of docs/paging.md."""
    pytest.importorskip("django", reason=WHERE)
    (block,) = (one for one in BLOCK.finditer((ROOT / "docs" / "paging.md").read_text()) if "django" in one["kind"])
    exec(block["code"], names := dict[str, Any]())
    dsl = import_module("elasticsearch.dsl" if library.engine.family == "elasticsearch" else "opensearchpy")
    with library.engine.client() as client:
        search = dsl.Search(using=ndd.wrap(client, min_similarity=BAR), index=library.news)
        pages = names["Pages"](search.extra(ndd={"total": "groups"}).query("match", body="market"), 10)
        ids = [[hit.meta.id for hit in pages.page(number)] for number in pages.page_range]
    assert all(ids)
    check([one for page in ids for one in page], pages.count)


def stored(haystack: Any) -> list[Any]:
    """The documents as Haystack writes them, with what it calls meta data beside the text."""
    sketches = sketch_many([text_of(one) for one in documents()])
    return [
        haystack.Document(
            id=one["_id"],
            content=one["body"],
            meta={"title": one["title"], "ndd": {"sketch": sketch.tolist(), "recipe": RECIPE.id}},
        )
        for one, sketch in zip(documents(), sketches, strict=True)
    ]


def test_the_bm25_retriever_of_elasticsearch_haystack_comes_to_an_end(engine: Engine, index: str) -> None:
    """It asks again from the number of hits it has until that reaches `hits.total`."""
    haystack = pytest.importorskip("haystack", reason=WHERE)
    stores = pytest.importorskip("haystack_integrations.document_stores.elasticsearch", reason=WHERE)
    retrievers = pytest.importorskip("haystack_integrations.components.retrievers.elasticsearch", reason=WHERE)
    if engine.family != "elasticsearch":
        pytest.skip("a retriever of Elasticsearch")
    from ndd_search.search.clients.elasticsearch import Transport

    mapping = {"properties": {"content": {"type": "text"}, **mapping_properties()}}
    chosen = Transport.using(min_similarity=BAR, window=40)
    store = stores.ElasticsearchDocumentStore(
        hosts=engine.url, index=index, custom_mapping=mapping, transport_class=chosen, request_timeout=60
    )
    store.write_documents(stored(haystack))
    retriever = retrievers.ElasticsearchBM25Retriever(document_store=store)
    try:
        for top_k in (10, 30):
            found = retriever.run(query="market", top_k=top_k)["documents"]
            check([one.id for one in found], top_k)
            assert all("ndd" not in one.meta for one in found)
        every = retriever.run(query="market", top_k=500)["documents"]  # more than there are: it used to go on for ever
        check([one.id for one in every], unique(engine, index, {"query": {"match": {"content": "market"}}}))
    finally:
        store.client.close()


def test_the_bm25_retriever_of_opensearch_haystack_fills_its_page(engine: Engine, index: str) -> None:
    haystack = pytest.importorskip("haystack", reason=WHERE)
    stores = pytest.importorskip("haystack_integrations.document_stores.opensearch", reason=WHERE)
    retrievers = pytest.importorskip("haystack_integrations.components.retrievers.opensearch", reason=WHERE)
    if engine.family != "opensearch":
        pytest.skip("a retriever of OpenSearch")
    from ndd_search.search.clients.opensearch import Transport

    mapping = {"properties": {"content": {"type": "text"}, **mapping_properties()}}
    chosen = Transport.using(min_similarity=BAR, window=40)
    store = stores.OpenSearchDocumentStore(
        hosts=engine.url, index=index, mappings=mapping, settings={}, transport_class=chosen, timeout=60
    )
    store.write_documents(stored(haystack))
    retriever = retrievers.OpenSearchBM25Retriever(document_store=store)
    for top_k in (10, 30):
        found = retriever.run(query="market", top_k=top_k)["documents"]
        check([one.id for one in found], top_k)
        assert all("ndd" not in one.meta for one in found)
    every = retriever.run(query="market", top_k=500)["documents"]
    check([one.id for one in every], unique(engine, index, {"query": {"match": {"content": "market"}}}))
