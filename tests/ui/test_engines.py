"""The search page on real engines, and with the rights of each caller."""

from __future__ import annotations

import importlib
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlencode

import pytest

import ndd_search as ndd
from ndd_search.cli.output import Parser
from ndd_search.cli.ui import configure, searcher_of
from ndd_search.serving.ui.application import SearchPage
from tests.engines.find import MODULES
from tests.engines.find import Engine as RealEngine
from tests.proxy.serving import Engine, Heard, ask, response
from tests.ui.conftest import served
from tests.ui.news import STORIES, documents, hostile
from tests.ui.test_page import facets, links, titles

WORDS = " ".join(STORIES.values()).split()
MAPPING = {"source": {"type": "keyword"}, "date": {"type": "date"}, "url": {"type": "keyword"}}


@contextmanager
def searching(url: str, index: str) -> Iterator[str]:
    """The address of the page that `ndd-search ui URL INDEX` serves."""
    configure(parser := Parser())
    with served(SearchPage(searcher_of(parser.parse_args([url, index])))) as address:
        yield address


def text(page: str, query: str, path: str = "", status: int = 200, **headers: str) -> str:
    got = ask(page, "GET", f"/{path}?{query}", headers=headers)
    assert got.status == status, got.body.decode()
    return got.body.decode()


def test_the_page_of_an_engine(engine: RealEngine, index: str) -> None:
    """Pages, facets, filters, documents and pairs."""
    made = [*documents(), *({**one, "date": None, "source": one["source"][:80]} for one in hostile()[:8])]
    acts = [{"_index": index, "_id": one["id"], "_source": one} for one in made]
    helpers = importlib.import_module(f"{MODULES[engine.family]}.helpers")
    with engine.client() as client:
        properties = {**ndd.indexing.mapping_properties(), **MAPPING}
        client.indices.create(index=index, body={"mappings": {"properties": properties}})
        helpers.bulk(client, ndd.with_sketches(acts, fields=["title", "body"]), refresh=True)
        query = {"simple_query_string": {"query": "climate", "lenient": True}}
        expected: Any = ndd.wrap(client).search(index=index, body={"query": query})
    with searching(engine.url, f"{index}*") as address:
        page = text(address, "q=climate")
        assert titles(page) == [hit["_source"]["title"] for hit in expected["hits"]["hits"]]
        assert f"<dt>hidden</dt><dd>{expected['ndd']['hidden']}</dd>" in page
        check_facets(address, page)
        check_texts(address, index, len(made))
        assert len(titles(text(address, "q=climate&source=The+Courier&period=2026-09"))) == 5
        assert len(titles(text(address, "q=climate&order=engine&period=2026"))) == 10
        assert titles(text(address, "q=climate&period=9999-12")) == []
        assert "needs its index" in text(address, "a=x", "document", 400)
        assert len(titles(text(address, "q=climate&min_similarity=1"))) > len(titles(page))
        (pair, *_) = (link for link in links(page, "document") if "b_index" in link)
        compared = text(address, pair.partition("?")[2], "document")
        assert "alike, by their sketches" in compared
        assert compared.count("<mark>") >= 1
        assert (
            re.findall(r'<span class="fact"><bdi>id <bdi>(.*?)</bdi>', compared)
            == parse_qs(pair.partition("?")[2])["a"] + (parse_qs(pair.partition("?")[2])["b"])
        )
        slips = {"climate AND summit": "+climate +summit", "climate OR coal": "climate | coal", "NOT coal": "-coal"}
        slips |= {'"climate': 'write "climate"', "title:climate": "title: is read as a word"}
        for typed, right in slips.items():
            assert right in unescape(text(address, urlencode({"q": typed})))
        odd = text(address, "q=hostile&order=engine")
        assert len(titles(odd)) == 8
        assert "<script>document" not in odd
        assert "<script>document" not in text(address, links(odd, "document")[0].partition("?")[2], "document")
        elsewhere = re.sub(r"a_index=[^&]*", "a_index=ndd-tables", unescape(links(page, "document")[0]))
        assert "not in the index" in text(address, elsewhere.partition("?")[2], "document", 404)
        assert "Nothing was found" in text(address, "q=%22no+such+words%22")
    with searching(engine.url, "ndd-none") as address:
        assert "no such index" in text(address, "q=climate", status=404)
    with searching(engine.url, "ndd-none*") as address:
        assert "no index matches ndd-none*" in text(address, "q=climate", status=404)


def check_facets(address: str, page: str) -> None:
    """The number of each value is that of the results behind it; a filter leaves the numbers of its own facet."""
    assert list(facets(page, "Source"))[:2] == ["The Courier", "Evening Post"]
    assert list(facets(page, "Date")) == ["October 2026", "September 2026"]
    assert "Numbers count results." in page
    for facet in ("Source", "Date"):
        for count, link in facets(page, facet).values():
            filtered = text(address, link[1:])
            assert count == len(titles(filtered))
            assert facets(filtered, facet) != {}
            assert {name: one[0] for name, one in facets(filtered, facet).items()} == {
                name: one[0] for name, one in facets(page, facet).items()
            }
    engine_order = text(address, "q=climate&order=engine")
    assert "Numbers count documents" in engine_order
    assert facets(engine_order, "Date")["September 2026"][0] == sum("-09-" in one["date"] for one in documents())
    assert len(titles(text(address, "q=climate&order=engine&source=Harbour+News&source=Daily+Record"))) == 3


def check_texts(address: str, index: str, count: int) -> None:
    """Matched words are marked; pages without results say how many documents there are; a document has its copies."""
    marked = text(address, "q=reefs+recovers")
    assert "Coral <mark>reefs</mark> recover where" in marked  # the mapping has no stemmer
    assert "Coral <mark>reefs</mark> recover faster" in marked
    assert f"has {count} documents" in text(address, "")
    assert f"see all {count} documents" in text(address, "q=zeppelin")
    alone = text(address, f"a=02&a_index={index}", "document")
    copies = [parse_qs(link)["b"][0] for link in links(alone, "document") if "b_index" in link]
    assert sorted(copies) == ["00", "01", "03"]
    assert "Evening Post" in alone
    assert len(titles(text(address, "q=climate&source=&order=engine"))) == 0  # an empty source is one


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
    with searching(engine.url, index) as address:
        page = text(address, "q=news")
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
    with searching(behind_page.url, "i") as address:
        for who in ("Basic YQ==", "Basic Yg==", "Basic YQ=="):
            page = text(address, "q=x", authorization=who)
            assert titles(page) == [f"for {who}"]
            assert "The hits of this page were not compared: no hit has a sketch" in page
        refused = ask(address, "GET", "/?q=x")
        assert (refused.status, refused.header("www-authenticate")) == (401, 'Basic realm="x"')
        assert ask(address, "GET", "/style.css").header("content-type") == "text/css; charset=utf-8"
        assert ask(address, "POST", "/").status == 405
    with searching("http://127.0.0.1:1", "i") as address:
        assert "there is no connection" in text(address, "q=x", status=502)
