"""Functions that fetch hits become pages without near-duplicates. `test_prove` compares them with an oracle."""

from __future__ import annotations

import asyncio
from collections import namedtuple
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ndd_search as ndd
from ndd_search.core.paging.cache import MemoryCache
from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.errors import CursorUnusable
from tests.prove.sources import KINDS

TOWNS = ["Oslo", "Bergen", "Drammen", "Tromso", "Bodo", "Hamar", "Molde", "Narvik", "Alta", "Voss"]
WORDS = [f"The ferry {n} to {a} was late, and {n} passengers waited in {a}." for n, a in enumerate(TOWNS)]


def article(number: int, text: str, **fields: Any) -> dict[str, Any]:
    return {"id": number, "text": text, **fields}


# Each text stands at two places that are ten apart.
NEWS = [article(number, text) for number, text in enumerate([*WORDS, *(f"UPDATE - {text}" for text in WORDS)])]


class Source:
    """A list that is fetched. calls: what was asked for."""

    def __init__(self, hits: list[Any], most: int = 1000, total: bool = False) -> None:
        self.hits, self.most, self.total, self.calls = hits, most, total, list[tuple[int, int]]()

    def __call__(self, start: int, count: int) -> Any:
        self.calls.append((start, count))
        found = self.hits[start : start + min(count, self.most)]
        return (found, len(self.hits)) if self.total else found


def ids(page: Any) -> list[int]:
    return [hit["id"] for hit in page]


def test_ranks_on_a_page_of_a_cursor_count_from_the_leaders_that_earlier_pages_have_shown() -> None:
    source = ndd.stream(Source(NEWS), text="text", window=4, max_window=8, key="news")
    cursor: Any = True
    before: list[int] = []
    late: list[tuple[int, int]] = []
    while cursor:
        page = source.page(4, cursor=cursor)
        for rank, leader, _ in page.info.late:
            assert page.hit_at(leader).id == str(before[leader])
            late.append((page.hit_at(rank)["id"], before[leader]))
        assert all(group.rank >= len(before) and page.hit_at(group.rank) is group.hit for group in page.groups)
        before, cursor = [*before, *ids(page)], page.cursor
    assert late == [(leader + 10, leader) for leader in range(10)]


def test_pages_of_a_source_are_full_disjoint_and_repeatable_and_list_what_they_hide() -> None:
    fetch = Source(NEWS)
    found = ndd.stream(fetch, text="text", window=5)
    pages = [found.page(4, start) for start in (0, 4, 8)]
    assert [ids(page) for page in pages] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert [copy.hit["id"] for group in found.page(11).groups for copy in group.duplicates] == list(range(10, 20))
    assert ids(found.page(4, 4)) == [4, 5, 6, 7]
    assert len({start for start, _ in fetch.calls}) == len(fetch.calls), "something was fetched twice"
    assert "is shown under hit 3" in str(pages[2].explain(13))
    assert (pages[2].info.examined, pages[2].info.kept, pages[2].info.exhausted) == (20, 10, True)
    assert [rank for rank, _, _ in pages[2].info.late]


def test_the_end_is_an_empty_answer_or_the_number_of_matches_and_never_a_short_one() -> None:
    """A backend may return fewer hits than asked for, as those do that have a largest page."""
    for fetch, calls in ((Source(NEWS, most=3), 8), (Source(NEWS, most=3, total=True), 7), (Source(NEWS), 2)):
        found = ndd.stream(fetch, text="text")
        page = found.page(20)
        assert ids(page) == list(range(10))
        assert page.info.exhausted
        assert len(fetch.calls) == calls
        assert page.total == (20 if fetch.total else None)


@pytest.mark.parametrize("kind", [*KINDS, "namedtuple"])
def test_rows_of_every_kind_are_read_by_name_and_returned_as_they_are(kind: str, tmp_path: Path) -> None:
    make: Callable[..., Any] = KINDS.get(kind) or (lambda fields: namedtuple("Row", fields)(**fields))
    rows = [make(one) for one in NEWS]
    pages = [ndd.stream(Source(rows), text="text").page(20), ndd.collapse(rows, size=20, text=["text", "summary"])]
    for page in pages:
        assert all(hit is row for hit, row in zip(page.hits, rows[:10], strict=True))
    assert len(ndd.collapse(rows, size=20, text="text", guards=["same:id"])) == 20
    schema = ndd.items.Items(text=ndd.items.Text())
    assert ndd.collapse(rows, items=schema).ranks == ndd.collapse(NEWS, items=schema).ranks
    assert len(ndd.collapse(NEWS, text="text", seen=rows)) == 0
    if kind != "namedtuple":
        assert len(ndd.Corpus.read(rows, text="text", id="id").groups().is_leader.nonzero()[0]) == 10
        merged = ndd.merge([rows], by="round_robin", text="text", size=20)
        assert [hit["_source"] for hit in merged["hits"]["hits"]] == NEWS[:10]
        assert [*ndd.with_sketches(rows, "text")] == [*ndd.with_sketches(NEWS, "text")]
        pytest.importorskip("tantivy", reason="the embedded index needs tantivy")
        with ndd.Index.open(tmp_path / "index", text=["text"]) as index:
            index.add(rows)
            assert index.search("ferry", size=20)["ndd"]["kept"] == 10


def test_values_without_names_and_tables_are_refused_with_what_to_pass() -> None:
    for rows in ([tuple(one.values()) for one in NEWS], [list(one.values()) for one in NEWS]):
        with pytest.raises(TypeError, match="of values without names"):
            ndd.stream(Source(rows), text="text").page()
        with pytest.raises(TypeError, match="of values without names"):
            ndd.collapse(rows, items=ndd.items.Items(text=ndd.items.Text()))
        assert ndd.stream(Source(rows), text=lambda row: str(row[1])).page().hits == rows[:10]
    table = pytest.importorskip("pyarrow").Table.from_pylist(NEWS)
    with pytest.raises(TypeError, match="pass its rows, as"):
        ndd.collapse(table, text="text")
    with pytest.raises(TypeError, match="pass its rows, as"):
        ndd.with_sketches(table, "text")
    assert len(ndd.collapse(table.to_pylist(), text="text")) == 10


def test_a_document_that_is_fetched_twice_is_one_hit() -> None:
    moved = [NEWS[0], NEWS[1], NEWS[0], NEWS[2], NEWS[1]]
    page = ndd.stream(Source(moved), text="text", min_similarity="identical").page(5)
    assert ids(page) == [0, 1, 2]
    assert not any(group.duplicates for group in page.groups)
    other = ndd.stream(Source(moved), text="text", id=lambda hit: None).page(5)
    assert [[copy.rank for copy in group.duplicates] for group in other.groups] == [[2], [4], []]


def test_an_endless_source_is_examined_up_to_max_window() -> None:
    endless = lambda start, count: [article(rank, WORDS[rank % 10]) for rank in range(start, start + count)]  # noqa: E731
    page = ndd.stream(endless, text="text", max_window=400).page(20)
    assert ids(page) == list(range(10))
    assert (page.info.examined, page.info.capped, page.info.exhausted) == (400, True, False)
    with pytest.raises(ValueError, match="max_window"):
        ndd.stream(endless, text="text", window=500, max_window=400)


def test_what_is_fetched_later_changes_no_page_that_was_shown() -> None:
    fetch = Source(list(NEWS))
    found = ndd.stream(fetch, text="text", window=5)
    first = ids(found.page(4))
    fetch.hits[:0] = [
        article(100 + number, f"News {number} of another subject, with words of its own.") for number in (1, 2)
    ]
    assert ids(found.page(4)) == first
    assert not set(first) & set(ids(found.page(4, 4)))


def test_an_error_of_the_source_passes_unless_the_page_has_hits_and_is_forgotten_when_it_is_gone() -> None:
    broken = [True]
    pairs = [one for both in zip(NEWS[:10], NEWS[10:], strict=True) for one in both]

    def fetch(start: int, count: int) -> list[dict[str, Any]]:
        if broken[0] and start >= 5:
            raise ConnectionError("gone")
        return pairs[start : start + count]

    found = ndd.stream(fetch, text="text", window=5)
    page = found.page(5)
    assert ids(page) == [0, 1, 2]
    assert page.info.degraded == "hits from rank 5 on could not be fetched: ConnectionError('gone')"
    with pytest.raises(ConnectionError):
        found.page(5, 5)
    broken[0] = False
    assert ids(found.page(5)) == list(range(5))
    assert not found.page(5).info.degraded


@pytest.mark.parametrize("min_similarity", ["auto", 0.8])
def test_hits_fetched_before_the_source_raises_are_shown_and_are_no_end_of_the_list(min_similarity: Any) -> None:
    """A backend that returns few hits at a time may fail in the middle of the first window."""
    few, broken = Source(NEWS, most=6), [True]

    def fetch(start: int, count: int) -> Any:
        if broken[0] and start >= 6:
            raise ConnectionError("gone")
        return few(start, count)

    found = ndd.stream(fetch, text="text", min_similarity=min_similarity)
    page = found.page(10)
    assert (ids(page), page.info.exhausted) == ([0, 1, 2, 3, 4, 5], False)
    assert page.info.degraded == "hits from rank 6 on could not be fetched: ConnectionError('gone')"
    broken[0] = False
    page, whole = found.page(10), ndd.stream(few, text="text", min_similarity=min_similarity).page(10)
    assert (ids(page), page.info.degraded, len(few.calls)) == (ids(whole), "", 1 + 4 + 5)
    assert [group.duplicates for group in page.groups] == [group.duplicates for group in whole.groups]


@pytest.mark.parametrize("answer", [None, "a text", {"hits": []}, 7, (7, 7)])
def test_an_answer_that_holds_no_list_of_hits_is_an_error(answer: Any) -> None:
    with pytest.raises(TypeError, match=r"what fetch\(0, 100\) returned must be a list of hits"):
        ndd.stream(lambda start, count: answer).page()


def test_settings_that_cannot_be_are_errors() -> None:
    fetch: Callable[..., Any] = Source(NEWS)
    with pytest.raises(TypeError, match="fetch must be a function"):
        ndd.stream(NEWS)  # type: ignore[arg-type]
    wrongs: list[dict[str, Any]] = [{"facets": ["day"]}, {"total": "estimate"}, {"cache": MemoryCache()}]
    for wrong in wrongs:
        with pytest.raises(ValueError, match=r"aggregations|key"):
            ndd.stream(fetch, **wrong)
    with pytest.raises(TypeError, match="pass text="):
        ndd.stream(fetch).page()
    page = ndd.stream(fetch, text="body").page()
    assert ids(page) == list(range(10))
    assert "no hit has a text" in page.info.degraded


def test_an_asynchronous_source_gives_the_same_pages() -> None:
    async def fetch(start: int, count: int) -> list[dict[str, Any]]:
        await asyncio.sleep(0)
        if start > 15:
            raise ConnectionError("gone")
        return NEWS[start : start + count]

    async def main() -> None:
        found = ndd.stream(fetch, text="text", window=5, key="q")
        pages = await asyncio.gather(*(found.page_async(4, start) for start in (0, 4, 0)))
        assert [ids(page) for page in pages] == [[0, 1, 2, 3], [4, 5, 6, 7], [0, 1, 2, 3]]
        first = await found.page_async(6, cursor=True)
        second = await found.page_async(6, cursor=first.cursor)
        assert ids(first) + ids(second) == list(range(10))
        assert second.info.degraded
        with pytest.raises(TypeError, match="await page_async"):
            ndd.stream(fetch, text="text").page()

    asyncio.run(main())


def test_coroutines_that_ask_for_pages_of_one_changing_source_get_each_hit_once() -> None:
    calls = 0

    async def fetch(start: int, count: int) -> list[dict[str, Any]]:
        nonlocal calls
        calls += 1
        moved = NEWS[calls % 10 :] + NEWS[: calls % 10]
        await asyncio.sleep(0.001 * (calls % 3))
        return moved[start : start + count]

    async def main() -> None:
        found = ndd.stream(fetch, text="text", window=5)
        pages = await asyncio.gather(*(found.page_async(2, start) for start in (6, 0, 4, 2, 8)))
        shown = [hit for page in pages for hit in ids(page)]
        assert len(shown) == len(set(shown))
        waiting = [asyncio.create_task(found.page_async(5, start)) for start in (0, 5)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        assert await waiting[1], "a page that is given up holds others"

    for _ in range(5):
        asyncio.run(main())


def test_sketches_that_are_stored_are_compared_and_texts_of_other_recipes_are_sketched() -> None:
    recipe, other = ndd.Recipe(), ndd.Recipe.words(size=5)
    forms = [
        ndd.sketch,
        lambda text: ndd.sketch(text).tolist(),
        lambda text: SketchField().encode(ndd.sketch(text), recipe),
        lambda text: SketchField().encode(ndd.sketch(text, other), other),
        lambda text: None,
        lambda text: [3, 1],
    ]
    hits = [{**one, "ndd": forms[one["id"] % len(forms)](one["text"])} for one in NEWS]
    page = ndd.stream(Source(hits), text="text", sketch="ndd").page(20)
    assert ids(page) == list(range(10))
    lacking = ndd.stream(Source(hits), sketch="ndd").page(20).info.lacking
    assert lacking == {"foreign": 3, "missing": 3, "malformed": 3}
    none = ndd.stream(Source([{"id": 1, "ndd": []}, {"id": 2, "ndd": np.empty(0)}]), sketch="ndd").page()
    assert none.info.lacking == {"empty": 2}


def test_guards_keep_seen_and_totals_are_those_of_searches() -> None:
    day = [datetime(2024, 1, 1 + number % 20, tzinfo=UTC) for number in range(20)]
    hits = [{**one, "day": day[one["id"]].date(), "price": Decimal(one["id"])} for one in NEWS]
    made = partial(ndd.stream, Source(hits), text="text")
    assert ids(made(keep=["newest:day"]).page(10)) == list(range(10, 20))
    assert ids(made(guards=["same:price"]).page(20)) == list(range(20))
    assert ids(made(guards=["within:day=9d"]).page(20)) == list(range(20))
    assert ids(made(guards=["numbers"]).page(20)) == list(range(10))
    seen = made(seen=[WORDS[3]]).page(20)
    assert (ids(seen), [(rank, item) for rank, item, _ in seen.info.seen]) == (
        [0, 1, 2, 4, 5, 6, 7, 8, 9],
        [(3, 0), (13, 0)],
    )
    whole = made(total="groups", window=3).page(2)
    assert (whole.info.kept, whole.info.exhausted) == (10, True)
    assert [len(group.duplicates) for group in made(members="all", window=3).page(2).groups] == [1, 1]


def test_a_cache_keeps_a_result_for_sources_with_an_equal_key() -> None:
    cache, fetch = MemoryCache(), Source(NEWS)
    pages = [ndd.stream(fetch, text="text", key=("q", user), cache=cache).page(5) for user in ("a", "a", "b")]
    assert [page.info.cache for page in pages] == ["miss", "hit", "miss"]
    assert len({tuple(ids(page)) for page in pages}) == 1
    other = ndd.stream(fetch, text="text", key=("q", "a"), cache=cache, min_similarity="identical").page(20)
    assert len(other) == 20
    objects = Source([object(), object()])
    for _ in range(2):  # no values of JSON
        made = ndd.stream(objects, text=lambda hit: WORDS[0], key="q", cache=cache).page()
        assert (len(made), made.info.cache) == (1, "miss")


def test_a_cursor_goes_on_in_another_process_and_shows_nothing_twice_when_the_source_changes() -> None:
    def page(hits: list[Any], cursor: Any) -> Any:
        return ndd.stream(Source(hits), text="text", key="q", window=5).page(4, cursor=cursor)

    first = page(NEWS, True)
    new = [article(100 + number, f"News {number} of another subject, with words of its own.") for number in (1, 2)]
    second = page([*new, *NEWS], first.cursor)
    third = page([*new, *NEWS], second.cursor)
    shown = ids(first) + ids(second) + ids(third)
    assert shown == list(range(10))
    assert third.cursor is None
    assert ids(page([*new, *NEWS], first.cursor)) == ids(second)


@pytest.mark.parametrize("mode", ["group", "annotate"])
@pytest.mark.parametrize("size", [1, 3, 10])
@pytest.mark.parametrize("window", [2, 5, 100])
def test_a_cursor_passes_over_what_was_seen_and_lists_it_once(mode: Any, size: int, window: int) -> None:
    seen = [WORDS[3], NEWS[15], ndd.sketch(WORDS[9])]
    made = partial(ndd.stream, Source(NEWS), text="text", key="q", seen=seen, mode=mode, window=window)
    whole = made().page(20)
    shown, passed = list[int](), list[tuple[int, int]]()
    cursor: bool | str | None = True
    while cursor:
        page = made().page(size, cursor=cursor)
        shown, cursor = shown + ids(page), page.cursor
        passed += [(page.hit_at(rank)["id"], item) for rank, item, _ in page.info.seen]
    assert (
        shown == ids(whole) == ([one for one in range(10) if one not in (3, 5, 9)] if mode == "group" else [*range(20)])
    )
    assert sorted(passed) == sorted((rank, item) for rank, item, _ in whole.info.seen)


@pytest.mark.parametrize("total", [False, True])
def test_a_cursor_tells_on_each_page_how_many_groups_there_are(total: bool) -> None:
    made = partial(ndd.stream, Source(NEWS, total=total), text="text", key="q", total="groups", window=3)
    cursor: bool | str | None = True
    shown = list[int]()
    while cursor:
        page = made(seen=[WORDS[3]]).page(4, cursor=cursor)
        shown, cursor = shown + ids(page), page.cursor
        assert page.info.unique
        assert (page.info.unique.value, page.info.unique.relation) == (9, "eq")
    assert shown == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    bounded = made(max_window=10).page(4, cursor=True).info.unique
    assert (bounded and (bounded.value, bounded.relation)) == ((20, "estimate") if total else None)


def test_a_cursor_of_another_result_is_refused() -> None:
    made = partial(ndd.stream, Source(NEWS), text="text", window=5)
    token = made(key="q").page(4, cursor=True).cursor
    assert token
    for other in (made(key="r"), made(key="q", min_similarity=0.9)):
        with pytest.raises(CursorUnusable, match="another result"):
            other.page(4, cursor=token)
    wrongs: list[tuple[dict[str, Any], str | bool]] = [
        ({"key": "q"}, token[:-3]),
        ({"key": "q"}, ""),
        ({}, True),
        ({"key": "q", "mode": "demote"}, True),
    ]
    for wrong, cursor in wrongs:
        with pytest.raises(CursorUnusable):
            made(**wrong).page(4, cursor=cursor)
    with pytest.raises(CursorUnusable, match="from_"):
        made(key="q").page(4, 4, cursor=True)
    with pytest.raises(TypeError):
        made(key="q").page(4, cursor=7)  # type: ignore[arg-type]


def test_a_cursor_keeps_guards_numbers_and_how_many_of_a_group_were_shown() -> None:
    hits = [{**one, "price": one["id"] % 3, "day": datetime(2024, 1, 1, tzinfo=UTC)} for one in NEWS]
    hits += [{**one, "id": one["id"] + 20} for one in hits]
    for options in (
        {"guards": ["same:price", "same:day"]},
        {"guards": ["numbers"]},
        {"max_per_group": 2},
        {"group_by": "price"},
        {"max_per": ["price:2"]},
        {"guards": ["within:day=1d"]},
        {"max_per": ["price:1"], "max_per_group": 2},
        {"items": ndd.items.Items(text=ndd.items.Text())},
    ):
        found = ndd.stream(Source(hits), text="text", key="q", window=4, **options)
        shown: list[int] = []
        cursor: bool | str | None = True
        while cursor:
            page = found.page(3, cursor=cursor)
            shown, cursor = shown + ids(page), page.cursor
        assert shown == ids(found.page(40)), options


def test_short_texts_that_differ_in_numbers_alone_are_all_shown_by_pages_and_by_cursors() -> None:
    memories = [f"Pull request {n} was merged into the main branch on Friday after two reviews." for n in range(8)]
    found = ndd.stream(Source([*memories, *memories]), key="q", window=3)
    assert found.page(20).hits == memories
    shown: list[str] = []
    cursor: bool | str | None = True
    while cursor:
        page = found.page(3, cursor=cursor)
        shown, cursor = [*shown, *page.hits], page.cursor
    assert shown == memories


def test_threads_that_ask_for_different_pages_of_one_source_fetch_each_hit_once() -> None:
    fetch = Source(NEWS, most=1)
    found = ndd.stream(fetch, text="text", window=2)
    with ThreadPoolExecutor(8) as pool:
        pages = list(pool.map(lambda start: ids(found.page(2, start)), [8, 6, 4, 2, 0, 8, 4, 0]))
    assert pages == [[8, 9], [6, 7], [4, 5], [2, 3], [0, 1], [8, 9], [4, 5], [0, 1]]
    assert len({start for start, _ in fetch.calls}) == len(fetch.calls)
