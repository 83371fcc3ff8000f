"""The search page behind `ndd-search serve`: on real engines, and with the rights of each caller."""

from __future__ import annotations

import importlib
import random
import re
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlencode

import pytest

import ndd_search as ndd
from tests.engines.find import MODULES
from tests.engines.find import Engine as RealEngine
from tests.proxy.serving import Engine, Heard, Served, ask, response, serving
from tests.ui.news import STORIES, documents, hostile
from tests.ui.test_page import facets, links, titles

WORDS = " ".join(STORIES.values()).split()
MAPPING = {"source": {"type": "keyword"}, "date": {"type": "date"}, "url": {"type": "keyword"}}


def text(served: Served, query: str, path: str = "", status: int = 200, **headers: str) -> str:
    got = ask(served.url, "GET", f"/_ndd/search/{path}?{query}", headers=headers)
    assert got.status == status, got.body.decode()
    return got.body.decode()


def test_the_page_behind_the_proxy(engine: RealEngine, index: str) -> None:
    """Pages, facets, filters, documents and pairs; everything else still passes to the engine."""
    made = [*documents(), *({**one, "date": None, "source": one["source"][:80]} for one in hostile()[:8])]
    acts = [{"_index": index, "_id": one["id"], "_source": one} for one in made]
    helpers = importlib.import_module(f"{MODULES[engine.family]}.helpers")
    with engine.client() as client:
        properties = {**ndd.indexing.mapping_properties(), **MAPPING}
        client.indices.create(index=index, body={"mappings": {"properties": properties}})
        helpers.bulk(client, ndd.with_sketches(acts, fields=["title", "body"]), refresh=True)
        query = {"simple_query_string": {"query": "climate", "lenient": True}}
        expected: Any = ndd.wrap(client).search(index=index, body={"query": query})
    with serving(engine.url, search_page=f"{index}*") as served:
        page = text(served, "q=climate")
        assert titles(page) == [hit["_source"]["title"] for hit in expected["hits"]["hits"]]
        assert f"<dt>hidden</dt><dd>{expected['ndd']['hidden']}</dd>" in page
        check_facets(served, page)
        check_texts(served, index, len(made))
        assert len(titles(text(served, "q=climate&source=The+Courier&period=2026-09"))) == 5
        assert len(titles(text(served, "q=climate&order=engine&period=2026"))) == 10
        assert titles(text(served, "q=climate&period=9999-12")) == []
        assert "needs its index" in text(served, "a=x", "document", 400)
        assert len(titles(text(served, "q=climate&min_similarity=1"))) > len(titles(page))
        (pair, *_) = (link for link in links(page, "document") if "b_index" in link)
        compared = text(served, pair.partition("?")[2], "document")
        assert "alike, by their sketches" in compared
        assert compared.count("<mark>") >= 1
        assert (
            re.findall(r'<span class="fact"><bdi>id <bdi>(.*?)</bdi>', compared)
            == parse_qs(pair.partition("?")[2])["a"] + (parse_qs(pair.partition("?")[2])["b"])
        )
        slips = {"climate AND summit": "+climate +summit", "climate OR coal": "climate | coal", "NOT coal": "-coal"}
        slips |= {'"climate': 'write "climate"', "title:climate": "title: is read as a word"}
        for typed, right in slips.items():
            assert right in unescape(text(served, urlencode({"q": typed})))
        odd = text(served, "q=hostile&order=engine")
        assert len(titles(odd)) == 8
        assert "<script>document" not in odd
        assert "<script>document" not in text(served, links(odd, "document")[0].partition("?")[2], "document")
        elsewhere = re.sub(r"a_index=[^&]*", "a_index=ndd-tables", unescape(links(page, "document")[0]))
        assert "not in the index" in text(served, elsewhere.partition("?")[2], "document", 404)
        assert "Nothing was found" in text(served, "q=%22no+such+words%22")
        assert ask(served.url, "GET", f"/{index}/_count").status == 200
    with serving(engine.url, search_page="ndd-none") as served:
        assert "no such index" in text(served, "q=climate", status=404)
    with serving(engine.url, search_page="ndd-none*") as served:
        assert "no index matches ndd-none*" in text(served, "q=climate", status=404)


def check_facets(served: Served, page: str) -> None:
    """The number of each value is that of the results behind it; a filter leaves the numbers of its own facet."""
    assert list(facets(page, "Source"))[:2] == ["The Courier", "Evening Post"]
    assert list(facets(page, "Date")) == ["October 2026", "September 2026"]
    assert "Numbers count results." in page
    for facet in ("Source", "Date"):
        for count, link in facets(page, facet).values():
            filtered = text(served, link[1:])
            assert count == len(titles(filtered))
            assert facets(filtered, facet) != {}
            assert {name: one[0] for name, one in facets(filtered, facet).items()} == {
                name: one[0] for name, one in facets(page, facet).items()
            }
    engine_order = text(served, "q=climate&order=engine")
    assert "Numbers count documents" in engine_order
    assert facets(engine_order, "Date")["September 2026"][0] == sum("-09-" in one["date"] for one in documents())
    assert len(titles(text(served, "q=climate&order=engine&source=Harbour+News&source=Daily+Record"))) == 3


def check_texts(served: Served, index: str, count: int) -> None:
    """Matched words are marked; pages without results say how many documents there are; a document has its copies."""
    marked = text(served, "q=reefs+recovers")
    assert "Coral <mark>reefs</mark> recover where" in marked  # the mapping has no stemmer
    assert "Coral <mark>reefs</mark> recover faster" in marked
    assert f"has {count} documents" in text(served, "")
    assert f"see all {count} documents" in text(served, "q=zeppelin")
    alone = text(served, f"a=02&a_index={index}", "document")
    copies = [parse_qs(link)["b"][0] for link in links(alone, "document") if "b_index" in link]
    assert sorted(copies) == ["00", "01", "03"]
    assert "Evening Post" in alone
    assert len(titles(text(served, "q=climate&source=&order=engine"))) == 0  # an empty source is one


@pytest.mark.newest_servers
def test_numbers_beyond_the_window_are_estimates_and_say_so(engine: RealEngine, index: str) -> None:
    """300 texts, each in two copies with another source: about 300 results of each source."""
    texts = [" ".join(random.Random(n).choices(WORDS, k=60)) for n in range(300)]
    made = [
        {"id": f"{n}-{copy}", "body": f"news {texts[n]}", "source": f"Paper {copy}"}
        for n in range(300)
        for copy in (1, 2)
    ]
    acts = [{"_index": index, "_id": one["id"], "_source": one} for one in made]
    with engine.client() as client:
        client.indices.create(
            index=index, body={"mappings": {"properties": {**ndd.indexing.mapping_properties(), **MAPPING}}}
        )
        importlib.import_module(f"{MODULES[engine.family]}.helpers").bulk(
            client, ndd.with_sketches(acts, fields=["body"]), refresh=True
        )
    with serving(engine.url, search_page=index) as served:
        page = text(served, "q=news")
        assert "Numbers are estimates of results." in page
        for count, _ in facets(page, "Source").values():
            assert 150 < count <= 300


def test_callers_search_with_their_own_rights(behind_page: Engine) -> None:
    """Credentials reach the engine, its challenge reaches the browser, and no page is another caller's."""

    def reply(heard: Heard) -> bytes:
        who = heard.header("authorization")
        if not who:
            return response(b'{"error": "who?"}', ("www-authenticate", 'Basic realm="x"'), status=401)
        hit = b'{"_index": "i", "_id": "1", "_score": 1.0, "_source": {"title": "for %s"}}' % who.encode()
        return response(b'{"took": 1, "hits": {"total": {"value": 1, "relation": "eq"}, "hits": [%s]}}' % hit)

    behind_page.reply = reply
    with serving(behind_page.url, search_page="i") as served:
        for who in ("Basic YQ==", "Basic Yg==", "Basic YQ=="):
            page = text(served, "q=x", authorization=who, cookie="a=b")
            assert titles(page) == [f"for {who}"]
            assert "The hits of this page were not compared: no hit has a sketch" in page
        assert {heard.header("cookie") for heard in behind_page.heard} == {"a=b"}
        refused = ask(served.url, "GET", "/_ndd/search/?q=x")
        assert (refused.status, refused.header("www-authenticate")) == (401, 'Basic realm="x"')
        moved = ask(served.url, "GET", "/_ndd/search?q=x")
        assert (moved.status, moved.header("location")) == (308, "search/?q=x")
        assert ask(served.url, "GET", "/_ndd/search/style.css").header("content-type") == "text/css; charset=utf-8"
        assert ask(served.url, "POST", "/_ndd/search/").status == 405
        behind_page.heard = []
        ask(served.url, "GET", "/_ndd/searches")
        assert [heard.target for heard in behind_page.heard] == ["/_ndd/searches"]
    with serving(behind_page.url) as served:  # without the setting there is no page
        behind_page.heard = []
        assert ask(served.url, "GET", "/_ndd/search/?q=x").status == 401
        assert [heard.target for heard in behind_page.heard] == ["/_ndd/search/?q=x"]
    with serving("http://127.0.0.1:1", search_page="i") as served:
        assert "there is no connection" in text(served, "q=x", status=502)
