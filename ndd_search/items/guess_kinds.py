"""Guesses the kinds of fields from the values of records."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from itertools import islice
from statistics import median
from typing import Any

from ndd_search.core.document_fields import value_of
from ndd_search.core.text.printable import many
from ndd_search.errors import InvalidDocument
from ndd_search.items.fields import Category, Date, Exact, Field, Name, Number, Place, Text, Url
from ndd_search.items.parse_values import date_of, is_absent, number_of, place_of, url_of, words_of

_LOOKED_AT = 10_000  # records
_MOST = 0.9  # share of values that have to fit a kind
_LATITUDE = re.compile("(.*?)(latitude|lat)", re.IGNORECASE)
_DATE = re.compile("date|birth|born|died|dob|year|published|opened|created|^day$", re.IGNORECASE)
_DAY = re.compile(r"(?:\d{1,2}([-./])\d{1,2}\1\d{4}|\d{4}([-./])\d{1,2}\2\d{1,2})(?:[T\s].*)?", re.DOTALL)
_YEAR, _TWO_DIGITS = re.compile(r"(?<!\d)\d{4}(?!\d)"), re.compile(r"\d{1,2}([-./ ])\w{1,9}\1\d{2}")
_CODE = re.compile(
    r"(?:^|[\W_])(?:(?:tele|mobile)?phone|fax|isbn|issn|ean|gtin|upc|sku|iban|vat|doi|orcid|e?mail)", re.I
)
_FRACTION = re.compile(  # with a unit or a currency; texts of whole numbers may be codes, numbers among words names
    r"(?:[^\W\d]{1,4}\s)?\W*(?:\d{1,3}(?:[.,'’\s]\d{3})+|\d+)[.,]\d+\s*\W?(?:[^\W\d]{1,4}\.?)?"
)
_OFTEN, _ONCE = 20, 0.005  # values of a list: records for each, and share of records whose value no other has
_SEPARATORS = (";", "|")
_LISTS = 0.3  # share of values with a separator, from which they are lists
_LONG = 12  # words
_IDS = ("id", "_id", "uuid", "guid")
_ARGUMENTS = ("self", "needs", "min_probability", "learnt", "answers")  # of Items, which no field of it can be called


Reasons = dict[str, tuple[str, str]]  # of each field its kind, "-" if it is left out, and why


def guess_fields(records: Iterable[Any]) -> tuple[dict[str, Field], Reasons]:
    """Return a field for each that the first records have, and why; ids and fields with a single value are left out.

    Raises InvalidDocument if nothing is left, or for fewer than two records.
    """
    looked_at = list(islice(records, _LOOKED_AT))
    if len(looked_at) < 2:
        what = "fields are guessed from how their values differ, which takes two records at least"
        raise InvalidDocument(many(len(looked_at), "record"), what, "give more, or name the fields: Items(name=Name())")
    names = _names(looked_at)
    fields: dict[str, Field] = {}
    reasons: Reasons = {}
    for name in names:
        longitude = longitude_of(name, names)
        if longitude:
            place = _LATITUDE.fullmatch(name)[1].strip("_- ") or "place"  # type: ignore[index]
            place = _unused(place, "_place", {*names, *fields, *_ARGUMENTS})
            fields[place] = Place(source=(name, longitude))
            reasons[place] = "place", f"{name} and {longitude} are a latitude and a longitude by their names"
        if longitude or any(longitude_of(other, names) == name for other in names):
            continue
        if name in _IDS:
            reasons[name] = "-", "it is the id of the record"
            continue
        values = [value for record in looked_at if not is_absent(value := value_of(record, name))]
        field, why = _kind(name, values)
        named = _unused(f"{name}_field", "_field", names) if name in _ARGUMENTS else name
        reasons[named] = field.kind if field else "-", why
        if field:
            fields[named] = field if named == name else replace(field, source=name)
    if not fields:
        what = "none of their fields has values that can be compared"
        raise InvalidDocument(
            many(len(looked_at), "record"), what, "give mappings, or name the fields: Items(name=Name())"
        )
    return fields, reasons


def _names(records: Sequence[Any]) -> list[str]:
    """Return the names of fields by their usual place in a record, whatever the order of the records."""
    places: dict[str, list[int]] = {}
    for record in records:
        for place, name in enumerate(record if isinstance(record, Mapping) else ()):
            places.setdefault(name, []).append(place)
    return sorted(places, key=lambda name: (sum(places[name]) / len(places[name]), str(name)))


def _unused(name: str, more: str, taken: Container[str]) -> str:
    """Return a name for a field, with `more` behind it as often as others have it: no field replaces another one."""
    while name in taken:
        name += more
    return name


def longitude_of(name: str, names: list[str]) -> str | None:
    """Return the field with the longitude that belongs to a latitude, None for a field that holds no latitude."""
    if not (found := _LATITUDE.fullmatch(name)):
        return None
    endings = ("lon", "lng", "long", "longitude")[:: 1 if found[2].lower() == "lat" else -1]
    return next((other for end in endings for other in names if other.lower() == found[1].lower() + end), None)


def _kind(name: str, values: list[Any]) -> tuple[Field | None, str]:
    """Return the field that fits the values of a field, None if they all are equal or absent, and why."""
    sample = values[:1000]
    if len({str(value) for value in values}) < 2:
        return None, "it has no value, or one for all records"
    numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in sample)
    fractions = sum(bool(_FRACTION.fullmatch(str(value).strip())) for value in sample) > len(sample) / 2
    most = f"at least {_MOST:.0%} of its values can be read as"
    tests: tuple[tuple[Callable[[], Field], bool, str], ...] = (
        (Url, _fits(sample, url_of), f"{most} web addresses"),
        (partial(_date, sample), _fits(sample, _day_of if _DATE.search(name) else _full_day_of), f"{most} dates"),
        (Exact, bool(_CODE.search(name)), "its name is that of a code"),
        (Number, numeric or (fractions and _fits(sample, number_of)), "its values are numbers"),
        (
            Place,
            _fits(sample, place_of)
            and not _fits(sample, number_of)
            and not all(isinstance(value, str) and value.isalnum() for value in sample),
            f"{most} places",
        ),
        (Category, any(isinstance(value, list | tuple) for value in sample), "it holds lists"),
        *(
            (
                partial(Category, separator=sign),
                sum(sign in str(value) for value in sample) > _LISTS * len(sample),
                f"more than {_LISTS:.0%} of its values hold {sign!r}",
            )
            for sign in _SEPARATORS
        ),
        (
            Text,
            median(len(words_of(str(value))) for value in sample) > _LONG,
            f"half of its values have more than {_LONG} words",
        ),
        (Category, _are_categories(Counter(map(str, values))), "a few values are those of nearly all records"),
    )
    short = "its values are numbers as texts, perhaps codes; make it a Number() if near ones are alike"
    otherwise = Name(), short if _fits(sample, float) else "its values are short texts"
    return next(((kind(), why) for kind, fits, why in tests if fits), otherwise)


def _are_categories(counts: Counter[str]) -> bool:
    """Return whether values repeat as those of a list do: often, and nearly all of them.

    Slips of names are values that occur once, of which a list has few.
    """
    values, once = counts.total(), sum(count == 1 for count in counts.values())
    if values >= 50 * len(counts) or (len(counts) <= 20 and values >= 5 * len(counts)):
        return True
    return values >= _OFTEN * len(counts) and once <= _ONCE * values


def _date(values: list[Any]) -> Date:
    """Return a field whose years of two digits are those around half of the years of four digits, if there are any."""
    years = [int(found[0]) for value in values if (found := _YEAR.search(str(value)))]
    written = any(_TWO_DIGITS.fullmatch(str(value).strip()) for value in values)
    return Date(since=int(median(years)) // 10 * 10 - 50) if years and written else Date()


def _day_of(value: Any) -> date:
    return date(*(part or 1 for part in date_of(value)))


def _full_day_of(value: Any) -> date:
    """Return a day of which one sign divides year, month and day. Raises ValueError: other texts may be names."""
    if not _DAY.fullmatch(str(value)):
        raise ValueError
    return _day_of(value)


def _fits(values: list[Any], parse: Any) -> bool:
    fitting = 0
    for value in values:
        try:
            parse(value)
        except (ValueError, TypeError, OverflowError):
            continue
        fitting += 1
    return fitting >= _MOST * len(values) > 0
