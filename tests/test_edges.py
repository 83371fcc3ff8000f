"""The edges of short texts: which are found, that the native core finds the same, and what is decided by them."""

from __future__ import annotations

import random
import textwrap
from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ndd_search as ndd
from ndd_search import native
from ndd_search.core.matching.decision import Decision
from ndd_search.core.matching.document_frequency import count_document_frequency
from ndd_search.core.matching.short_copies import differ_at_edges
from ndd_search.core.matching.sketch_rows import rows_of
from ndd_search.core.sketching.sketches import sketch, sketch_many
from ndd_search.core.text.edges import MOST, between_edges

STORY = "ministers agreed on Monday to a plan that nobody in the towns along the river had read before it was voted on"
HEADS = {  # by what shows them
    "mark": [
        "UPDATE 2 - ",
        "BREAKING: ",
        "RT @ann: ",
        "EILMELDUNG: ",
        "AW: ",
        "ÚLTIMA HORA: ",
    ],
    "agency": [
        "PARIS (AFP) - ",
        "Leeds (Wire) – ",
        "(ANSA) - ROMA, 16 MAG - ",
        "Wien. (APA) ",
        "MADRID, 3 mayo (EFE).- ",
    ],
    "by": ["By Anna Smith, Leeds Post. ", "Von Petra Vogel, Graz. ", "Por Luis Ortega - ", "Par Jean Dupont\n"],
    "date and dash": [
        "LEEDS, May 3 - ",
        "Berlin, 3. Januar – ",
        "Quito, 4 febrero - ",
        "Lyon, 5 août - ",
        "Roma, 6 luglio - ",
        "Faro, 7 maio - ",
        "Praha, 7. května – ",
    ],
    "brackets and sign": ["Warszawa (PAP) – ", "МОСКВА, 12 марта. /ТАСС/. ", "الرياض (رويترز) - ", "Hà Nội (TTXVN) - "],
    "capitals and sign": ["ВАРШАВА — ", "SON DAKİKA: ", "PILNE: "],
    "enclosed": ["[속보] ", "【速報】", "（東京 12日 共同）", "(3) ", "[Video] "],
    "numbers and names": ["3) ", "@ann @bob "],
}
TAILS = [
    *(" (Reporting by A. Smith; editing by B. Jones)", " (Crédit : Jean)"),
    *(
        " Read more at www.a.example",
        " Weiterlesen",
        " अधिक पढ़ें",
        " © 2024 Global",
        " [Global]",
        " (ТАСС)",
        " [연합뉴스]",
    ),
    *(" - City Post", " – la Repubblica", " | الجزيرة", "（出典：共同）", "\nGlobal News", " #tag", " @ann #tag"),
    *(" via @ann", " https://a.example/1", " a.example/1"),
]


@pytest.mark.parametrize("head", [*chain(*HEADS.values())])
def test_what_is_known_at_the_start_is_an_edge(head: str) -> None:
    ((start, end),) = between_edges(head + STORY)
    assert ((head + STORY)[:start].strip(), end) == (head.strip(), len(head + STORY))


def test_a_mark_may_be_glued_to_the_first_word() -> None:
    assert between_edges(f"UPDATE 3-{STORY.capitalize()}") == [(len("UPDATE 3-"), len(f"UPDATE 3-{STORY}"))]


@pytest.mark.parametrize("tail", TAILS)
def test_what_a_sign_or_a_sentence_sets_apart_at_the_end_is_an_edge(tail: str) -> None:
    ((start, end),) = between_edges(f"{STORY}.{tail}")
    assert (start, f"{STORY}.{tail}"[:end].rstrip()) == (0, f"{STORY}.")


@pytest.mark.parametrize(
    "text",
    [
        "Leeds: cloudy with sunny spells this afternoon, light winds from the west",
        "Green Hill Airport is a small airport with one runway, and it has no control tower",
        "By the end of May the town had read more books than any other in the county",
        "Flat with three rooms, near the park, quiet house, available from March",
        "Классический хлопковый пиджак с двумя карманами, чёрный",
        "The library is open to all who want to read or learn from Tuesday on. Place: Leeds",
        *(
            f"{slot}{STORY}"
            for slot in ("Mon: ", "9am: ", "A: ", "A - ", "R0: ", "Re: ", "US 2-year ", "In Leeds Fig. (0) ")
        ),
        *(
            f"{slot}{STORY}"
            for slot in ("The Royal Bank. ", "Leeds won at home (2-1). ", "(open to all who paid the fee in June) ")
        ),
        "12. května se v Praze konala výroční schůze spolku zahrádkářů",
        *(f"{slot}{STORY} {STORY}" for slot in ("Nord Kurier Linz: ", "Green Hill Airport - ")),
        f"PARIS (AFP) - {'a word ' * (MOST // 7)}",
        "PARIS (AFP) - too short",
        "",
    ],
)
def test_what_may_be_the_slot_of_a_form_is_no_edge(text: str) -> None:
    assert between_edges(text) == [(0, len(text))]


def test_a_line_has_edges_of_its_own() -> None:
    """Of a title with the name of a site, and of a description that repeats it, or that begins with a dateline."""
    story = STORY.capitalize()
    text = f"(LEAD) {story} | City Post\nPARIS (AFP) - {story}\nthe end"
    assert [text[start:end].strip() for start, end in between_edges(text)] == [story, story, "the end"]


@pytest.mark.parametrize("end", ["", " (1995)", " - Kids", " #kids"])
def test_a_paragraph_is_no_edge_because_an_empty_line_stands_before_it(end: str) -> None:
    """A heading that many texts share, and below it what each of them says."""
    heading = f"What children of every school wrote about towns and rivers{end}"
    texts = [f"{heading}\n\nAt {town} they keep it for Sunday." for town in TOWNS]
    assert texts[0][slice(*between_edges(texts[0])[-1])] == f"At {TOWNS[0]} they keep it for Sunday."
    assert len(ndd.collapse(texts, size=100)) == len(texts)


@pytest.mark.parametrize("n", range(2, 7))
def test_marks_of_each_field_are_edges(n: int) -> None:
    """Updates of one report, each with its mark before the title and before the description that repeats it."""
    marked = [*(f"({one}th LD) " for one in range(n, 2, -1)), "(LEAD) ", ""]
    hits = [{"title": mark + STORY, "description": f"{mark}{STORY} - City Post"} for mark in marked]
    page = ndd.collapse(hits, text=["title", "description"], frequency_table=True)
    assert len(page.hits) == 1
    last = str(page.explain(n - 1))
    assert last.endswith(f'(one has "{marked[0]}… {marked[0]}… - City Post", the other "… - City Post")')


WORDS = [
    *("UPDATE", "2", "2-Ab", "By", "A.", "Anna", "(AFP)", "[AP]", "-", "–", "--", "|", ":", "RT", "@x", "#y", "été"),
    *("http://a.b", "c.d/e", "May", "3", "Read", "more", "Source", "©", "2024", ")", "]", "News", "x"),
    *(
        "МСК,",
        "12",
        "/ТАСС/.",
        "(PAP)-",
        "[속보]",
        "【速報】本文",
        "ends.",
        "ends。",
        "（出典",
        "共同）",
        "Ś",
        "ğ",
        "ÿ",
        "3)",
    ),
    *("\n",) * 3,
]
drawn = st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=5)), max_size=45).map(" ".join)


def test_a_name_with_brackets_at_the_start_is_none() -> None:
    """Entries of a catalogue begin so: "gcc-11. GNU C compiler (multilib support) This package ..."."""
    text = f"gcc-11. GNU C compiler (multilib support) {STORY} {STORY}"
    assert between_edges(text) == [(0, len(text))]


@pytest.mark.parametrize("k", [64, 128])
def test_a_longer_text_has_no_edges_so_copies_with_and_without_one_share_as_much_as_their_texts_do(k: int) -> None:
    """A shingle at an edge of one copy may be inside the other."""
    text = " ".join(f"{letter}{number}" for letter in "abcde" for number in range(20)) + " Sold (in towns)"
    longer = f"{text} advertisement: story continues below"
    for each in (text, longer):
        assert not (sketch(each, ndd.Recipe(k=k)) & 1).any()
    assert len(np.intersect1d(sketch(text, ndd.Recipe(k=128)), sketch(longer, ndd.Recipe(k=128)))) == 101
    assert between_edges(text) != [(0, len(text))]


def assert_odd_values_touch_an_edge(text: str, k: int) -> None:
    """The core has no other way to show the edges that it finds."""
    inside = "\n".join(text[start:end] for start, end in between_edges(text))
    values, inner = sketch(text, ndd.Recipe(k=k)), sketch(inside, ndd.Recipe(k=4096))
    assert ((values & 1 == 1) == (~np.isin(values >> 1, inner >> 1) & (len(values) < min(k, 64)))).all()
    assert len(np.unique(values >> 1)) == len(values)


@given(drawn, st.integers(1, 64))
def test_odd_values_are_those_that_touch_an_edge_wherever_they_occur(text: str, k: int) -> None:
    assert_odd_values_touch_an_edge(text, k)


OTHER_STORY = "a small airport with one runway lies ten kilometres to the north of the town and has no tower of its own"
TOWNS = [f"{one}{two}" for one in ("Nor", "Sal", "Bex", "Tur") for two in ("ton", "ley", "ham", "worth", "by")]
OTHERS = [
    "The museum of porcelain shows cups",
    "Snow falls on the hills in the north",
    "A geologist found gold near the lake",
]


def copies(count: int) -> list[str]:
    heads = [head for head in chain(*HEADS.values()) if not head.startswith("RT")]
    return [heads[i % len(heads)] + STORY + TAILS[i % 17] for i in range(count)]


@pytest.mark.parametrize("count", [2, 5, 12, 30])
def test_copies_of_a_brief_are_one_however_many_there_are(count: int) -> None:
    assert len(ndd.collapse([*copies(count), *OTHERS], size=100)) == 1 + len(OTHERS)


BRIEF = "ministers agreed on {} to a {} that nobody had read before the {}"  # 14 words


@pytest.mark.parametrize("bare", [False, True])
def test_of_two_short_copies_each_may_have_a_changed_word_and_an_edge(bare: bool) -> None:
    """Fewer than half of all their shingles are the same; those between their edges tell that they are copies."""
    text, other = BRIEF.format("Monday", "bill", "recess"), BRIEF.format("Friday", "bill", "vote")
    texts = ["PARIS, May 3 (AFP) - " + text, other if bare else other + " | City Post"]
    first, second = (set(sketch.tolist()) for sketch in sketch_many(texts))
    assert len(first & second) < 0.5 * len(first | second)
    assert len(ndd.collapse(texts).hits) == 1


@pytest.mark.parametrize("table", [False, True])
def test_two_edited_copies_are_one_though_their_edges_are_longer_than_what_they_share(*, table: bool) -> None:
    """Each has another word changed, which is in three shingles of each; and an edge of six words or more."""
    heads = "LEEDS, May 3 (Wire) - By Anna Smith, Leeds Post. ", "UPDATE 2 - PARIS (AFP) - By Jean Dupont, Paris. "
    texts = [
        heads[0] + BRIEF.format("Friday", "bill", "vote") + " (Reporting by A. Jones)",
        heads[1] + BRIEF.format("Monday", "bill", "recess") + " (Writing by B. Dunn and C. Kay)",
    ]
    first, second = (set(sketch.tolist()) for sketch in sketch_many(texts))
    assert len(first & second) < 0.2 * len(first | second)
    counted = count_document_frequency(sketch_many([*texts, *copies(40), *OTHERS]), ndd.Recipe()) if table else False
    assert len(ndd.collapse(texts, frequency_table=counted).hits) == 1


@pytest.mark.parametrize("texts_with_edges", [0, 10])
def test_a_story_counts_once_if_a_third_of_its_texts_have_edges(texts_with_edges: int) -> None:
    """Else its words would be common in the index, and what no sign sets apart would look like fillings of a form."""
    texts = [f"Anna {town} told them that {STORY}" for town in TOWNS] + copies(texts_with_edges)
    others = [
        " ".join(f"{town}{place}" for place in range(number, number + 20)) for town in TOWNS for number in (0, 20)
    ]
    counted = count_document_frequency(sketch_many([*texts, *others]), ndd.Recipe())
    assert (len(counted.values) == 0) == (texts_with_edges > 0)
    assert len(ndd.collapse(texts, frequency_table=counted, size=99).hits) == (1 if texts_with_edges else len(texts))


def test_without_a_table_two_words_that_differ_are_slots() -> None:
    """Each has three shingles of each text, twelve together."""
    texts = [f"PARIS, May 3 (AFP) - {STORY}", STORY.replace("nobody", "everybody").replace("towns", "villages")]
    table = count_document_frequency(sketch_many([*texts, *copies(40), *OTHERS]), ndd.Recipe())
    sketches = rows_of(sketch_many(texts), 64)
    for known, joined in ((table, True), (None, False)):
        decision = Decision.of("auto", ndd.Recipe(), known)
        pair = differ_at_edges(sketches, np.array([0]), np.array([1]), decision.rule, known)
        assert pair.tolist() == [joined]


@pytest.mark.parametrize("counts", [False, True])
def test_a_copy_may_have_what_no_sign_sets_apart_and_another_changed_word(*, counts: bool) -> None:
    """The first has 5 shingles of its own in the places of two words, the second these and those of what was added."""
    head = "LEEDS, May 3 (Wire) - By Anna Smith, Leeds Post. "
    texts = [head + STORY, "Anna Smith of Leeds tells us that " + STORY.replace("nobody in the", "none in")]
    first, second = ({*values.tolist()} for values in sketch_many(texts))
    assert len({value for value in first ^ second if not value & 1}) > 12
    table = count_document_frequency(sketch_many([*texts, *copies(40), *OTHERS]), ndd.Recipe()) if counts else False
    assert len(ndd.collapse(texts, frequency_table=table)) == 1


def test_short_texts_that_differ_in_more_words_stay_apart() -> None:
    text, other = BRIEF.format("Monday", "bill", "vote"), BRIEF.format("Friday", "plan", "recess")
    assert len(ndd.collapse(["PARIS, May 3 (AFP) - " + text, other + " | City Post"]).hits) == 2


OTHER_STATEMENTS = [  # posts, headlines and titles of jobs that somebody wrote
    (
        "Jeebus RT @SkyNewsAust: 90 dead in Brazil nightclub fire http://t.co/b2B6hRxV",
        "Three held over deadly Brazil nightclub fire  http://t.co/QfzZc3k9 via @AJEnglish",
    ),
    (
        "Terrorist Designations of Muslim Brotherhood Chapters - U.S. Department of State (.gov)",
        "Response to China’s Military Exercise Near Taiwan - U.S. Department of State (.gov)",
    ),
    (
        "Staff Software Engineer, Vanta for Government — Vanta · Vanta · Remote U.S. · ashby",
        "Operations Manager, Signal Systems — Vanta · Vanta · Remote U.S. · ashby",
    ),
    (
        "RT @globovision: Exigen investigación independiente sobre explosión en refinería de Amuay  http://t.co/eumcmLyg",
        "RT “@PillateLaPropia: Desolación en la refinería de #Amuay http://t.co/QVljOVdB fotos de @gilmfoto”",
    ),
]


@pytest.mark.parametrize("texts", OTHER_STATEMENTS)
def test_what_two_texts_share_at_their_edges_or_as_the_name_of_an_event_is_no_copy(texts: tuple[str, str]) -> None:
    assert len(ndd.collapse(texts)) == 2


def test_fillings_of_a_form_with_edges_stay_apart() -> None:
    form = (
        "{} ({}) - The road through {} is closed to all traffic from Monday on for repairs, a diversion is signposted"
    )
    texts = [form.format(("PARIS", "LEEDS")[i % 2], ("AFP", "dpa", "EFE")[i % 3], town) for i, town in enumerate(TOWNS)]
    assert rows_of(sketch_many(texts), 64).marked.all()
    assert len(ndd.collapse(texts, size=100)) == len(texts)


@pytest.mark.parametrize(("count", "seed"), [(20, 3), (40, 2), (100, 1), (100, 3)])
def test_fillings_of_a_form_with_few_answers_stay_apart_though_its_last_sentence_is_an_edge(
    count: int, seed: int
) -> None:
    """Half of these adverts share an answer with many others, and all of them the frame, which is more common."""
    draw = random.Random(seed)
    adverts = [
        f"Driver to {draw.choice(TOWNS[:12])} wanted for our branch in {draw.choice(TOWNS)}. Shift work, "
        f"{draw.choice((20, 30, 40))} hours, pay {draw.randint(21, 56)}00 euros. Call {draw.choice(TOWNS[:3])} today."
        for _ in range(count)
    ]
    assert rows_of(sketch_many(adverts), 64).marked.all()
    assert len(ndd.collapse(adverts, size=100)) >= 0.95 * count  # 15, 34, 98 and 30 if frequent answers were the form


def test_copies_are_one_though_many_texts_begin_with_their_first_words() -> None:
    """Most of what the copies share is in no other text."""
    draw, note = random.Random(1), "This release adds support for reading the {} of a file from the end of the tape"
    texts = [*(head + note.format("name") for head in HEADS["agency"]), note.format("size") + TAILS[0]]
    others = [f"This release adds support for {' '.join(draw.sample(OTHER_STORY.split(), 8))}" for _ in range(80)]
    counted = count_document_frequency(sketch_many([*texts, *others]), ndd.Recipe())
    assert len(ndd.collapse(texts, frequency_table=counted).hits) == 1


def test_fillings_stay_apart_though_a_third_of_them_have_one_answer() -> None:
    """What an edited copy lacks, most copies have."""
    texts = [
        f"The road through {town} is closed to all cars and lorries from Monday on, because the bridge behind the old "
        "mill needs new railings and a new floor. The long way round leads over the hills of "
        f"{TOWNS[max(at - 5, 0)]}. Open until Friday."
        for at, town in enumerate(TOWNS[:13])
    ]
    assert rows_of(sketch_many(texts), 64).marked.all()
    assert len(ndd.collapse(texts, size=100)) == len(texts)  # 1 if a third were enough


def test_fillings_stay_apart_whether_they_are_long_or_short() -> None:
    """One word in a slot is in three shingles, six words are in eight."""
    names = [*TOWNS[:7], *(" ".join(TOWNS[at - 6 : at][:: 1 if at % 2 else -1]) for at in range(7, 20))]
    texts = [
        f"A place has become free at {name} for a child of four years whose parents work full time" for name in names
    ]
    assert len(ndd.collapse(texts, size=100)) == len(texts)


@pytest.mark.parametrize("change", [str.upper, lambda text: text.replace(" [", " ").replace("]", "")])
def test_texts_with_the_same_words_are_copies_whatever_shows_their_edges(change: Callable[[str], str]) -> None:
    """Case and punctuation tell what is an edge, and a filling of a form is not another one because of them."""
    texts = [f"Note: a place is free at {town} for a child of four whose parents work [Green Homes]" for town in TOWNS]
    page = ndd.collapse([*texts, *map(change, texts)], size=100)
    assert page.hits == texts
    assert str(page.explain(len(texts))).endswith("the two have the same words")


@pytest.mark.parametrize("core", [True, False])
@pytest.mark.parametrize("options", [{}, {"guards": ["same:site"]}])
def test_a_fixed_bar_compares_words_whatever_shows_their_edges(
    core: bool, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"Note: {STORY} [Green Homes]"
    copies = [{"text": one, "site": "a"} for one in (text, text.upper(), text.replace("[", "").replace("]", ""))]
    if not core:
        monkeypatch.setattr(native, "core", None)
    page = ndd.collapse(copies, text="text", min_similarity="identical", **options)
    assert page.hits == copies[:1]
    assert [copy.similarity for copy in page.groups[0].duplicates] == [1.0, 1.0]
    assert page.explain(1).similarity == 1.0
    groups = ndd.Corpus.read(copies, text="text").groups(min_similarity=1.0)
    assert groups.leader.tolist() == [0, 0, 0]


def test_a_copy_is_found_if_no_sign_sets_apart_what_was_added_to_it() -> None:
    """A filling of a form has something in the place of the slot; the copy that ends with a site has nothing there."""
    texts = [f"{STORY}. | City Post", *(f"Anna {town} {STORY}" for town in TOWNS)]
    entries = [text.replace(STORY, OTHER_STORY) for text in texts[1:]]
    table = count_document_frequency(sketch_many([*texts[1:], *entries]), ndd.Recipe())
    assert ndd.collapse([*texts, *entries], frequency_table=table, size=99).hits == [texts[0], *entries]


def test_explain_says_that_two_texts_differ_at_their_edges() -> None:
    brief = "ministers agreed on Monday to a plan that nobody had read"
    texts = ["PARIS, May 3 (AFP) - " + brief, f"By Anna Smith, Leeds Post. {brief} (Reporting by A. Jones)"]
    page = ndd.collapse(texts)
    assert len(page) == 1
    edges_of_both = (
        '(one has "PARIS, May 3 (AFP) - …", the other "By Anna Smith, Leeds Post. … (Reporting by A. Jones)")'
    )
    assert str(page.explain(1)).endswith(f", but the two differ at their edges only {edges_of_both}")
    without_texts = ndd.collapse([{"place": 0}, {"place": 1}], sketches=sketch_many(texts))
    assert str(without_texts.explain(1)).endswith(", but the two differ at their edges only")


def test_explain_says_that_hardly_anything_differs_between_the_edges_and_names_no_edge_where_none_is() -> None:
    page = ndd.collapse([STORY, f"PARIS (AFP) - {STORY.replace('voted', 'decided')}"])
    assert str(page.explain(1)).endswith(
        'and the two differ at their edges and hardly inside (one has none, the other "PARIS (AFP) - …")'
    )


SOME = STORY.split()


@given(st.lists(st.sampled_from(SOME), min_size=12), st.integers(20, 90))
def test_where_the_lines_of_a_text_end_does_not_change_its_sketch(words: list[str], width: int) -> None:
    text = " ".join(words).capitalize() + "."
    assert ndd.sketch(textwrap.fill(text, width)).tolist() == ndd.sketch(text).tolist()
