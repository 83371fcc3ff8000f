"""Records of several fields: how values are read and compared, and which two records are one thing."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search import native
from ndd_search.errors import InvalidDocument
from ndd_search.items.parse_values import date_of, number_of, place_of, url_of, words_of
from tests.items.cathedrals import ARMAGH, CORK, DUBLIN, FINBARR, PLACES


def without(record: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != name}


def test_two_records_of_one_cathedral_match_and_two_cathedrals_of_one_name_do_not() -> None:
    assert PLACES.similarity(CORK, FINBARR).is_match
    assert not PLACES.similarity(DUBLIN, ARMAGH).is_match
    page = PLACES.collapse(
        [{"_id": str(rank), "_source": hit} for rank, hit in enumerate((CORK, DUBLIN, FINBARR, ARMAGH))]
    )
    assert [hit["_id"] for hit in page] == ["0", "1", "3"]
    assert [one.rank for one in page.groups[0].duplicates] == [2]
    assert "is shown under hit 0: " in str(page.explain(2))
    assert "the nearest leader is hit 1: " in page.explain(3).rule
    strict = ndd.collapse([CORK, FINBARR, CORK], items=PLACES, min_similarity=0.99, guards=["same:name"])
    assert strict.hits == [CORK, FINBARR]
    assert strict.explain(1).rule.endswith("; here hits are one thing from 0.99 on")
    guarded = ndd.collapse([CORK, FINBARR], items=PLACES, guards=["same:name"])
    assert guarded.explain(1).rule.endswith("; same:name keeps them apart")
    with pytest.raises(TypeError, match="items must be a schema"):
        ndd.collapse([CORK], items="places.toml")  # type: ignore[arg-type]
    with pytest.raises(InvalidDocument, match="none of 1 hit: no field of name, summary, location"):
        PLACES.collapse([{"title": "x"}])
    assert page.info.recipe == PLACES.id
    assert page.info.min_similarity == PLACES.min_probability


def test_an_index_in_a_folder_shows_each_thing_once(tmp_path: Path) -> None:
    pytest.importorskip("tantivy")
    documents: list[dict[str, Any]] = [CORK, DUBLIN, FINBARR, ARMAGH]
    with ndd.Index.open(tmp_path, text=["name"]) as index:
        index.add({"id": str(rank), **record} for rank, record in enumerate(documents))
        by_text = index.search("cathedral")
        answer = index.search("cathedral", items=PLACES)
        second = index.search("cathedral", items=PLACES, size=1, from_=1)
        assert len(index.search("cathedral", items=PLACES, min_similarity=0.999)["hits"]["hits"]) == 4
    hits = {hit["_id"]: hit for hit in answer["hits"]["hits"]}
    assert len({"0", "2"} & set(hits)) == 1
    assert set(hits) - {"0", "2"} == {"1", "3"}
    assert answer["hits"]["hits"][1]["_id"] == second["hits"]["hits"][0]["_id"]
    assert answer["ndd"]["recipe"] == PLACES.id != by_text["ndd"]["recipe"]
    assert len(by_text["hits"]["hits"]) == 3  # the two cathedrals of St. Patrick have one text


def test_without_a_location_the_name_needs_the_summary() -> None:
    cork, finbarr = without(CORK, "location"), without(FINBARR, "location")
    found = PLACES.similarity(cork, finbarr)
    assert not found.is_match
    assert "needed is agreement of name and summary, or name and location" in found.explain()
    assert PLACES.similarity(cork, {**finbarr, "summary": CORK["summary"] + "; consecrated in 1870"}).is_match


@pytest.mark.parametrize(
    ("one", "other"),
    [("Senior C++ Developer", "Senior C# Developer"), ("Sensor +5 V", "Sensor -5 V"), ("Voucher €10", "Voucher $10")],
)
def test_names_with_other_signs_are_not_equal(one: str, other: str) -> None:
    schema = ndd.items.Items(name=ndd.items.Name())
    assert schema.similarity({"name": one}, {"name": one}).similarity == 1
    assert schema.similarity({"name": one}, {"name": other}).similarity < 0.95


def test_names_with_other_numbers_are_other_names() -> None:
    rows = [{"name": f"Hotel Number {number // 2}"} for number in range(40)]
    assert len(ndd.items.Items(name=ndd.items.Name()).groups(rows)) == 20


def test_records_that_lack_what_is_needed_are_joined_by_a_third_one() -> None:
    both = {**CORK, "summary": FINBARR["summary"]}
    groups = PLACES.groups([without(CORK, "summary"), both, without({**FINBARR, **both}, "location")])
    assert groups.leader.tolist() == [0, 0, 0]
    assert len(groups.pairs) == 2


def test_an_explanation_names_every_field_and_the_missing_ones() -> None:
    lines = PLACES.similarity(CORK, without(FINBARR, "location")).explain().splitlines()
    assert [line.partition(":")[0] for line in lines[:3]] == ["name", "summary", "location"]
    assert "missing in one record, which says nothing" in lines[2]


@pytest.mark.parametrize(
    "value",
    [{"lat": 41.12, "lon": -71.34}, "41.12,-71.34", [-71.34, 41.12], "POINT (-71.34 41.12)", "drm3btev3e86",
     {"type": "Point", "coordinates": [-71.34, 41.12]}, {"latitude": "41.12", "longitude": "288.66"}],
)  # fmt: skip
def test_a_place_is_read_in_every_form_that_the_engines_take(value: Any) -> None:
    assert place_of(value) == pytest.approx((41.12, -71.34), abs=1e-6)


@pytest.mark.parametrize(
    ("read", "value", "expected"),
    [
        (number_of, "EUR 1,299.50", 1299.5),
        (number_of, "1.299,50 €", 1299.5),
        (number_of, "12,5", 12.5),
        (number_of, "3,000", 3000.0),
        (date_of, "19441018", (1944, 10, 18)),
        (date_of, "15 June 1863", (1863, 6, 15)),
        (date_of, "06/15/1863", (1863, 6, 15)),
        (date_of, "15.6.1863", (1863, 6, 15)),
        (date_of, "1863-06-15T10:30:00Z", (1863, 6, 15)),
        (date_of, "June 1863", (1863, 6, 0)),
        (date_of, 1863, (1863, 0, 0)),
        (date_of, "1862-88-06", (1862, 88, 6)),
        (date_of, "06.88.1862", (1862, 6, 88)),
        (date_of, "19731308", (1973, 13, 8)),
        (date_of, "15.88.1863", (1863, 88, 15)),
        (date_of, "88.12.1863", (1863, 12, 88)),
        (date_of, "15061863", (1863, 6, 15)),
        (date_of, "15061925", (1925, 6, 15)),
        (date_of, "25122001", (2001, 12, 25)),
        (date_of, "10661014", (1066, 10, 14)),
        (date_of, "31/12/99", (1999, 12, 31)),
        (date_of, "16-07-68", (1968, 7, 16)),
        (date_of, "16 Jul 29", (2029, 7, 16)),
        (date_of, "68-07-16", (1968, 7, 16)),
        (url_of, "medium.com/@john", ("medium.com", "/@john")),
        (url_of, "example.com?mail=a@b.de", ("example.com", "?mail=a@b.de")),
        (url_of, "web.archive.org/web/2010/http://b.de", ("web.archive.org", "/web/2010/http://b.de")),
        (url_of, "HTTPS://www.Example.org:80/a/?b=2&a=1#c", ("example.org", "/a?a=1&b=2")),
        (words_of, "St. Finbarr’s &amp; Søn", ("st", "finbarrs", "and", "son")),
        (words_of, "Senior C++/C# Developer", ("senior", "c++", "c#", "developer")),
        (words_of, "Jean-Luc Sensor -5 V, 3-5 €", ("jean", "luc", "sensor", "-5", "v", "3", "5", "€")),
    ],
)
def test_values_are_read_as_people_write_them(read: Callable[[Any], Any], value: Any, expected: Any) -> None:
    assert read(value) == expected


@pytest.mark.parametrize(
    "value", ["99999999", "9999-99-99", "99.99.9999", "99-99-99", "88888888", "00000000", "12345678", "1999-99-99"]
)
def test_a_placeholder_is_no_date(value: str) -> None:
    with pytest.raises(ValueError, match="is not a date"):
        date_of(value)


@pytest.mark.parametrize("value", ["1900-01-01", "01/01/1970", "9999-12-31"])
def test_a_day_at_a_bound_stands_for_none(value: str) -> None:
    with pytest.raises(ValueError, match="stands for an unknown day"):
        date_of(value)


@pytest.mark.parametrize("value", ["000000000", "000-00-0000", "9999999999", "noemail@mail.example", "None@x.org"])
def test_what_stands_for_no_code_says_nothing(value: str) -> None:
    schema = ndd.items.Items(code=ndd.items.Exact())
    assert schema.similarity({"code": value}, {"code": value}).fields[0].similarity is None
    held = {"code": [value, "0214963387"]}  # a list keeps its other codes
    assert schema.similarity(held, {"code": "0214963387"}).fields[0].similarity == 1.0


def test_years_of_two_digits_are_in_the_century_of_the_other_dates() -> None:
    born = [f"{day:02}.07.{year}" for day, year in zip(range(1, 29), range(1840, 1896, 2), strict=True)]
    records = [{"born": value, "name": f"name {place}"} for place, value in enumerate([*born, "16-07-68"])]
    schema = ndd.items.Items.guess(records)
    assert schema.similarity({"born": "16-07-68"}, {"born": "1868-07-16"}).fields[0].similarity == 1.0


PAGE = "https://www.example.org/news/2024/bridge-opens"


@pytest.mark.parametrize(
    "other",
    [
        f"{PAGE}?utm_source=rss&utm_medium=feed", f"{PAGE}?fbclid=IwAR0abc", f"{PAGE}?gclid=xyz", f"{PAGE}?sid=4f3a",
        f"{PAGE};jsessionid=AB12CD", f"{PAGE}/amp/", PAGE.replace("www.", "m."), PAGE.replace(".org/", ".org/amp/"),
    ],
)  # fmt: skip
def test_one_page_under_several_addresses_is_one(other: str) -> None:
    assert url_of(other) == url_of(PAGE)


@pytest.mark.parametrize(
    "other", [f"{PAGE}?page=2", f"{PAGE}?sid=42", PAGE.replace("opens", "closes"), PAGE.replace("www.", "shop.")]
)
def test_another_page_has_another_address(other: str) -> None:
    assert url_of(other) != url_of(PAGE)


def test_a_host_in_two_spellings_is_one() -> None:
    assert url_of("http://bücher.example/a") == url_of("http://xn--bcher-kva.example/a")


@pytest.mark.parametrize("value", ["mary@example.com", "mailto:mary@example.com", "mary@example.com?subject=x"])
def test_a_mail_address_is_no_web_address(value: str) -> None:
    with pytest.raises(ValueError, match="is a mail address"):
        url_of(value)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("19730813", "19731308", 0.9),  # day and month swapped
        ("1973-08-13", "13/08/1973", 1.0),
        ("1862-08-06", "1862-88-06", 0.8),  # a wrong digit
        ("1973-08-12", "1937-08-12", 0.8),  # two digits swapped
        ("1862-08-06", "1862-99-06", 0.75),  # two parts
        ("1862-08-06", "1855-08-06", 0.5),
        ("1862-08-06", "1950-11-23", 0.0),
    ],
)
def test_dates_are_compared_by_their_parts(one: str, other: str, alike: float) -> None:
    schema = ndd.items.Items(born=ndd.items.Date())
    assert schema.similarity({"born": one}, {"born": other}).fields[0].similarity == pytest.approx(alike)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("021 4963-387", "0214963387", 1.0),
        ("0214963387", "0214963837", 0.25),  # neighbours swapped
        ("0214963387", "021496387", 0.25),  # a digit is missing
        ("0214963387", "0214963381", 0.25),
        ("0214963387", "0214963801", 0.0),
        ("A-12", "A-13", 0.0),  # a short code: another one
        (["0214963387", "x"], ["y", "0214963387"], 2 / 3),
    ],
)
def test_codes_with_a_slip_are_neither_equal_nor_different(one: Any, other: Any, alike: float) -> None:
    schema = ndd.items.Items(name=ndd.items.Name(), phone=ndd.items.Exact())
    found = [field for field in schema.similarity({"phone": one}, {"phone": other}).fields if field.name == "phone"]
    assert found[0].similarity == pytest.approx(alike)
    assert (found[0].evidence > 1, found[0].evidence < -1) == (alike > 0.5, alike < 0.2)
    vetoed = ndd.items.Items(phone=ndd.items.Exact(veto=True)).similarity({"phone": one}, {"phone": other})
    assert bool(vetoed.prevented) == (alike < 0.5)


@pytest.mark.parametrize("core", [native.core, None])
def test_slips_are_looked_for_in_short_lists_only(core: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each code of one list is compared with each of the other: lists of thousands would take seconds."""
    monkeypatch.setattr(native, "core", core)
    schema = ndd.items.Items(phone=ndd.items.Exact())
    codes = [f"{number:03}{letters}" for letters in ("abcdef", "abcdfe") for number in range(40)]
    for size, alike in ((1, 0.25), (30, 0.25), (40, 0.0)):
        found = schema.similarity({"phone": codes[:size]}, {"phone": codes[40 : 40 + size]})
        assert found.fields[0].similarity == pytest.approx(alike)
    assert schema.similarity({"phone": codes[:40]}, {"phone": codes[39:]}).fields[0].similarity > 0.5  # type: ignore[operator]


def test_addresses_of_long_lists_are_compared_as_they_are() -> None:
    schema = ndd.items.Items(site=ndd.items.Url())
    sites = [f"a.ie/x/{number}" for number in range(80)]
    assert schema.similarity({"site": sites[:3]}, {"site": sites[40:]}).fields[0].similarity == pytest.approx(0.7)
    assert schema.similarity({"site": sites[:40]}, {"site": sites[40:]}).fields[0].similarity == 0.0
    assert schema.similarity({"site": sites[:41]}, {"site": sites[40:]}).fields[0].similarity == 1.0


@pytest.mark.parametrize("kind", [ndd.items.Exact, ndd.items.Category, ndd.items.Url], ids=lambda kind: kind.kind)
def test_a_value_of_any_source_is_compared(kind: Any) -> None:
    """Only the first number of a person counted, where another list writes it into another field."""
    schema = ndd.items.Items(site=kind(source=("home", "work")))
    one = {"home": "a.example/one", "work": None}
    for other in ({"home": "b.example/two", "work": "a.example/one"}, {"work": ["a.example/one", None]}):
        assert (schema.similarity(one, other).fields[0].similarity or 0) >= 0.5
    alike = schema.similarity(one, {"home": [None, ""], "work": []}).fields[0]
    assert (alike.similarity, alike.values[1]) == (None, None)


def test_codes_that_are_none_in_a_list_are_missing() -> None:
    schema = ndd.items.Items(name=ndd.items.Name(), phone=ndd.items.Exact())
    empty = {"name": "Fota House", "phone": [None]}
    assert schema.similarity(empty, empty).fields[1].similarity is None


def test_descriptions_are_compared_by_stems_and_synonyms() -> None:
    one, other = {"about": "church visitors walking towers"}, {"about": "churches visitor walked tower"}
    alike = {
        stem: ndd.items.Items(about=ndd.items.Text(stem=stem)).similarity(one, other).similarity
        for stem in (None, "english")
    }
    assert alike == {None: 0.0, "english": 1.0}
    written = ndd.items.Items(about=ndd.items.Text(synonyms={"kirk": "church"}))
    assert written.similarity({"about": "the old kirk"}, {"about": "The old church"}).similarity == 1.0
    with pytest.raises(ValueError, match="there is no Snowball stemmer for 'klingon'"):
        ndd.items.Text(stem="klingon")
    with pytest.raises(TypeError, match="stem must be a language, got 3"):
        ndd.items.Text(stem=3)  # type: ignore[arg-type]


def test_a_value_that_cannot_be_read_is_missing_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    schema = ndd.items.Items(
        name=ndd.items.Name(), where=ndd.items.Place(source=("lat", "lon")), price=ndd.items.Number()
    )
    good = {"name": "Fota House", "lat": 51.9, "lon": -8.3, "price": 12}
    bad = {"name": "Fota House", "lat": 200, "lon": -8.3, "price": "call us"}
    found = schema.similarity(good, bad)
    assert [field.name for field in found.fields if field.similarity is None] == ["where", "price"]
    with caplog.at_level(logging.WARNING, "ndd_search"):
        groups = schema.groups([good, bad, {**bad, "name": "n/a"}])
    assert groups.bad == {"name": 1, "where": 2, "price": 2}
    assert "2 values of where could not be read and count as missing: where: latitude 200" in caplog.text


@pytest.mark.parametrize(("nowhere", "field"), [
    ({"lat": 0, "lon": "0.0"}, ndd.items.Place(source=("lat", "lon"))), ({"where": "0,0"}, ndd.items.Place())
])  # fmt: skip
def test_latitude_0_with_longitude_0_is_no_place(nowhere: dict[str, Any], field: ndd.items.Place) -> None:
    groups = ndd.items.Items(where=field).groups([nowhere, nowhere, nowhere | {"lat": 0.1, "where": "0.1,0"}])
    assert groups.bad == {"where": 2}


def test_a_name_of_thousands_of_words_is_missing_and_takes_no_time(caplog: pytest.LogCaptureFixture) -> None:
    long = [" ".join(f"{letter}{number}" for number in range(20_000)) for letter in "ab"]
    names = [*long, *long, "x" * 2_001, "x" * 2_001, "Fota House", "House, Fota", "of " * 200]
    began = time.perf_counter()
    with caplog.at_level(logging.WARNING, "ndd_search"):
        groups = ndd.items.Items(name=ndd.items.Name()).groups([{"name": name} for name in names])
    assert time.perf_counter() - began < 30  # minutes if each word is compared with each
    assert groups.bad == {"name": 6}
    assert "has 20,000 words, which is no name: compare it as a text" in caplog.text
    assert sorted(len(members) for members in groups.members.values()) == [1] * 7 + [2]


def test_marks_beyond_thirty_in_a_row_are_left_out_and_take_no_time() -> None:
    marks = "\u0323\u0301"
    began = time.perf_counter()
    assert words_of("Cafe" + marks * 200_000 + " Fota") == ("cafe", "fota")
    assert time.perf_counter() - began < 30  # minutes if they are brought into order
    assert ndd.sketch("cafe" + marks * 200_000).tolist() == ndd.sketch("cafe" + marks * 15).tolist()
    assert ndd.sketch("cafe" + marks * 15).tolist() != ndd.sketch("cafe" + marks * 14).tolist()


def test_warnings_show_the_beginning_of_a_long_value(caplog: pytest.LogCaptureFixture) -> None:
    schema = ndd.items.Items(
        name=ndd.items.Name(), where=ndd.items.Place(), price=ndd.items.Number(), day=ndd.items.Date()
    )
    long = {"id": "x" * 500, "name": "!" * 500, "where": "?" * 500, "price": "call us " * 99, "day": ["?"] * 300}
    with caplog.at_level(logging.WARNING, "ndd_search"):
        schema.groups([long, long])
    assert len(caplog.messages) == 5
    assert max(map(len, caplog.messages)) < 200


def test_codes_that_differ_keep_records_and_their_groups_apart() -> None:
    schema = ndd.items.Items(name=ndd.items.Name(), isbn=ndd.items.Exact(veto=True))
    books = [{"name": "The history of Cork city", "isbn": "0-19"}, {"name": "The history of Cork city", "isbn": "0 27"}]
    assert schema.similarity(*books).prevented == "isbn differs, which keeps records apart"
    assert len(schema.groups([*books, {"name": "The history of Cork city"}])) == 2
    assert schema.similarity(books[0], {**books[0], "isbn": "019"}).is_match


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("dark, light skin", "Dark Light Skin", 1.0),
        ("dark, light skin", "light, dark skin", 0.99),
        ("family: man, boy", "family: man, man, boy", 0.99),
    ],
)
def test_names_that_differ_in_the_order_or_number_of_equal_words_are_nearly_equal(
    one: str, other: str, alike: float
) -> None:
    found = ndd.items.Items(name=ndd.items.Name()).similarity({"name": one}, {"name": other})
    assert found.fields[0].similarity == pytest.approx(alike)
