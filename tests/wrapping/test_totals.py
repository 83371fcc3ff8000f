"""Totals that every page shows alike, exact or estimated, and facets that count groups."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.search.rest.mapping import mapping_properties
from tests.engines.find import Engine
from tests.wrapping.conftest import Caller, Connect, Library, bulk
from tests.wrapping.proxy import Harm, Proxy

GROUPS, COPIES, SIZE = 200, 3, 10
GROUPED = {"total": "groups"}
MATCH: dict[str, Any] = {"query": {"match": {"body": "market"}}, "size": SIZE}
DESKS = ("north", "south", "south", "sea", "sea", "sea")
FACETS: dict[str, Any] = {
    "desks": {"terms": {"field": "desk"}, "aggs": {"newest": {"max": {"field": "day"}}}},
    "ages": {
        "range": {"field": "day", "keyed": True, "ranges": [{"key": "old", "to": 300}, {"key": "new", "from": 300}]}
    },
    "dates": {"histogram": {"field": "day", "interval": 250}},
    "seas": {"filters": {"filters": {"at sea": {"term": {"desk": "sea"}}, "none": {"term": {"desk": "air"}}}}},
    "average": {"avg": {"field": "day"}},
}
COUNTED = ("desks", "ages", "dates", "seas")
WORDS = [f"word{number}" for number in range(2000)]
Answer = dict[str, Any]
Search = Callable[[int, int], Answer]


@dataclass(frozen=True)
class Articles:
    index: str
    newest: frozenset[str]


@pytest.fixture(scope="module")
def articles(engine: Engine) -> Iterator[Articles]:
    """Two hundred texts in three copies, in any order; the newest of each."""
    rng, index = random.Random(3), f"ndd-totals-{random.SystemRandom().randrange(2**32):08x}"
    found, newest = [], []
    for text in range(GROUPS):
        words = rng.choices(WORDS, k=60)
        days = rng.sample(range(1, 1000), COPIES)
        newest.append(f"{text}-{max(days)}")
        for day in days:
            body = " ".join([*words, *["market"] * rng.choice((1, 2, 3))])
            desk = rng.choice(DESKS)
            date = f"{2000 + day // 365}-{1 + day % 12:02}-01"
            found.append(
                {"_index": index, "_id": f"{text}-{day}", "day": day, "date": date, "desk": desk, "body": body}
            )
    rng.shuffle(found)
    properties = {**mapping_properties(), "day": {"type": "integer"}, "desk": {"type": "keyword"}}
    properties |= {"date": {"type": "date"}}
    with engine.client() as client:
        settings = {"number_of_shards": 2}
        client.indices.create(index=index, body={"settings": settings, "mappings": {"properties": properties}})
        bulk(engine, client, list(ndd.with_sketches(found, fields=["body"])))
        yield Articles(index, frozenset(newest))
        client.indices.delete(index=index)


@pytest.mark.parametrize("cache", [True, False])
def test_the_pages_hold_what_the_total_says_and_it_is_the_same_on_all_of_them(
    cache: bool, articles: Articles, connect: Connect
) -> None:
    caller = connect(window=100, cache=cache, total="groups", keep=["newest:day"], frequency_table=False)
    starts = range(0, GROUPS + 2 * SIZE, SIZE) if cache else (0, 100, 190, 200)
    shown: list[str] = []
    for start in starts:
        answer = caller.search(index=articles.index, body={**MATCH, "from": start})
        assert answer["hits"]["total"] == {"value": GROUPS, "relation": "eq"}
        assert answer["ndd"]["unique"] == {"value": GROUPS, "relation": "eq", "low": GROUPS, "high": GROUPS}
        assert answer["ndd"]["late"] == []
        hits = answer["hits"]["hits"]
        assert len(hits) == (SIZE if start < GROUPS else 0)
        assert all(hit["inner_hits"]["near_duplicates"]["hits"]["total"]["value"] == COPIES - 1 for hit in hits)
        shown += [hit["_id"] for hit in hits]
    assert articles.newest.issuperset(shown)
    assert len(set(shown)) == len(shown)
    if cache:
        assert articles.newest == set(shown)


def test_a_total_that_max_window_ends_is_a_lower_bound_and_still_the_number_of_hits_on_the_pages(
    articles: Articles, connect: Connect
) -> None:
    caller = connect(window=50, max_window=150, frequency_table=False)
    body = {**MATCH, "ndd": {"total": "groups"}}
    first = caller.search(index=articles.index, body=body)
    total = first["hits"]["total"]
    assert total["relation"] == "gte"
    assert 50 <= total["value"] <= 150
    last = SIZE * (ceil(total["value"] / SIZE) - 1)
    for start, count in ((last, total["value"] - last), (last + SIZE, 0)):
        answer = caller.search(index=articles.index, body={**body, "from": start})
        assert answer["hits"]["total"] == total
        assert len(answer["hits"]["hits"]) == count
    own = caller.search(index=articles.index, body={**MATCH, "ndd": {"total": "hits"}})["hits"]["total"]
    assert own == {"value": GROUPS * COPIES, "relation": "eq"}  # the engine's own


@pytest.mark.parametrize(("mode", "total"), [("annotate", GROUPS * COPIES), ("demote", GROUPS * COPIES)])
def test_a_mode_that_shows_every_hit_counts_every_hit(
    mode: str, total: int, articles: Articles, connect: Connect
) -> None:
    caller = connect(mode=mode, total="groups", frequency_table=False)
    for start in (0, total - SIZE):
        answer = caller.search(index=articles.index, body={**MATCH, "from": start})
        assert answer["hits"]["total"] == {"value": total, "relation": "eq"}
        assert len(answer["hits"]["hits"]) == SIZE


@pytest.mark.one_kind_of_client
@pytest.mark.parametrize("cache", [True, False])
def test_an_estimate_is_the_same_on_every_page_and_a_paginator_that_believes_the_total_meets_no_blank_page(
    cache: bool, articles: Articles, connect: Connect, proxy: Proxy
) -> None:
    caller = connect(proxy.url, window=100, cache=cache, total="estimate", frequency_table=False)
    body = {**MATCH, "size": 40}
    answer = caller.search(index=articles.index, body=body)
    estimate = answer["ndd"]["unique"]
    assert (estimate["relation"], estimate["confidence"]) == ("estimate", 0.95)
    assert estimate["low"] <= GROUPS <= estimate["high"]
    assert estimate["high"] - estimate["low"] < GROUPS
    assert answer["hits"]["total"]["relation"] == "gte"
    paths = [one.target.partition("?")[0] for one in proxy.searches]
    assert paths == [f"/{articles.index}/_msearch", f"/{articles.index}/_search"]
    shown = [hit["_id"] for hit in answer["hits"]["hits"]]
    while answer["hits"]["total"]["value"] > len(shown):
        answer = caller.search(index=articles.index, body={**body, "from": len(shown)})
        assert answer["hits"]["hits"]
        assert answer["ndd"]["unique"] == estimate
        shown += [hit["_id"] for hit in answer["hits"]["hits"]]
    assert answer["hits"]["total"] == {"value": GROUPS, "relation": "eq"}
    assert len({one.partition("-")[0] for one in shown}) == len(shown) == GROUPS


@pytest.mark.one_kind_of_client
def slices(search: Search, size: int) -> Iterator[Answer]:
    """The slices of an iterable query, as of the DSLs: until one ends at the total."""
    start, total = 0, 1
    while start < total:
        yield (answer := search(start, size))
        start, total = start + size, answer["hits"]["total"]["value"]


def numbered(search: Search, size: int) -> Iterator[Answer]:
    """The pages of a web site, as of Django's Paginator: the next one while there are more, and at first the last."""
    number, numbers = 1, [1]
    while number <= numbers[-1]:
        yield (answer := search((number - 1) * size, size))
        numbers.append(ceil(answer["hits"]["total"]["value"] / size))
        if number == 1 and numbers[-1] > 1:
            yield {**search((numbers[-1] - 1) * size, size), "is_a_jump": True}
        number += 1


def batches(search: Search, size: int) -> Iterator[Answer]:
    """The batches of a retriever, each after the hits that it has."""
    found, total = 0, 1
    while found < total:
        yield (answer := search(found, size))
        found, total = found + len(answer["hits"]["hits"]), answer["hits"]["total"]["value"]


@pytest.mark.parametrize("paginator", [slices, numbered, batches])
def test_paginators_that_trust_the_total_show_every_hit_once_and_no_blank_page(
    paginator: Callable[[Search, int], Iterator[Answer]], articles: Articles, connect: Connect
) -> None:
    """With NDD_TEST_LONG=1 all paginators together over a thousand queries."""
    rng = random.Random(paginator.__name__)
    for _ in range(334 if os.environ.get("NDD_TEST_LONG") else 4):
        words = [*rng.choices(WORDS, k=rng.choice((1, 3, 10))), *["market"] * (rng.random() < 0.2)]
        settings = {"window": rng.choice((5, 20, 100)), "mode": rng.choice(("group", "ids", "drop"))}
        caller = connect(**settings, cache=rng.random() < 0.8, frequency_table=False)
        body = {"query": {"match": {"body": " ".join(words)}}}

        def search(start: int, size: int, caller: Caller = caller, body: Answer = body) -> Answer:
            return caller.search(index=articles.index, body={**body, "from": start, "size": size})

        size, answers = rng.choice((3, 10, 40)), list[Answer]()
        for answer in paginator(search, size):
            answers.append(answer)
            assert len(answers) <= 2 + GROUPS / size, "it does not end"
            assert answer["hits"]["hits"] or len(answers) == 1, f"page {len(answers)} of {words} is blank"
        shown = [hit["_id"] for one in answers if "is_a_jump" not in one for hit in one["hits"]["hits"]]
        assert len(set(shown)) == len(shown) == answers[-1]["hits"]["total"]["value"]
        assert answers[-1]["hits"]["total"]["relation"] == "eq"


def test_a_result_within_the_window_or_without_a_sample_has_an_honest_total(
    articles: Articles, connect: Connect
) -> None:
    caller = connect(window=100, total="estimate", frequency_table=False)
    few = {"query": within(MATCH["query"], {"range": {"day": {"lt": 100}}}), "size": SIZE}
    groups = clicked(caller, articles, {"range": {"day": {"lt": 100}}})
    answer = caller.search(index=articles.index, body=few)
    assert answer["ndd"]["unique"] == {"value": groups, "relation": "eq", "low": groups, "high": groups}
    assert answer["hits"]["total"] == {"value": groups, "relation": "eq"}
    alone = caller.search(index=articles.index, body={**MATCH, "timeout": "1m"})["ndd"]  # no part of an `_msearch`
    assert alone["strategy"] == "one_phase"
    kept = alone["kept"]
    assert (alone["unique"]["low"], alone["unique"]["high"]) == (kept, kept + GROUPS * COPIES - alone["examined"])


@pytest.mark.one_kind_of_client
def test_documents_without_a_sketch_are_counted_by_a_request_of_its_own_once_a_while(
    library: Library, connect: Connect, proxy: Proxy
) -> None:
    body = {"query": {"match": {"body": "market"}}, "size": SIZE}
    exact = connect(total="groups", frequency_table=False).search(index=library.mixed, body=body)["hits"]["total"]
    caller = connect(proxy.url, window=60, total="estimate", frequency_table=False, cache=False)
    found, trips = [], []
    for _ in range(2):
        proxy.reset()
        found.append(caller.search(index=library.mixed, body=body)["ndd"]["unique"])
        trips.append([one.target.partition("?")[0].rpartition("/")[2] for one in proxy.searches])
    assert sorted(trips[0]) == sorted([*trips[1], "_search"])
    assert found[0] == found[1]
    assert found[0]["relation"] == "estimate"
    assert found[0]["low"] <= exact["value"] <= found[0]["high"]
    assert found[0]["high"] - found[0]["low"] < exact["value"] / 2


def numbers(found: tuple[dict[str, Any], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The count of groups of a result, and those of its buckets."""
    return [found[0], *found[1]]


@pytest.mark.one_kind_of_client
def test_a_sample_gives_an_estimate_and_a_stale_smallest_value_is_seen(engine: Engine, connect: Connect) -> None:
    """Beside whole sketches: one that another program replaced, and sketches without smallest values."""
    caller = connect(window=20, total="estimate", frequency_table=False, cache=False)
    rng, name = random.Random(5), f"ndd-totals-{random.SystemRandom().randrange(2**32):08x}"
    texts = [" ".join(["market", *rng.choices(WORDS, k=40)]) for _ in range(60)]
    facet = {"halves": {"histogram": {"field": "half", "interval": 1}}}
    found: dict[str, Any] = {}
    for form in ("whole", "replaced", "without"):  # of the last one it is remembered
        made = ndd.with_sketches(
            (
                {"_index": name, "_id": f"{place}", "body": text, "half": 0}
                for place, text in enumerate([*texts, *texts])
            ),
            fields=["body"],
        )
        actions = list(made)
        mapping = {**mapping_properties(), "half": {"type": "byte"}}
        if form == "without":
            del mapping["ndd"]["properties"]["smallest"]
            for action in actions:
                del action["ndd"]["smallest"]
        if form == "replaced":
            actions[7]["ndd"]["smallest"] = 0
        with engine.client() as client:
            client.indices.create(index=name, body={"mappings": {"properties": mapping}})
            try:
                bulk(engine, client, actions)
                block = caller.search(index=name, body={**MATCH, "aggs": facet, "ndd": {"facets": ["halves"]}})["ndd"]
                found[form] = block["unique"], block["facets"]["halves"]["buckets"]
                other = connect(window=20, total="estimate", frequency_table=False, cache=False)
                late = other.search(index=name, body={**MATCH, "from": 100})  # its first request gets every hit
                assert late["ndd"]["unique"] == block["unique"]
            finally:
                client.indices.delete(index=name)
    for counts, *others in zip(*map(numbers, (found["whole"], found["replaced"], found["without"])), strict=True):
        assert counts["low"] <= len(texts) <= counts["high"]
        assert counts["high"] - counts["low"] < len(texts)
        for other in others:  # not from a sample
            assert other["low"] <= len(texts) <= other["high"]
            assert len(texts) < other["high"] - other["low"]


@pytest.mark.one_kind_of_client
def test_the_interval_of_an_estimate_holds_where_fields_decide_who_is_a_group(engine: Engine, connect: Connect) -> None:
    """Three different texts under each key, some copies of them under other keys, and some without a key."""
    caller = connect(window=50, frequency_table=False, cache=False)
    rng, index = random.Random(7), f"ndd-totals-{random.SystemRandom().randrange(2**32):08x}"
    texts = [" ".join(["market"] * rng.choice((1, 2, 3)) + rng.choices(WORDS, k=40)) for _ in range(240)]
    found = [{"body": text, "isbn": f"k{place // 3}"} for place, text in enumerate(texts)]
    found += [{"body": text, "isbn": f"copy{place}"} for place, text in enumerate(texts[:60:3])]
    found += [{"body": text, "isbn": ""} for text in texts[60:80]]
    found += [{"body": " ".join(["market", *rng.choices(WORDS, k=40)])} for _ in range(20)]
    rng.shuffle(found)
    actions = ({"_index": index, "_id": f"{place}", "half": place % 2, **one} for place, one in enumerate(found))
    properties = {**mapping_properties(), "isbn": {"type": "keyword"}, "half": {"type": "byte"}}
    facet = {"halves": {"terms": {"field": "half"}}}
    with engine.client() as client:
        client.indices.create(index=index, body={"mappings": {"properties": properties}})
        try:
            bulk(engine, client, list(ndd.with_sketches(actions, fields=["body"])))
            options: dict[str, Any]
            for options in ({"group_by": "isbn"}, {"max_per": ["isbn:2"]}, {"group_by": ["isbn", "half"]}):
                asked = {**MATCH, "aggs": facet, "ndd": {**options, "total": "estimate", "facets": ["halves"]}}
                answer = caller.search(index=index, body=asked)["ndd"]
                exact = {
                    half: caller.search(index=index, body={"query": query, "size": 1, "ndd": {**options, **GROUPED}})
                    for half, query in (
                        (None, MATCH["query"]),
                        *((half, within(MATCH["query"], {"term": {"half": half}})) for half in (0, 1)),
                    )
                }
                counts = {None: answer["unique"], **{one["key"]: one for one in answer["facets"]["halves"]["buckets"]}}
                for half, count in counts.items():
                    groups = exact[half]["hits"]["total"]["value"]
                    assert count["low"] <= groups <= count["high"], (options, half)
                    if options == {"group_by": "isbn"}:
                        assert count["high"] < 1.6 * groups
        finally:
            client.indices.delete(index=index)


def within(query: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """A query with a filter."""
    return {"bool": {"must": [query], "filter": [part]}}


def clicked(caller: Caller, articles: Articles, *parts: dict[str, Any]) -> int:
    """The number of hits that a reader finds who clicks on a bucket."""
    query = {"bool": {"must": [MATCH["query"]], "filter": list(parts)}}
    body = {"query": query, "size": 1, "ndd": {"total": "groups"}}
    value: int = caller.search(index=articles.index, body=body)["hits"]["total"]["value"]
    return value


def part_of(name: str, key: Any) -> dict[str, Any]:
    """The filter of a bucket."""
    start = {"old": 0, "new": 300}.get(key, key)
    end = {"old": 300, "new": 2000}.get(key, start if isinstance(start, str) else start + 250)
    if name in ("ages", "dates"):
        return {"range": {"day": {"gte": start, "lt": end}}}
    return {"term": {"desk": {"at sea": "sea", "none": "air"}.get(key, key)}}


@pytest.mark.one_kind_of_client
@pytest.mark.parametrize("few", [True, False])
def test_a_facet_shows_as_many_groups_as_a_click_on_it_gives(few: bool, articles: Articles, connect: Connect) -> None:
    """Exactly within the window, else within an interval."""
    caller = connect(window=100, frequency_table=False)
    limit = {"range": {"day": {"lt": 120 if few else 2000}}}
    body = {"query": within(MATCH["query"], limit), "size": SIZE, "aggs": FACETS}
    plain = caller.search(index=articles.index, body=body)["aggregations"]
    options = {"facets": [*COUNTED, "average", "desk"]}
    for start, typed in ((0, False), (20, True)):
        asked = {**body, "from": start, "ndd": options}
        answer = caller.search(index=articles.index, body=asked, **({"typed_keys": True} if typed else {}))
        block = answer["ndd"]
        assert [one.split(":")[0][:12] for one in block["warnings"]] == ["facet 'avera", "no aggregati"]
        assert block["degraded"] is None
        found = {name.rpartition("#")[2]: one for name, one in answer["aggregations"].items()}
        assert found["average"] == plain["average"]
        for name in COUNTED:
            given, counts = plain[name]["buckets"], block["facets"][name]["buckets"]
            buckets = found[name]["buckets"]
            assert [one["documents"] for one in counts] == [one["doc_count"] for one in listed(given)]
            assert sorted(one["doc_count"] for one in listed(buckets)) == sorted(one["value"] for one in counts)
            for count in counts:
                true = clicked(caller, articles, limit, part_of(name, count["key"])) if start == 0 else None
                assert count["relation"] == "eq" if few else count["documents"] < 2 or "low" in count
                assert true is None or count["low"] <= true <= count["high"]
        ranked = [one["doc_count"] for one in found["desks"]["buckets"]]
        assert ranked == sorted(ranked, reverse=True)
        assert all("newest" in {key.rpartition("#")[2] for key in one} for one in found["desks"]["buckets"])


def test_a_facet_without_an_aggregation_is_named_if_the_search_itself_asks_for_it(
    library: Library, connect: Connect
) -> None:
    """Those of the whole client are not meant for each search."""
    caller, body = connect(facets=["sites"]), MATCH
    assert caller.search(index=library.news, body=body)["ndd"]["warnings"] == []
    (told,) = caller.search(index=library.news, body={**body, "ndd": {"facets": ["nope"]}})["ndd"]["warnings"]
    assert told.startswith("no aggregation of this search has the name 'nope'")


def test_documents_without_a_sketch_count_once_in_a_facet(library: Library, connect: Connect) -> None:
    """In an estimate, as half of the documents of an alias have none; and exactly, once a page examined the result."""
    stories = {"match": {"title": "42 43 44 45 46 47"}}
    body = {"query": stories, "size": 2, "aggs": {"sites": {"terms": {"field": "language"}}}}
    caller = connect(window=4, facets=["sites"])
    pages = [caller.search(index=library.mixed, body={**body, "from": start}) for start in (0, 200)]
    assert [page["ndd"]["exhausted"] for page in pages] == [False, True]
    first, last = (page["ndd"]["facets"]["sites"]["buckets"] for page in pages)
    assert all(one["value"] <= one["high"] <= one["documents"] for one in first)
    assert {one["relation"] for one in last} == {"eq"}


@pytest.mark.one_kind_of_client
@pytest.mark.parametrize("options", [{"ndd": GROUPED}, {"size": GROUPS + 1}], ids=["total", "a long page"])
def test_facets_and_those_within_them_are_exact_where_the_whole_result_was_examined(
    options: dict[str, Any], articles: Articles, connect: Connect
) -> None:
    """Buckets of hundreds of documents, of which an engine returns a hundred, say what a click shows."""
    years = {"years": {"date_histogram": {"field": "date", "calendar_interval": "year"}}}
    halves = {"halves": {"histogram": {"field": "day", "interval": 500}, "aggs": years}}
    body = {**MATCH, "aggs": {"desks": {"terms": {"field": "desk"}, "aggs": halves}}, **options}
    caller = connect(window=100, frequency_table=False, facets=["desks"])
    answer = caller.search(index=articles.index, body=body)
    desks, counts = answer["aggregations"]["desks"]["buckets"], answer["ndd"]["facets"]["desks"]["buckets"]
    assert max(one["documents"] for one in counts) > 200
    assert {one["relation"] for one in counts} == {"eq"}
    checked = 0
    for desk in desks:
        at = {"term": {"desk": desk["key"]}}
        assert desk["doc_count"] == clicked(caller, articles, at)
        for half in desk["halves"]["buckets"]:
            days = {"range": {"day": {"gte": half["key"], "lt": half["key"] + 500}}}
            assert half["doc_count"] == clicked(caller, articles, at, days)
            for year in half["years"]["buckets"]:
                first = int(year["key_as_string"][:4])
                when = {"range": {"date": {"gte": f"{first}-01-01", "lt": f"{first + 1}-01-01"}}}
                assert year["doc_count"] == clicked(caller, articles, at, days, when)
                checked += 1
    assert checked > 6
    inner = counts[0]["facets"]["halves"]["buckets"][0]["facets"]["years"]["buckets"][0]
    assert (inner["relation"], inner["low"]) == ("eq", inner["value"])


@pytest.mark.one_kind_of_client
@pytest.mark.parametrize("total", ["estimate", "groups"])
def test_every_page_of_a_cursor_has_the_counts_of_the_first(
    engine: Engine, articles: Articles, connect: Connect, total: str
) -> None:
    """Total, facets, what was seen and whole groups in one search, whose later pages are asked for by new clients."""
    if engine.name == "opensearch2":
        pytest.skip("OpenSearch orders points in time since 3.3")
    options: dict[str, Any] = {"total": total, "facets": ["desks"], "keep": ["newest:day"]}
    seen = [{"_index": articles.index, "_id": one} for one in sorted(articles.newest)[:3]]
    body = {**MATCH, "size": 80, "aggs": {"desks": {"terms": {"field": "desk"}}}}
    cursor: Any = True
    shown: list[str] = []
    pages: list[Any] = []
    while cursor:
        caller = connect(window=100, cursor_key="secret", frequency_table=False)
        asked = {**body, "ndd": {**options, "cursor": cursor, "seen": seen}}
        pages.append(caller.search(index=articles.index, body=asked))
        shown += [hit["_id"] for hit in pages[-1]["hits"]["hits"]]
        cursor = pages[-1]["ndd"]["cursor"]
        assert cursor is None or pages[-1]["hits"]["total"]["value"] > len(shown)
    texts = [id.partition("-")[0] for id in shown]
    assert len(set(texts)) == len(texts) == GROUPS - 3
    assert not {one["_id"].partition("-")[0] for one in seen} & set(texts)
    assert pages[-1]["hits"]["total"] == {"value": len(shown), "relation": "eq"}
    assert len({str(page["ndd"]["unique"]) for page in pages}) == 1
    assert len({str(page["ndd"]["facets"]) for page in pages}) == 1
    assert len({str(page["aggregations"]) for page in pages}) == 1
    if total == "groups":  # the first page has examined the whole result
        alone = connect(window=GROUPS, frequency_table=False)
        page = alone.search(index=articles.index, body={**body, "ndd": {**options, "seen": seen}})
        assert pages[0]["ndd"]["facets"] == page["ndd"]["facets"]
        assert {one["relation"] for one in page["ndd"]["facets"]["desks"]["buckets"]} == {"eq"}


@pytest.mark.one_kind_of_client
def test_a_cursor_keeps_its_counts_also_if_no_hit_of_its_first_page_has_a_sketch(
    engine: Engine, index: str, connect: Connect
) -> None:
    if engine.name == "opensearch2":
        pytest.skip("OpenSearch orders points in time since 3.3")
    texts = ["market market market one", "market market two", "market three four five six seven"]
    plain = [{"_index": index, "_id": str(n), "body": text, "desk": "north"} for n, text in enumerate(texts)]
    with engine.client() as client:
        properties = {**mapping_properties(), "desk": {"type": "keyword"}}
        client.indices.create(index=index, body={"mappings": {"properties": properties}})
        bulk(engine, client, [*plain[:2], *ndd.with_sketches(plain[2:], fields=["body"])])
    caller, cursor = connect(cursor_key="secret", frequency_table=False), True
    facets = []
    body = {**MATCH, "size": 2, "aggs": {"desks": {"terms": {"field": "desk"}}}}
    while cursor:
        page = caller.search(index=index, body={**body, "ndd": {"facets": ["desks"], "cursor": cursor}})
        facets.append(page["ndd"]["facets"]["desks"]["buckets"])
        cursor = page["ndd"]["cursor"]
    (first,), second = facets[0], facets[-1]
    assert (len(facets), first["value"], first["relation"], second) == (2, 3, "eq", [first])


def listed(buckets: Any) -> list[dict[str, Any]]:
    """Buckets in order, whether they are keyed or not."""
    return list(buckets.values()) if isinstance(buckets, dict) else buckets


@pytest.mark.one_kind_of_client
def test_ranges_with_one_key_and_names_with_a_hash_sign_are_counted(articles: Articles, connect: Connect) -> None:
    caller = connect(window=100, frequency_table=False, facets=["same", "a#same"])
    limit = {"range": {"day": {"lt": 120}}}
    ranges = [{"key": "one", "to": 60}, {"key": "one", "from": 60}]
    aggs = {"a#same": {"terms": {"field": "desk"}}, "same": {"range": {"field": "day", "ranges": ranges}}}
    body = {"query": within(MATCH["query"], limit), "size": SIZE, "aggs": aggs}
    facets = caller.search(index=articles.index, body=body)["ndd"]["facets"]
    halves = ({"range": {"day": {"lt": 60}}}, {"range": {"day": {"gte": 60}}})
    values = [one["value"] for one in facets["same"]["buckets"]]
    assert values == [clicked(caller, articles, limit, one) for one in halves]
    assert [one["value"] for one in facets["a#same"]["buckets"]] == [
        clicked(caller, articles, limit, {"term": {"desk": one["key"]}}) for one in facets["a#same"]["buckets"]
    ]


@pytest.mark.one_kind_of_client
def test_facets_that_cannot_be_counted_keep_the_counts_of_the_engine(
    articles: Articles, connect: Connect, proxy: Proxy
) -> None:
    caller = connect(proxy.url, window=100, frequency_table=False, facets=["desks"])
    refusal = Harm(status=500, body=b'{"error": {"root_cause": [{"reason": "too many buckets"}]}}')
    proxy.reset(lambda _, request: refusal if b"ndd_sample" in request.body else None)
    answer = caller.search(index=articles.index, body={**MATCH, "aggs": FACETS})
    assert len(answer["hits"]["hits"]) == SIZE
    before, _, reason = answer["ndd"]["degraded"].partition(": ")
    assert before.endswith("samples of their buckets failed")
    assert "too many buckets" in reason
    both = caller.search(index=articles.index, body={**MATCH, "aggs": FACETS, "ndd": {"guards": ["numbers"]}})
    assert "numbers" in both["ndd"]["degraded"].partition("; ")[0], "the other reason is told, too"
    assert "too many buckets" in both["ndd"]["degraded"]
    part = {"timed_out": True, "took": 1, "hits": {"total": {"value": 0, "relation": "eq"}, "hits": []}}
    proxy.reset(
        lambda _, request: Harm(status=200, body=json.dumps(part).encode()) if b"ndd_sample" in request.body else None
    )
    partial = caller.search(index=articles.index, body={**MATCH, "aggs": FACETS})
    assert partial["ndd"]["degraded"].endswith("failed: its answer is partial")
    assert sum(one["doc_count"] for one in answer["aggregations"]["desks"]["buckets"]) == GROUPS * COPIES
    proxy.reset()
    again = caller.search(index=articles.index, body={**MATCH, "aggs": FACETS})
    assert again["ndd"]["degraded"] is None
    assert sum(one["doc_count"] for one in again["aggregations"]["desks"]["buckets"]) < GROUPS * COPIES
