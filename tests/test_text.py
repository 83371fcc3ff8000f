"""From a text to its tokens, in every script, from every kind of broken input."""

import re
import sys
import time
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import sketch
from ndd_search.core.text.tokens import are_one_word, find_tokens, split, tokens, words_at
from ndd_search.core.text.unicode_tables import UNSPACED, fold
from ndd_search.errors import MissingExtra
from tests import plain_sketching as plain
from tests.strategies import texts

WORDS = Recipe()
SINGLES = Recipe.words(size=1)
HTML = Recipe(markup="html")


@given(st.lists(texts, max_size=6))
def test_texts_read_together_have_the_tokens_that_each_has_by_the_rules(batch: list[str]) -> None:
    read = find_tokens(batch)
    ends = np.cumsum(read.lengths)
    every = ["".join(map(chr, read.points[end - size : end])) for end, size in zip(ends, read.lengths, strict=True)]
    after = np.cumsum(read.counts)
    found = [every[end - count : end] for end, count in zip(after, read.counts, strict=True)]
    assert found == [plain.tokens(text) for text in batch]


@given(texts, st.booleans())
def test_a_text_has_the_tokens_of_the_rules(text: str, apart: bool) -> None:
    assert split(text, apart) == plain.tokens(text, apart)


def test_every_code_point_becomes_what_the_rules_say() -> None:
    points = [
        *(point for point in range(0x110000) if unicodedata.category(chr(point)) not in ("Cn", "Co", "Lo")),
        *range(0, 0x3000),
        *range(0xF900, 0x11000),  # compatibility ideographs, half width, Linear B
        *range(0x11000, 0x110000, 97),
    ]
    for point in points:
        text = f"a{chr(point)}字"
        assert split(text, apart=True) == plain.tokens(text), hex(point)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \t\n.,;— ", []),
        ("Don't STOP, now!", ["don", "t", "stop", "now"]),
        ("snake_case and 3.14 in 2024", ["snake", "case", "and", "3", "14", "in", "2024"]),
        ("ﬁne ½ ℡ ＷＩＤＥ", ["fine", "1", "2", "tel", "wide"]),
        ("Straße ΣΊΣΥΦΟΣ", ["strasse", "σίσυφοσ"]),
        ("e\u0301a é", ["éa", "é"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("soft\u00adhyphen zero\u200dwidth le\u200eft \ufeffbom", ["softhyphen", "zerowidth", "left", "bom"]),
        ("zero\u200bwidth\u2060space", ["zerowidthspace"]),
        ("lone\ud800surrogate nul\0here bell\x07", ["lone", "surrogate", "nul", "here", "bell"]),
        ("\u0301 alone \u0301", ["alone"]),
        ("中文 and 日本語", ["中", "文", "and", "日", "本", "語"]),
        ("カタカナ ｶﾞ", ["カ", "タ", "カ", "ナ", "ガ"]),
        ("น้ำ ๑๒๓", ["น้\u0e4d", "า", "123"]),
        ("ကျော်", ["ကျော်"]),
        ("한국어 문장", ["한국어", "문장"]),
        ("\u1112\u1161\u11ab", ["한"]),
        ("İSTANBUL IŞIK", ["istanbul", "işik"]),
        ("istanbul ışık", ["istanbul", "işik"]),
        ("\u0130\u0315\u0307\u0362\u0323", ["ị\u0307\u0307\u0315\u0362"]),
        ("i\u0307\u00ad\u0323x \u0130\u0323y", ["ị\u0307x", "ị\u0307y"]),  # only a dot right behind the letter goes
    ],
)
def test_a_token_is_a_run_of_letters_digits_and_their_marks_or_one_character_in_scripts_without_spaces(
    text: str, expected: list[str]
) -> None:
    assert tokens(text, WORDS) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("C++, C#/F# or C; g++-13", "c++ c# f# or c g++ 13"),
        ("AB+ AB- (A-), B−.", "ab+ ab- a- b-"),
        ("-5 −5 –5 +5 but 3-5, 3 - 5, 2020–2024", "-5 -5 -5 +5 but 3 5 3 5 2020 2024"),
        ("2024-12-01, 030-123-45, COVID-19, UTC+2, --5, 10%-20%", "2024 12 01 030 123 45 covid 19 utc+2 5 10 % 20 %"),
        ("€10 10 € 10€ -$5 $-5 £.50", "€ 10 10 € 10 € - $ 5 $ 5 £ 50"),
        ("3% 3 % 3 ％ 20°C 20 °C ±5", "3 % 3 % 3 % 20 ° c 20 ° c ± 5"),
        ("p<0.05, p < .05, x ≤ 5, n > €3", "p < 0 05 p < 05 x ≤ 5 n > € 3"),
        ("气温-5度，-5度", "气 温 -5 度 -5 度"),
        ("- 5 apples\n+ 5 pears\n* 5", "5 apples 5 pears 5"),
        ("# Title\n## Part ##\n#hashtag #2 #标签#", "title part hashtag 2 标 签"),
        ("> 5 lines\n> > quoted <b>5</b>", "5 lines quoted b > 5 b"),
        ("pre-\nwar well- known, well-known, a - b, word—5, -word", "pre war well known well known a b word 5 word"),
        ("E- und U-Bahn", "e- und u bahn"),
    ],
)
@pytest.mark.parametrize("wide", [False, True], ids=["as it is", "beside a letter outside ASCII"])
def test_a_sign_counts_where_it_carries_meaning(text: str, expected: str, wide: bool) -> None:
    more = ["\nü"] * wide
    assert tokens("".join([text, *more]), WORDS) == [*expected.split(), *("ü" for _ in more)]
    assert sketch("".join([text, *more]), SINGLES).tolist() == plain.sketch("".join([text, *more]), SINGLES)


SPELLINGS = {
    "Romanian, comma or cedilla": ("ȘI ȚARA și țara", "Şi Ţara şi ţara"),
    "Arabic, with or without vowel signs": ("وَافَقَ الوُزَرَاءُ بِمِقْدَارِ الثُّلُثِ", "وافق الوزراء بمقدار الثلث"),
    "Arabic, stretched or not": ("الانـبعاثات مـــن", "الانبعاثات من"),
    "Hebrew, with or without points": ("הַשָּׂרִים בְּיוֹם שִׁשִּׁי", "השרים ביום ששי"),
    "Persian, letters of Arabic": ("کارخانه‌های ایرانی", "كارخانه‌هاي ايراني"),
    "Persian, joiner or space": ("می‌خواهند برنامه‌های", "می خواهند برنامه های"),
    "Hindi, joiners or none": ("क्\u200dष न्\u200cम", "क्ष न्म"),
    "Vietnamese, tones on the second or first vowel": ("hoà Uỷ khoẻ HOÁ Thuỷ", "hòa Ủy khỏe HÓA Thủy"),
    "Vietnamese, decomposed": ("hoà Uỷ khoẻ HOÁ Thuỷ", unicodedata.normalize("NFD", "hòa Ủy khỏe HÓA Thủy")),
    "characters without width": ("emissions from", "em\u200bis\u00adsi\u2060ons fr\ufeffom"),
    "digits": ("٣٤ १२ 5", "34 12 5"),
}


@pytest.mark.parametrize(("one", "other"), SPELLINGS.values(), ids=SPELLINGS)
def test_spellings_of_one_text_have_equal_tokens(one: str, other: str) -> None:
    assert tokens(one, WORDS) == tokens(other, WORDS)


@pytest.mark.parametrize(
    ("one", "other"), [("año", "ano"), ("får", "far"), ("schön", "schon"), ("мой", "мои"), ("ça", "ca"), ("أ", "ا")]
)
def test_marks_that_tell_words_apart_stay(one: str, other: str) -> None:
    assert tokens(one, WORDS) != tokens(other, WORDS)


def test_scripts_without_spaces_are_those_of_south_east_asia_han_and_kana_but_for_their_digits() -> None:
    scripts = re.compile(
        r"(THAI|LAO|MYANMAR|KHMER|TAI LE|NEW TAI LUE|TAI THAM|TAI VIET|AHOM|CJK UNIFIED|CJK COMPATIBILITY IDEOGRAPH"
        r"|IDEOGRAPHIC\b(?! TALLY)|HANGZHOU|VERTICAL IDEOGRAPHIC|HIRAGANA|KATAKANA|HENTAIGANA)\b"
    )
    assigned = [char for char in map(chr, range(0x110000)) if unicodedata.category(char)[0] in "LMN"]
    for char in (char for char in assigned if not unicodedata.decomposition(char).startswith("<")):
        without_spaces = not char.isdecimal() and scripts.match(unicodedata.name(char, "")) is not None
        if unicodedata.category(char)[0] != "M":  # a mark is never a token
            assert without_spaces == any(first <= ord(char) <= last for first, last in UNSPACED), unicodedata.name(char)


@given(texts.map(lambda text: unicodedata.normalize("NFKC", text)))
def test_words_are_found_in_a_text_where_a_sketch_has_its_tokens(text: str) -> None:
    text = "".join(char for char in text if len(fold(char)) == 1 or char.isspace())
    places = words_at(text).tolist()
    assert [fold(text[start:end]) for start, end in places] == tokens(text, WORDS)
    inside = {at for start, end in places for at in range(start + 1, end)}
    for at in range(1, len(text)):
        # What a mark belongs to stands before it, and whether a sign counts depends on more than its neighbour.
        if unicodedata.category(text[at - 1])[0] != "M" and not set("+#-<>") & set(fold(text[at - 1 : at + 1])):
            assert are_one_word(text[at - 1], text[at]) == (at in inside)


@given(texts)
def test_words_are_found_in_any_text_in_order(text: str) -> None:
    text = text.translate({0x0E33: None, 0x0EB3: None})  # Thai and Lao vowels that fold to a mark for the letter before
    edges = words_at(text).ravel().tolist()
    assert edges == sorted(edges)
    assert all(0 <= edge <= len(text) for edge in edges)
    assert bool(edges) == bool(tokens(text, WORDS))


@given(texts)
def test_composed_and_decomposed_characters_are_the_same_text(text: str) -> None:
    short = "".join(char for char in text if not unicodedata.combining(char))  # very long runs of marks are cut
    assert tokens(unicodedata.normalize("NFD", short), WORDS) == tokens(unicodedata.normalize("NFC", short), WORDS)


def test_more_marks_on_a_letter_than_any_language_has_are_cut_and_cost_no_quadratic_time() -> None:
    assert tokens("a" + "\u0323" * 500 + " b", WORDS) == tokens("a" + "\u0323" * 30 + " b", WORDS)
    started = time.process_time()
    assert len(tokens("a" + "\u0301\u0323" * 500_000, WORDS)) == 1
    assert time.process_time() - started < 10


def test_html_is_read_as_a_reader_sees_it() -> None:
    page = """<!DOCTYPE html><html><head><title>The title</title><style>p {color: red}</style>
        <script>var hidden = "<p>no</p>";</script></head><body><!-- no comment --><h1>Head</h1><p>One<p>Two
        <b>wo</b>rd, super<sup>script</sup>, long<wbr>word<br>next<table><tr><td>left</td><td>right</td></tr></table>
        <ul><li>first</li><li>second</li></ul><template>never</template>Fish &amp; Chips caf&eacute; &#x4E2D;&lt;b&gt;
        </body></html>"""
    expected = "the title head one two word superscript longword next left right first second fish chips café 中 b"
    assert tokens(page, HTML) == expected.split()


@pytest.mark.parametrize(
    "text", ["a < b", "<", "<p", "&", "&amp", "<!--", "<script>", "<p>a\0b", "\ud800<b>", "x</p>y"]
)
def test_broken_html_gives_an_answer(text: str) -> None:
    assert isinstance(tokens(text, HTML), list)


def test_markup_is_kept_unless_the_recipe_says_so() -> None:
    assert tokens("<b>bold</b> &amp;", WORDS) == ["b", "bold", "b", "amp"]


def test_urls_are_left_out_when_the_recipe_says_so() -> None:
    text = "see http://t.co/x?a=b, HTTPS://Example.org/é and www.example.org/path. end"
    assert tokens(text, Recipe(urls="drop")) == ["see", "and", "end"]
    assert "example" in tokens(text, WORDS)


def test_an_address_in_a_link_of_a_page_is_no_text_and_one_to_read_is_a_url() -> None:
    page = '<a href="http://hidden.example">link</a> http://seen.example/x'
    assert tokens(page, Recipe(markup="html")) == ["link", "http", "seen", "example", "x"]
    assert tokens(page, Recipe(markup="html", urls="drop")) == ["link"]


@pytest.mark.parametrize("recipe", [WORDS, Recipe(markup="html", urls="drop")])
@pytest.mark.parametrize(
    "text",
    ["word " * 2_000_000, "x" * 1_000_000, "é" * 1_000_000, "<" * 10_000_000, "中文 text " * 200_000, "\0" * 1_000_000],
    ids=["10 MB of words", "a word of 1 MB", "é", "10 MB of <", "mixed", "NUL"],
)
def test_texts_of_any_size_get_an_answer(text: str, recipe: Recipe) -> None:
    started = time.process_time()
    assert len(tokens(text, recipe)) >= (not set(text) <= {"<", "\0"})
    assert time.process_time() - started < 20


def test_marks_that_stand_for_several_count_as_several() -> None:
    assert len(fold("a" + "\u0f73" * 20_000)) <= 32


def test_html_nested_beyond_reason_gets_an_answer() -> None:
    assert tokens("<div>" * 300_000 + "deep", HTML) == ["deep"]


def test_without_its_parser_markup_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "selectolax", None)
    monkeypatch.setitem(sys.modules, "selectolax.lexbor", None)
    with pytest.raises(MissingExtra, match=r'pip install "ndd-search\[html\]"'):
        tokens("<p>a", HTML)
