"""How many different origins say what the hits of a group say, and which of them said it first.

An origin is a value of the field that says where a hit is from, as a source or an author; of a URL it is the host.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from math import isnan
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np

from ndd_search.core.document_fields import is_missing
from ndd_search.core.matching.guards import comparable, seconds_since_1970
from ndd_search.core.matching.short_copies import inside
from ndd_search.core.matching.sketch_rows import rows_of
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import VALUES, Sketch

_OF_A_SITE = re.compile(r"^(?:(?:www\d?|m|mobile|amp)\.)+(?=[^.]+\.[^.])")  # "m.de" is a site of its own
_HOST = re.compile(r"(?:www\d?|m|mobile|amp)(?:\.[\w-]+){2,}", re.IGNORECASE)
_SAME = 0.9  # share of the shingles of the shorter text that the longer one holds, from which a copy is a reprint


class Origins(NamedTuple):
    """The origins of a group.

    number:   how many different ones there are. A hit without one is not counted.
    first:    the one of the earliest hit, or of the best-ranked hit where no times are known; None without one.
    reprints: how many further hits have the text of the best-ranked one: apart from edges, the shorter of the two texts
              shares nine tenths of its shingles with the other one, so it may be cut off or differ in a few words.
    edited:   how many further hits differ more.
    """

    number: int
    first: Any
    reprints: int
    edited: int

    def __str__(self) -> str:
        sources = f"{self.number} source{'s' * (self.number != 1)}"
        first = "" if self.first is None else f", first {self.first}"
        return f"{sources}{first}, {self.reprints} reprint{'s' * (self.reprints != 1)}, {self.edited} edited"


def origin_of(value: Any) -> Any:
    """Return the origin that a value names, None where it is missing. Of a list, the first value counts.

    Of a URL it is the host, without what a site puts before the name of its pages for phones ("www.", "m.", "amp."); of
    another text the text without spaces around it.
    """
    if isinstance(value, list | tuple):
        value = value[0] if value else None
    if isinstance(value, str):
        value = " ".join(value.split())
    if is_missing(value) or value == "":
        return None
    if isinstance(value, str) and ("://" in value or _HOST.fullmatch(value)):
        try:
            host = (urlsplit(value).hostname if "://" in value else value.lower()) or value
        except ValueError:
            return value
        return _OF_A_SITE.sub("", host)
    return value


def _one(origin: Any) -> str:
    """Return a text that is equal for one origin in several spellings: "Reuters", "REUTERS"."""
    return comparable(origin.casefold() if isinstance(origin, str) else origin)


def different(sources: Iterable[Any]) -> list[Any]:
    """Return the different sources among some, each in its first spelling; a missing one is left out.

    Two are one if they are one origin. Of URLs, which name the pages to be cited, the rest counts, too: two pages of a
    site are two, a page and the same page for phones are one. Of a list, all values count.
    """
    found: dict[Any, Any] = {}
    for source in sources:
        values = source if isinstance(source, list | tuple) else (source,)
        one = tuple((_one(origin), _page(value)) for value in values if (origin := origin_of(value)) is not None)
        if one:
            found.setdefault(one, source)
    return list(found.values())


def _page(value: Any) -> str:
    """Return what a URL says after its host, "" for anything else."""
    after = value.partition("://")[2].strip() if isinstance(value, str) else ""
    return after[len(re.split(r"[/?#]", after)[0]) :].rstrip("/")


def origins_of(
    members: Sequence[Any],
    sketches: Sequence[Sketch],
    fields: Sequence[str],
    value: Callable[[Any, str], Any],
    recipe: Recipe,
) -> Origins:
    """Return the origins of the hits of a group, the best-ranked first.

    sketches: of the hits. fields: where a hit says its origin and, if there are two, its time.
    """
    found = [origin_of(value(hit, fields[0])) for hit in members]
    named = [place for place, one in enumerate(found) if one is not None]
    times = {place: seconds_since_1970(value(members[place], fields[1])) for place in named if len(fields) > 1}
    known = [place for place in times if not isnan(times[place])] or named[:1]
    first = min(known, key=lambda place: times.get(place, 0.0), default=0)
    reprints = sum(_have_one_text(sketches, recipe)) if len(members) > 1 else 0
    count = len({_one(found[place]) for place in named})
    return Origins(count, found[first], reprints, len(members) - 1 - reprints)


def independent(groups: Iterable[Origins]) -> str:
    """Return a sentence for a reader or a model about several groups: "3 independent sources, 41 reprints".

    Sources are independent if they were the first with different texts; an edited copy counts as a reprint.
    """
    listed = list(groups)
    sources = len({_one(one.first) for one in listed if one.first is not None})
    copies = sum(one.reprints + one.edited for one in listed)
    return f"{sources} independent source{'s' * (sources != 1)}, {copies} reprint{'s' * (copies != 1)}"


def _have_one_text(sketches: Sequence[Sketch], recipe: Recipe) -> list[bool]:
    """Return for each hit after the first whether one of the two texts holds _SAME of the other, apart from edges."""
    if recipe.measure != "kmv":
        return [np.array_equal(sketches[0], one) for one in sketches[1:]]
    rows = inside(rows_of(sketches, recipe.k))
    first, *others = (rows.values[start:end] for start, end in pairwise(rows.offsets.tolist()))
    same: list[bool] = []
    for one, whole in zip(others, sketches[1:], strict=True):
        limit = min((int(full[-1]) for full in (sketches[0], whole) if len(full) >= recipe.k), default=VALUES)
        sizes = np.searchsorted(first, limit, "right"), np.searchsorted(one, limit, "right")
        shared = len(np.intersect1d(first[: sizes[0]], one[: sizes[1]], assume_unique=True))
        same.append(shared > 0 and bool(shared >= _SAME * min(sizes)))
    return same
