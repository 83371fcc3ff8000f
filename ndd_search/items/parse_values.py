"""Reads the values of records: words, numbers, dates, codes, addresses of pages and places on the globe."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from html import unescape
from math import isfinite, isnan
from typing import Any
from unicodedata import category, normalize
from urllib.parse import unquote, urlsplit

from ndd_search.core.text.tokens import without_idle_signs
from ndd_search.core.text.unicode_tables import few_marks

Date = tuple[int, int, int]  # year, month, day; 0 is unknown
Place = tuple[float, float]  # latitude and longitude in degrees

_QUOTED = 80  # characters of a value that a message shows
ABSENT = {"-", "--", "?", "n/a", "n.a.", "none", "null", "unknown", "undefined", "not available", "not applicable"}
_BOUNDS = {  # days that forms and databases write for an unknown one
    (1753, 1, 1), (1899, 12, 30), (1899, 12, 31), (1900, 1, 1), (1970, 1, 1), (9999, 12, 31)
}  # fmt: skip
_NO_CODE = re.compile(r"0{3,}|(\d)\1{6,}|0?12345678(9|90)?")
_NO_MAIL = re.compile(
    r"((no|without)[-_.]?(e?mail|reply|address)|none|unknown|n/?a|not[-_.]?(available|known|given))\d*@.*", re.I
)
_TRACKING = re.compile(
    r"(utm_\w+|[a-z]*clk?id|gbraid|wbraid|igshid|mc_[ce]id|_ga|_gl|amp|(php|asp|j)?sess(ion)?_?id)(=.*)?"
    r"|sid=(?!\d+$).*",
    re.I,
)
_MACHINE = re.compile(r"^(www|m|mobile|amp)\.(?=[^.]+\.)")
_LETTERS = str.maketrans({"ø": "o", "đ": "d", "ð": "d", "ł": "l", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"})
_QUOTES = re.compile("['’‘`´ʼ]")
_WORDS = re.compile(r"[-+]?[^\W_]+(?:[-+#]+[^\W_]*)*|[&<>%°±≤≥$¢-¥\u20a0-\u20cf]")
_PARTS = re.compile(r"[^\W_]+|&")  # of a code
_NUMBER = re.compile(r"[-+−]?\d[\d.,'’\s]*(?:e[-+]?\d+)?", re.IGNORECASE)
_HOST = re.compile(r"(?:[\w-]+\.)+[^\W\d_]{2,}|(?:\d+\.){3}\d+")
_ISO = re.compile(r"(?!00)(\d{4})-(\d{2})-(\d{2})", re.ASCII)
_MM, _DD = r"(?:0\d|1[0-2])", r"(?:[0-2]\d|3[01])"  # of a year of our time, one of them may be impossible
_YMD = re.compile(rf"(?=[12]...{_MM}{_DD}|(?:1[89]|20)..(?:{_MM}|..{_DD}))(\d{{4}})(\d\d)(\d\d)")
_DMY = re.compile(r"(\d\d)(\d\d)([12]\d{3})")
_DIGITS = re.compile(r"\d+")
_MONTH = re.compile(r"\b(?:(jan)|(feb)|(mar)|(apr)|(may)|(jun)|(jul)|(aug)|(sep)|(oct)|(nov)|(dec))")
_BASE32 = "0123456789bcdefghjkmnpqrstuvwxyz"
_GEOHASH = re.compile(f"[{_BASE32}]{{1,12}}")
_PAIR = re.compile(r"\s*([-+]?[\d.]+(?:e[-+]?\d+)?)\s*[,;\s]\s*([-+]?[\d.]+(?:e[-+]?\d+)?)\s*", re.IGNORECASE)
_POINT = re.compile(r"\s*POINT\s*\(\s*([-+.\de]+)\s+([-+.\de]+)\s*\)\s*", re.IGNORECASE)


def quoted(value: object) -> str:
    """Return a value as it is written in Python, at most 80 characters of it."""
    text = repr(value)
    return text if len(text) <= _QUOTED else f"{text[: _QUOTED - 1]}…"


def folded(text: str) -> str:
    """Return a text without case, marks (e for é), HTML entities and repeated spaces.

    It takes linear time: of marks in a row, thirty are looked at.
    """
    if "&" in text:
        text = unescape(text)
    if text.isascii():
        return " ".join(text.lower().split())
    text = "".join(one for one in normalize("NFKD", few_marks(text)) if category(one) != "Mn")
    return " ".join(text.casefold().translate(_LETTERS).split())


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text in order, with signs that count, as in C++; "&" is the word "and".

    Apostrophes join what they divide. A run of characters of a script without spaces is one word, because names are
    compared letter by letter.
    """
    if text.isalpha() and text.isascii():
        return (text.lower(),)
    words = _WORDS.findall(without_idle_signs(_QUOTES.sub("", folded(text))))
    return tuple("and" if word == "&" else word for word in words) if "&" in words else tuple(words)


def is_absent(value: Any) -> bool:
    """Return whether a value is empty: None, an empty text or list, or NaN. It is then missing, not bad."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float) and isnan(value)) or (isinstance(value, list) and not value)


def number_of(value: Any) -> float:
    """Return a number, also of a text such as "EUR 1,299.50" with a single number in it. Raises ValueError."""
    if isinstance(value, bool):
        raise ValueError(f"{quoted(value)} is not a number")
    if isinstance(value, int | float | Decimal):
        number = float(value)
    else:
        found = _NUMBER.findall(str(value))
        if len(found) != 1:
            raise ValueError(f"{quoted(value)} is not a number")
        number = float(_plain(re.sub(r"['’\s]", "", found[0]).replace("−", "-")))
    if not isfinite(number):
        raise ValueError(f"{quoted(value)} is not a finite number")
    return number


def _plain(written: str) -> str:
    """Return a number in the notation of Python. Of a comma and a point, the last one separates decimals."""
    written = written.rstrip(".,")
    if "," in written and "." in written:
        thousands = "," if written.rindex(".") > written.rindex(",") else "."
        return written.replace(thousands, "").replace(",", ".")
    for mark in ",.":
        if written.count(mark) > 1 or (mark == "," and re.fullmatch(r"[-+]?\d{1,3}(,\d{3})+", written)):
            return written.replace(mark, "")
    return written.replace(",", ".")


def date_of(value: Any, since: int = 1930) -> Date:
    """Return (year, month, day), with 0 for a part that is not given. Raises ValueError.

    Read are dates, "1863-06-15", "18630615", "15061863", "15.6.1863", "06/15/1863" (month first only where the day
    cannot be), "15 June 1863", "June 1863" and "1863"; the time of a day is ignored. A month or a day, not both, that
    cannot be is kept up to 99: the other parts of a date with a typing error may agree. A year of two digits, as in
    "15-06-63", is one of the hundred years from `since` on. Days that stand for none, as 1900-01-01, cannot be read.
    """
    if isinstance(value, datetime.date):
        return _checked(value.year, value.month, value.day, value)
    if isinstance(value, str) and (plain := _ISO.fullmatch(value)):
        return _checked(int(plain[1]), int(plain[2]), int(plain[3]), value)
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip().casefold()
    if re.fullmatch(r"\d{8}", text):
        text = f"{int(text):08}"  # of the digits of any script
        compact = _YMD.fullmatch(text) or _DMY.fullmatch(text)
        text = ".".join(compact.groups()) if compact else ""
    named = _MONTH.search(text)
    month = named.lastindex or 0 if named else 0
    clock = re.search(r"[t\s]\d{1,2}:\d\d", text)
    written = _DIGITS.findall(text[: clock.start()] if clock else text)
    parts = [int(part) for part in written]
    if len(parts) == (2 if month else 3) and max(map(len, written)) <= 2:
        place = 0 if parts[0] > 31 else -1
        parts[place] = since + (parts[place] - since) % 100
    year = max(parts, default=0)
    if len(parts) > 3 or not 31 < year <= 9999:
        raise ValueError(f"{quoted(value)} is not a date")
    place = parts.index(year)
    rest = parts[:place] + parts[place + 1 :]
    if month:
        return _checked(year, month, rest[0] if rest else 0, value)
    if len(rest) == 2 and place and not rest[0] <= 12 < rest[1]:
        rest.reverse()
    rest += [0, 0]
    return _checked(year, rest[0], rest[1], value)


def _checked(year: int, month: int, day: int, value: Any) -> Date:
    if max(month, day) > 99 or (month > 12 and day > 31):
        raise ValueError(f"{quoted(value)} is not a date")
    if (year, month, day) in _BOUNDS:
        raise ValueError(f"{quoted(value)} stands for an unknown day")
    return year, month, day if month else 0


def code_of(value: Any) -> str:
    """Return a code without case, spaces and punctuation.

    Raises ValueError if nothing is left, and for what stands for no code: "000000000", "noemail@example.com".
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    code = "".join(_PARTS.findall(_QUOTES.sub("", folded(str(value))))).replace("&", "and")
    if not code:
        raise ValueError(f"{quoted(value)} holds no letters or digits")
    if _NO_CODE.fullmatch(code) or _NO_MAIL.fullmatch(str(value).strip()):
        raise ValueError(f"{quoted(value)} stands for no code")
    return code


def url_of(value: Any) -> tuple[str, str]:
    """Return (host, path with query) of a web address. Raises ValueError.

    Scheme, port, fragment, a last slash and the order of query parameters do not count, nor do "www.", "m." and "amp"
    of one page in several forms, nor parameters of trackers and sessions. A host has letters of its own script.
    """
    text = str(value).strip()
    start = re.split("[/?#]", text, maxsplit=1)[0]
    if "@" in start:
        raise ValueError(f"{quoted(value)} is a mail address, no web address")
    parts = urlsplit(text if not start or start[-1] == ":" else f"//{text}")
    host = ".".join(map(_label, _MACHINE.sub("", parts.hostname or "").split(".")))
    if not _HOST.fullmatch(host):
        raise ValueError(f"{quoted(value)} is not a web address")
    query = "&".join(sorted(one for one in parts.query.split("&") if one and not _TRACKING.fullmatch(one)))
    steps = [step.partition(";jsessionid=")[0] for step in unquote(parts.path).rstrip("/").split("/")]
    steps = steps[: -1 if steps[-1] == "amp" else None]
    path = "/".join(steps[:1] + steps[1 + (steps[1:2] == ["amp"]) :])
    return host, path + (f"?{query}" if query else "")


def _label(label: str) -> str:
    """Return a part of the name of a host in its own script. The codec of Python reads what browsers write."""
    try:
        return label.encode("ascii").decode("idna") if label.startswith("xn--") else label
    except UnicodeError:
        return label


def place_of(value: Any) -> Place:
    """Return (latitude, longitude) in degrees of a `geo_point` in any form that the engines accept.

    value: {"lat": 52.5, "lon": 13.4}, "52.5,13.4", [13.4, 52.5], {"type": "Point", "coordinates": [13.4, 52.5]},
           "POINT (13.4 52.5)", or a geohash, whose centre is returned. A longitude is returned in -180..180.
    Raises ValueError for anything else, and for a latitude outside -90..90 or a longitude outside -360..360.
    """
    if isinstance(value, Mapping):
        if value.get("type") in ("Point", "point"):
            return place_of(value.get("coordinates"))
        longitude = next((value[name] for name in ("lon", "lng", "long", "longitude") if name in value), None)
        return checked_place(value.get("lat", value.get("latitude")), longitude)
    if isinstance(value, str):
        if found := _POINT.fullmatch(value):
            return checked_place(found[2], found[1])
        if found := _PAIR.fullmatch(value):
            return checked_place(found[1], found[2])
        if _GEOHASH.fullmatch(value.lower()):
            return _centre(value.lower())
    elif isinstance(value, Sequence) and len(value) in (2, 3):
        return checked_place(value[1], value[0])
    raise ValueError(f"{quoted(value)} is not a place")


def checked_place(latitude: Any, longitude: Any) -> Place:
    """Return both as numbers in range. Raises ValueError."""
    try:
        degrees = float(latitude), float(longitude)
    except TypeError:
        raise ValueError(f"{quoted(latitude)}, {quoted(longitude)} is not a place") from None
    if not (abs(degrees[0]) <= 90 and abs(degrees[1]) <= 360):
        raise ValueError(f"latitude {degrees[0]:g} and longitude {degrees[1]:g} are not on the globe")
    return degrees[0], (degrees[1] + 180) % 360 - 180


def _centre(geohash: str) -> Place:
    low, high = [-90.0, -180.0], [90.0, 180.0]
    axis = 1
    for character in geohash:
        number = _BASE32.index(character)
        for bit in (16, 8, 4, 2, 1):
            (low if number & bit else high)[axis] = (low[axis] + high[axis]) / 2
            axis = 1 - axis
    return (low[0] + high[0]) / 2, (low[1] + high[1]) / 2
