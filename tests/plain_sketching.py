"""Reference implementation of sketching, as documented, one text and one number at a time, for tests of the fast one.

It shares with the fast one only what comes before folding, the parser of markup and of URLs (`prepare`), and the list
of scripts that are written without spaces (`UNSPACED`).
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b

import Stemmer

from ndd_search.core.recipe import Recipe
from ndd_search.core.text.edges import MOST_MARKED, between_edges
from ndd_search.core.text.tokens import prepare
from ndd_search.core.text.unicode_tables import UNSPACED

P, Q, R = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93
A, B = 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53
IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
SENTENCE_END = re.compile(
    "(?<=[.!?…؟۔।॥])(?<!\\b[A-ZÀ-ÖØ-ÞА-Я]\\.)(?<!\\b(?:Mr|Ms|Dr|St)\\.)(?<!\\bMrs\\.)(?<!\\bProf\\.)[\"')\\]»’”]*\\s+"
    "|(?<=[。！？｡])|\n\\s*\n"
)


def fold(text: str) -> str:
    text = without_marks_that_may_be_left_out(re.sub("(?<=[\u0600-\u06ff\u0750-\u077fﭐ-\ufdffﹰ-ﻼ])\u200c", " ", text))
    text = without_marks_that_may_be_left_out(unicodedata.normalize("NFKC", few_marks(text)))
    text = re.sub("[i\u0131]\u0307+|\u0131", "i", few_marks(text).casefold())
    text = "".join(str(unicodedata.decimal(char)) if char.isdecimal() else SAME.get(char, char) for char in text)
    text = unicodedata.normalize("NFKC", text).replace("ș", "ş").replace("ț", "ţ")
    return re.sub("([òóỏõọ])([ae])|([ùúủũụ])(y)", moved_tone, text)


SAME = {"ی": "ي", "ک": "ك", "\u2212": "-", "\u2013": "-", "\u2010": "-", "٪": "%"}


def moved_tone(vowels: re.Match[str]) -> str:
    first, second = filter(None, vowels.groups())
    apart = unicodedata.normalize("NFD", first)
    return apart[0] + unicodedata.normalize("NFC", second + apart[1])


def without_marks_that_may_be_left_out(text: str) -> str:
    """Without ignorable characters, tatweel, and the marks of Hebrew and Arabic that make no other letter."""
    text = re.sub(f"[{IGNORABLE}\u0640]", "", text)
    return "".join(char for char in text if not is_vowel_sign(char))


def is_vowel_sign(char: str) -> bool:
    ranges = ((0x0591, 0x05C7), (0x0610, 0x061A), (0x064B, 0x0652), (0x0656, 0x065E), (0x0670, 0x0670))
    others = ((0x06D6, 0x06ED), (0x08D3, 0x08FF))
    return any(first <= ord(char) <= last for first, last in ranges + others) and unicodedata.category(char) == "Mn"


def few_marks(text: str) -> str:
    """At most thirty combining marks in a row."""
    kept, run = [], 0
    for char in text:
        run = run + 1 if unicodedata.combining(char) else 0
        kept += [char] * (run <= 30)
    return "".join(kept)


def is_letter(char: str) -> bool:
    """Letters, digits and other numbers; code points that Unicode has not assigned yet."""
    category = unicodedata.category(char)
    noncharacter = 0xFDD0 <= ord(char) <= 0xFDEF or ord(char) & 0xFFFE == 0xFFFE
    return category[0] in "LN" or (category == "Cn" and not noncharacter and ord(char) < 0xF0000)


def stands_alone(char: str) -> bool:
    return any(first <= ord(char) <= last for first, last in UNSPACED)


def tokens(text: str, apart: bool = True) -> list[str]:
    found: list[str] = []
    text = fold(text)
    inside = alone = False
    for char, kind in zip(text, roles(text), strict=True):
        if unicodedata.category(char)[0] == "M":
            if inside:
                found[-1] += char
        elif kind:
            if inside and not (apart and (kind == "alone" or alone)):
                found[-1] += char
            else:
                found.append(char)
            inside, alone = True, kind == "alone"
        else:
            inside = False
    return found


def roles(text: str) -> list[str]:
    """What each character is: "in word", "alone" or "" for what separates; of a mark nothing is said.

    Signs are found by patterns in a text of one letter for each kind of character.
    """
    kinds = ""
    places = []
    for place, char in enumerate(text):
        if unicodedata.category(char)[0] == "M":
            if not kinds or kinds[-1] not in "+#-<>m":
                continue
            kind = "m"
        else:
            kind = kind_of(char)
            if kind in "+#" and kinds and kinds[-1] in "a0p":
                kind = "p"  # part of the word before it
        kinds += kind
        places.append(place)
    number = r"(?:[0$]|\.0)"
    signed = {match.start() for match in re.finditer(rf"(?<![^ _nz.u])[+-](?={number})", kinds)}
    ends = {match.end() - 1 for match in re.finditer(r"(?<![a0p])[ap]{1,3}-(?=[ _z.]|$)", kinds)}
    compares = {match.start() for match in re.finditer(rf"(?<=[^nz+#<>pm-])[<>](?=_?{number})", kinds)}
    found = [""] * len(text)
    for at, (kind, place) in enumerate(zip(kinds, places, strict=True)):
        if kind in "u$%" or at in compares:
            found[place] = "alone"
        elif kind in "a0p" or at in signed | ends:
            found[place] = "in word"
    return found


def kind_of(char: str) -> str:
    kinds = {"\n": "n", "\r": "n", "\0": "z", " ": "_", **dict.fromkeys("0123456789", "0")}
    kinds |= dict.fromkeys("$¢£¤¥", "$") | dict.fromkeys("%°±‰‱≤≥≰≱≦≧⩽⩾", "%") | {sign: sign for sign in "+#-<>."}
    if char in kinds or 0x20A0 <= ord(char) < 0x20D0:
        return kinds.get(char, "$")
    return " " if not is_letter(char) else "u" if stands_alone(char) else "a"


def joined(units: list[list[str]], size: int) -> list[list[str]]:
    """Every `size` consecutive lines or sentences as one shingle, all of them if they are fewer."""
    return [
        [token for unit in units[i : i + size] for token in unit]
        for i in range(max(len(units) - size + 1, min(len(units), 1)))
    ]


def shingles(text: str, recipe: Recipe) -> list[list[str]]:
    """Each shingle as its tokens; one of characters is one token."""
    text = prepare(text, recipe)
    if recipe.kind == "lines":
        return joined([words for line in text.splitlines() if (words := tokens(line))], recipe.size)
    if recipe.kind == "sentences":
        stem = Stemmer.Stemmer(recipe.language).stemWords if recipe.language else list
        sentences = ([word for word in tokens(one, apart=False) if len(word) > 3] for one in SENTENCE_END.split(text))
        return joined([stem(words) for words in sentences if words], recipe.size)
    if recipe.kind == "words":
        words = tokens(text)
        return [words[i : i + recipe.size] for i in range(max(len(words) - recipe.size + 1, min(len(words), 1)))]
    line = " ".join(tokens(text, apart=False))
    return [[line[i : i + recipe.size]] for i in range(max(len(line) - recipe.size + 1, min(len(line), 1)))]


def polynomial(values: list[int], base: int) -> int:
    """values[0] + values[1] * base + values[2] * base**2 + ..."""
    total = 0
    for value in reversed(values):
        total = (total * base + value) % 2**64
    return total


def hash_of(shingle: list[str], recipe: Recipe) -> int:
    if recipe.hash == "crc32":
        return zlib.crc32(" ".join(shingle).encode()) << 32
    state = polynomial([polynomial(list(map(ord, token)), P) for token in shingle], Q) + recipe.seed * R
    x = state * A % 2**64
    return (x ^ x >> 32) * B % 2**64


def hashes(text: str, recipe: Recipe) -> list[int]:
    return [hash_of(shingle, recipe) for shingle in shingles(text, recipe)]


def permuted(number: int, place: int) -> int:
    x = (number + (place + 1) * R) % 2**64
    x = (x ^ x >> 33) * A % 2**64
    x = (x ^ x >> 29) * B % 2**64
    return x ^ x >> 32


def min_hash(text: str, recipe: Recipe, place: int) -> int:
    return min(permuted(one, place) for one in hashes(text, recipe))


def super_shingle(text: str, recipe: Recipe, place: int) -> int:
    mixed = 0
    for one in range(14 * place, 14 * place + 14):
        mixed = permuted((mixed + min_hash(text, recipe, one)) % 2**64, 0)
    return mixed


def n_grams(text: str, recipe: Recipe) -> list[int]:
    """As Java hashes strings: s[0] * 31**(n - 1) + ... + s[n - 1], of UTF-16 units; here modulo 2**31."""
    pairs = text.encode("utf-16-be", "surrogatepass")
    units = [pairs[at] << 8 | pairs[at + 1] for at in range(0, len(pairs), 2)]
    size = min(recipe.size, len(units))
    runs = [units[at : at + size] for at in range(len(units) - size + 1)]
    found = {sum(unit * 31 ** (size - 1 - at) for at, unit in enumerate(run)) % 2**31 for run in runs}
    return sorted(found)[: recipe.k]


def simhash(text: str, recipe: Recipe) -> list[int]:
    sums = [0] * 64
    for words in shingles(text, recipe):
        name = " ".join(words).encode("utf-8", "surrogatepass")
        feature = int.from_bytes(blake2b(name, digest_size=8).digest(), "big")
        sums = [total + (1 if feature >> bit & 1 else -1) for bit, total in enumerate(sums)]
    fingerprint = sum(1 << bit for bit, total in enumerate(sums) if total > 0)
    return [place << 16 | fingerprint >> 48 - 16 * place & 0xFFFF for place in range(4)]


def by_method(text: str, recipe: Recipe) -> list[int]:
    """The sketch by a method that compares place by place, or counts."""
    if recipe.method == "n-grams":
        text = prepare(text, recipe)
        return n_grams(text, recipe) if text.strip() else []
    if not shingles(text, recipe):
        return []
    if recipe.method == "simhash":
        return simhash(text, recipe)
    bits = 31 - len(f"{recipe.k - 1:b}") if recipe.k > 1 else 31
    number = min_hash if recipe.method == "min-hash" else super_shingle
    return [place << bits | number(text, recipe, place) >> 64 - bits for place in range(recipe.k)]


def sketch(text: str, recipe: Recipe) -> list[int]:
    if recipe.kind != "words":
        return _hashes(shingles(text, recipe), recipe)[: recipe.k]
    text = prepare(text, recipe)
    inside = "\n".join(text[start:end] for start, end in between_edges(text))
    kept = replace(recipe, markup="keep", urls="keep")
    inner = {value >> 1 for value in _hashes(shingles(inside, kept), kept)}
    every = sorted({value >> 1 for value in _hashes(shingles(text, kept), kept)})
    values = every[: recipe.k]
    marked = len(values) < min(recipe.k, MOST_MARKED)  # a longer text, and a sample, show no edges
    return [2 * value + (marked and value not in inner) for value in values]


def _hashes(found: Iterable[Sequence[str]], recipe: Recipe) -> list[int]:
    distinct = set(map(tuple, found))
    return sorted({hash_of(list(shingle), recipe) >> 33 for shingle in distinct})
