"""Which copy of a group is shown: an ordered list of wishes with a firm tie-break."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isnan
from typing import Any

from ndd_search.collapse_options import CollapseOptions, Keep
from ndd_search.matching.guards import Value, seconds_since_1970


def order_of_preference(
    members: Sequence[int], hits: Sequence[Any], shingles: Callable[[int], float], value: Value, keep: Sequence[Keep]
) -> list[int]:
    """The ranks of a group, the copy to show first.

    members:       ranks of the group's hits, ascending.
    shingles:      rank -> how many shingles that hit has.
    value:         (hit, field) -> what the hit has there, None where it has nothing; such a hit comes last.
    keep:          as in CollapseOptions; the first wish that tells two hits apart decides, then the better rank.
    """
    if len(members) == 1 or list(keep) == ["score"]:
        return list(members)
    return sorted(members, key=lambda rank: [*(_wish(wish, rank, hits[rank], shingles, value) for wish in keep), rank])


def wishes_about(plain: Callable[[Any], Any], keep: Sequence[Keep]) -> tuple[Keep, ...]:
    """The same wishes, the user's own ones told of hits as he knows them: plain(hit)."""

    def told(wish: Callable[[Any], Any]) -> Keep:
        return lambda hit: wish(plain(hit))

    return tuple(told(wish) if callable(wish) else wish for wish in keep)


def fields_of(options: CollapseOptions) -> tuple[str, ...]:
    """The fields of documents that `keep` and the guards read."""
    wishes = [wish.partition(":")[2].partition("=")[0] for wish in options.keep if isinstance(wish, str)]
    return tuple(filter(None, dict.fromkeys((*options.must_match, *wishes, options.time_field or ""))))


def _wish(wish: Keep, rank: int, hit: Any, shingles: Callable[[int], float], value: Value) -> Any:
    """A sort key, the smallest is the most wanted."""
    if callable(wish):
        return wish(hit)
    name, _, argument = wish.partition(":")
    if name == "score":
        return rank
    if name == "longest":
        return -len(str(value(hit, argument) or "")) if argument else -shingles(rank)
    if name == "preferred":
        field, _, names = argument.partition("=")
        best_first = names.split(",")
        found = str(value(hit, field))
        return best_first.index(found) if found in best_first else len(best_first)
    seconds = seconds_since_1970(value(hit, argument))
    return float("inf") if isnan(seconds) else (-seconds if name == "newest" else seconds)
