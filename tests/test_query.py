"""What a user types into the search box of an index in a folder, and in which order the hits come."""

import random
import re
import sys
from pathlib import Path
from typing import Any
from unicodedata import category, normalize

import numpy as np
import pytest
from hypothesis import assume, given

import ndd_search as ndd
from ndd_search.core.text.tokens import tokens
from ndd_search.core.text.unicode_tables import MARK, fold, kinds_of_folded
from tests.strategies import texts
from tests.test_embedded import documents, ids

pytest.importorskip("tantivy", reason="the embedded index needs tantivy")

from ndd_search.embedded import ranked_hits
from ndd_search.embedded.tantivy_files import analyzer_of

KOREAN = re.compile("[\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff]")
UNKNOWN = {"Cn", "Cs", "Co"}
MARKS = "".join(map(chr, np.flatnonzero(kinds_of_folded() == MARK)))
SIGNS = re.compile(f"[-+#<>%°±‰‱≤≥≰≱≦≧⩽⩾$¢£¤¥\u20a0-\u20cf][{MARKS}]*")  # words of sketches alone

SHOP: list[dict[str, Any]] = [
    {
        "id": 1,
        "title": "Steel works",
        "body": "running the works in the North",
        "price": "10",
        "day": "2022-01-05",
        "place": "North America",
        "maker": {"name": "Ōtomo & Co"},
        "in stock": True,
    },
    {
        "id": 2,
        "title": "Works of steel",
        "body": "iron and wood",
        "price": 20.5,
        "day": "2022-02-05T12:00:00+01:00",
        "place": "South America",
        "a.b": "dotted",
    },
    {"id": 3, "title": "Gold", "body": "it was dug there", "price": 3, "day": "2022-02-28", "tags": ["a", "b c"]},
    {"id": 4, "title": "Nothing", "body": "", "price": None, "odd \x00 key": 1, "\ud800": "\ud800", "huge": 10**400},
]


def is_one(char: str) -> bool:
    """Whether folding and lower case make one character of one."""
    return len(fold(char)) == len(char.lower()) == 1


@given(texts.map(lambda text: normalize("NFKC", text)))
def test_an_index_is_searched_by_the_words_that_sketches_are_made_of(text: str) -> None:
    """Without their signs, accents, and in Korean by syllables.

    Of characters that this Python and tantivy know, that stay one, and no mark a letter. A mark behind a letter without
    its dot or stroke, as in "ı́", stays apart in an index.
    """
    kept = (char for char in text if char.isspace() or (is_one(char) and category(char) not in UNKNOWN))
    text = "".join(char for char in kept if char.isspace() or category(char)[0] == category(fold(char))[0])
    assume(len(fold(text)) == len(text))
    words = [part for word in tokens(text, ndd.Recipe()) for part in SIGNS.split(word) if part]
    analyzed = [analyzer_of("none").analyze(word) for word in words]
    assert [fold(word) for word in analyzer_of("none").analyze(text)] == [
        fold(part) for one in analyzed for part in one
    ]
    assert all(len(one) == 1 for word, one in zip(words, analyzed, strict=True) if not KOREAN.search(word))


@pytest.fixture
def shop(tmp_path: Path) -> ndd.Index:
    index = ndd.Index.open(tmp_path / "shop", text=["title", "body"])
    index.add(SHOP)
    return index


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("steel gold", "123"),
        ('"steel works"', "1"),
        ('"works steel"~1', "2"),
        ("+steel -iron", "1"),
        ("-steel", "34"),
        ("steel AND NOT iron", "1"),
        ("gold OR (steel AND iron)", "23"),
        ("title:gold", "3"),
        ("body:gold", ""),
        ("body:run", "1"),
        ("id:3", "3"),
        ("price:10", "1"),
        ("price:>5", "12"),
        ("price:[3 TO 10]", "13"),
        ("price:{3 TO 20.5}", "1"),
        ("price:{2.5 TO 30.25}", "123"),
        ("price:<10", "3"),
        ("price:>0", "123"),
        ("price:[-1e30 TO 1e30]", "123"),
        ("price:[* TO 10]", "13"),
        ("day:[2022-01-01 TO 2022-02-05]", "12"),
        ("day:>2022-02-05", "3"),
        ("day:<2022-02-05", "1"),
        ("day:2022-02-28", "3"),
        ('place:"north america"', "1"),
        ("+works +place:america", "12"),
        ("+works -place:north", "2"),
        ("maker.name:ōtomo", "1"),
        ("a.b:dotted", "2"),
        (r"in\ stock:true", "1"),
        ('tags:"b c"', "3"),
        ("tags:IN [a z]", "3"),
        ("*", "1234"),
        ("price:*", "123"),
        ("* AND price:>5", "12"),
    ],
)
def test_words_phrases_fields_and_ranges_find_what_they_say(shop: ndd.Index, query: str, found: str) -> None:
    response = shop.search(query)
    assert "".join(sorted(ids(response))) == found
    assert "notes" not in response["ndd"]


LANGUAGES = [
    {"id": 1, "body": "The café by the bridge", "place": "Zürich"},
    {"id": 2, "body": "Καλημέρα κόσμε", "place": "Αθήνα"},
    {"id": 3, "body": "Tôi nói tiếng Việt, đường phố", "place": "Hà Nội"},
    {"id": 4, "body": "학교에서 공부하는 학생은", "place": "서울특별시"},
    {"id": 5, "body": "brief and bright, running", "place": "Bristol"},
    {"id": 6, "body": "上海北站"},
    {"id": 7, "body": "北京大学"},
]


@pytest.fixture
def languages(tmp_path: Path) -> ndd.Index:
    index = ndd.Index.open(tmp_path / "languages", text="body")
    index.add(LANGUAGES)
    return index


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("cafe", "1"),
        ("CAFÉS", "1"),
        ("cafe\u0301", "1"),
        ("καλημερα", "2"),
        ("ΚΑΛΗΜΈΡΑ", "2"),
        ("viet", "3"),
        ("duong", "3"),
        ('"tieng viet"', "3"),
        ("place:zurich", "1"),
        ("place:αθηνα", "2"),
        ("학교", "4"),
        ("학생", "4"),
        ("학교는", "4"),
        ("place:서울", "4"),
        ("北京", "7"),
        ("北", "67"),
        ("bri*", "15"),
        ("+bri* -cafe", "5"),
        ("bridges*", "1"),
        ("Caf*", "1"),
        ('"and bri"*', "5"),
        ("body:bri*", "15"),
        ("place:bri*", "5"),
        ("place:zur*", "1"),
    ],
)
def test_a_search_finds_what_people_type_in_their_languages(languages: ndd.Index, query: str, found: str) -> None:
    response = languages.search(query)
    assert "".join(sorted(ids(response))) == found
    assert "notes" not in response["ndd"]


@pytest.mark.parametrize(
    ("query", "found", "note"),
    [
        ("runni*", "", "no word begins with runni: endings such as -ing are not indexed, write fewer letters"),
        ("place:x*", "", "no word begins with x"),
        ("*afe", "", "* stands for the end of a word alone: '*afe' was read without the others"),
        ("w*", "", "w* begins 1,024 words or more: the most frequent ones are searched"),
    ],
)
def test_a_beginning_that_finds_nothing_or_too_much_says_so(
    languages: ndd.Index, query: str, found: str, note: str
) -> None:
    languages.add([{"id": 8, "body": " ".join(f"word{number}" for number in range(1100))}])
    response = languages.search(query)
    assert ids(response) == (["8"] if query == "w*" else [])
    assert note in response["ndd"]["notes"][0]


def test_words_are_marked_as_they_are_written_in_the_text(languages: ndd.Index) -> None:
    def passage(query: str) -> str:
        (hit,) = languages.search(query, highlight=("<", ">"))["hits"]["hits"]
        text: str = hit["highlight"]["body"][0]
        return text

    assert passage("cafe") == "The <café> by the bridge"
    assert passage("bridg*") == "The café by the <bridge>"
    assert passage("καλημερα") == "<Καλημέρα> κόσμε"
    assert passage("학교").startswith("<학교>에서")


def test_which_texts_are_near_duplicates_does_not_depend_on_the_language_of_the_index(tmp_path: Path) -> None:
    """A text without its accents is another text, whatever a search finds."""
    texts = [f"{word} " * 3 + "the old bridge near the river was shut for the day" for word in ("café", "cafe")]
    for language in ("english", "greek", "none"):
        with ndd.Index.open(tmp_path / language, text="body", language=language) as index:
            index.add({"id": str(number), "body": text} for number, text in enumerate([*texts, texts[0]]))
            shown = index.search("cafe bridge", keep=["score"])["hits"]["hits"]
        groups = [
            {hit["_id"], *(one["_id"] for one in hit["inner_hits"]["near_duplicates"]["hits"]["hits"])}
            for hit in shown
            if "inner_hits" in hit
        ]
        assert groups == [{"0", "2"}]


@pytest.mark.parametrize(
    ("query", "found", "note"),
    [
        ("gold (", "3", "the query was read as plain words: expected word"),
        ('gold "dug', "3", 'it is not complete, write gold "dug"'),
        ("http://gold.example dug", "3", "the query was read as plain words"),
        ("gold nope:dug", "3", "no document has a field 'nope': the name was read as a word"),
        ("nope:[1 TO 2] gold", "3", "there is no field 'nope' with numbers or dates"),
        ("price:[a TO b] gold", "3", "a range needs numbers, or dates such as 2024-01-31"),
        ("day:>9999-12-31 gold", "3", "of the years 1680 to 2260, got '9999-12-31'"),
        ("gold " + "(" * 100_000, "3", "it is too long for operators"),
        ("gold" + " +x" * 10_000, "3", "it is too long for operators"),
    ],
)
def test_what_is_no_query_is_taken_as_words_and_said(shop: ndd.Index, query: str, found: str, note: str) -> None:
    response = shop.search(query)
    assert "".join(ids(response)) == found
    assert note in response["ndd"]["notes"][0]


def test_words_alone_have_the_same_scores_with_and_without_operators_beside_them(shop: ndd.Index) -> None:
    plain = {hit["_id"]: hit["_score"] for hit in shop.search("steel works")["hits"]["hits"]}
    joined = {hit["_id"]: hit["_score"] for hit in shop.search("(steel works)")["hits"]["hits"]}
    assert plain == pytest.approx(joined)


def test_any_run_of_operators_is_a_query(shop: ndd.Index) -> None:
    pieces = ['"', "'", *"()[]{}:^~*/\\<>+-!&,.", " ", "AND ", "OR ", "NOT ", "IN ", " TO ", "gold", "price", "3", "é"]
    chance = random.Random(1)
    for _ in range(500):
        query = "".join(chance.choice(pieces) for _ in range(chance.randrange(1, 25)))
        assert shop.search(query)["hits"]["total"]["value"] >= 0


def test_hits_come_in_the_order_of_a_field_and_those_without_it_last(shop: ndd.Index) -> None:
    assert ids(shop.search("*", sort="price")) == ["3", "1", "2", "4"]
    assert ids(shop.search("*", sort="price:desc")) == ["2", "1", "3", "4"]
    assert ids(shop.search("*", sort="place:desc")) == ["2", "1", "3", "4"]
    assert ids(shop.search("*", sort="price", size=2, from_=1)) == ["1", "2"]
    assert ids(shop.search("*", sort="title")) == ["3", "4", "1", "2"]
    assert ids(shop.search("*", sort="maker.name")) == ["1", "2", "3", "4"]
    assert ids(shop.search("*", sort="a.b")) == ["2", "1", "3", "4"]
    assert ids(shop.search("works", sort="price:desc")) == ["2", "1"]
    assert ids(shop.search("volcano", sort="price")) == []
    assert ids(shop.search("id:4", sort="price:desc")) == ["4"]  # which others have
    with pytest.raises(ValueError, match="no document has the field 'prize' to sort by"):
        shop.search("*", sort="prize")
    with pytest.raises(ValueError, match="sort must be"):
        shop.search("*", sort=":desc")


def test_texts_and_numbers_of_one_field_are_sorted_across_commits(tmp_path: Path) -> None:
    """Each commit is a segment of its own, with columns of its own kinds."""
    commits: list[list[Any]] = [["10", 3, None, "Zürich"], ["athens", 1e30, -5.5], [["x", 2], True, ""], [10.5, 10]]
    with ndd.Index.open(tmp_path / "mixed", text="body") as index:
        for number, values in enumerate(commits):
            index.add({"id": f"{number}{place}", "body": "x", "v": value} for place, value in enumerate(values))
        inorder = ids(index.search("*", sort="v", mode="annotate", size=20))
        assert inorder == ["10", "21", "20", "03", "12", "01", "00", "31", "30", "11", "02", "22"]
        backwards = ids(index.search("*", sort="v:desc", mode="annotate", size=20))
        assert backwards == ["11", "30", "00", "31", "01", "12", "03", "20", "21", "10", "02", "22"]


@pytest.mark.parametrize("most", [1, 7])
def test_hits_are_sorted_in_any_number_of_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """tantivy refuses to order more than 65,000 at once."""
    values = [None, "a", "B", "ä", "10", 10, -3, 2.5, ["x", "y"], "2024-01-01"]
    with ndd.Index.open(tmp_path / "many", text="body") as index:
        for part in range(3):
            index.add({"id": f"{part}-{n}", "body": "volcano", "v": values[n % 7 + part]} for n in range(20))
        for sort in ("v", "v:desc"):
            monkeypatch.setattr(ranked_hits, "_MOST_ORDERED", 50_000)
            whole = ids(index.search("volcano", sort=sort, size=60, mode="annotate"))
            monkeypatch.setattr(ranked_hits, "_MOST_ORDERED", most)
            assert ids(index.search("volcano", sort=sort, size=60, mode="annotate", window=60)) == whole
            assert len(set(whole)) == 60


def test_a_sorted_page_reads_the_documents_of_its_window_alone(tmp_path: Path) -> None:
    with ndd.Index.open(tmp_path / "many", text="body") as index:
        index.add({"id": number, "body": f"x {number}", "v": number} for number in range(3000))
        calls: list[str] = []
        sys.setprofile(lambda frame, event, arg: calls.append(arg.__name__) if event == "c_call" else None)
        try:
            found = ids(index.search("x", sort="v:desc", size=3))
        finally:
            sys.setprofile(None)
    assert found == ["2999", "2998", "2997"]
    assert 3 <= calls.count("doc") < 200


def test_a_sorted_page_holds_no_near_duplicates_either(tmp_path: Path) -> None:
    with ndd.Index.open(tmp_path / "news", text=["title", "body"]) as index:
        index.add(documents())
        shown = ids(index.search("climate", sort="copy:desc", size=30, window=120))
    assert len(shown) == 30
    assert {one.partition("-")[2] for one in shown} == {"3"}


def test_hits_show_what_was_found_around_where_it_was_found(shop: ndd.Index) -> None:
    shop.add([{"id": 9, "title": "déjà vu", "body": "é " * 3000 + "the volcanoes smoked " + "ü " * 3000}])
    (hit,) = shop.search('"volcano smoke"', highlight=("<em>", "</em>"))["hits"]["hits"]
    (passage,) = hit["highlight"]["body"]
    assert "the <em>volcanoes</em> <em>smoked</em> ü" in passage
    assert len(passage) < 300
    assert "title" not in hit["highlight"]
    assert "highlight" not in shop.search("volcano")["hits"]["hits"][0]
    for wrong in ("em", True, ("<em>",)):
        with pytest.raises(TypeError, match="highlight must be two texts"):
            shop.search("volcano", highlight=wrong)  # type: ignore[arg-type]
    for name in ("sort", "where"):
        with pytest.raises(TypeError, match=f"{name} must be a string, got int"):
            shop.search("volcano", **{name: 3})  # type: ignore[arg-type]


def test_documents_come_back_as_they_were_whatever_their_fields_are(shop: ndd.Index) -> None:
    assert [shop.get(one["id"]) for one in SHOP] == SHOP


def test_a_second_query_filters_and_changes_no_score(shop: ndd.Index) -> None:
    def scores(where: str | None = None) -> dict[str, float]:
        return {hit["_id"]: hit["_score"] for hit in shop.search("steel gold works", where=where)["hits"]["hits"]}

    every = scores()
    assert scores(where="*") == pytest.approx(every)
    assert scores(where='+place:"America" +day:[2022-01-01 TO 2022-01-31]') == {"1": pytest.approx(every["1"])}
    assert scores(where="volcano") == {}
    assert scores() == every  # the cache holds both


def test_values_are_counted_over_all_documents_found(shop: ndd.Index) -> None:
    shop.add([{**SHOP[0], "id": 5}])
    wanted = {"places": {"terms": {"field": "place"}}, "prices": {"stats": {"field": "price"}}}
    found = shop.aggregate("steel", wanted)
    assert [(one["key"], one["doc_count"]) for one in found["places"]["buckets"]] == [
        ("North America", 2),
        ("South America", 1),
    ]
    assert found["prices"]["max"] == 20.5
    assert shop.aggregate("steel", wanted, where="place:South")["prices"]["count"] == 1
    assert shop.aggregate("*", {"x": {"terms": {"field": "nope"}}})["x"]["buckets"] == []
    with pytest.raises(ValueError, match="the aggregations cannot be computed"):
        shop.aggregate("*", {"x": {"nope": {"field": "place"}}})


@pytest.mark.parametrize("others", [["unknown", "in spring"], [1.5]])
def test_days_are_counted_where_later_documents_have_no_dates(tmp_path: Path, others: list[Any]) -> None:
    """The documents of two calls of `add` are in two segments, of which one has no dates in the field."""
    dated = [{"id": day, "body": "steel", "day": day} for day in ("1969-07-20", "2024-01-31")]
    wanted = {"days": {"date_histogram": {"field": "day", "fixed_interval": "1d", "min_doc_count": 1}}}
    with ndd.Index.open(tmp_path / "news.idx", text="body") as index:
        index.add(dated)
        expected = index.aggregate("steel", wanted)
        assert [one["key_as_string"][:10] for one in expected["days"]["buckets"]] == ["1969-07-20", "2024-01-31"]
        index.add([{"id": number, "body": "steel", "day": other} for number, other in enumerate(others)])
        assert index.aggregate("steel", wanted) == expected
