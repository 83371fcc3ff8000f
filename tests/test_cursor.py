"""Cursors: pages over a small engine that keeps points in time, compared with a model of sets; and their tokens."""

from __future__ import annotations

import dataclasses
import json
import random
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ndd_search as ndd
from ndd_search.core.options import CollapseOptions
from ndd_search.core.paging.cache_entries import sealed, unsealed
from ndd_search.core.paging.cursor import Cursor, Leaders, cursor_of, token_of
from ndd_search.errors import CursorExpired, CursorUnusable
from ndd_search.search.flow.client_settings import settings_of
from ndd_search.search.flow.intercept_requests import Driver
from ndd_search.search.rest.point_in_time import ordered as ordered_by
from ndd_search.search.rest.read_answer import Answer
from ndd_search.search.rest.read_request import Request, read_search

RECIPE = ndd.Recipe()
SEARCH = {"query": {"match": {"body": "market"}}}
Document = tuple[int, int]  # its score, the number of its text


def sketch_of(text: int) -> list[int]:
    """Texts with different numbers share no value. Text 0 has no sketch."""
    return sorted(random.Random(text).sample(range(2**31), 64))


class SmallEngine:
    """Holds documents, answers searches in points in time, sorted by score and then by age of the document."""

    def __init__(self, documents: dict[str, Document]) -> None:
        self.documents, self.open, self.most = dict(documents), dict[str, list[tuple[str, Document]]](), 0

    def send(self, request: Request) -> Answer:
        if request.method == "DELETE":
            return Answer({"succeeded": self.open.pop(request.body["id"], None) is not None})
        if request.path.endswith("/_pit"):
            name = f"pit{len(self.open)}"
            self.open[name] = list(self.documents.items())
            return Answer({"id": name})
        return self._search(json.loads(json.dumps(request.body)))

    def _search(self, body: dict[str, Any]) -> Answer:
        if body["pit"]["id"] not in self.open:
            return Answer({"error": {"type": "search_context_missing_exception"}, "status": 404}, 404)
        snapshot = self.open[body["pit"]["id"]]
        ordered = sorted(((-score, place, id, text) for place, (id, (score, text)) in enumerate(snapshot)))
        score, place = body.get("search_after", (float("inf"), -1))
        found = [one for one in ordered if one[:2] > (-score, place)][: body["size"]]
        self.most = max(self.most, body["size"])
        hits = [hit_of(id, -negative, place, text) for negative, place, id, text in found]
        total = {"value": len(snapshot), "relation": "eq"}
        return Answer(
            {"took": 1, "hits": {"total": total, "max_score": None, "hits": hits}, "pit_id": body["pit"]["id"]}
        )


def hit_of(id: str, score: int, place: int, text: int) -> dict[str, Any]:
    fields = {"fields": {"ndd.sketch": sketch_of(text), "ndd.recipe": [RECIPE.id]}} if text else {}
    return {"_index": "news", "_id": id, "_score": score, "sort": [score, place], **fields}


def page_of(engine: SmallEngine, cursor: Any, size: int, **settings: Any) -> dict[str, Any]:
    """One page, by a process that has just started."""
    driver = Driver(settings_of(**{"frequency_table": False, "min_similarity": 0.8, **settings}))
    body: dict[str, Any] = driver.handle(
        Request("POST", "/news/_search", {}, {}, {**SEARCH, "size": size, "ndd": {"cursor": cursor}}), engine.send
    ).body
    return body


def duplicates_of(hit: dict[str, Any]) -> list[dict[str, Any]]:
    """The hits that are listed under another one."""
    found: list[dict[str, Any]] = hit["inner_hits"]["near_duplicates"]["hits"]["hits"] if "inner_hits" in hit else []
    return found


def ordered(documents: dict[str, Document]) -> list[tuple[str, int]]:
    """The ids and texts of documents, best first."""
    places = list(documents)
    ranked = sorted(places, key=lambda id: (-documents[id][0], places.index(id)))
    return [(id, documents[id][1]) for id in ranked]


def model(documents: dict[str, Document], most: int) -> tuple[list[str], set[str]]:
    """The documents shown and the hidden ones: at most so many of each text; those without a sketch are all shown."""
    shown: list[str] = []
    count: dict[int, int] = {}
    for id, text in ordered(documents):
        count[text] = count.get(text, 0) + 1
        if not text or count[text] <= most:
            shown.append(id)
    return shown, set(documents) - set(shown)


DOCUMENTS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), max_size=60)


@given(
    DOCUMENTS,
    st.lists(st.tuples(st.integers(1, 7), st.sampled_from(["insert", "delete", "nothing"])), min_size=1, max_size=4),
    st.sampled_from([3, 5, 20]),
    st.sampled_from([1, 2]),
)
def test_pages_show_what_one_window_would_whatever_is_written_meanwhile(
    found: list[Document], steps: list[tuple[int, str]], window: int, most: int
) -> None:
    documents = {str(number): one for number, one in enumerate(found)}
    engine, shown, named = SmallEngine(documents), list[str](), list[str]()
    cursor: Any = True
    pages, totals = 0, list[dict[str, Any]]()
    while cursor:
        size, event = steps[pages % len(steps)]
        body = page_of(engine, cursor, size, window=window, max_per_group=most, cursor_key="secret")
        hits = body["hits"]["hits"]
        copies = [copy for hit in hits for copy in duplicates_of(hit)]
        shown += [hit["_id"] for hit in hits]
        named += [copy["_id"] for copy in (*copies, *body["ndd"]["late"])]
        totals.append(body["hits"]["total"])
        cursor = body["ndd"]["cursor"]
        assert len(hits) == size or cursor is None
        assert not any("sort" in hit for hit in hits)
        pages += 1
        assert pages <= len(documents) + 1
        if event == "insert":
            engine.documents[f"new{pages}"] = (9, pages % 7)
        elif event == "delete" and engine.documents:
            engine.documents.pop(next(iter(engine.documents)))
    expected, hidden = model(documents, most)
    assert shown == expected
    assert sorted(named) == sorted(hidden)  # each under its leader, or as late, once
    assert totals[-1] == {"value": len(shown), "relation": "eq"}
    assert all(one["value"] <= later["value"] for one, later in pairwise(totals))
    assert len(engine.open) == (pages > 1)  # a search of one page has freed it, any other may be asked for again
    assert hits or not documents  # no page is blank


def test_a_page_can_be_asked_for_again() -> None:
    engine = SmallEngine({str(number): (100 - number, 1 + number // 3) for number in range(45)})
    first = page_of(engine, True, 10, window=20)
    last = [page_of(engine, first["ndd"]["cursor"], 10, window=20) for _ in range(2)]
    assert last[0]["ndd"]["cursor"] is None
    assert last[0]["hits"] == last[1]["hits"]


def test_a_time_budget_bounds_a_longer_list_than_the_page_and_nothing_is_lost() -> None:
    engine = SmallEngine({str(number): (100 - number, 1 + number // 3) for number in range(30)})
    cursor: Any = True
    shown, unbounded = list[str](), list[int]()

    def send(request: Request) -> Answer:
        if request.timeout is None:
            unbounded.append((request.body or {}).get("size", 0))
        else:
            time.sleep(request.timeout)
            raise TimeoutError
        return engine.send(request)

    while cursor:
        driver = Driver(settings_of(frequency_table=False, time_budget=0.02))
        body = {**SEARCH, "size": 10, "ndd": {"cursor": cursor}}
        answer = driver.handle(Request("POST", "/news/_search", {}, {}, body), send).body
        shown += [hit["_id"] for hit in answer["hits"]["hits"]]
        cursor = answer["ndd"]["cursor"]
        assert answer["ndd"]["degraded"] == "out of time, the page is made of the first hits"
    assert shown == [str(number) for number in range(0, 30, 3)]
    assert max(unbounded) == 10


def test_the_hits_of_a_page_and_its_facts_are_its_own() -> None:
    engine = SmallEngine({str(number): (100 - number, 1 + number // 3) for number in range(90)})
    first = page_of(engine, True, 10, window=20)
    second = page_of(engine, first["ndd"]["cursor"], 10, window=20)
    assert [hit["_id"] for hit in second["hits"]["hits"]] == [str(number) for number in range(30, 60, 3)]
    facts = {name: second["ndd"][name] for name in ("examined", "kept", "hidden", "page", "forgotten", "capped")}
    assert facts == {"examined": 40, "kept": 14, "hidden": 26, "page": 2, "forgotten": 0, "capped": False}
    assert second["hits"]["total"] == {"value": 10 + facts["kept"], "relation": "gte"}
    assert second["ndd"]["unique"] == first["ndd"]["unique"]
    assert "sort" not in second["hits"]["hits"][0]
    shown = [hit["_id"] for hit in first["hits"]["hits"]]
    assert list(cursor_of(first["ndd"]["cursor"], None).leaders.ids) == shown  # of no other document


def test_a_page_has_changed_if_a_hit_is_hidden_between_its_own() -> None:
    engine = SmallEngine({str(number): (100 - number, 1 + number - (number == 13)) for number in range(19)})
    cursor: Any = True
    changed = []
    while cursor:
        block = page_of(engine, cursor, 5, window=5)["ndd"]
        changed.append(block["changed"])
        cursor = block["cursor"]
    assert changed == [False, False, True, False]


def test_what_one_page_fetches_and_a_token_weighs_does_not_grow_without_end() -> None:
    engine = SmallEngine({str(number): (0, number + 1) for number in range(1500)})
    cursor: Any = True
    shown, forgotten, weights = [], [], []
    while cursor:
        body = page_of(engine, cursor, 100, window=150)
        shown += [hit["_id"] for hit in body["hits"]["hits"]]
        forgotten.append(body["ndd"]["forgotten"])
        cursor = body["ndd"]["cursor"]
        weights.append(len(cursor or ""))
    assert shown == list(map(str, range(1500)))
    assert engine.most == 150
    assert forgotten[:11] == [0] * 11
    assert [round(one, -1) for one in forgotten[11:]] == [100, 200, 300, 400], "a thousand leaders are kept"
    assert max(weights) < 380_000


@pytest.mark.parametrize(
    ("body", "options", "problem"),
    [
        ({"from": 10}, {}, '"from" cannot be continued'),
        ({"rescore": {"window_size": 10}}, {}, '"rescore" cannot be continued'),
        ({"knn": {"field": "v", "query_vector": [1.0], "k": 10}}, {}, '"knn" cannot be continued'),
        ({"query": {"function_score": {"random_score": {}}}}, {}, "random_score without a seed cannot"),
        ({"sort": [{"day": {"format": "yyyy-MM-dd||epoch_millis"}}]}, {}, 'whose "format" rounds its values cannot'),
        (
            {},
            {"mode": "demote"},
            'mode="demote" shows hits after all others, and a page of a cursor.*use mode="annotate"',
        ),
        ({"size": 0}, {}, "this search is left alone"),
        ({"pit": {"id": "mine"}}, {}, "this search is left alone"),
    ],
)
def test_a_search_that_cannot_be_continued_says_why(
    body: dict[str, Any], options: dict[str, Any], problem: str
) -> None:
    driver = Driver(settings_of())
    request = Request("POST", "/news/_search", {}, {}, {**SEARCH, **body, "ndd": {"cursor": True, **options}})
    with pytest.raises(CursorUnusable, match=problem):
        driver.handle(request, SmallEngine({}).send)


class LosesAnId(SmallEngine):
    """An engine whose document "1" comes without its id, as from a proxy that changes answers."""

    def _search(self, body: dict[str, Any]) -> Answer:
        answer = super()._search(body)
        for hit in answer.hits:
            if hit["_id"] == "1":
                del hit["_id"]
        return answer


def test_a_hit_without_an_id_is_shown_and_the_cursor_goes_on() -> None:
    engine, shown = LosesAnId({str(number): (0, number + 1) for number in range(6)}), []
    cursor: Any = True
    while cursor:
        body = page_of(engine, cursor, 2)
        shown += [hit.get("_id") for hit in body["hits"]["hits"]]
        cursor = body["ndd"]["cursor"]
    assert shown == ["0", None, "2", "3", "4", "5"]


def test_a_cursor_that_is_late_or_belongs_elsewhere_says_so() -> None:
    engine = SmallEngine({str(number): (0, number + 1) for number in range(30)})
    cursor = page_of(engine, True, 10, cursor_key="secret")["ndd"]["cursor"]
    with pytest.raises(CursorUnusable, match="another search"):
        page_of(engine, cursor, 10, cursor_key="secret", min_similarity=0.5)
    with pytest.raises(CursorUnusable, match="damaged, or was signed with another cursor_key"):
        page_of(engine, cursor, 10, cursor_key="guessed")
    for token, problem in (
        ("", "it is empty"),
        ("näh", "not a token of this library; begin"),
        ("page 2", "not a token of this library; begin"),
        ("AAAA", "not a token of this library, or another version made it"),
    ):
        with pytest.raises(CursorUnusable, match=problem):
            page_of(engine, token, 10)
    with pytest.raises(TypeError, match='"cursor" must be true or the token'):
        page_of(engine, 3, 10)
    own: dict[str, Any]
    for own in ({"cursor": True}, {"cursor": ""}):
        lines: list[Any] = [{"index": "news"}, {**SEARCH, "ndd": own}]
        with pytest.raises(CursorUnusable, match='in an _msearch cannot have "'):
            Driver(settings_of()).handle(Request("POST", "/_msearch", {}, {}, lines), engine.send)
    engine.open.clear()
    with pytest.raises(CursorExpired, match="no longer holds the point in time"):
        page_of(engine, cursor, 10, cursor_key="secret")


@dataclass(frozen=True, kw_only=True)
class LaterOptions(CollapseOptions):
    """The options of a later version, which has one more."""

    added: bool = False


def test_a_version_with_more_options_continues_a_cursor() -> None:
    engine = SmallEngine({str(number): (0, number + 1) for number in range(30)})
    token = page_of(engine, True, 10)["ndd"]["cursor"]
    settings = settings_of(frequency_table=False, min_similarity=0.8)
    same = {one.name: getattr(settings.options, one.name) for one in dataclasses.fields(settings.options) if one.init}
    later = Driver(replace(settings, options=LaterOptions(**same)))
    request = Request("POST", "/news/_search", {}, {}, {**SEARCH, "size": 10, "ndd": {"cursor": token}})
    assert len(later.handle(request, engine.send).body["hits"]["hits"]) == 10


@pytest.mark.parametrize(
    "row",
    [
        ("news", "1", [3, 2], None, 1),
        ("news", "1", [-1, 2], None, 1),
        ("news", "1", list(range(65)), None, 1),
        ("news", "1", [], None, 1),
        ("news", "1", [1, 2], None, 10**9),
        ("news", 1, [1, 2], None, 1),
        ("news", "1", [1, 2], 3, 1),
    ],
)
def test_a_forged_token_without_a_key_reaches_nothing(row: tuple[Any, ...]) -> None:
    engine = SmallEngine({str(number): (0, number + 1) for number in range(30)})
    true = cursor_of(page_of(engine, True, 10)["ndd"]["cursor"], None)
    index, id, sketch, fields, shown = row
    leaders = leaders_of([(index, id, np.array(sketch, np.int32), fields, shown)])
    with pytest.raises(CursorUnusable, match="not one that a page gave"):
        page_of(engine, token_of(replace(true, leaders=leaders), None), 10)
    with pytest.raises(CursorUnusable, match="damaged"):
        page_of(engine, token_of(replace(true, ahead="far"), None), 10)  # type: ignore[arg-type]


WRONG: list[Any] = [None, True, -1, 1.5, 2**40, 2**80, "x", "", [], [None], [[1]], {}, {"value": "x"}, [1] * 3]
GUARDS: dict[str, Any] = {"guards": ["same:price"], "group_by": ["price"], "max_per": ["price:1"]}


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_whatever_a_forged_token_holds_it_is_refused_as_one_or_makes_a_page(wrong: Any) -> None:
    engine = SmallEngine({str(number): (0, number + 1) for number in range(30)})
    token = page_of(engine, True, 10, **GUARDS)["ndd"]["cursor"]
    found = unsealed(b"cursor", urlsafe_b64decode(token)[17:])
    assert found is not None
    value, arrays = found
    forged = [(part, name, wrong) for part in ("cursor", "leaders") for name in value[part]]
    forged = [one for one in forged if one[1] != "after" or not isinstance(wrong, list)]  # the engine refuses those
    for part, name, other in [*forged, ("leaders", "fields", [{"price": wrong}] * 10)]:
        changed = {**value, part: {**value[part], name: other}}
        entry = sealed(b"cursor", changed, bytes(arrays))
        assert entry is not None
        again = urlsafe_b64encode(b"\x01" + blake2b(entry, digest_size=16).digest() + entry).decode()
        try:
            body = page_of(engine, again, 10, **GUARDS)
        except CursorUnusable:
            continue
        assert {hit["_id"] for hit in body["hits"]["hits"]} <= engine.documents.keys(), (part, name)


def test_a_token_fits_the_point_in_time_and_the_caller_of_its_pages_alone() -> None:
    """Also without a key: to change either takes all of the search, with the credentials of its requests."""
    engine = SmallEngine({str(number): (0, number + 1) for number in range(30)})
    driver = Driver(settings_of(frequency_table=False, min_similarity=0.8))

    def page(cursor: Any, key: str, path: str = "/news/_search") -> str:
        body = {**SEARCH, "size": 10, "ndd": {"cursor": cursor}}
        answer = driver.handle(Request("POST", path, {}, {"authorization": f"ApiKey {key}"}, body), engine.send)
        return str(answer.body["ndd"]["cursor"])

    mine, other = page(True, "mine"), page(True, "mine", "/secrets/_search")
    swapped = token_of(replace(cursor_of(mine, None), pit=cursor_of(other, None).pit), None)
    for token, key in ((swapped, "mine"), (mine, "theirs")):
        with pytest.raises(CursorUnusable, match="belongs to another search, or to another caller"):
            page(token, key)
    assert page(page(mine, "mine"), "mine") == "None"


def test_a_sort_is_continued_as_it_was_given_in_body_and_url() -> None:
    """Engines sort by what the body says, then by what the URL says."""
    body: dict[str, Any] = {"query": {}, "sort": "price"}

    def of(body: dict[str, Any], **params: str) -> list[Any]:
        search = read_search(Request("POST", "/news/_search", params, {}, body))
        assert search is not None
        return ordered_by(search)

    last = [{"_shard_doc": "asc"}, {"_index": "asc"}]
    assert of({}) == [{"_score": "desc"}, *last]
    assert of(body) == ["price", *last]
    assert of({}, sort="day:desc,_score") == [{"day": "desc"}, "_score", *last]
    assert of(body, sort="day:desc,_score") == ["price", {"day": "desc"}, "_score", *last]
    assert of({"sort": [{"day": "asc"}, "_shard_doc"]}) == [{"day": "asc"}, "_shard_doc", {"_index": "asc"}]


@pytest.mark.parametrize("settings", [{"cursor_key": ""}, {"cursor_key": b""}])
def test_impossible_settings_of_cursors_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        settings_of(**settings)


def test_a_first_page_that_fails_leaves_no_point_in_time_open() -> None:
    engine = SmallEngine({"1": (1, 1)})

    def send(request: Request) -> Answer:
        answer = engine.send(request)
        return replace(answer, body={**answer.body, "timed_out": True}) if "/_search" in request.path else answer

    driver = Driver(settings_of())
    with pytest.raises(CursorUnusable, match="partial"):
        driver.handle(Request("POST", "/news/_search", {}, {}, {**SEARCH, "ndd": {"cursor": True}}), send)
    assert not engine.open


@pytest.mark.parametrize("lacking", [0, 1])
def test_hits_without_sort_values_are_an_error_that_says_so(lacking: int) -> None:
    engine = SmallEngine({"1": (1, 1), "2": (1, 2), "3": (1, 3)})

    def send(request: Request) -> Answer:
        answer = engine.send(request)
        if answer.has_hits:
            answer.body["pit_id"] = None  # and a point in time that is none
            if lacking:
                del answer.hits[lacking]["sort"]
        return answer

    request = Request("POST", "/news/_search", {}, {}, {**SEARCH, "size": 1, "ndd": {"cursor": True}})
    driver = Driver(settings_of(frequency_table=False))
    if lacking:
        with pytest.raises(CursorUnusable, match="no sort values"):
            driver.handle(request, send)
    else:
        token = driver.handle(request, send).body["ndd"]["cursor"]
        assert cursor_of(token, None).pit == "pit0"


SKETCHES = st.sets(st.integers(0, 2**31 - 1), min_size=1, max_size=8).map(lambda one: np.array(sorted(one), np.int32))
ROWS = st.tuples(
    st.sampled_from(["news", "blogs"]),
    st.text(max_size=5),
    SKETCHES,
    st.none() | st.just({"a": [3]}),
    st.integers(1, 3),
)
SORT = st.lists(st.none() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False))


def leaders_of(rows: list[tuple[Any, ...]]) -> Leaders:
    names = ("indexes", "ids", "sketches", "fields", "shown")
    return Leaders(**dict(zip(names, zip(*rows, strict=True), strict=True))) if rows else Leaders()


@given(st.lists(ROWS, max_size=4), SORT, st.none() | st.binary(min_size=1))
def test_a_token_gives_its_cursor_back(rows: list[tuple[Any, ...]], after: list[Any], key: bytes | None) -> None:
    leaders = leaders_of(rows)
    cursor = Cursor(search="s", pit="p", after=after, ahead=3, pages=2, leaders=leaders, total=7, table="t")
    again = cursor_of(token_of(cursor, key), key)
    assert {**vars(again), "leaders": None} == {**vars(cursor), "leaders": None}
    assert [one.tolist() for one in again.leaders.sketches] == [one.tolist() for one in leaders.sketches]
    assert {**vars(again.leaders), "sketches": None} == {**vars(leaders), "sketches": None}


@given(st.integers(0, 400), st.integers(0, 255), st.none() | st.just(b"key"))
def test_a_token_with_a_changed_byte_is_refused(place: int, value: int, key: bytes | None) -> None:
    leaders = leaders_of([("news", "1", np.arange(64, dtype=np.int32), None, 1)])
    token = token_of(Cursor(search="s", pit="p", after=[1], ahead=0, pages=1, leaders=leaders), key)
    place %= len(token)
    changed = token[:place] + chr(value) + token[place + 1 :]
    try:
        same = urlsafe_b64decode(changed) == urlsafe_b64decode(token)  # the last digit has bits that are not used
    except ValueError:
        same = False
    if not same:
        with pytest.raises(CursorUnusable):
            cursor_of(changed, key)


def test_the_newest_leaders_are_kept() -> None:
    sketch = np.arange(64, dtype=np.int32)
    for id, fields, least in (("{}", None, 980), ("{:0500}", None, 300), ("{}", {"source": "é" * 200}, 180)):
        leaders = leaders_of([("news", id.format(number), sketch, fields, 1) for number in range(1100)])
        bounded = Cursor(search="s", pit="p", after=[], ahead=0, pages=1, leaders=leaders).bounded()
        kept = len(bounded.leaders)
        assert least < kept < 1010
        assert (bounded.forgotten, bounded.leaders.ids) == (1100 - kept, leaders.ids[-kept:])
        assert len(token_of(bounded, None)) <= 370_000
