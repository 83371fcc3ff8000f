"""Six hundred documents in two hundred groups of three whose members rank far apart, with a window of a hundred."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.cli import DONE, NO, main
from ndd_search.search.flow.observer import Observation
from ndd_search.search.rest.mapping import mapping_properties
from tests.engines.find import Engine
from tests.wrapping.conftest import Connect, bulk
from tests.wrapping.proxy import Harm, Proxy
from tests.wrapping.test_faults import after_the_first

pytestmark = pytest.mark.one_kind_of_client

GROUPS, COPIES, SIZE, WINDOW = 200, 3, 10, 100
STARTS = (0, 10, 90, 100, 190)
WORDS = [f"word{number}" for number in range(2000)]
RANKED: dict[str, Any] = {
    "function_score": {
        "query": {"match": {"body": "market"}},
        "field_value_factor": {"field": "weight"},
        "boost_mode": "replace",
    }
}
KEEP = {"keep": ["newest:day"], "members": "all"}


@dataclass(frozen=True)
class Articles:
    """The index, and the ids of each group, newest first, by group."""

    index: str
    groups: dict[str, list[str]]
    is_paged: bool  # whether the server has cursors


class Seen:
    """An observer that counts the requests of each search."""

    def __init__(self) -> None:
        self.trips: list[int] = []

    def observe(self, seen: Observation) -> None:
        self.trips.append(seen.trips)


def group_of(id: str) -> str:
    return id.partition("-")[0]


@pytest.fixture(scope="module")
def articles(engine: Engine) -> Iterator[Articles]:
    """Copy c of text t has place 200 * c + t by weight; which copy is the newest is drawn. A word of copy 2 differs."""
    rng, index = random.Random(7), f"ndd-whole-{uuid.uuid4().hex[:12]}"
    found, groups = [], {}
    for text in range(GROUPS):
        words = rng.choices(WORDS, k=60)
        days = rng.sample(range(1, 1000), COPIES)
        for copy, day in enumerate(days):
            place = GROUPS * copy + text
            fields = {"day": day, "weight": 1000 - place, "place": place, "desk": f"desk{copy}"}
            body = [*words, "market"]
            if copy == 2:
                body[rng.randrange(60)] = "changed"
            found.append({"_index": index, "_id": f"{text}-{copy}", **fields, "body": " ".join(body)})
        groups[str(text)] = [f"{text}-{copy}" for copy in sorted(range(COPIES), key=lambda copy: -days[copy])]
    rng.shuffle(found)
    number = {"type": "integer"}
    properties = {**mapping_properties(), "day": number, "weight": number, "place": number}
    with engine.client() as client:
        settings = {"number_of_shards": 2}
        mappings = {"properties": {**properties, "desk": {"type": "keyword"}}}
        client.indices.create(index=index, body={"settings": settings, "mappings": mappings})
        bulk(engine, client, list(ndd.with_sketches(found, fields=["body"], keys=8)))
        yield Articles(index, groups, engine.name != "opensearch2")
        client.indices.delete(index=index)


def listed(hit: dict[str, Any]) -> list[str]:
    """The ids under a hit."""
    found = hit["inner_hits"]["near_duplicates"]["hits"]
    assert found["total"] == {"value": len(found["hits"]), "relation": "eq"}
    return [copy["_id"] for copy in found["hits"]]


def test_every_page_shows_the_newest_of_each_group_and_lists_the_rest_wherever_they_rank(
    articles: Articles, connect: Connect
) -> None:
    seen = Seen()
    caller = connect(window=WINDOW, frequency_table=False, observers=[seen])
    shown: list[str] = []
    for start in STARTS:
        body = {"query": RANKED, "size": SIZE, "from": start, "ndd": KEEP}
        answer = caller.search(index=articles.index, body=body)
        ids = [hit["_id"] for hit in answer["hits"]["hits"]]
        assert ids == [articles.groups[str(text)][0] for text in range(start, start + SIZE)]
        for hit in answer["hits"]["hits"]:
            assert sorted([hit["_id"], *listed(hit)]) == sorted(articles.groups[group_of(hit["_id"])])
            copies = [hit, *hit["inner_hits"]["near_duplicates"]["hits"]["hits"]]
            assert all(copy["_score"] == copy["_source"]["weight"] for copy in copies)
            assert all("ndd" not in copy["_source"] for copy in copies)
        assert answer["ndd"]["members"]["incomplete"] == []
        shown += ids
    assert len(set(map(group_of, shown))) == len(shown) == len(STARTS) * SIZE
    windows = sum(trips > 1 for trips in seen.trips)
    assert max(seen.trips) == 2  # one request for hits where the stream is not cached, one for members
    assert windows == 3  # the first window, and one more for pages 10 and 20, which look for a hit after them


@pytest.mark.parametrize("connect", ["sync"], indirect=True)
def test_copies_are_highlighted_by_the_query_alone(articles: Articles, connect: Connect) -> None:
    body = {"query": RANKED, "highlight": {"fields": {"*": {}}, "require_field_match": False}, "ndd": KEEP}
    answer = connect(window=WINDOW).search(index=articles.index, body=body)
    for hit in answer["hits"]["hits"]:
        for one in (hit, *hit["inner_hits"]["near_duplicates"]["hits"]["hits"]):
            assert set(one["highlight"]) == {"body"}


@pytest.mark.parametrize("connect", ["sync"], indirect=True)
def test_copies_tell_nothing_of_the_query_that_found_them(articles: Articles, connect: Connect) -> None:
    body = {"query": RANKED, "size": SIZE, "explain": True, "indices_boost": [{articles.index: 2.0}], "ndd": KEEP}
    caller = connect(window=WINDOW, min_similarity="high")
    plain = caller.search(index=articles.index, body={**body, "size": 600, "ndd": False})["hits"]["hits"]
    scores = {hit["_id"]: hit["_score"] for hit in plain}
    for hit in caller.search(index=articles.index, body=body)["hits"]["hits"]:
        copies = hit["inner_hits"]["near_duplicates"]["hits"]["hits"]
        assert len(copies) == COPIES - 1
        for one in (hit, *copies):
            assert one["_score"] in (None, scores[one["_id"]])
            assert "ndd_keys" not in json.dumps(one.get("_explanation"))


@pytest.mark.parametrize("connect", ["sync"], indirect=True)
def test_copies_of_a_search_without_a_query_have_its_score(articles: Articles, connect: Connect) -> None:
    answer = connect(window=WINDOW).search(index=articles.index, body={"size": SIZE, "ndd": KEEP})
    assert answer["ndd"]["members"]["found"] > 0
    for hit in answer["hits"]["hits"]:
        copies = hit.get("inner_hits", {}).get("near_duplicates", {"hits": {"hits": []}})["hits"]["hits"]
        assert {one["_score"] for one in (hit, *copies)} == {1.0}


@pytest.mark.parametrize("connect", ["sync"], indirect=True)
@pytest.mark.parametrize("sort", [[], [{"place": "asc"}]])
def test_so_does_every_page_of_a_cursor(sort: list[Any], engine: Engine, articles: Articles, connect: Connect) -> None:
    if engine.name == "opensearch2":
        pytest.skip("OpenSearch orders points in time since 3.3")
    caller = connect(window=WINDOW, frequency_table=False)
    body = {"query": RANKED, "size": SIZE, "ndd": KEEP, **({"sort": sort} if sort else {})}
    shown: list[str] = []
    with closing(iter(ndd.pages(caller.client, index=articles.index, body=body))) as pages:
        for answer in islice(pages, 2):
            for hit in answer["hits"]["hits"]:
                assert sorted([hit["_id"], *listed(hit)]) == sorted(articles.groups[group_of(hit["_id"])])
                assert len(hit.get("sort", [])) == len(sort)
                shown.append(hit["_id"])
    assert shown == [articles.groups[str(text)][0] for text in range(2 * SIZE)]


def origins_of(hit: dict[str, Any]) -> dict[str, Any]:
    (told,) = hit["fields"]["ndd.origins"]
    return dict(told)


def check_origins(hit: dict[str, Any], articles: Articles) -> None:
    """The desks of a group are counted, and the first is that of the oldest copy."""
    members, told = articles.groups[group_of(hit["_id"])], origins_of(hit)
    assert (told["number"], told["first"]) == (COPIES, f"desk{members[-1].partition('-')[2]}")
    assert told["reprints"] + told["edited"] == COPIES - 1


def test_origins_count_all_members_on_pages_and_in_cursors(articles: Articles, connect: Connect) -> None:
    caller = connect(window=WINDOW, frequency_table=False)
    options = {**KEEP, "origins": ["desk", "day"]}
    for start in STARTS:
        body = {"query": RANKED, "size": SIZE, "from": start, "ndd": options}
        for hit in caller.search(index=articles.index, body=body)["hits"]["hits"]:
            check_origins(hit, articles)
    if articles.is_paged and not caller.asynchronous:
        body = {"query": RANKED, "size": SIZE, "ndd": options}
        with closing(iter(ndd.pages(caller.client, index=articles.index, body=body))) as pages:
            for answer in islice(pages, 2):
                assert len(answer["hits"]["hits"]) == SIZE
                for hit in answer["hits"]["hits"]:
                    check_origins(hit, articles)


@pytest.mark.parametrize("connect", ["sync"], indirect=True)
def test_origins_without_all_members_count_those_of_the_window(articles: Articles, connect: Connect) -> None:
    caller = connect(window=GROUPS * COPIES, max_window=GROUPS * COPIES, frequency_table=False)
    for window, number in ((WINDOW, 1), (GROUPS * COPIES, COPIES)):
        options = {"window": window, "origins": "desk"}
        hits = caller.search(index=articles.index, body={"query": RANKED, "size": SIZE, "ndd": options})["hits"]["hits"]
        assert [(origins_of(hit)["number"], origins_of(hit)["first"]) for hit in hits] == [(number, "desk0")] * SIZE


@pytest.mark.parametrize("connect", ["sync"], indirect=True)
def test_without_that_pages_are_full_and_name_every_copy_once(articles: Articles, connect: Connect) -> None:
    caller = connect(window=WINDOW, frequency_table=False)
    shown: list[str] = []
    named: list[str] = []
    for start in range(0, GROUPS + 2 * SIZE, SIZE):
        answer = caller.search(index=articles.index, body={"query": RANKED, "size": SIZE, "from": start})
        hits = answer["hits"]["hits"]
        assert len(hits) == (SIZE if start < GROUPS else 0)
        shown += [hit["_id"] for hit in hits]
        named += [copy["_id"] for copy in answer["ndd"]["late"]]
        named += [id for hit in hits if "inner_hits" in hit for id in listed(hit)]
    assert shown == [f"{text}-0" for text in range(GROUPS)]
    assert len({*shown, *named}) == len(shown) + len(named) == GROUPS * COPIES


@pytest.mark.parametrize("connect", ["sync"], indirect=True)
def test_members_match_the_query_its_filters_and_the_options(articles: Articles, connect: Connect) -> None:
    caller = connect(window=WINDOW, frequency_table=False, cache=False, members="all")
    market, desks = {"match": {"body": "market"}}, {"terms": {"desk": ["desk0", "desk2"]}}
    sort: list[Any] = [{"place": "asc"}]
    body = {"query": {"bool": {"must": market, "filter": desks}}, "sort": sort, "size": 3}
    for restricted in (body, {"query": market, "post_filter": desks, "sort": sort, "size": 3}):
        hits = caller.search(index=articles.index, body=restricted)["hits"]["hits"]
        assert [(hit["_id"], listed(hit)) for hit in hits] == [(f"{text}-0", [f"{text}-2"]) for text in range(3)]
        (copy,) = hits[1]["inner_hits"]["near_duplicates"]["hits"]["hits"]
        assert copy["sort"] == [2 * GROUPS + 1]
        assert copy["_score"] is None
    guarded = caller.search(index=articles.index, body={"query": RANKED, "ndd": {"guards": ["same:desk"]}})
    assert guarded["ndd"]["members"] == {"found": 0, "incomplete": []}
    with_sum = {
        "query": RANKED,
        "size": 1,
        "aggs": {"of": {"sum": {"field": "place"}}},
        "highlight": {"fields": {"*": {}}},
    }
    answer = caller.search(index=articles.index, body=with_sum)
    assert answer["ndd"]["members"]["found"] == COPIES - 1
    assert answer["aggregations"]["of"]["value"] == sum(range(GROUPS * COPIES))
    assert all(one in ("body",) for hit in answer["hits"]["hits"] for one in hit["highlight"])


@pytest.mark.parametrize("connect", ["sync"], indirect=True)
def test_each_search_of_several_finds_its_members_and_a_failure_costs_no_more_than_these(
    articles: Articles, connect: Connect, proxy: Proxy
) -> None:
    caller = connect(proxy.url, window=WINDOW, frequency_table=False, members="all", cache=False)
    body: dict[str, Any] = {"query": RANKED, "size": 2}
    lines = [{"index": articles.index}, body, {"index": articles.index}, {**body, "from": 2}]
    answers = caller.msearch(body=lines)["responses"]
    groups = [[hit["_id"], *listed(hit)] for answer in answers for hit in answer["hits"]["hits"]]
    assert [sorted(group) for group in groups] == [[f"{text}-{copy}" for copy in range(COPIES)] for text in range(4)]
    proxy.reset()
    assert caller.search(index=articles.index, body=body)["ndd"]["members"]["found"] == 2 * (COPIES - 1)
    assert [b'"ndd_keys"' in one.body for one in proxy.searches] == [False, False, True]  # one for both hits
    assert "_msearch" not in proxy.searches[-1].target
    proxy.reset(after_the_first(Harm(status=503, body=b'{"error": "down", "status": 503}')))
    whole = connect(proxy.url, splits=False, window=WINDOW, frequency_table=False, members="all", cache=False)
    answer = whole.search(index=articles.index, body=body)
    assert [hit["_id"] for hit in answer["hits"]["hits"]] == ["0-0", "1-0"]
    failed = {"reason": "the search for members failed", "ids": ["0-0", "1-0"]}
    assert answer["ndd"]["members"]["incomplete"] == [failed]


@pytest.mark.parametrize("connect", ["sync"], indirect=True)
def test_it_says_which_groups_may_have_more_members(articles: Articles, engine: Engine, connect: Connect) -> None:
    caller = connect(window=1, max_window=1, frequency_table=False, cache=False, members="all")
    collapsed = caller.search(index=articles.index, body={"query": RANKED, "size": 1, "collapse": {"field": "desk"}})
    (entry,) = collapsed["ndd"]["members"]["incomplete"]
    assert entry == {"ids": ["0-0"], "reason": "this kind of search cannot be limited to the copies of a hit"}
    index = f"{articles.index}-copies"
    text = " ".join(WORDS[:60])
    with engine.client() as client:
        try:
            body = {"mappings": {"properties": mapping_properties()}}
            client.indices.create(index=index, body=body)
            for keys, ids, reason in ((0, range(3), "no keys"), (8, range(120), "more than 100")):
                copies = [{"_index": index, "_id": str(number), "body": text} for number in ids]
                bulk(engine, client, list(ndd.with_sketches(copies, fields=["body"], keys=keys)))
                answer = caller.search(index=index, body={"query": {"match": {"body": WORDS[0]}}, "size": 1})
                (hit,) = answer["hits"]["hits"]
                (entry,) = answer["ndd"]["members"]["incomplete"]
                assert (keys == 0) == any("ndd-search backfill" in one for one in answer["ndd"]["warnings"])
                assert entry["ids"] == [hit["_id"]]
                assert entry["reason"].startswith(reason)
            found = hit["inner_hits"]["near_duplicates"]["hits"]
            assert found["total"] == {"value": 99, "relation": "gte"}
        finally:
            client.indices.delete(index=index)
    with pytest.raises(ValueError, match="set mode to one of group, ids, count, and max_per_group to 1"):
        connect(members="all", mode="drop")


def test_an_explanation_says_where_a_document_is_and_why(articles: Articles, connect: Connect) -> None:
    caller = connect(window=WINDOW, frequency_table=False)

    def explained(*ids: str, **body: Any) -> list[dict[str, Any]]:
        asked = {"query": RANKED, "size": SIZE, **body}
        made = ndd.pages(caller.client, index=articles.index, body=asked)
        found: list[dict[str, Any]] = caller.run(made.explain(ids))
        assert all(one["_id"] == id for one, id in zip(found, ids, strict=True))
        return found

    here, later, copy, far, nowhere = explained("3-0", "45-0", "3-1", "150-0", "nowhere")
    assert (here["status"], here["page"], here["place"], here["rank"]) == ("shown", 1, 4, 4)
    assert here["description"].startswith("shown on this page, at place 4; the nearest leader, '")
    assert (later["status"], later["page"], later["place"]) == ("shown", 5, 46)
    assert (copy["status"], copy["duplicate_of"], copy["similarity"]) == ("beyond_window", "3-0", 1.0)
    assert copy["bar"] == 0.6
    assert copy["shared_values"] == 59  # shingles of 61 words
    assert far["status"] == "beyond_window"
    assert "duplicate_of" not in far
    assert (nowhere["status"], nowhere["_id"]) == ("not_found", "nowhere")

    (copy, apart) = explained("3-1", "4-2", ndd={"window": 300, "guards": ["same:weight"], "max_window": 300})
    assert (copy["status"], copy["guards"], copy["compared_with"]) == ("shown", ["same:weight"], "3-0")
    assert apart["status"] == "beyond_window"
    (copy,) = explained("3-1", ndd={"window": 300})
    assert (copy["status"], copy["duplicate_of"], copy["page"], copy["place"]) == ("hidden", "3-0", 1, 4)
    figures = "1.00 alike, which reaches the bar of 0.60"
    assert copy["description"] == f"hidden: listed under '3-0' on this page, at place 4; {figures}"
    newest, *rest = articles.groups["5"]
    for one in explained(newest, *rest, ndd=KEEP):
        assert (one["status"], one["place"]) == ("shown" if one["_id"] == newest else "hidden", 6)
    (unmatched,) = explained("3-1", query={"bool": {"must": RANKED, "filter": {"term": {"desk": "desk0"}}}})
    assert (unmatched["status"], unmatched["_index"]) == ("not_matched", articles.index)
    (unknown,) = explained("3-1", collapse={"field": "desk"})
    assert unknown["status"] == "unknown"
    assert unknown["description"].endswith("this kind of search cannot be limited to one document")
    with ndd.options(explain=["3-0"]):
        (entry,) = caller.search(index=articles.index, body={"query": RANKED})["ndd"]["explain"]
        assert entry["status"] == "shown"
    with pytest.raises(TypeError, match="ids of documents, as strings, got"):
        explained(7)  # type: ignore[arg-type]


def test_each_page_of_a_cursor_says_where_documents_are(articles: Articles, connect: Connect, engine: Engine) -> None:
    if engine.name == "opensearch2":
        pytest.skip("OpenSearch orders points in time since 3.3")
    asked = ["3-0", "3-1", "12-0", "12-2", "45-9"]
    told: list[dict[str, Any]] = []
    cursor: Any = True
    for _ in range(2):
        caller = connect(window=12, min_similarity=0.6)  # as in another process
        body = {"query": RANKED, "size": 8, "ndd": {"cursor": cursor, "explain": asked}}
        answer = caller.search(index=articles.index, body=body)
        told.append({one["_id"]: one for one in answer["ndd"]["explain"]})
        cursor = answer["ndd"]["cursor"]
    first, second = told
    assert (first["3-0"]["status"], first["3-0"]["page"], first["3-0"]["place"]) == ("shown", 1, 4)
    assert (first["12-0"]["status"], second["12-0"]["status"], second["12-0"]["place"]) == (
        "beyond_window",
        "shown",
        13,
    )
    assert second["3-0"]["description"].startswith("shown on an earlier page; ")
    assert (second["3-1"]["status"], second["3-1"]["duplicate_of"]) == ("beyond_window", "3-0")
    assert "an earlier page has dealt with it, or it ranks below" in second["3-1"]["description"]
    assert {one["45-9"]["status"] for one in told} == {"not_found"}
    six = [id for ids in list(articles.groups.values())[:6] for id in ids]
    places = [{"range": {"place": {"gte": GROUPS * copy, "lt": GROUPS * copy + 6}}} for copy in range(COPIES)]
    query = {"bool": {"must": RANKED, "filter": {"bool": {"should": places}}}}
    several = {"cursor": True, "explain": six, "keep": ["newest:day"], "max_per_group": 2}
    caller = connect(window=len(six), min_similarity=0.6)
    answer = caller.search(index=articles.index, body={"query": query, "size": 8, "ndd": several})
    here = {one["_id"] for one in answer["ndd"]["explain"] if "shown on this page" in one["description"]}
    assert here == {hit["_id"] for hit in answer["hits"]["hits"]}


def test_the_command_explains_a_search(
    articles: Articles, engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    search = tmp_path / "search.json"
    search.write_text(json.dumps({"query": RANKED, "from": 40, "ndd": {"max_window": 400}}))
    command = [
        "doctor",
        engine.url,
        articles.index,
        "--explain",
        "45-0",
        "45-1",
        "45-9",
        "--body",
        str(search),
        "--set",
        "window=400",
    ]
    assert main(command) == DONE
    here, copy, nowhere = capsys.readouterr().out.splitlines()
    assert here.startswith("45-0: shown on this page, at place 46; ")
    figures = "1.00 alike, which reaches the bar of 0."
    assert copy.startswith(f"45-1: hidden: listed under '45-0' on this page, at place 46; {figures}")
    assert nowhere == "45-9: there is no document with this id, or the caller may not read it"
    assert main(["doctor", engine.url, articles.index, "--explain", "45-9", "--query", "market", "--json"]) == NO
    assert json.loads(capsys.readouterr().out)["status"] == "not_found"


@pytest.mark.parametrize("mode", ["group", "ids", "count"])
def test_the_copy_that_keep_chooses_among_all_members_is_shown_whole_in_every_listing(
    mode: str, engine: Engine, connect: Connect
) -> None:
    """Also if the window alone would have chosen another copy, so that the documents of that one were fetched."""
    texts, editions, index = 15, 12, f"ndd-editions-{uuid.uuid4().hex[:12]}"
    rng, found, longest = random.Random(3), [], dict[int, str]()
    for text in range(texts):
        words = rng.choices(WORDS, k=60)
        longest[text] = f"{text}-{rng.randrange(editions)}"
        for edition in range(editions):
            id = f"{text}-{edition}"
            end = ["last", "edition", "of", "all"] if id == longest[text] else []
            whole = " ".join([*words, "market", *end])
            found.append({"_index": index, "_id": id, "n": texts * edition + text, "body": whole})
    properties = {**mapping_properties(), "n": {"type": "integer"}}
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": properties}})
        bulk(engine, client, list(ndd.with_sketches(found, fields=["body"], keys=8)))
    try:
        caller = connect(window=50, frequency_table=False, cache=False)
        body = {"query": {"match": {"body": "market"}}, "sort": ["n"], "size": 10}
        for keep in (["longest"], ["score"]):
            options = {"members": "all", "keep": keep, "mode": mode}
            answer = caller.search(index=index, body={**body, "ndd": options})
            assert (answer["ndd"]["strategy"], answer["ndd"]["degraded"]) == ("two_phases", None)
            shown = {hit["_id"]: hit for hit in answer["hits"]["hits"]}
            best = [longest[text] if keep == ["longest"] else f"{text}-0" for text in range(10)]
            assert list(shown) == best
            for hit in shown.values():
                assert set(hit["_source"]) == {"n", "body"}
                assert hit["inner_hits"]["near_duplicates"]["hits"]["total"]["value"] == editions - 1
    finally:
        with engine.client() as client:
            client.indices.delete(index=index)


@pytest.mark.parametrize("connect", ["sync"], indirect=True)
def test_an_explanation_names_the_edges_in_which_two_texts_differ(engine: Engine, connect: Connect) -> None:
    index = f"edges-{uuid.uuid4().hex[:8]}"
    story = "Ministers agreed on Friday to cut emissions from steel works by a third before the end of the decade."
    caller = connect(cache=False, min_similarity="auto", indexes={index: {"text": ["body"]}})
    with engine.client() as client:
        try:
            client.indices.create(index=index, body={"mappings": {"properties": mapping_properties()}})
            for id, head in (("1", "PARIS (AFP) - "), ("2", "LEEDS, May 3 - ")):
                caller.client.index(index=index, id=id, body={"body": head + story}, refresh=True)
            search = {"query": {"match": {"body": "ministers"}}}
            for body, named in (
                (search, ' (one has "PARIS (AFP) - …", the other "LEEDS, May 3 - …")'),
                ({**search, "_source": ["x"]}, ""),
            ):
                (entry,) = caller.run(ndd.pages(caller.client, index=index, body=body).explain("2"))
                assert entry["description"].endswith(f"and the two differ at their edges only{named}")
        finally:
            client.indices.delete(index=index)
