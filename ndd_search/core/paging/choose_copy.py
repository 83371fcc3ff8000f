"""Which copy of a group is shown: the first preference that tells two hits apart decides, then the better rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from math import inf, isnan
from typing import Any

from ndd_search.core.matching.guards import Value, number_in, seconds_since_1970
from ndd_search.core.options import ByField, ByScore, Keep, Longest, Preference, Preferred


def order_of_preference(
    members: Sequence[int],
    hits: Sequence[Any],
    shingles: Callable[[int], float],
    value: Value,
    preferences: Sequence[Preference],
) -> list[int]:
    """Return the hits of a group, the copy to show first.

    members:     indexes of the group's hits, ascending by rank.
    shingles:    index -> how many shingles that hit has.
    value:       (hit, field) -> the hit's value there, None where it has none; such a hit comes last.
    preferences: of CollapseOptions.
    """
    if len(members) == 1 or list(preferences) == [ByScore()]:
        return list(members)

    def key(index: int) -> list[Any]:
        return [*(_key(preference, index, hits[index], shingles, value) for preference in preferences), index]

    return sorted(members, key=key)


def sort_key(
    hit: Any, preferences: Sequence[Preference], shingles: float, value: Callable[[Any, str], Any]
) -> list[float]:
    """Return the numbers by which a document is sorted, the copy to show first, before its rank.

    preferences: without callables. shingles: of the document. value: (hit, field) -> the hit's value there.
    """
    before_rank = takewhile(lambda preference: preference != ByScore(), preferences)
    return [float(_key(preference, 0, hit, lambda _: shingles, value)) for preference in before_rank]


def adapt_callables(plain: Callable[[Any], Any], keep: Sequence[Keep]) -> tuple[Keep, ...]:
    """Return `keep` with callables that get plain(hit), the hit in the user's own form."""

    def adapted(key: Callable[[Any], Any]) -> Keep:
        return lambda hit: key(plain(hit))

    return tuple(adapted(entry) if callable(entry) else entry for entry in keep)


def _key(preference: Preference, index: int, hit: Any, shingles: Callable[[int], float], value: Value) -> Any:
    """Return a sort key, the smallest is preferred."""
    match preference:
        case ByScore():
            return index
        case Longest(""):
            return -shingles(index)
        case Longest(field):
            return -len(str(value(hit, field) or ""))
        case Preferred(field, values):
            found = str(value(hit, field))
            return values.index(found) if found in values else len(values)
        case ByField(field, is_time, highest):
            found = value(hit, field)
            number = seconds_since_1970(found) if is_time else number_in(found)
            return inf if isnan(number) else (-number if highest else number)
    return preference(hit)
