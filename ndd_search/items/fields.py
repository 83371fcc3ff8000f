"""The fields of items: where their values are, how they are read, and how near values are graded.

Each field grades a comparison by `edges`: similarities in descending order, where a new grade begins. The first grade
is agreement. A grade is divided by how common the value is that both records have in common (`rare`), because two
records with the name "Cathedral" say less than two with the name "Finbarr".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ndd_search.core.document_fields import text_of
from ndd_search.core.recipe import Recipe
from ndd_search.core.setting_values import fields_in
from ndd_search.core.text.sentences import stemmer
from ndd_search.items import compare_values
from ndd_search.items.compare_names import Names
from ndd_search.items.compare_values import Comparer, Rareness
from ndd_search.items.parse_values import (
    ABSENT,
    checked_place,
    code_of,
    date_of,
    folded,
    is_absent,
    number_of,
    place_of,
    quoted,
    url_of,
    words_of,
)
from ndd_search.items.synonyms import synonyms_of

COMMON = (0.01, 0.001)  # shares of the records: a value is common, less common, or rare


class BadValue(ValueError):
    """A value that cannot be read: the field counts as missing. args: (sentence,)."""


def _positive(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if not 0 < value < float("inf"):
        raise ValueError(f"{name} must be above 0, got {value}")


@dataclass(frozen=True, kw_only=True)
class Field:
    """Settings of every field.

    source: the field of a record that holds the value, or several; None for the name of the field itself. Texts of
            several fields are one text, their codes, addresses and categories one list. A number or a date is that of
            the first field that has a value.
    weight: how often its evidence counts; 2 for a field that is twice as reliable as its kind usually is.
    veto:   two records that both have a value, and none in common, are never one thing.
    """

    source: str | tuple[str, ...] | None = None
    weight: float = 1.0
    veto: bool = False

    kind: ClassVar[str]
    edges: ClassVar[tuple[float, ...]]
    evidence: ClassVar[tuple[float, ...]]  # log odds of each grade before anything is learnt; one more than edges
    rare: ClassVar[bool] = False  # whether the rareness of values counts
    compiled: ClassVar[bool] = True  # whether the core compares values

    def __post_init__(self) -> None:
        if isinstance(self.source, list):
            object.__setattr__(self, "source", tuple(self.source))
        fields_in("source", () if self.source is None else self.source)
        _positive("weight", self.weight)
        if not isinstance(self.veto, bool):
            raise TypeError(f"veto must be True or False, got {self.veto!r}")

    def paths(self, name: str) -> tuple[str, ...]:
        """Return the fields of a record that are read. name: of this field in the schema."""
        return (name,) if self.source is None else (self.source,) if isinstance(self.source, str) else self.source

    def parse(self, raw: list[Any], name: str) -> Any:
        """Return what is compared, None if it is missing. Raises BadValue."""
        if not raw:
            return None
        if len(raw) == 1 and isinstance(raw[0], str):
            if not (plain := raw[0].strip().lower()):
                return None
            if plain in ABSENT:
                raise BadValue(f"{name} is {quoted(raw[0])}")
        try:
            return self._parsed(raw)
        except (ValueError, TypeError, OverflowError) as error:
            raise BadValue(f"{name}: {error}") from None

    def _parsed(self, raw: list[Any]) -> Any:
        raise NotImplementedError

    def comparer(self, values: Sequence[Any], rareness: Rareness) -> Comparer:
        """Return a comparer of distinct values."""
        raise NotImplementedError

    @property
    def meets(self) -> float:
        """The similarity from which two values speak for one thing."""
        return min(edge for edge, evidence in zip(self.edges, self.evidence, strict=False) if evidence > 0)

    def parts(self, value: Any) -> Iterable[str]:
        """Return the parts of a value whose rareness counts, if `rare`."""
        return value  # type: ignore[no-any-return]

    def shares_tokens(self, name: str, *, across: bool) -> str:
        """Return what is equal for fields that share tokens. name: of this field in the schema.

        across: values whose rareness counts meet those of other fields of one kind, as a name that another list
                writes into another field; numbers and dates of different fields have nothing to do with each other.
        """
        return self.kind if across and self.rare else f".{name}"


def _text(raw: list[Any]) -> str:
    return raw[0] if len(raw) == 1 and isinstance(raw[0], str) else text_of({"value": raw}, ["value"]) or ""


_MOST_WORDS, _MOST_LETTERS = 200, 2_000  # of a name: two of that size take some milliseconds to compare


@dataclass(frozen=True, kw_only=True)
class _Words(Field):
    """A field of words. synonyms: see `Name`."""

    synonyms: str | Mapping[str, Any] | Sequence[Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        found = synonyms_of(self.synonyms)
        if not isinstance(self.synonyms, str | None):
            object.__setattr__(self, "synonyms", {word: list(readings) for word, readings in found.items()})


@dataclass(frozen=True, kw_only=True)
class Name(_Words):
    """A name, a title or a line of an address: a few words, in any order, perhaps abbreviated or misspelt.

    A value of more than 200 words or 2,000 letters cannot be read: each word is compared with each one of another name.

    synonyms: "english-abbreviations" (st. is saint or street), "english-nicknames" (bill is william), a mapping such as
              {"st": ["saint", "street"]}, or a list of these.
    """

    kind: ClassVar[str] = "name"
    edges: ClassVar[tuple[float, ...]] = (0.999, 0.9, 0.75, 0.55, 0.3)
    evidence: ClassVar[tuple[float, ...]] = (4.0, 3.0, 2.0, 0.5, -2.0, -4.0)
    rare: ClassVar[bool] = True

    def _parsed(self, raw: list[Any]) -> Any:
        words = words_of(_text(raw))
        if not words:
            raise ValueError(f"{quoted(raw[0])} holds no words")
        if len(words) > _MOST_WORDS or (letters := sum(map(len, words))) > _MOST_LETTERS:
            size = f"{len(words):,} words" if len(words) > _MOST_WORDS else f"{letters:,} letters"
            raise ValueError(f"{quoted(raw[0])} has {size}, which is no name: compare it as a text")
        return words

    def comparer(self, values: Sequence[Any], rareness: Rareness) -> Comparer:
        return Names(values, synonyms_of(self.synonyms), rareness)


@dataclass(frozen=True, kw_only=True)
class Text(_Words):
    """A longer text, compared by its sketch.

    recipe:   of the sketch, or its id; single words by default.
    stem:     a language, such as "english": words count by their stems (extra "stem").
    synonyms: as of a Name; a word counts as the first one that it stands for.
    """

    recipe: Recipe | str = "w1-k128-v4"
    stem: str | None = None

    kind: ClassVar[str] = "text"
    compiled: ClassVar[bool] = False
    edges: ClassVar[tuple[float, ...]] = (0.999, 0.6, 0.35, 0.2, 0.1)
    evidence: ClassVar[tuple[float, ...]] = (5.0, 4.0, 3.0, 1.5, 0.0, -1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "recipe", Recipe.of(self.recipe).id)
        if not isinstance(self.stem, str | None):
            raise TypeError(f"stem must be a language, got {self.stem!r}")
        stemmer(self.stem)

    def _parsed(self, raw: list[Any]) -> Any:
        text = folded(_text(raw))
        if not words_of(text):
            raise ValueError(f"{quoted(raw[0])} holds no words")
        return text

    def comparer(self, values: Sequence[Any], rareness: Rareness) -> Comparer:
        if self.stem or self.synonyms:
            synonyms, stems = synonyms_of(self.synonyms), stemmer(self.stem) or list
            words = [[synonyms.get(word, (word,))[0] for word in words_of(text)] for text in values]
            values = [" ".join(stems(of_text)) for of_text in words]
        return compare_values.Texts(values, Recipe.of(self.recipe))


@dataclass(frozen=True, kw_only=True)
class Place(Field):
    """A place on the globe: a `geo_point` in any form, or two fields: source=("lat", "lon").

    within_km: two records of one thing are usually at most so many kilometres apart.
    """

    within_km: float = 1.0

    kind: ClassVar[str] = "place"
    edges: ClassVar[tuple[float, ...]] = (0.8, 0.5, 0.25, 0.09, 0.032)  # 1/4, 1, 3, 10 and 30 times within_km
    evidence: ClassVar[tuple[float, ...]] = (4.0, 3.0, 1.0, -2.0, -4.0, -7.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        _positive("within_km", self.within_km)
        if isinstance(self.source, str) and "," in self.source:
            pair = tuple(name.strip() for name in self.source.split(","))
            raise ValueError(f"source of a place is one field, got {self.source!r}: two are named as source={pair!r}")
        if isinstance(self.source, tuple) and len(self.source) != 2:
            raise ValueError(f"source of a place is one field or a latitude and a longitude, got {self.source!r}")

    def _parsed(self, raw: list[Any]) -> Any:
        if isinstance(self.source, tuple) and len(raw) < 2:
            return None
        two = isinstance(self.source, tuple)
        place = checked_place(*map(number_of, raw)) if two else place_of(raw[0])
        if place == (0.0, 0.0):
            raise ValueError("latitude 0 and longitude 0 are in the open sea, they stand for an unknown place")
        return place

    def comparer(self, values: Sequence[Any], rareness: Rareness) -> Comparer:
        return compare_values.Globe(values, self.within_km)


@dataclass(frozen=True, kw_only=True)
class Number(Field):
    """A number: a price, a size, an elevation.

    tolerance: relative difference that is usual between two records of one thing. within: the same, absolute.
    """

    tolerance: float = 0.05
    within: float = 0.0

    kind: ClassVar[str] = "number"
    edges: ClassVar[tuple[float, ...]] = (0.999, 0.5, 0.25, 0.09)  # equal, 1, 3 and 10 times the tolerance
    evidence: ClassVar[tuple[float, ...]] = (2.0, 1.0, 0.0, -1.0, -2.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("tolerance", "within"):
            if getattr(self, name) != 0:
                _positive(name, getattr(self, name))

    def _parsed(self, raw: list[Any]) -> Any:
        return number_of(raw[0])

    def comparer(self, values: Sequence[Any], rareness: Rareness) -> Comparer:
        return compare_values.Numbers(values, self.tolerance, self.within)


@dataclass(frozen=True, kw_only=True)
class Date(Field):
    """A date, of which day and month may be missing, swapped, or impossible (a month 88).

    since: a year of two digits is one of the hundred years from it on; `Items.guess` takes those around most dates.
    """

    since: int = 1930

    kind: ClassVar[str] = "date"
    edges: ClassVar[tuple[float, ...]] = (0.94, 0.79, 0.55, 0.35, 0.1)
    evidence: ClassVar[tuple[float, ...]] = (4.0, 3.0, 1.5, 0.0, -1.0, -3.0)

    def _parsed(self, raw: list[Any]) -> Any:
        return date_of(raw[0], self.since)

    def comparer(self, values: Sequence[Any], rareness: Rareness) -> Comparer:
        return compare_values.Dates(values)


@dataclass(frozen=True, kw_only=True)
class Category(Field):
    """One of a few values, or a set of them: a country, a brand, tags. separator: divides a text into several."""

    separator: str | None = None

    kind: ClassVar[str] = "category"
    edges: ClassVar[tuple[float, ...]] = (0.999, 0.5, 0.001)
    evidence: ClassVar[tuple[float, ...]] = (1.5, 0.5, 0.0, -2.0)
    rare: ClassVar[bool] = True

    def _parsed(self, raw: list[Any]) -> Any:
        members = _members(raw)
        if self.separator:
            members = [part for member in members for part in str(member).split(self.separator)]
        found = frozenset(text for member in members if (text := " ".join(words_of(str(member)))))
        if members and not found:
            raise ValueError(f"{quoted(raw[0])} holds no words")
        return found or None

    def comparer(self, values: Sequence[Any], rareness: Rareness) -> Comparer:
        return compare_values.Sets(values, rareness)


def _members(raw: list[Any]) -> list[Any]:
    """Return what values hold: of lists and sets their members."""
    each = (value if isinstance(value, list | tuple | set | frozenset) else [value] for value in raw)
    return [member for members in each for member in members if not is_absent(member)]


def _read(read: Callable[[Any], Any], members: Sequence[Any]) -> frozenset[Any] | None:
    """Return the members of a list that can be read, None for an empty list. Raises ValueError if none can."""
    found, problem = set(), None
    for one in members:
        try:
            found.add(read(one))
        except ValueError as error:
            problem = problem or error
    if problem and not found:
        raise problem
    return frozenset(found) or None


@dataclass(frozen=True, kw_only=True)
class Exact(Field):
    """A code: a phone number, an ISBN, a tax number. Case, spaces and punctuation do not count.

    Codes that differ by a slip (a letter, or two neighbours swapped) are neither equal nor different, unless the field
    is a veto.
    """

    kind: ClassVar[str] = "exact"
    edges: ClassVar[tuple[float, ...]] = (0.5, 0.25)  # one code in common is enough; a slip
    evidence: ClassVar[tuple[float, ...]] = (6.0, 0.0, -3.0)
    rare: ClassVar[bool] = True

    def _parsed(self, raw: list[Any]) -> Any:
        return _read(code_of, _members(raw))

    def comparer(self, values: Sequence[Any], rareness: Rareness) -> Comparer:
        return compare_values.Codes(values, rareness, slips=not self.veto)


@dataclass(frozen=True, kw_only=True)
class Url(Field):
    """A web address, or a list of them: host and path count."""

    kind: ClassVar[str] = "url"
    compiled: ClassVar[bool] = False
    edges: ClassVar[tuple[float, ...]] = (0.999, 0.69, 0.49)
    evidence: ClassVar[tuple[float, ...]] = (6.0, 2.0, 0.5, -1.0)
    rare: ClassVar[bool] = True

    def _parsed(self, raw: list[Any]) -> Any:
        return _read(url_of, _members(raw))

    def parts(self, value: Any) -> Iterable[str]:
        return {host for host, _ in value}

    def comparer(self, values: Sequence[Any], rareness: Rareness) -> Comparer:
        return compare_values.Urls(values, rareness)


KINDS: Mapping[str, type[Field]] = {kind.kind: kind for kind in (Name, Text, Place, Number, Date, Category, Exact, Url)}
