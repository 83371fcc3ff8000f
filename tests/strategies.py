"""Texts of every script for property tests, in which difficult characters are frequent."""

from __future__ import annotations

from hypothesis import strategies as st

from ndd_search.core.recipe import Recipe

AWKWARD = [
    *" \n\t\0\x0b\x85\u2028\u200b\u00ad\u200d\u200f\ufeff\ufe0f\ud800\udfff\ue000\ufffe\U000e0041\U0010ffff",
    *"e\u0301\u0323\u0308\u0345\u0307\u0338\u3099\u309aıİIiſßŉǰΐςΣﬁﬃ½²™℡Å",
    *"\u1100\u1161\u11a8각가\u0e01\u0e33\u0e49น้ำกคลາວខ្មែរမြန်မာ漢字かなが〇々ﾊﾟ株㍿क्षिनमஒௌ\u0b92\u0bd7\u09c7\u09be",
    *"'’.,!?-_@#/:。！؟۔।",
    *"+#-<>%$€°±≤−–＋＞٪⁺≮٥۵ـَّיیكکשׁבְ\u200c\u0654\ufe77òóụũoaeyşșţ\u0326\u0327",
    "http://example.org/a?b=1 ",
    "WWW.x.y",
    "a" + "\u0301\u0323" * 20,
    "Dr. Running ",
    ". Cats sat nicely",
]
characters = st.characters(exclude_categories=[])  # surrogates too
pieces = st.one_of(st.sampled_from(AWKWARD), st.sampled_from("abc dE1 "), characters)
texts = st.lists(pieces, max_size=40).map("".join) | st.text("ab ", max_size=60)

RECIPES = [
    Recipe(),
    Recipe.words(size=1, k=5, seed=2**64 - 1),
    Recipe.words(size=7, k=3, urls="drop"),
    Recipe.characters(k=7),
    Recipe.characters(size=1, k=4096, seed=9, urls="drop"),
    Recipe.characters(size=64, k=2),
    Recipe.lines(k=3),
    Recipe.lines(size=3, k=8),
    Recipe.sentences(size=2, k=8),
    Recipe.lines(k=64, hash="crc32"),
    Recipe.sentences(k=4),
    Recipe.sentences(None, hash="crc32", urls="drop"),
]
recipes = st.sampled_from(RECIPES)
