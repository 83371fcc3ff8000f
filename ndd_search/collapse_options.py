"""The options that decide how hits are collapsed. Every value is checked when an object is created."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, TypedDict, get_args

from ndd_search.checks import check_known, check_names, check_one_of, check_seconds, check_share, check_whole
from ndd_search.recipe import Recipe

Mode = Literal["group", "drop", "demote", "annotate"]
Members = Literal["window", "all"]
Keep = str | Callable[[Any], Any]
Strategy = Literal["auto", "one_phase", "one_trip"]
Total = Literal["hits", "groups", "estimate"]
SeenMode = Literal["hide", "demote", "annotate"]
Listing = Literal["documents", "ids", "count"]
_CHOICES = {
    "mode": get_args(Mode),
    "seen_mode": get_args(SeenMode),
    "total": get_args(Total),
    "members": get_args(Members),
    "duplicates": get_args(Listing),
    "strategy": get_args(Strategy),
}


@dataclass(frozen=True)
class ByScore:
    """Prefer the better rank in the engine's list."""


@dataclass(frozen=True)
class ByTime:
    """Prefer the newest, or the oldest, time in a field."""

    field: str
    newest: bool


@dataclass(frozen=True)
class Longest:
    """Prefer the most characters in a field, or the most shingles where the field is ""."""

    field: str = ""


@dataclass(frozen=True)
class Preferred:
    """Prefer a hit whose field has one of these values, the best value first."""

    field: str
    values: tuple[str, ...]


Preference = ByScore | ByTime | Longest | Preferred | Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class CollapseOptions:
    """How the hits of a request are collapsed.

    min_similarity:   the similarity from which two hits are near-duplicates: a number, 0 < x <= 1; "identical" (1.0),
                      "high" (0.8), "moderate" (0.5); or "auto", which also considers how rare the shared part is (see
                      docs/how-it-works.md).
    mode:             "group" shows leaders with their duplicates, "drop" shows leaders alone, "demote" puts duplicates
                      after everything else, "annotate" moves nothing and names the leader of each duplicate.
    window:           how many of the engine's hits are examined at first, at least 1; doubled while the page is short.
    max_window:       the most hits examined for one search, at least `window`. It does not apply to a list in memory
                      (`collapse`, `merge`).
    max_per_group:    how many hits of one group are shown, at least 1.
    members:          which copies a wrapped client lists under a hit, and lets `keep` choose from: those in the
                      "window", or "all" that match the query, found by stored keys with one more request for each page.
                      "all" needs mode "group" and max_per_group 1. An index in a folder examines max_window hits for
                      it; a list in memory is its own window.
    keep:             which copy of a group is shown, of those in the first window that holds the group's best hit (of
                      all copies, with members="all"). The group keeps the rank of that hit. A list of preferences; the
                      first that tells two copies apart decides, then the better rank: "score" (the engine's order),
                      "newest:FIELD", "oldest:FIELD", "longest" (by shingles), "longest:FIELD" (by characters),
                      "preferred:FIELD=best,second,...", or a callable(hit) that returns a sort key, the smallest first.
    min_shingles:     below this many shingles only an identical sketch is a near-duplicate.
    min_length_ratio: shorter / longer, in shingles, from which two hits may be near-duplicates, 0..1; 0 is off.
    must_match:       fields in which near-duplicates have equal values (price, version, language). A missing value
                      equals only another missing value.
    group_by:         a field, or several: hits with an equal value in one of them are one group, whatever the guards
                      say. A missing value and an empty text equal none. Near-duplicates are one group as well.
    max_per:          fields with the most groups that one value leads on all pages together, {"source": 2}. Further
                      hits with that value are listed under the first of these groups. Not together with `keep` or
                      max_per_group.
    numbers_must_match: whether near-duplicates must hold the same numbers, as for products and releases. An index must
                      store the numbers beside the sketch (numbers=True); a hit without them
                      stands alone.
    time_field, max_seconds_apart: near-duplicates are at most this far apart in that field (a datetime, an ISO 8601
                      text, or a number of seconds or milliseconds since 1970). A hit without a readable time stands
                      alone.
    seen_mode:        what becomes of hits that resemble an item of `seen`, a list given to a search or to `collapse`:
                      "hide" lists them apart, "demote" puts them after everything else, "annotate" only marks them.
    strategy:         how a wrapped client fetches a page; the page is the same in every case. "one_phase" fetches the
                      window with its documents, "one_trip" the sketches of the window and the documents that are
                      probably shown, in one request. "auto" chooses for each search. A search that cannot be split is
                      always fetched in one phase.
    collapse_unranked: whether a wrapped client also collapses searches that do not rank their hits: `match_all`,
                      filters alone, a sort by `_doc` (see docs/wrapping.md). A list in memory is always collapsed.
    collapse_pipelines: whether a wrapped client also collapses searches with a search pipeline of OpenSearch that only
                      filters, normalises or reranks.
    collapse_templates: whether a wrapped client renders search templates, and collapses the searches that they give.
    total:            what `hits.total` counts: "hits" is the engine's own number; "groups" the hits that the pages show
                      together, equal on every page. For it the whole result is examined at once, up to max_window.
                      "estimate" is for results too long for that: `ndd.unique` is then an estimate from a sample of the
                      whole result with a 95 % interval, equal on every page; `hits.total` is a lower bound. For
                      searches with candidate limits (nearest neighbours, hybrid queries, retrievers) "groups" is the
                      same as "estimate".
    facets:           names of aggregations of the search (terms, histogram, date_histogram, range, date_range,
                      filters) whose buckets count groups instead of documents (see docs/paging.md).
    duplicates:       what a response tells of the duplicates of a hit: "documents" what it tells of every hit, "ids"
                      their ids, scores and similarities, "count" only their number, which often saves a request.
    """

    min_similarity: float | str = "auto"
    mode: Mode = "group"
    window: int = 100
    max_window: int = 10_000
    max_per_group: int = 1
    members: Members = "window"
    keep: tuple[Keep, ...] = ("score",)
    min_shingles: int = 4
    min_length_ratio: float = 0.0
    must_match: tuple[str, ...] = ()
    group_by: tuple[str, ...] = ()
    max_per: Mapping[str, int] = field(default_factory=dict, hash=False)
    numbers_must_match: bool = False
    time_field: str | None = None
    max_seconds_apart: float | None = None
    seen_mode: SeenMode = "hide"
    strategy: Strategy = "auto"
    collapse_unranked: bool = False
    collapse_pipelines: bool = False
    collapse_templates: bool = False
    total: Total = "hits"
    facets: tuple[str, ...] = ()
    duplicates: Listing = "documents"

    def __post_init__(self) -> None:
        self._check_min_similarity()
        for name, choices in _CHOICES.items():
            check_one_of(name, getattr(self, name), choices)
        if self.members == "all" and (self.mode != "group" or self.max_per_group != 1):
            raise ValueError('members="all" lists the copies of a hit under it: set mode="group" and max_per_group=1')
        check_whole("window", self.window, 1)
        check_whole("max_window", self.max_window, 1)
        if self.window > self.max_window:
            raise ValueError(f"window must be at most max_window, {self.max_window}, got {self.window}")
        check_whole("max_per_group", self.max_per_group, 1)
        check_whole("min_shingles", self.min_shingles, 0)
        check_share("min_length_ratio", self.min_length_ratio)
        for name in ("numbers_must_match", "collapse_unranked", "collapse_pipelines", "collapse_templates"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be true or false, got {getattr(self, name)!r}")
        self._make_tuples()
        check_names("must_match", *self.must_match)
        check_names("group_by", *self.group_by)
        self._check_max_per()
        if wrong := [name for name in self.facets if not isinstance(name, str)]:
            raise TypeError(f"facets must name aggregations, got {wrong[0]!r}")
        check_names("time_field", "" if self.time_field is None else self.time_field)
        for given in self.keep:
            preference_of(given)
        if (self.time_field is None) != (self.max_seconds_apart is None):
            raise ValueError("set both time_field and max_seconds_apart, or neither")
        if self.max_seconds_apart is not None:
            check_seconds("max_seconds_apart", self.max_seconds_apart)

    def _check_min_similarity(self) -> None:
        if not isinstance(self.min_similarity, str):
            check_share("min_similarity", self.min_similarity)
        elif self.min_similarity not in ("auto", "identical", "high", "moderate"):
            known = "auto, identical, high, moderate, or a number above 0 and at most 1"
            raise ValueError(f"min_similarity must be {known}, got {self.min_similarity!r}")
        if self.min_similarity == 0:
            raise ValueError("min_similarity must be above 0: at 0 every hit would be a near-duplicate of the first")

    def _make_tuples(self) -> None:
        """Replace lists, which come from JSON, by tuples, and one name in `group_by` by a tuple of it."""
        if isinstance(self.group_by, str):
            object.__setattr__(self, "group_by", (self.group_by,))
        for name in ("keep", "must_match", "group_by", "facets"):
            given = getattr(self, name)
            if isinstance(given, str) or not isinstance(given, Collection):
                remedy = f": write [{given!r}]" if isinstance(given, str) else ""
                raise TypeError(f"{name} must be a list, got {given!r}{remedy}")
            object.__setattr__(self, name, tuple(given))

    def _check_max_per(self) -> None:
        if not isinstance(self.max_per, Mapping):
            raise TypeError(f'max_per must map fields to numbers, as in {{"source": 2}}, got {self.max_per!r}')
        check_names("max_per", *self.max_per)
        for name, most in self.max_per.items():
            check_whole(f"max_per of {name}", most, 1)
        object.__setattr__(self, "max_per", dict(sorted(self.max_per.items())))  # the caller's own may change
        if self.max_per and (self.max_per_group > 1 or self.keep != ("score",)):
            raise ValueError("max_per counts the best hit of each group: leave out keep and max_per_group")

    @property
    def initial_window(self) -> int:
        """The number of hits that are examined at first."""
        return self.max_window if self.total == "groups" else self.window

    @cached_property
    def preferences(self) -> tuple[Preference, ...]:
        """`keep`, parsed."""
        return tuple(map(preference_of, self.keep))

    @cached_property
    def as_text(self) -> str:
        """The options as text, for cache keys; equal for equal options, unless `keep` holds a callable."""
        return repr(self)

    @cached_property
    def of_stream(self) -> CollapseOptions:
        """The options without those that only decide what a page shows of a stream."""
        return replace(self, keep=("score",), members="window", duplicates="documents")

    @cached_property
    def document_fields(self) -> tuple[str, ...]:
        """The fields of documents that `keep`, the guards, group_by and max_per read."""
        kept = [one.field for one in self.preferences if isinstance(one, ByTime | Longest | Preferred)]
        compared = (*self.must_match, *self.group_by, *self.max_per)
        return tuple(filter(None, dict.fromkeys((*compared, *kept, self.time_field or ""))))


_NAMES = [option.name for option in fields(CollapseOptions)]


def preference_of(given: Keep) -> Preference:
    """Parse one entry of `keep`; a callable is returned as it is. Raises ValueError for an unknown one."""
    return given if callable(given) else _parse(str(given))


@lru_cache(1024)
def _parse(text: str) -> Preference:
    match = re.fullmatch(r"(score)|(longest)(?::(.+))?|(newest|oldest):(.+)|preferred:([^=]+)=(.+)", text)
    if match is None:
        raise ValueError(
            f"keep takes score, newest:FIELD, oldest:FIELD, longest, longest:FIELD, "
            f"preferred:FIELD=VALUE,VALUE and callables, got {text!r}"
        )
    score, longest, long_field, order, time_field, field, values = match.groups()
    if score:
        return ByScore()
    if longest:
        return Longest(long_field or "")
    if order:
        return ByTime(time_field, newest=order == "newest")
    return Preferred(field, tuple(values.split(",")))


class CollapseChanges(TypedDict, total=False):
    """CollapseOptions as keyword arguments, for type checkers."""

    min_similarity: float | str
    mode: Mode
    window: int
    max_window: int
    max_per_group: int
    members: Members
    keep: Sequence[Keep]
    min_shingles: int
    min_length_ratio: float
    must_match: Sequence[str]
    group_by: Sequence[str]
    max_per: Mapping[str, int]
    numbers_must_match: bool
    time_field: str | None
    max_seconds_apart: float | None
    seen_mode: SeenMode
    strategy: Strategy
    collapse_unranked: bool
    collapse_pipelines: bool
    collapse_templates: bool
    total: Total
    facets: Sequence[str]
    duplicates: Listing


def collapse_options(base: CollapseOptions | None = None, **changes: Any) -> CollapseOptions:
    """Return `base` (the defaults when None) with some options changed. Raises TypeError for an unknown one."""
    if not changes:
        return base or CollapseOptions()
    check_known(changes, _NAMES)
    base = base or CollapseOptions()
    plain = {str, bool, int, float}.issuperset(map(type, changes.values()))
    # Searches repeat a few combinations. Callers could change what a callable or a dict of these options holds.
    if plain and not base.max_per and not any(map(callable, base.keep)):
        return _changed(base, tuple((name, type(value), value) for name, value in changes.items()))
    return replace(base, **changes)


@lru_cache(1024)
def _changed(base: CollapseOptions, changes: tuple[tuple[str, type, Any], ...]) -> CollapseOptions:
    return replace(base, **{name: value for name, _, value in changes})


def check_fit(options: CollapseOptions, recipe: Recipe) -> None:
    """Raise ValueError if an option needs the number of shingles and the recipe's sketches do not give it."""
    if recipe.method != "min-k":
        for name, needed, remedy in (
            ("keep", Longest() in options.preferences, 'name a field, "longest:FIELD"'),
            ("min_length_ratio", options.min_length_ratio > 0, "leave it at 0"),
        ):
            if needed:
                raise ValueError(
                    f"{name} needs the length of texts, which sketches of {recipe.id} do not give: {remedy}"
                )
