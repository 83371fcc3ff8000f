"""The set of numbers in a text as one 31-bit signature, which is what the guard `numbers` compares.

Two offers of a shop, two releases of a program or two flats of an agency share nearly all their words and differ in a
number. `number_signature` is equal for texts that contain the same set of numbers, and differs otherwise, but for a
chance of one in 2**31.

A number is a run of digits, also inside a word: "X200" contains 200, "128GB" and "128 GB" contain 128. Order and
repetition do not matter, and spellings are unified:

    digits        of any script: ٣ and ３ are 3; leading zeros are ignored
    separators    1,299 and 1.299 and 1'299 are 1299, 1,00,000 is 100000; a space always separates ("iPhone 12 128 GB")
    decimals      1,5 is 1.5; 9.00 is 9; but 3.10 is not 3.1, because of versions
    longer rows   1.10.2 and 24.12.2025 are one number each
    signs         -5, +5, <5, ≤ 5, ±5 and 5+ are other numbers than 5, as far as the sign counts (see `text.signs`)
    currencies    €10, 10 € and EUR 10 are one number, $10 and 10 are others
    units         5 % and 5% are one number, 5° and 5 are others

Numbers written as words and Roman numerals are ignored. Dates and counters count like all other numbers, so use it for
fields that contain the text of the item only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from hashlib import blake2b

from ndd_search.core.recipe import Recipe
from ndd_search.core.text.edges import behind_edges
from ndd_search.core.text.tokens import normalise, prepare, split, without_idle_signs
from ndd_search.core.text.unicode_tables import fold

MOST = 640  # characters: longer texts that differ in a number are one text with a counter or a date more often
_CODES = {"usd": "$", "eur": "€", "gbp": "£", "jpy": "¥"}
_MONEY = rf"[$¢-¥\u20a0-\u20cf]|\b(?:{'|'.join(_CODES)})"
_NUMBER = re.compile(
    rf"(?:(?P<relation>[<>≤≥±]) ?)?(?P<sign>(?<![+#])[-+])?(?:(?P<money>{_MONEY}) ?)?(?P<digits>\d+(?:[.,'’٫٬]\d+)*)"
    rf"(?: ?(?P<unit>[%‰‱°])|(?P<more>\+)(?!\d)| ?(?P<paid>{_MONEY})(?![^\W_]))?"
)
_SIGNED = re.compile(r"([^\W\d_])([+#-]+)")  # the end of a word
_GROUPED = re.compile(  # thousands, or lakhs and thousands, then decimals after a different mark
    r"([1-9]\d{0,2}(?:(?P<mark>[.,'’٬])\d{3})(?:(?P=mark)\d{3})*|[1-9]\d?(?P<lakh>,)(?:\d\d,)*\d\d,\d{3})"
    r"(?:(?!(?P=mark))[.,٫](?P<decimals>\d+))?"
)
_SEPARATOR = re.compile(r"\D")
_LOWER = bytes(range(256)).lower()
_NO_LETTERS = bytes(code for code in range(256) if not chr(code).isascii() or not chr(code).isalpha())


def numbers_of(text: str, recipe: Recipe) -> set[str]:
    """Return the distinct numbers of a text, in unified spelling. recipe: decides whether markup and URLs count."""
    return set(_numbers_in(without_idle_signs(normalise(text, recipe))))


def number_signature(text: str, recipe: Recipe) -> int:
    """Return a hash of the set of numbers in a text, 0..2**31-1, so that it fits a signed 32-bit field."""
    digest = blake2b(" ".join(sorted(numbers_of(text, recipe))).encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") >> 1


def differing_in_numbers(recipe: Recipe) -> Callable[[str, str], bool]:
    """Return what tells whether two short texts have the same words and other numbers or signs, as entries of a list.

    No text of more than MOST characters has. Of copies, which are framed or edited, hardly a pair is so
    (docs/quality.md); numbers of an edge at the start do not count ("UPDATE 2 - "). What was read of a text is
    remembered as long as the function returned: among entries, each is compared with all others.
    """
    letters_of = cache(partial(_letters, recipe=recipe))
    read = cache(partial(words_and_numbers, recipe=recipe))

    def differ(one: str, other: str) -> bool:
        if one == other or max(len(one), len(other)) > MOST:
            return False
        letters = letters_of(one), letters_of(other)
        if letters[0] != letters[1] and None not in letters:
            return False
        (words, numbers), (of_other, others) = read(one), read(other)
        return numbers != others and words == of_other

    return differ


def _letters(text: str, recipe: Recipe) -> bytes | None:
    """Return the letters of a text of ASCII, None of any other. Texts that differ in them differ in words."""
    text = prepare(text, recipe)
    return text.encode().translate(_LOWER, _NO_LETTERS) if text.isascii() else None


def words_and_numbers(text: str, recipe: Recipe) -> tuple[list[str], list[str]]:
    """Return the words of a text with equal numbers and no signs in place of its own, and these in unified spelling.

    Both are of what stands behind the edges at the start, if sketches of the recipe tell edges.
    """
    text = prepare(text, recipe)
    text = without_idle_signs(fold(behind_edges(text) if recipe.marks_edges else text))
    words = _NUMBER.sub("0", text)
    return split(_SIGNED.sub(r"\1", words), apart=True), [*_numbers_in(text), *map("".join, _SIGNED.findall(words))]


def hashed_words_and_numbers(text: str, recipe: Recipe) -> list[int] | None:
    """Return two hashes of 63 bits, of a short text's words and of its numbers, as `words_and_numbers` returns them.

    None for a text of more than MOST characters.
    """
    if len(text) > MOST:
        return None
    found = ("\n".join(one).encode("utf-8", "surrogatepass") for one in words_and_numbers(text, recipe))
    return [int.from_bytes(blake2b(one, digest_size=8).digest(), "big") >> 1 for one in found]


def _numbers_in(text: str) -> Iterator[str]:
    """Yield each number of a folded text without idle signs, unified: relation, sign, currency, digits, unit."""
    for found in _NUMBER.finditer(text):
        money = found["money"] or found["paid"] or ""
        parts = (found["relation"], found["sign"], _CODES.get(money, money), _unified(found["digits"]), found["unit"])
        yield "".join(filter(None, (*parts, found["more"])))


def _unified(written: str) -> str:
    if grouped := _GROUPED.fullmatch(written):
        parts = [_SEPARATOR.sub("", grouped[1]), *filter(None, [grouped["decimals"]])]
    else:
        parts = _SEPARATOR.split(written)
    if len(parts) == 2 and not parts[1].strip("0"):
        parts.pop()
    if len(parts) == 2:  # decimals keep their zeros
        return f"{parts[0].lstrip('0') or '0'}.{parts[1]}"
    return ".".join(part.lstrip("0") or "0" for part in parts)
