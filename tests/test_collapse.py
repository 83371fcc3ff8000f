from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import ndd_search as ndd
from ndd_search import native
from ndd_search.core.matching import leaders
from ndd_search.core.paging.page import log_once
from ndd_search.core.sketching import sketch_many
from ndd_search.errors import InvalidDocument, InvalidSketch

CLIMATE = "Ministers agreed on Friday to cut emissions from steel works by a third before the end of the decade."
COPY = "LONDON (Wire) - " + CLIMATE
FOOTBALL = "The home side scored twice in the last ten minutes to reach the final for the first time in forty years."
NEWS = [CLIMATE, FOOTBALL, COPY]


@dataclass
class Story:
    title: str
    body: str


def test_texts_are_collapsed_as_they_are() -> None:
    page = ndd.collapse(NEWS)
    assert page.hits == list(page) == [CLIMATE, FOOTBALL]
    assert [copy.hit for copy in page.groups[0].duplicates] == [COPY]
    assert page.groups[0].duplicates[0].rank == 2
    assert page.groups[0].duplicates[0].similarity >= 0.5
    assert (page.info.examined, page.info.kept, page.info.hidden, page.info.exhausted) == (3, 2, 1, True)


@pytest.mark.parametrize(
    ("hits", "text"),
    [
        ([{"body": one} for one in NEWS], "body"),
        ([{"doc": {"body": [one]}} for one in NEWS], "doc.body"),
        ([{"title": "", "body": one} for one in NEWS], ["title", "body"]),
        ([Story("", one) for one in NEWS], "body"),
        ([Story("", one) for one in NEWS], lambda story: story.body),
    ],
)
def test_the_text_is_found_under_a_field_several_fields_or_by_a_callable(hits: list[object], text: Any) -> None:
    assert ndd.collapse(hits, text=text).hits == hits[:2]


def test_a_hit_without_text_stands_alone() -> None:
    hits = [{"body": CLIMATE}, {"title": "no body"}, {"body": None}, {"body": COPY}]
    page = ndd.collapse(hits, text="body")
    assert page.hits == hits[:3]
    assert page.info.lacking == {"missing": 2}
    assert "its sketch is missing" in page.explain(1).rule


def test_a_text_without_words_stands_alone() -> None:
    assert ndd.collapse(["!!!", "???", ""]).info.lacking == {"empty": 3}


def test_equal_hits_at_two_places_are_two_hits() -> None:
    page = ndd.collapse([CLIMATE, CLIMATE])
    assert [copy.rank for copy in page.groups[0].duplicates] == [1]


def test_sketches_at_hand_are_taken() -> None:
    hits = [{"id": 1}, {"id": 2}, {"id": 3}]
    assert ndd.collapse(hits, sketches=sketch_many(NEWS)).hits == hits[:2]


def test_pages_follow_one_another() -> None:
    stories = [f"{word} " * 12 for word in ("one", "two", "three", "four", "five")]
    assert [ndd.collapse(stories, size=2, from_=start).hits for start in (0, 2, 4, 6)] == [
        stories[:2],
        stories[2:4],
        stories[4:],
        [],
    ]


FORM = (
    "Weather for {0}: tomorrow partly cloudy with highs of {1} degrees and light winds from the west; a shower is "
    "possible in the evening over {0}. Outlook: dry and warmer from Thursday, {2} hours of sunshine, no frost at night."
)
TOWNS = ["Bremen", "Hamburg", "Kiel", "Berlin", "Munich", "Cologne", "Jena", "Ulm", "Trier", "Emden", "Halle", "Worms"]
FORMS = [FORM.format(town, 10 + place, 2 * place) for place, town in enumerate(TOWNS)]


def test_what_many_hits_of_the_list_share_is_a_form_and_no_copy() -> None:
    page = ndd.collapse([*FORMS, *NEWS], size=20)
    assert page.hits == [*FORMS, *NEWS[:2]]
    assert "without what many documents have in common" in page.explain(1).rule
    assert len(ndd.collapse([*FORMS, *NEWS], size=20, frequency_table=False)) < 5
    assert len(ndd.collapse([*FORMS, *NEWS], size=20, min_similarity=0.5)) < 5


def test_of_two_short_texts_a_changed_word_makes_another_one_and_of_longer_ones_it_does_not() -> None:
    assert (
        len(ndd.collapse(["late ferries in fog today", "late ferries in fog tonight", "Late ferries, in fog: today!"]))
        == 2
    )
    assert len(ndd.collapse(["all ferries are late in fog today", "all ferries are late in fog tonight"])) == 2
    assert len(ndd.collapse([CLIMATE, CLIMATE.replace("Friday", "Monday")])) == 1


def test_many_copies_of_a_short_text_make_no_form_of_it() -> None:
    post = "the ferry to the island leaves an hour later because of fog"
    ways = ("{1}", "{0} says: {1}", "{1} (via {0})", "RT from {0} in the harbour: {1} #ferry #{0}", "Wow! {1}")
    posts = [ways[place % len(ways)].format(name, post) for place, name in enumerate(TOWNS)]
    assert len(ndd.collapse(posts)) <= 2
    reworded = [post.replace(word, name) for word, name in zip(post.split(), TOWNS, strict=False)]
    assert len(ndd.collapse([post, *reworded])) > 6  # a changed word may be another thing
    assert len(ndd.collapse([post, *reworded], preset="messages")) < 6


def test_a_long_list_is_counted_in_hits_that_lie_evenly_in_it_and_every_page_by_the_same_table() -> None:
    others = [f"{word} {place} " * 9 for place, word in enumerate(("alpha", "beta", "gamma", "delta") * 60)]
    hits = [one for place, form in enumerate(FORMS) for one in (form, *others[place * 20 : place * 20 + 20])]
    whole = ndd.collapse(hits, size=300, window=100).hits
    assert set(FORMS) <= set(whole)
    assert [hit for start in (0, 90, 180) for hit in ndd.collapse(hits, size=90, from_=start)] == whole
    assert len(set(FORMS) & set(ndd.collapse(hits, size=300, frequency_table=False))) < 5


def test_a_field_that_must_match_is_compared_as_a_value_not_as_it_was_written() -> None:
    prices = [10, 10.0, 10.5, "10", None, True, 1]
    hits = [{"body": CLIMATE, "price": price} for price in prices]
    page = ndd.collapse(hits, text="body", guards=["same:price"])
    assert list(map(repr, (hit["price"] for hit in page))) == ["10", "10.5", "'10'", "None", "True", "1"]


def test_the_input_is_left_as_it_was() -> None:
    hits = [{"body": one} for one in NEWS]
    ndd.collapse(hits, text="body", mode="demote")
    assert hits == [{"body": one} for one in NEWS]


def test_the_explanation_names_leader_figure_and_rule() -> None:
    why = ndd.collapse(NEWS).explain(2)
    assert (why.leader, why.nearest) == (0, 0)
    assert str(why).startswith("hit 2 is shown under hit 0: 0.")


@pytest.mark.parametrize("frequency_table", [True, False])
def test_what_is_no_sketch_is_named_by_its_rank_wherever_it_stands(frequency_table: bool) -> None:
    sketches = [[rank % 9, 100] for rank in range(99)]  # eleven of each
    sketches[89] = [-1]
    with pytest.raises(InvalidSketch, match="hit 89: a value is outside"):
        ndd.collapse(range(99), sketches=sketches, window=10, frequency_table=frequency_table)


@pytest.mark.parametrize(
    ("call", "error", "problem"),
    [
        (lambda: ndd.collapse(CLIMATE), TypeError, "hits must be a list of hits, got one str"),
        (lambda: ndd.collapse({"hits": {}}), TypeError, "got one dict: of an engine's answer pass answer"),
        (lambda: ndd.collapse([{"body": CLIMATE}]), TypeError, "pass text='FIELD' or a callable"),
        (lambda: ndd.collapse([CLIMATE, None]), TypeError, "a hit is NoneType, not a text: leave it out"),
        (lambda: ndd.collapse([b"bytes"]), TypeError, "a hit is bytes, not a text: decode it"),
        (lambda: ndd.collapse(NEWS, frequency_table="x"), TypeError, "frequency_table must be true, false or a Freq"),  # type: ignore[arg-type]
        (lambda: ndd.passages(NEWS, frequency_table="x"), TypeError, "frequency_table must be true, false or a Freq"),
        (lambda: ndd.passages(NEWS, contained="no"), TypeError, "contained must be true or false, got 'no'"),
        (lambda: ndd.collapse(NEWS, text=3), TypeError, "text must be a list, got 3"),  # type: ignore[arg-type]
        (lambda: ndd.collapse(NEWS).explain("1"), TypeError, "'str' object cannot be interpreted as an integer"),  # type: ignore[arg-type]
        (lambda: ndd.collapse(NEWS, members="all", mode="drop"), ValueError, "set mode to one of group, ids, count"),
        (lambda: ndd.collapse([{"body": CLIMATE}], text="bdy"), InvalidDocument, "none of 1 hit: no text under"),
        (lambda: ndd.collapse(NEWS, size=-1), ValueError, "size must be at least 0, got -1"),
        (lambda: ndd.collapse(NEWS, from_="2"), TypeError, "from_ must be a whole number, got '2'"),  # type: ignore[arg-type]
        (lambda: ndd.collapse(NEWS, size=2.5), TypeError, "size must be a whole number, got 2.5"),  # type: ignore[arg-type]
        (lambda: ndd.collapse(NEWS, size=None), TypeError, "size must be a whole number, got None"),  # type: ignore[arg-type]
        (lambda: ndd.collapse(NEWS, sketches=[[1]]), ValueError, "give one sketch for each hit, in order: got 1 for 3"),
        (lambda: ndd.collapse(NEWS, min_similarity=2), ValueError, "min_similarity must be in 0..1"),
        (lambda: ndd.collapse(NEWS, threshold=0.5), TypeError, "unknown option 'threshold'"),  # type: ignore[call-arg]
        (lambda: ndd.collapse([[1], [2]], sketches=[[2, 1], [1]]), InvalidSketch, "hit 0: value 1"),
        (lambda: ndd.collapse(NEWS, sketches=[[], [1], None]), InvalidSketch, "hit 2: it has shape"),  # type: ignore[list-item]
        (lambda: leaders([[1]], min_similarity="auto"), ValueError, "must be above 0 and at most 1, got 'auto'"),  # type: ignore[arg-type]
        (lambda: ndd.collapse([b"bytes"], text=lambda hit: hit), TypeError, "bytes"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(call: object, error: type[Exception], problem: str) -> None:
    with pytest.raises(error, match=problem):
        call()  # type: ignore[operator]


def distinct(count: int) -> list[str]:
    """Texts that share nothing."""
    return [" ".join(f"t{number}w{word}" for word in range(8)) for number in range(count)]


def test_every_hit_of_a_list_is_examined_however_long_it_is() -> None:
    """A list is there as a whole, so nothing of it is dropped, at whatever place a page starts."""
    texts = distinct(12_000)
    page = ndd.collapse(texts, size=20_000)
    assert page.hits == texts
    assert (page.info.examined, page.info.exhausted, page.info.capped) == (12_000, True, False)
    assert ndd.collapse(texts, size=10, from_=11_995).hits == texts[11_995:]
    assert ndd.collapse(texts[:200], size=200).info.exhausted
    assert ndd.collapse(texts, size=150, window=50, max_window=100).hits == texts[:150]
    in_front = [{"other": 1}] * 150 + [{"body": CLIMATE}] * 2
    assert len(ndd.collapse(in_front, text="body", size=200)) == 151
    assert len(ndd.collapse(in_front, text="body")) == 10


@pytest.mark.parametrize("settings", [{}, {"guards": ["same:kind"]}, {"guards": ["length:0.5"]}])
def test_the_work_of_a_long_list_grows_with_its_length(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many hits there are, each of them is handed to the page check a few times, not once for every piece."""
    if native.core is None:
        pytest.skip("without the native core lists are compared in pieces")
    handed: list[int] = []

    class Counting:
        def __getattr__(self, name: str) -> Any:
            found = getattr(core, name)
            if name not in ("leaders", "rows"):
                return found

            def counted(sketches: Any, *others: Any) -> Any:
                handed.append(len(sketches))
                return found(sketches, *others)

            return counted

    core = native.core
    monkeypatch.setattr(native, "core", Counting())
    sketches = [np.arange(start, start + 20, dtype=np.int32) for start in range(0, 200_000, 20)]
    hits = [{"kind": 1}] * len(sketches)
    rows = {}
    for count in (2_500, 5_000, 10_000):
        handed.clear()
        ndd.collapse(
            hits[:count], sketches=sketches[:count], size=count, frequency_table=False, text="kind", **settings
        )
        rows[count] = sum(handed)
    assert all(number <= 4 * count for count, number in rows.items())


@pytest.mark.parametrize(
    "settings", [{"guards": ["same:prize"]}, {"keep": ["preferred:prize=1,2"]}, {"keep": ["newest:prize"]}]
)
def test_a_setting_that_names_a_field_no_hit_has_is_told(settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A misspelt field does nothing; the page says so, and the log says it once."""
    log_once.cache_clear()
    hits = [{"body": text, "price": 3} for text in NEWS]
    for _ in range(2):
        page = ndd.collapse(hits, text="body", **settings)
        assert page.info.warnings == ("no hit has the field 'prize' that an option names: check its spelling",)
    assert [record.getMessage() for record in caplog.records] == list(page.info.warnings)
    assert ndd.collapse([*hits, {"body": "x", "prize": 1}], text="body", **settings).info.warnings == ()


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"guards": ["within:price=1d"]}, "time (an ISO 8601 text, or a number since 1970)"),
        ({"keep": ["oldest:price"]}, "time (an ISO 8601 text, or a number since 1970)"),
        ({"keep": ["lowest:price"]}, "number"),
    ],
)
def test_a_field_in_which_no_hit_has_a_time_or_a_number_is_told(settings: Any, kind: str) -> None:
    hits = [{"body": text, "price": "from three euros"} for text in NEWS]
    told = f"no hit has a {kind} in the field 'price' that an option names"
    assert ndd.collapse(hits, text="body", **settings).info.warnings == (told,)
    assert ndd.collapse([*hits, {"body": "x", "price": 3}], text="body", **settings).info.warnings == ()


def test_one_of_several_fields_of_a_text_that_no_hit_has_is_told() -> None:
    hits = [{"body": text, "title": None} for text in NEWS]
    assert ndd.collapse(hits, text=["body"]).info.warnings == ()
    told = "no hit has the field 'title' of its text: check its spelling"
    assert ndd.collapse(hits, text=["title", "body"]).info.warnings == (told,)
    for others in ([*hits, {"title": "x"}], []):
        assert ndd.collapse(others, text=["title", "body"]).info.warnings == ()


CITIES = ("Aachen", "Bergen", "Cardiff", "Dresden", "Esbjerg", "Florence", "Granada", "Hamar", "Innsbruck", "Jaen")
MORE = ("Kassel", "Lund", "Mons", "Narvik", "Odense", "Pisa")


AIRPORT = "{} Airport is a small public airport with one runway that lies ten kilometres to the north of the town"


def test_six_short_texts_of_one_form_are_shown_and_fewer_are_copies() -> None:
    hits = [AIRPORT.format(city) for city in (*CITIES, *MORE)]
    copies = [hits[3].upper(), f"UPDATE - {hits[5]}"]
    assert ndd.collapse(hits, size=20).hits == hits
    assert ndd.collapse([*NEWS, *hits, *copies], size=20).hits == [*NEWS[:2], *hits]
    assert ndd.collapse(hits[:6]).hits == hits[:6]
    assert ndd.collapse(hits[:5]).hits == hits[:1]


def test_short_texts_of_one_form_that_are_shown_as_one_are_told() -> None:
    """Without a frequency table, nothing tells sixteen airports from copies, so the page says what to set."""
    hits = [AIRPORT.format(city) for city in (*CITIES, *MORE)]
    page = ndd.collapse(hits, frequency_table=False)
    assert page.info.hidden > 10
    [warning] = page.info.warnings
    assert warning.startswith("16 of 16 hits are short texts that differ in a few words and are shown as one, hit 0")
    assert ndd.collapse(hits, min_similarity="identical", size=20).hits == hits
    assert ndd.collapse([hits[0]] * 16).info.warnings == ()


def test_copies_that_differ_at_their_edges_are_told_as_no_form() -> None:
    copies = [f"{city.upper()}, May {day} (AFP) - {CLIMATE}" for day, city in enumerate(CITIES, 1)]
    page = ndd.collapse(copies, frequency_table=False)
    assert (page.info.kept, page.info.warnings) == (1, ())


def test_short_texts_of_one_form_that_are_kept_apart_are_told_with_the_option_that_joins_them() -> None:
    hits = [AIRPORT.format(city) for city in (*CITIES, *MORE)]
    page = ndd.collapse([CLIMATE, *hits, FOOTBALL], size=12)
    [warning] = page.info.warnings
    assert warning.startswith("11 of 12 shown hits are short texts that are at least 0.7 alike and are kept apart")
    assert warning.endswith("if they are copies, set min_similarity=0.7")
    assert ndd.collapse([CLIMATE, *hits, FOOTBALL], min_similarity=0.7).hits == [CLIMATE, hits[0], FOOTBALL]
    assert "they look like two entries of one form" in str(page.explain(2))


def test_texts_of_few_words_are_told_with_the_preset_that_finds_their_copies() -> None:
    heads = ["Ministers agree to cut steel emissions", "Home side reach cup final at last", CLIMATE]
    passed_on = ["Ministers agree to cut emissions of steel", "Home side reach the cup final at last"]
    page = ndd.collapse([*heads, *passed_on])
    assert page.hits == [*heads, *passed_on]
    [warning] = page.info.warnings
    assert warning.startswith("4 of 5 texts have fewer than 10 words, and copies of such texts are often missed")
    page = ndd.collapse([*heads, *passed_on], preset="messages")
    assert (page.hits, page.info.warnings) == (heads, ())
    assert ndd.collapse([CLIMATE, FOOTBALL, heads[0]]).info.warnings == ()
    forms = [f"Well paid job for one nurse in {city}" for city in CITIES[:8]]
    [few] = ndd.collapse([*forms, heads[0]], frequency_table=False).info.warnings
    assert few.startswith("9 of 9 texts have fewer than 10 words")


@pytest.mark.parametrize("settings", [{"mode": "annotate"}, {"mode": "demote"}, {"max_per_group": 3}])
def test_a_warning_about_entries_of_one_form_counts_the_copies_that_the_page_shows(settings: Any) -> None:
    hits = [AIRPORT.format(city) for city in (*CITIES, *MORE)]
    page = ndd.collapse([*NEWS[:2], *hits[:8], *[hits[3].upper()] * 2], size=12, **settings)
    assert len(page.hits) == 12
    [warning] = page.info.warnings
    assert warning.startswith("8 of 12 shown hits are short texts")


def test_a_page_without_two_entries_of_one_form_has_no_warning() -> None:
    """Neither have texts that a guard keeps apart: no other bar would join them."""
    hits = [AIRPORT.format(city) for city in (*CITIES, *MORE)]
    assert ndd.collapse([*hits, *NEWS], size=1).info.warnings == ()
    assert ndd.collapse([*hits, *NEWS], size=2, from_=15).info.warnings == ()
    assert ndd.collapse([*FORMS, *NEWS], size=20, min_similarity="identical").info.warnings == ()
    named = [{"body": hit, "place": place} for place, hit in enumerate(hits)]
    page = ndd.collapse(named, text="body", size=20, guards=["same:place"])
    assert (page.info.kept, page.info.warnings) == (16, ())


@pytest.mark.parametrize(
    ("keep", "shown"), [("lowest:price", 2), ("highest:price", 1), ("oldest:day", 0), ("newest:day", 3)]
)
def test_the_copy_shown_has_the_best_number_or_time_of_a_field(keep: str, shown: int) -> None:
    """A number may be written as a text; what is no number, and a hit without the field, come last."""
    text = "Ministers agreed on Friday to cut emissions from steel works by a third before the end of the decade."
    values: list[dict[str, Any]] = [
        {"price": "on request", "day": "2026-01-01"},
        {"price": 30, "day": "2026-01-02"},
        {"price": "9.5", "day": "2026-01-03"},
        {"day": "2026-01-04"},
    ]
    page = ndd.collapse([{"body": text, **one} for one in values], text="body", keep=[keep])
    assert [group.rank for group in page.groups] == [shown]


def test_every_field_with_a_time_keeps_hits_apart() -> None:
    text = "Ministers agreed on Friday to cut emissions from steel works by a third before the end of the decade."
    hits = [
        {"body": text, "day": f"2026-01-0{day}", "seen": f"2026-01-0{seen}"} for day, seen in ((1, 1), (2, 9), (2, 2))
    ]
    near = ["within:day=1.5d", "within:seen=36h"]
    assert [group.rank for group in ndd.collapse(hits, text="body", guards=near).groups] == [0, 1]
    assert len(ndd.collapse(hits, text="body", guards=["within:day=1.5d"])) == 1
    with pytest.raises(ValueError, match="guards of a collection take one of within and length, got within:day"):
        ndd.Corpus.read(hits, text="body", fields=["day", "seen"]).groups(guards=near)


def test_a_page_that_ends_before_a_hit_that_it_was_not_given_says_so() -> None:
    page = ndd.collapse(["one text", "another text", "a third one"])
    whole = page.with_hits(dict(enumerate("abc")))
    assert (whole.hits, whole.info.degraded) == (["a", "b", "c"], "")
    cut = page.with_hits({0: "a", 2: "c"})
    assert cut.hits == ["a"]
    assert "the page ends before it" in cut.info.degraded


@pytest.mark.parametrize(
    "options", [{"mode": "demote"}, {"max_per_group": 1000}, {"mode": "demote", "max_per_group": 9}]
)
def test_the_copies_of_a_large_group_are_put_in_order_once(options: dict[str, Any]) -> None:
    """The work for a group grows with its size, and not with the square of it."""
    looked_at: list[int] = []

    def newest(hit: dict[str, Any]) -> int:
        looked_at.append(hit["day"])
        return -int(hit["day"])

    hits = [{"text": CLIMATE, "day": day} for day in range(1000)]
    page = ndd.collapse(hits, size=1000, text="text", keep=[newest], **options)
    assert sorted(looked_at) == list(range(1000))
    assert len({hit["day"] for hit in page}) == len(page) == 1000


def test_texts_that_many_hits_have_are_compared_word_by_word_once() -> None:
    """400 alerts in 20 variants are 80,000 pairs of hits, and 190 pairs of texts."""
    read: list[int] = []

    def text_of(hit: int) -> str:
        read.append(hit)
        return f"{CLIMATE} and number {hit % 20} of the {hit % 20} plans of the town of {hit % 20}"

    page = ndd.collapse(list(range(400)), size=400, text=text_of)
    assert page.hits == list(range(20))
    assert len(read) < 400 * 20


def test_all_members_of_a_group_are_found_in_the_whole_list() -> None:
    """By default `keep` chooses, and copies are listed, among the hits that the page needs."""
    hits = [{"text": f"{CLIMATE} {city} " * 3, "day": day} for day in range(20) for city in ("Ulm", "Bonn", "Kiel")]
    hits = [{**hit, "group": place % 3} for place, hit in enumerate(hits)]
    settings: dict[str, Any] = {"size": 2, "keep": ["newest:day"], "guards": ["same:group"], "window": 6}
    window = ndd.collapse(hits, text="text", **settings)
    assert ([hit["day"] for hit in window], window.info.examined) == ([1, 1], 6)
    whole = ndd.collapse(hits, text="text", members="all", **settings)
    assert ([hit["day"] for hit in whole], [len(group.duplicates) for group in whole.groups]) == ([19, 19], [19, 19])
    later = ndd.collapse(hits, text="text", members="all", from_=2, **settings)
    assert ([hit["day"] for hit in later], later.info.late) == ([19], ())


@pytest.mark.parametrize(("seconds", "groups"), [(86_400, 1), (-86_400, 1), (86_400.5, 2)])
def test_hits_exactly_as_far_apart_as_is_allowed_are_near_duplicates(seconds: float, groups: int) -> None:
    hits = [{"body": NEWS[0], "at": 1_700_000_000}, {"body": NEWS[0], "at": 1_700_000_000 + seconds}]
    assert len(ndd.collapse(hits, text="body", guards=["within:at=1d"])) == groups
