"""Texts that differ in a sign that carries meaning are shown apart, spellings of one text together."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest

import ndd_search as ndd

ADVERT = (
    "For our office in the old harbour we are looking for a {} developer with five years of practice, who likes small "
    "teams, writes tests, and explains things well. We offer thirty days of leave and a bicycle."
)
SETTINGS: list[dict[str, Any]] = [
    {},
    {"min_similarity": "identical"},
    {"guards": ["numbers"]},
    {"preset": "products"},
    {"recipe": ndd.Recipe.characters(k=128)},
]
DIFFERENT = {
    "job titles": ["Senior C++ Developer", "Senior C# Developer", "Senior C Developer"],
    "job adverts": [ADVERT.format(name) for name in ("C++", "C#", "C")],
    "blood types": [f"Blood bank needs donors of type {one} this week" for one in ("AB+", "AB-")],
    "grades": [f"Rating of the bank raised to {one} by the agency" for one in ("A+", "A-", "A")],
    "signs": [f"The temperature at the station was {one} degrees at dawn" for one in ("-5", "5")],
    "signs of percentages": [f"Shares of the bank {one} after the report" for one in ("+3%", "-3%")],
    "currencies": [f"Ticket for the ferry costs {one} from today" for one in ("€10", "$10")],
    "units": [f"The valve of the new boiler opens at {one} in the test" for one in ("60°", "60%")],
    "relations": [f"Rule 4: x {one} 5 holds for all values of the list" for one in ("≤", "≥", "<", ">")],
}


# The bar of messages alone joins texts of which a few signs differ.
STRICT = [*SETTINGS, {"preset": "messages", "min_similarity": "identical"}]


@pytest.mark.parametrize("settings", STRICT, ids=str)
@pytest.mark.parametrize("texts", DIFFERENT.values(), ids=DIFFERENT)
def test_texts_that_differ_in_a_sign_are_all_shown(texts: list[str], settings: dict[str, Any]) -> None:
    assert ndd.collapse(texts, size=50, **settings).hits == texts


NOTE = "The council approved the plan for the new library near the old harbour on Tuesday{} after a long debate"
SAME = {
    "a hyphen and the end of a line": (NOTE.format(" by a well-known firm"), NOTE.format(" by a well-\nknown firm")),
    "a dash without or with spaces": (NOTE.format(", open 10-18,"), NOTE.format(", open 10 – 18,")),
    "years": (NOTE.format(" for 2020-2024"), NOTE.format(" for 2020–2024")),
    "a phone number": (NOTE.format(", phone 030-123-456,"), NOTE.format(", phone 030 123 456,")),
    "bullets": ("- " + NOTE.format("\n- 5 votes\n- 3 others"), "+ " + NOTE.format("\n* 5 votes\n• 3 others")),
    "headings": (NOTE.format("\n\n## Votes ##\n\n# 5 to 3\n"), NOTE.format("\n\nVotes\n\n5 to 3\n")),
    "hashtags": (NOTE.format(" #library #harbour"), NOTE.format(" library, harbour")),
    "quoted lines": (NOTE.format("\n5 votes to\n3 others"), NOTE.format("\n> 5 votes to\n> 3 others")),
    "a space before a unit": (NOTE.format(" for 10€ and 5%"), NOTE.format(" for 10 € and 5\u00a0%")),
    "dashes": (NOTE.format(" at -5 degrees"), NOTE.format(" at \u22125 degrees")),
}
ROMANIAN = "Miniștrii au hotărât vineri să reducă emisiile fabricilor de oțel și să închidă două furnale la sfârșitul"
PERSIAN = "وزیران روز جمعه می‌خواهند برنامه‌های تازه را برای کاهش آلودگی کارخانه‌های فولاد کشور بررسی کنند"
ARABIC = "وَافَقَ الوُزَرَاءُ يَوْمَ الجُمُعَةِ عَلَى خَفْضِ الاِنْبِعَاثَاتِ مِنْ مَصَانِعِ الصُّلْبِ بِمِقْدَارِ الثُّلُثِ قَبْلَ نِهَايَةِ العَقْدِ"
HEBREW = "הַשָּׂרִים הֶחְלִיטוּ בְּיוֹם שִׁשִּׁי לְצַמְצֵם אֶת הַפְּלִיטוֹת מִמִּפְעֲלֵי הַפְּלָדָה בִּשְׁלִישׁ עַד סוֹף הֶעָשׂוֹר"
VIETNAMESE = "Chính phủ hoà giải các vụ kiện và uỷ ban sẽ thuỷ lợi hoá vùng khoẻ mạnh này trong năm nay"
OLDER = "Chính phủ hòa giải các vụ kiện và ủy ban sẽ thủy lợi hóa vùng khỏe mạnh này trong năm nay"


def bare(text: str) -> str:
    return "".join(one for one in unicodedata.normalize("NFD", text) if not unicodedata.category(one).startswith("M"))


def between(text: str, mark: str) -> str:
    """A text with a mark behind the second letter of every word of more than four."""
    return " ".join(word[:2] + mark + word[2:] if len(word) > 4 else word for word in text.split(" "))


SPELLINGS = {
    "Romanian, comma or cedilla": (ROMANIAN, ROMANIAN.replace("ș", "ş").replace("ț", "ţ")),
    "Arabic, without vowel signs": (ARABIC, bare(ARABIC)),
    "Arabic, stretched": (bare(ARABIC), between(bare(ARABIC), "\u0640\u0640")),
    "Hebrew, without points": (HEBREW, bare(HEBREW)),
    "Persian, Arabic ye and kaf": (PERSIAN, PERSIAN.replace("ی", "ي").replace("ک", "ك")),
    "Persian, space for joiner": (PERSIAN, PERSIAN.replace("\u200c", " ")),
    "Vietnamese, older place of tones": (VIETNAMESE, OLDER),
    "Vietnamese, decomposed": (VIETNAMESE, unicodedata.normalize("NFD", OLDER)),
    **{f"U+{ord(mark):04X} inside words": (NOTE, between(NOTE, mark)) for mark in "\u200b\u00ad\u2060\ufeff"},
}


@pytest.mark.parametrize("settings", [*SETTINGS, {"preset": "messages"}], ids=str)
@pytest.mark.parametrize("pair", (SAME | SPELLINGS).values(), ids=SAME | SPELLINGS)
def test_signs_that_mean_nothing_and_other_spellings_make_no_other_text(
    pair: tuple[str, str], settings: dict[str, Any]
) -> None:
    assert ndd.collapse(pair, **settings).hits == [pair[0]]
