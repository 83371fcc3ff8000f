"""What the search page asks of an index, in a folder or on an engine."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from ndd_search.core.sketching.sketches import Sketch
from ndd_search.core.text.printable import safe
from ndd_search.search.rest.info_and_copies import info

Headers = Mapping[str, str]
Hit = dict[str, Any]

# Names of fields that facets are made of; the first that an index has counts.
SOURCES = ("source", "publisher", "outlet", "agency", "site", "domain", "host", "feed", "channel")
DATES = (
    *("date", "published", "published_at", "publication_date", "pubdate", "created", "created_at"),
    *("timestamp", "@timestamp", "updated", "day"),
)
MOST_SOURCES = 12
_MOST_PERIODS = 24  # in the facet of dates: more months are added up to years
MARKS = "\ufdd0", "\ufdd1"  # around matched words in highlights: no text holds these noncharacters

Counts = Sequence[tuple[str, int]]
Counted = Literal["results", "estimates", "documents"]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A search for the page.

    source, period: filters, () for none (see State). start, size: of the page in the stream.
    options: CollapseOptions by name. facets: whether the values of source and date are counted, too.
    """

    q: str
    source: tuple[str, ...] = ()
    period: tuple[str, ...] = ()
    start: int = 0
    size: int
    options: Mapping[str, Any] = field(default_factory=dict)
    facets: bool = False

    @property
    def is_deduplicated(self) -> bool:
        """Whether near-duplicates are hidden, so that facets count results."""
        return self.options.get("mode") != "annotate"


@dataclass(frozen=True, kw_only=True)
class Found:
    """The answer to a search.

    response: in the shape of the engines, with the block `ndd` unless the search was left alone. Hits have highlights
              with MARKS.
    sources:  values of the field of sources with their numbers, the most frequent first.
    periods:  months ("2024-03"), or years, with their numbers, the latest first.
    counted:  what these numbers are: "results", of which a filter by the value shows so many, "estimates" of these, or
              "documents".
    notes:    sentences about how the query was read.
    """

    response: Mapping[str, Any]
    sources: Counts = ()
    periods: Counts = ()
    counted: Counted = "documents"
    notes: Sequence[str] = ()

    @property
    def problems(self) -> list[str]:
        """Sentences about what the page does not do as it should."""
        told = info(self.response)
        what = "Near-duplicates may be shown" if told.collapsed else "The hits of this page were not compared"
        reason = [f"{what}: {told.reason}"] if told.reason else []
        return [safe(str(one)) for one in (*reason, *told.warnings, *self.notes)]


@dataclass(frozen=True, eq=False)
class Document:
    """A document by itself. hit: as the engine gave it. sketch: None if there is none that can be compared."""

    hit: Hit
    sketch: Sketch | None


class SearchFailed(Exception):
    """The index did not answer a search. args: (status of HTTP, the reason as text, WWW-Authenticate or "")."""

    def __init__(self, status: int, reason: str, challenge: str = "") -> None:
        super().__init__(status, reason, challenge)
        self.status, self.reason, self.challenge = int(status), reason, challenge


class Searcher(Protocol):
    """An index that can be searched.

    name:   what is searched, as the user knows it.
    text:   names of the text fields, () if they are not known.
    syntax: examples of what can be typed, each with what it finds.
    """

    name: str
    text: tuple[str, ...]
    syntax: Sequence[tuple[str, str]]

    async def count(self, headers: Headers) -> int:
        """Return the number of documents. Raises SearchFailed."""

    async def search(self, asked: Asked, headers: Headers) -> Found:
        """Search. headers: of the caller, whose rights count. Raises SearchFailed."""

    async def documents(self, names: Sequence[tuple[str, str]], headers: Headers) -> list[Document]:
        """Return documents by (index, id), without those that there are not. Raises SearchFailed."""

    def verdict(self, pair: Sequence[Document], options: Mapping[str, Any]) -> str:
        """Return a sentence: why the second document is, or is not, a near-duplicate of the first; "" if unknown."""

    async def close(self) -> None:
        """Free what the searcher holds: nothing, unless it says so."""
        return


def chosen(candidates: Sequence[str], names: Iterable[str]) -> str:
    """Return the first candidate among the names of fields, "" if there is none."""
    present = set(names)
    return next((name for name in candidates if name in present), "")


def check_filters(asked: Asked, source: str, date: str) -> None:
    """Raise ValueError if a search filters by a field that the index does not have. source, date: "" for none."""
    for wanted, present, name in ((asked.source, source, "source"), (asked.period, date, "date")):
        if wanted and not present:
            what = ", ".join(map(repr, wanted))
            raise ValueError(f"the index has no field of {name}s that can be filtered by: search without {what}")


def months_or_years(months: Iterable[str]) -> list[str]:
    """Return the periods of a facet of dates, the latest first: months, or years if there are many months."""
    distinct = set(months)
    if len(distinct) > _MOST_PERIODS:
        distinct = {month[:4] for month in distinct}
    return sorted(distinct, reverse=True)[:_MOST_PERIODS]


def bounds(period: str) -> tuple[str, str]:
    """Return the first and the last day of a year or month: "2024-03" gives 2024-03-01 and 2024-03-31."""
    year, _, month = period.partition("-")
    last_month = month or "12"
    days = monthrange(int(year), int(last_month))[1]
    return f"{year}-{month or '01'}-01", f"{year}-{last_month}-{days}"
