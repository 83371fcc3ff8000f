"""The search page of an index folder without a browser: what the HTML holds, headers, errors, the command."""

from __future__ import annotations

import argparse
import asyncio
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

import pytest

import ndd_search as ndd
from ndd_search.cli import main, ui
from ndd_search.serving.proxy.search_engine import UpstreamSearcher
from ndd_search.serving.ui.application import Reply, SearchPage
from ndd_search.serving.ui.search_folder import FolderSearcher
from ndd_search.serving.ui.searcher import Asked, Document, Found, Headers
from tests.proxy.serving import ask
from tests.ui.news import documents


def get(page: SearchPage, query: str, path: str = "/", method: str = "GET", host: str = "localhost:80") -> Reply:
    return asyncio.run(page.reply(method, path, query, {"host": host}))


def html(reply: Reply) -> str:
    assert reply.status == 200, reply.body.decode()
    return reply.body.decode()


def titles(text: str) -> list[str]:
    found = re.findall(r'<h2 class="title"><a href="[^"]*">(.*?)</a></h2>', text)
    return [unescape(re.sub("</?mark>", "", title)) for title in found]


def facets(text: str, heading: str = "") -> dict[str, tuple[int, str]]:
    """The values of the facets, or of one, as they are shown, each with its number and its link."""
    shown = re.findall(
        r'<li><a href="([^"]*)"[^>]*>\s*<span class="label">(.*?)</span> <span class="count">([\d,]+)',
        text.partition(f"<h2>{heading}</h2>")[2].partition("</section>")[0] if heading else text,
    )
    return {unescape(re.sub("<[^>]*>", "", name)): (int(count), unescape(link)) for link, name, count in shown}


def links(text: str, start: str) -> list[str]:
    return [unescape(link) for link in re.findall(r'href="([^"]*)"', text) if link.startswith(start)]


@pytest.fixture
def page(news: ndd.Index) -> SearchPage:
    return SearchPage(FolderSearcher(news))


def test_a_page_shows_what_a_search_gives(page: SearchPage, news: ndd.Index) -> None:
    """Results in order, all their near-duplicates, the figures of the block ndd."""
    expected = news.search("climate", size=10)
    text = html(get(page, "q=climate"))
    assert titles(text) == [hit["_source"]["title"] for hit in expected["hits"]["hits"]]
    copies = [
        hit["inner_hits"]["near_duplicates"]["hits"]["hits"] for hit in expected["hits"]["hits"] if "inner_hits" in hit
    ]
    assert re.findall(r"<summary>and (\d+) near-duplicates?</summary>", text) == [str(len(group)) for group in copies]
    similarities = [round(100 * copy["fields"]["ndd.similarity"][0]) for group in copies for copy in group]
    assert [int(one) for one in re.findall(r'class="alike"><bdi>(\d+)% alike', text)] == similarities
    for name in ("examined", "kept", "hidden"):
        assert f"<dt>{name}</dt><dd>{expected['ndd'][name]}</dd>" in text
    engine = html(get(page, "q=climate&order=engine"))
    plain = news.search("climate", size=10, mode="annotate")["hits"]["hits"]
    assert titles(engine) == [hit["_source"]["title"] for hit in plain]
    assert engine.count("like a result above") == sum("fields" in hit for hit in plain)


def test_engine_order_says_what_would_be_hidden(page: SearchPage, news: ndd.Index) -> None:
    text = html(get(page, "q=climate&order=engine"))
    hidden, there = news.search("climate")["ndd"]["hidden"], text.count("would be hidden: ")
    assert f"Deduplicated, {hidden} of the 11 hits compared would be hidden, {there} of them on this page." in text


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ('"climate summit', 'it is not complete, write "climate summit"'),
        ("(climate", "it is not complete, write (climate)"),
        ("climate NOT", "it is not complete, write climate"),
        ("date:[2026-01-01 TO", "it is not complete, write date:[2026-01-01 TO *]"),
        ("titel:climate", "no document has a field 'titel' (did you mean title?)"),
    ],
)
def test_a_slip_is_explained_with_the_right_form(page: SearchPage, news: ndd.Index, typed: str, said: str) -> None:
    """And what is written there is read without a note."""
    assert said in unescape(html(get(page, urlencode({"q": typed}))))
    if "write " in said:
        assert "notes" not in news.search(said.partition("write ")[2])["ndd"]


def test_an_empty_result_offers_searches_that_find_something(page: SearchPage) -> None:
    for asked, offers in (({"q": "+climate +zeppelin"}, 1), ({"q": "trains", "source": "Daily Record"}, 1)):
        offered = re.findall(r'<li><a href="\?([^"]*)"><bdi>search', html(get(page, urlencode(asked))))
        assert len(offered) == offers
        assert all('class="result"' in html(get(page, unescape(query))) for query in offered)


def test_another_min_similarity_is_that_of_the_search(page: SearchPage, news: ndd.Index) -> None:
    shown = news.search("climate", size=10, min_similarity=0.9)["hits"]["hits"]
    assert len(shown) > len(news.search("climate", size=10)["hits"]["hits"])
    assert html(get(page, "q=climate&min_similarity=0.9")).count('class="result"') == len(shown)


def test_facets_filter_and_links_keep_the_state(page: SearchPage) -> None:
    """Every link of the page keeps what it does not change; a filter leaves only documents that pass it."""
    text = html(get(page, "q=climate&order=engine&min_similarity=0.5"))
    assert list(facets(text))[:2] == ["The Courier", "Evening Post"]
    for link in links(text, "?"):
        if link not in ("?", "?q=climate&order=engine"):
            assert "q=climate" in link
            assert "min_similarity=0.5" in link
            assert "order=engine" in link or link == "?q=climate&min_similarity=0.5"
    (only,) = (link for link in links(text, "?") if "Courier" in link)
    filtered = html(get(page, only[1:]))
    assert len(titles(filtered)) == sum(one["source"] == "The Courier" for one in documents())
    month = html(get(page, "q=climate&period=2026-10"))
    assert f"<dt>examined</dt><dd>{sum(one['date'].startswith('2026-10') for one in documents())}</dd>" in month
    assert len(titles(html(get(page, "q=climate&period=2026&source=Evening+Post")))) == 3
    assert "Nothing was found" in html(get(page, "q=climate&period=1999"))


@pytest.mark.parametrize("asked", ["q=climate", "q=climate&order=engine", "q=summit&min_similarity=1", "q=hostile"])
def test_the_number_of_a_facet_is_that_of_the_list_behind_it(page: SearchPage, asked: str) -> None:
    """Also beside a filter by the other facet. A filter leaves the numbers of its own facet as they are."""
    first = html(get(page, asked))
    for facet, other in (("Source", "Date"), ("Date", "Source")):
        for count, link in facets(first, facet).values():
            assert count == len(every_title(page, link))
            filtered = html(get(page, link[1:]))
            assert {name: number for name, (number, _) in facets(filtered, facet).items()} == {
                name: number for name, (number, _) in facets(first, facet).items()
            }
            for number, further in facets(filtered, other).values():
                assert number == len(every_title(page, further))
    assert "Numbers count " + ("documents, near-dup" if "engine" in asked else "results") in first


def every_title(page: SearchPage, link: str) -> list[str]:
    """The titles on all pages behind a link."""
    seen: list[str] = []
    while link:
        text = html(get(page, link[1:]))
        seen += titles(text)
        link = next((unescape(one) for one in re.findall(r'rel="next" href="([^"]*)"', text)), "")
    return seen


def test_several_values_of_a_facet_are_chosen_together(page: SearchPage) -> None:
    text = html(get(page, "q=climate&source=Harbour+News&source=Daily+Record&order=engine"))
    chosen = [one["title"] for one in documents() if one["source"] in ("Harbour News", "Daily Record")]
    assert sorted(titles(text)) == sorted(chosen)
    assert text.count('aria-current="true"><') == 0
    assert {name for name, (_, link) in facets(text).items() if "source=Harbour+News" not in link} == {"Harbour News"}
    assert len(facets(text)) > 4  # the others can be added
    months = html(get(page, "q=climate&period=2026-09&period=2026-10&order=engine"))
    assert len(titles(months)) == 10
    assert "Remove all" in months


def test_a_source_without_words_is_no_filter(tmp_path: Path) -> None:
    """It could not be searched for, so the list behind it would have nothing in common with its number."""
    with ndd.Index.open(tmp_path / "odd.idx", text="body") as index:
        index.add([{"id": n, "body": f"word {n}", "source": source} for n, source in enumerate(("Post", "", "—", "7"))])
        assert set(facets(html(get(SearchPage(FolderSearcher(index)), "q=word")))) == {"Post", "7"}


def test_one_hit_is_one_hit(page: SearchPage) -> None:
    text = html(get(page, "q=frightening"))
    assert "1 hit was found: there is nothing to compare it with." in text
    assert "1 hits" not in text
    text = html(get(page, "q=frightening&order=engine"))
    assert "0 of the 1 hit compared would be hidden" in text


def test_words_are_marked_as_the_index_reads_them(page: SearchPage) -> None:
    """In titles and passages: other forms by its stemmer, no field that was not searched, no operator."""
    text = html(get(page, urlencode({"q": "+title:recovers AND reef"})))
    (title,) = re.findall(r'<h2 class="title"><a href="[^"]*">(.*?)</a></h2>', text)
    assert title == "Coral <mark>reefs</mark> <mark>recover</mark> where fishing stopped"
    (passage,) = re.findall(r'<p class="passage" dir="auto">(.*?)</p>', text)
    assert passage.startswith("Coral <mark>reefs</mark> recover faster")


def test_the_empty_page_says_how_much_there_is_and_what_can_be_typed(page: SearchPage, news: ndd.Index) -> None:
    text = html(get(page, ""))
    assert f"news.idx has {len(news)} documents." in text
    for example in map(unescape, re.findall(r"<dt><code>(.*?)</code>", text)):
        assert "read as" not in html(get(page, urlencode({"q": example}))) or example.startswith("price")
    nothing = html(get(page, "q=zeppelin"))
    assert f'<a href="?q=*">see all {len(news)} documents</a>' in nothing
    assert len(every_title(page, "?q=*&order=engine")) == len(news)
    assert nothing.count("<dt><code>") == text.count("<dt><code>") > 3


def test_the_page_of_a_document_lists_its_copies(page: SearchPage) -> None:
    """Wherever they are in the index, whatever was searched for; each can be compared with it."""
    for id, others in (("00", ["01", "02", "03"]), ("02", ["00", "01", "03"]), ("10", ["11", "12"]), ("40", [])):
        text = html(get(page, f"a={id}", "/document"))
        compared = [parse_qs(link) for link in links(text, "document?") if "&b=" in link]
        assert {one["a"][0] for one in compared} == ({id} if others else set())
        assert sorted(one["b"][0] for one in compared) == others
        assert (f"{len(others)} near-duplicates" in text) == bool(others)
    reasons = re.findall(r'class="fact"><bdi>(.*?text above.*?)</bdi></span>', html(get(page, "a=01", "/document")))
    assert reasons == ["a part of the text above", *reasons[1:]]


def test_a_comparison_says_in_a_sentence_which_figures_decided(page: SearchPage) -> None:
    first = next(link for link in links(html(get(page, "q=climate")), "document?") if "&b=" in link)
    (verdict,) = re.findall(r'class="verdict">(.*?)</p>', html(get(page, first.partition("?")[2], "/document")))
    edges = r"and the two differ at their edges and hardly inside "
    edges += r"\(one has none, the other &#34;… [A-Z]+ \(Wire\) - …&#34;\)"
    assert re.fullmatch(
        rf"They count as near-duplicates: .* alike.*, which reaches the bar of [\d.]+\d, {edges}\.", verdict
    )


class Many:
    """A searcher of thirty results, each with a thousand near-duplicates, two sources and ten years."""

    name = "many"
    text: tuple[str, ...] = ()
    syntax: Sequence[tuple[str, str]] = (("word", "it"),)

    async def count(self, headers: Headers) -> int:
        return 30

    async def search(self, asked: Asked, headers: Headers) -> Found:
        def hit(number: int, **more: Any) -> dict[str, Any]:
            return {
                "_index": "i",
                "_id": str(number),
                "_source": {"title": f"number {number}", "body": "a text"},
                **more,
            }

        copies = [hit(n, fields={"ndd.similarity": [1.0]}) for n in range(1000)]
        inner = {"near_duplicates": {"hits": {"hits": copies}}}
        hits = [hit(n, inner_hits=inner) for n in range(30)[asked.start : asked.start + asked.size]]
        ndd = {
            "examined": 30,
            "kept": 30,
            "hidden": 0,
            "took_ms": 1.0,
            "cache": "hit",
            "degraded": "a <reason>",
            "exhausted": False,
        }
        response = {"took": 1, "hits": {"total": {"value": 30, "relation": "gte"}, "hits": hits}, "ndd": ndd}
        return Found(response=response, sources=[("", 1), ("a&b", 2)])

    async def documents(self, names: Any, headers: Headers) -> list[Document]:
        return []

    def verdict(self, pair: Any, options: Mapping[str, Any]) -> str:
        return ""

    async def close(self) -> None: ...


def test_the_time_of_the_whole_search_is_that_between_question_and_answer() -> None:
    class Slow(Many):
        async def search(self, asked: Asked, headers: Headers) -> Found:
            await asyncio.sleep(0.1)
            return await super().search(asked, headers)

    text = html(get(SearchPage(Slow()), "q=x"))
    (shown,) = re.findall(r"<dt>the whole search</dt><dd>([\d.]+) ms</dd>", text)
    assert float(shown) >= 100
    assert "<dt>comparing</dt><dd>1.0 ms, remembered</dd>" in text


def test_paging_needs_no_script_and_long_lists_stay_short() -> None:
    page = SearchPage(Many())
    seen, link = [], "?q=x"
    while link:
        text = html(get(page, link[1:]))
        seen += titles(text)
        link = next(iter(links(text[text.index('aria-label="Pages"') :].replace('rel="next" ', ""), "?q=x&page")), "")
        link = next((unescape(one) for one in re.findall(r'rel="next" href="([^"]*)"', text)), "")
    assert seen == [f"number {n}" for n in range(30)]
    assert text.count("% alike") == 0  # an empty last page
    first = html(get(page, "q=x"))
    assert "and 1,000 near-duplicates" in first
    assert first.count("% alike") == 10 * 20
    assert "980 more are not listed here" in first
    assert "Near-duplicates may be shown: a &lt;reason&gt;" in first
    assert "more than 30" in first


def test_a_facet_of_many_months_has_years(tmp_path: Path) -> None:
    with ndd.Index.open(tmp_path / "years.idx", text="body") as index:
        index.add([{"id": n, "body": f"word {n}", "date": f"{2015 + n % 10}-{1 + n // 10:02d}-05"} for n in range(100)])
        text = html(get(SearchPage(FolderSearcher(index)), "q=word"))
        assert {name: count for name, (count, _) in facets(text).items()} == {
            str(year): 10 for year in range(2015, 2025)
        }
        assert next(iter(facets(text))) == "2024"


def test_a_page_loads_nothing_from_elsewhere_and_runs_nothing_of_a_document(page: SearchPage) -> None:
    reply = get(page, "q=hostile")
    policy = dict(part.strip().partition(" ")[::2] for part in reply.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert {"'self'", "'none'", "'script'"} >= set(policy.values())
    assert (reply.headers["cache-control"], reply.headers["x-content-type-options"]) == ("no-store", "nosniff")
    text = html(reply)
    assert len(titles(text)) == 5
    assert not re.findall(r"<(?:script(?! src=\"script\.js\" defer>)|img|iframe|object|style)", text)
    assert not re.findall(r"<[^>]*\son\w+=|style=|javascript:", re.sub(r'(?:value|href|aria-label)="[^"]*"', "", text))
    assert not re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", text)
    for link in links(text, "document")[:6]:
        whole = html(get(page, link.partition("?")[2], "/document"))
        assert "<script>document" not in whole
        assert not links(whole, "javascript:")
    for name, kind in (("style.css", "text/css"), ("script.js", "text/javascript"), ("icon.svg", "image/svg+xml")):
        reply = get(page, "", f"/{name}")
        assert (reply.status, reply.headers["content-type"]) == (200, f"{kind}; charset=utf-8")
        assert b"//" not in reply.body.replace(b"http://www.w3.org/2000/svg", b"").replace(b"// The page", b"")


def test_what_goes_wrong_is_said(page: SearchPage, news: ndd.Index, tmp_path: Path) -> None:
    for query, path, status, said in (
        ("q=a&page=0", "/", 400, "page must be a number"),
        ("", "/nope", 404, "there is no page"),
        ("a=nope", "/document", 404, "the document is not in the index any more"),
        ("", "/document", 400, "needs its id"),
    ):
        reply = get(page, query, path)
        assert (reply.status, said in reply.body.decode()) == (status, True)
    assert get(page, "", method="POST").status == 405
    with ndd.Index.open(tmp_path / "bare.idx", text="body") as bare:
        empty = SearchPage(FolderSearcher(bare))
        assert "Nothing was found" in html(get(empty, "q=a"))
        reply = get(empty, "q=a&source=b")
        assert (reply.status, b"has no field of sources" in reply.body) == (400, True)
        bare.add([{"id": 1, "body": "long " * 50_000}])
        assert "Only the first 200,000 characters" in html(get(empty, "a=1", "/document"))
    assert "Nothing was found for" in html(get(page, "q=zzz"))
    assert "the query was read as plain words" in html(get(page, 'q="climate'))
    guarded = SearchPage(FolderSearcher(news), hosts={"localhost", "127.0.0.1", "[::1]"})
    assert [
        get(guarded, "", host=host).status for host in ("localhost", "127.0.0.1:8000", "[::1]:80", "evil.example")
    ] == [
        *(200, 200, 200),
        421,
    ]


def test_an_engine_that_does_not_answer_is_named_before_the_page_is_served(capfd: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    ui.configure(parser)
    assert isinstance(ui.searcher_of(parser.parse_args(["http://localhost:1", "news"])), UpstreamSearcher)
    assert "http://localhost:1: there is no answer" in capfd.readouterr().err


def test_the_command_takes_options_of_a_search(folder: Path) -> None:
    parser = argparse.ArgumentParser()
    ui.add_place(parser)
    searcher = ui.searcher_of(parser.parse_args([str(folder), "--set", "guards=same:source", "--set", "window=7"]))
    assert isinstance(searcher, FolderSearcher)
    assert (searcher._index.options.guards, searcher._index.options.window) == (("same:source",), 7)


def test_the_command_serves_a_folder(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = [sys.executable, "-u", "-m", "ndd_search", "ui", str(folder), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            url = process.stdout.readline().split()[5].rstrip("/")
            found = ask(url, "GET", "/?q=night+trains", headers={"host": "localhost"}).body.decode()
            assert titles(found)[0] == "Night trains return to the north"
            assert ask(url, "GET", "/", headers={"host": "evil.example"}).status == 421
        finally:
            process.send_signal(signal.SIGTERM)
        assert (process.wait(30), process.stderr.read()) == (-signal.SIGTERM, "")
    for words, said in (
        ([str(folder), "news"], "is a folder and holds one index"),
        (["http://localhost:1"], "name what to search at http://localhost:1"),
        (["http://localhost:1", "_search"], "needs the name of an index"),
        (["/no/folder"], "there is no index here"),
        ([str(folder), "--listen", "x"], "is not an address to listen on"),
    ):
        assert main(["ui", *words]) == 2
        assert said in capfd.readouterr().err
