"""The numbers of a text as one small value: equal for two texts that hold the same numbers.

Two offers of one shop, two releases of one program, two flats of one agency share nearly all their words and differ in
a number. Where that makes them different things, `numbers_must_match` keeps them apart; this is what it compares.

A number is a run of digits, wherever it stands: "X200" holds 200, "128GB" and "128 GB" the same. Order and how often a
number is said make no difference, nor does the way it is written:

    digits        of any script: ٣ and ３ are 3; leading zeros do not count
    separators    1,299 and 1.299 and 1'299 are 1299, 1,00,000 is 100000; a space always separates ("iPhone 12 128 GB")
    decimals      1,5 is 1.5; 9.00 is 9; but 3.10 is not 3.1, for versions
    longer rows   1.10.2 and 24.12.2025 are one each

Numbers in words, Roman ones and signs (a range or a minus?) are not seen. All numbers count, those of dates and
counters around a text, too: this is for fields that hold nothing but the thing itself.
"""

from __future__ import annotations

import re
from hashlib import blake2b

from ndd_search.recipe import Recipe
from ndd_search.text.tokens import normalise

_NUMBER = re.compile(r"\d+(?:[.,'’٫٬]\d+)*")
_GROUPED = re.compile(  # thousands, or lakhs and thousands, then decimals behind another mark
    r"([1-9]\d{0,2}(?:(?P<mark>[.,'’٬])\d{3})(?:(?P=mark)\d{3})*|[1-9]\d?(?P<lakh>,)(?:\d\d,)*\d\d,\d{3})"
    r"(?:(?!(?P=mark))[.,٫](?P<decimals>\d+))?"
)
_SEPARATOR = re.compile(r"\D")


def numbers_of(text: str, recipe: Recipe) -> set[str]:
    """The different numbers of a text, each in the one way it is written here. recipe: says what of the text counts."""
    return {_plainly(written) for written in _NUMBER.findall(normalise(text, recipe))}


def number_signature(text: str, recipe: Recipe) -> int:
    """The numbers of a text as one, 0..2**31-1; texts with other numbers have another one, but for one in 2**31."""
    whole = blake2b(" ".join(sorted(numbers_of(text, recipe))).encode(), digest_size=4).digest()
    return int.from_bytes(whole, "big") >> 1


def _plainly(written: str) -> str:
    if not written.isascii():
        written = "".join(str(int(one)) if one.isdecimal() else one for one in written)
    if found := _GROUPED.fullmatch(written):
        parts = [_SEPARATOR.sub("", found[1]), *filter(None, [found["decimals"]])]
    else:
        parts = _SEPARATOR.split(written)
    if len(parts) == 2 and not parts[1].strip("0"):
        parts.pop()
    if len(parts) == 2:  # decimals keep their zeros
        return f"{parts[0].lstrip('0') or '0'}.{parts[1]}"
    return ".".join(part.lstrip("0") or "0" for part in parts)
