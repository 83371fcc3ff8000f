"""How hits are collapsed: the options of every search, checked once where they are made."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any, Literal, TypedDict

from ndd_search.checks import check_names, check_one_of, check_seconds, check_share, check_whole
from ndd_search.recipe import Recipe

Mode = Literal["group", "drop", "demote", "annotate"]
Keep = str | Callable[[Any], Any]
Strategy = Literal["auto", "one_phase", "two_phase", "one_trip"]


@dataclass(frozen=True, kw_only=True)
class CollapseOptions:
    """How the hits of a request are collapsed.

    min_similarity:   "auto" (see `decision`), the resemblance, or what else the recipe measures, from which two hits
                      are near-duplicates, 0 < x <= 1, or a name for one: "identical" (1.0), "high" (0.8), "moderate"
                      (0.5).
    mode:             "group" shows leaders with their duplicates, "drop" leaders alone, "demote" puts duplicates after
                      everything else, "annotate" moves nothing and says of each hit whose duplicate it is.
    window:           how many of the engine's hits are examined at first, at least 1; doubled while the page is short.
    max_window:       the most hits ever examined for one search, at least `window`: the stream ends there. A list in
                      memory (`collapse`, `merge`) has no such end.
    max_per_group:    how many hits of one group are shown, at least 1.
    keep:             which copy of a group is shown (the group keeps the rank of its best hit), of those in the first
                      window that holds that hit: a list of wishes, the first that decides wins: "score" (the engine's
                      order), "newest:FIELD", "oldest:FIELD", "longest" (by shingles) or "longest:FIELD" (by
                      characters), "preferred:FIELD=best,second,...", or a callable(hit) whose smallest value wins. Ties
                      go to the better rank.
    min_shingles:     below this many shingles only an identical sketch is a near-duplicate: few shingles say little.
    min_length_ratio: shorter / longer, in shingles, from which two hits may be near-duplicates, 0..1; 0 is off.
    must_match:       fields in which two near-duplicates agree (price, version, language); a missing value agrees
                      with a missing value only.
    numbers_must_match: two near-duplicates hold the same numbers (see `numbers`): for products, releases, flats. In an
                      index they must be stored beside the sketch (numbers=True); a hit without them stands alone.
    time_field, max_seconds_apart: two near-duplicates are at most this far apart in that field (a datetime, an
                      ISO 8601 text, or a number of seconds or milliseconds since 1970); a hit without a readable
                      time stands alone.
    strategy:         how a wrapped client fetches a page, the same page in every case: "one_phase" asks for the window
                      with its documents, "two_phase" for the sketches of the window and then for the documents to
                      show, "one_trip" for both at once, guessing which documents will be shown; "auto" chooses for
                      each search. A search that cannot be taken apart is fetched in one phase.
    collapse_unranked: whether a wrapped client also collapses searches that do not rank their hits: `match_all`,
                      filters alone, a sort by `_doc` (see docs/wrapping.md). A list in memory is always collapsed.
    """

    min_similarity: float | str = "auto"
    mode: Mode = "group"
    window: int = 100
    max_window: int = 10_000
    max_per_group: int = 1
    keep: tuple[Keep, ...] = ("score",)
    min_shingles: int = 4
    min_length_ratio: float = 0.0
    must_match: tuple[str, ...] = ()
    numbers_must_match: bool = False
    time_field: str | None = None
    max_seconds_apart: float | None = None
    strategy: Strategy = "auto"
    collapse_unranked: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.min_similarity, str):
            check_one_of("min_similarity", self.min_similarity, ("auto", "identical", "high", "moderate"))
        else:
            check_share("min_similarity", self.min_similarity)
        if self.min_similarity == 0:
            raise ValueError("min_similarity must be above 0: at 0 every hit would be a near-duplicate of the first")
        check_one_of("mode", self.mode, ("group", "drop", "demote", "annotate"))
        check_one_of("strategy", self.strategy, ("auto", "one_phase", "two_phase", "one_trip"))
        check_whole("window", self.window, 1)
        check_whole("max_window", self.max_window, 1)
        if self.window > self.max_window:
            raise ValueError(f"window must be at most max_window, {self.max_window}, got {self.window}")
        check_whole("max_per_group", self.max_per_group, 1)
        check_whole("min_shingles", self.min_shingles, 0)
        check_share("min_length_ratio", self.min_length_ratio)
        for name in ("numbers_must_match", "collapse_unranked"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be true or false, got {getattr(self, name)!r}")
        for name in ("keep", "must_match"):  # lists come from JSON; a frozen value holds tuples
            given = getattr(self, name)
            if isinstance(given, str) or not isinstance(given, Collection):
                raise TypeError(f"{name} must be a list, got {given!r}")
            object.__setattr__(self, name, tuple(given))
        check_names("must_match", *self.must_match)
        check_names("time_field", self.time_field or "")
        for wish in self.keep:
            if not callable(wish) and not re.fullmatch(
                r"score|longest(:.+)?|(newest|oldest):.+|preferred:[^=]+=.+", str(wish)
            ):
                raise ValueError(
                    f"keep knows score, newest:FIELD, oldest:FIELD, longest, longest:FIELD, "
                    f"preferred:FIELD=VALUE,VALUE and callables, got {wish!r}"
                )
        if (self.time_field is None) != (self.max_seconds_apart is None):
            raise ValueError("time_field and max_seconds_apart are given together or not at all")
        if self.max_seconds_apart is not None:
            check_seconds("max_seconds_apart", self.max_seconds_apart)


class CollapseChanges(TypedDict, total=False):
    """CollapseOptions as keyword arguments of a function, for type checkers."""

    min_similarity: float | str
    mode: Mode
    window: int
    max_window: int
    max_per_group: int
    keep: Sequence[Keep]
    min_shingles: int
    min_length_ratio: float
    must_match: Sequence[str]
    numbers_must_match: bool
    time_field: str | None
    max_seconds_apart: float | None
    strategy: Strategy
    collapse_unranked: bool


def collapse_options(base: CollapseOptions | None = None, **changes: Any) -> CollapseOptions:
    """`base` (the defaults when None) with some options changed. Raises TypeError naming an unknown one."""
    known = [option.name for option in fields(CollapseOptions)]
    for name in changes:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise TypeError(f"unknown option {name!r}{hint}: the options are {', '.join(known)}")
    return replace(base or CollapseOptions(), **changes)


def check_fit(options: CollapseOptions, recipe: Recipe) -> None:
    """Raise ValueError for options that ask how many shingles a text has where the recipe's sketches do not say."""
    if recipe.method != "min-k":
        for name, asked, remedy in (
            ("keep", "longest" in options.keep, 'name a field, "longest:FIELD"'),
            ("min_length_ratio", options.min_length_ratio > 0, "leave it at 0"),
        ):
            if asked:
                raise ValueError(f"{name} asks how long texts are, which sketches of {recipe.id} do not tell: {remedy}")
