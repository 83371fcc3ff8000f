"""The options that decide how hits are collapsed. Every value is checked when an object is created."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, Literal, get_args

from ndd_search.core.immutable import cached_property
from ndd_search.core.recipe import Recipe
from ndd_search.core.setting_values import (
    DURATION,
    Field,
    Kind,
    OneOf,
    Several,
    Text,
    Whole,
    YesNo,
    check_share,
    checked,
    kinds_of,
    nearest,
    seconds_of,
    setting,
)

Mode = Literal["group", "ids", "count", "drop", "demote", "annotate"]
Members = Literal["window", "all"]
Keep = str | Callable[[Any], Any]
Total = Literal["auto", "groups", "estimate", "hits"]
Also = Literal["unranked", "pipelines", "templates"]
EVERY_SEARCH: tuple[Also, ...] = get_args(Also)
LISTING = ("group", "ids", "count")  # the modes that tell of duplicates under their leader

_NAMED = ("auto", "identical", "high", "moderate")
_KEEP = re.compile(r"(score)|(longest)(?::(.+))?|(newest|oldest|highest|lowest):(.+)|preferred:([^=]+)=(.+)")
_ORDERS = ("score", "longest", "newest", "oldest", "highest", "lowest", "preferred")
_GUARD = re.compile(rf"same:(.+)|(numbers)|within:(.+)=({DURATION})|length:(0?\.\d+|[01]|1\.0+)")
_LIMIT = re.compile("(.+):0*([1-9][0-9]{0,8})")
_GUARDS = ("same", "numbers", "within", "length")


@dataclass(frozen=True)
class ByScore:
    """Prefer the better rank in the engine's list."""


@dataclass(frozen=True)
class ByField:
    """Prefer the highest, or the lowest, value in a field: a time, the newest being the highest, or a number."""

    field: str
    is_time: bool
    highest: bool


@dataclass(frozen=True)
class Longest:
    """Prefer the most characters in a field, or the most shingles where the field is ""."""

    field: str = ""


@dataclass(frozen=True)
class Preferred:
    """Prefer a hit whose field has one of these values, the best value first."""

    field: str
    values: tuple[str, ...]


Preference = ByScore | ByField | Longest | Preferred | Callable[[Any], Any]


class Enabled(YesNo):
    """Which searches are collapsed: none, those that rank their hits, or beside them those of a list.

    "unranked" are those that do not rank (`match_all`, filters alone, a sort by `_doc`); "pipelines" have a search
    pipeline of OpenSearch that only filters, normalises or reranks; "templates" are rendered.
    """

    def __str__(self) -> str:
        return f"true, false, {_LISTED}"

    def check(self, name: str, value: Any) -> Any:
        if isinstance(value, bool):
            return value
        if isinstance(value, str):
            raise TypeError(f"{name} must be true or false, or a list of {', '.join(EVERY_SEARCH)}, got {value!r}")
        return _LISTED.check(name, value) or True

    def read(self, name: str, text: str) -> Any:
        try:
            return super().read(name, text)
        except ValueError:
            return _LISTED.read(name, text)


_LISTED = Several(OneOf(EVERY_SEARCH))


class _Similarity(Kind):
    """`auto`, `identical`, `high`, `moderate`, a number above 0 and at most 1."""

    def check(self, name: str, value: Any) -> float | str:
        if isinstance(value, str):
            if value not in _NAMED:
                known = f"{', '.join(_NAMED)}, or a number above 0 and at most 1"
                raise ValueError(f"{name} must be {known}, got {value!r}{nearest(value, _NAMED)}")
            return value
        check_share(name, value)
        if value == 0:
            raise ValueError(f"{name} must be above 0: at 0 every hit would be a near-duplicate of the first")
        return float(value)

    def read(self, name: str, text: str) -> float | str:
        try:
            return self.check(name, float(text))
        except ValueError:
            return self.check(name, text)


class _Wish(Kind):
    """`score`, `newest:FIELD`, `oldest:FIELD`, `highest:FIELD`, `lowest:FIELD`, `longest`, `preferred:FIELD=A,B`."""

    def check(self, name: str, value: Any) -> Keep:
        preference_of(value)
        return value if callable(value) else str(value)


@dataclass(frozen=True)
class _Form(Kind):
    """A text of one of some forms."""

    pattern: re.Pattern[str]
    forms: tuple[str, ...]

    def check(self, name: str, value: Any) -> str:
        if not isinstance(value, str):
            raise TypeError(f"{name} must be texts such as {self.forms[0]}, got {value!r}")
        if not self.pattern.fullmatch(value):
            near = nearest(value.partition(":")[0], [one.partition(":")[0] for one in self.forms])
            raise ValueError(f"{name} takes {', '.join(self.forms)}, got {value!r}{near}")
        return value

    def __str__(self) -> str:
        return ", ".join(f"`{one}`" for one in self.forms)


@dataclass(frozen=True)
class _Entries(Several):
    """Entries that begin with one of some words, or are one."""

    words: tuple[str, ...] = ()

    def read(self, name: str, text: str) -> tuple[Any, ...]:
        """Read "newest:published,longest"; the commas of preferred:FIELD=a,b belong to it."""
        words = re.split(rf",(?=\s*(?:{'|'.join(self.words)})\b)", text)
        return self.check(name, [word.strip() for word in words])


@checked
@dataclass(frozen=True, kw_only=True)
class CollapseOptions:
    """How the hits of a request are collapsed. Raises TypeError or ValueError for a value that an option cannot have.

    min_similarity:   the similarity from which two hits are near-duplicates: a number, 0 < x <= 1; "identical" (1.0),
                      "high" (0.8), "moderate" (0.5); or "auto", which also considers how rare the shared part is (see
                      docs/how-it-works.md).
    mode:             what becomes of duplicates. "group" lists them under their leader, with all that a response tells
                      of a hit; "ids" lists their ids, scores and similarities; "count" tells only how many there are,
                      which often saves a request; "drop" leaves them out, "demote" puts them after everything else, and
                      "annotate" moves nothing and names the leader of each, so
                      `keep` and max_per_group change nothing there. Hits that resemble an item of `seen`, a list given
                      to a search or to `collapse`, are put last by "demote", marked by "annotate", and listed apart by
                      all other modes.
    window:           how many of the engine's hits are examined at first; doubled while the page is short.
    max_window:       the most hits examined for one search, at least `window`. It does not apply to a list in memory
                      (`collapse`, `merge`).
    max_per_group:    how many hits of one group are shown.
    members:          which copies a wrapped client lists under a hit, and lets `keep` choose from: those in the
                      "window", or "all" that match the query, found by stored keys with one more request for each page.
                      "all" needs a mode that lists duplicates, and max_per_group 1. An index in a folder examines
                      max_window hits for it, and of a list in memory all are examined.
    keep:             which copy of a group is shown. It is one of those in the first window that holds the group's best
                      hit (of all copies, with members="all"); the group keeps the rank of that hit. A list of
                      preferences; the first that tells two copies apart decides, then the better rank: "score" (the
                      engine's order), "newest:FIELD", "oldest:FIELD" (by time), "highest:FIELD", "lowest:FIELD" (by
                      number), "longest" (by shingles), "longest:FIELD" (by characters),
                      "preferred:FIELD=best,second,...", or a callable(hit) that returns a sort key, the smallest first.
    guards:           what near-duplicates must have in common beside their words: "same:FIELD", an equal value
                      (price, version, language; a missing value equals only another missing value); "numbers", the same
                      numbers in their texts, as for products and releases (an index must store them beside the sketch,
                      numbers=True; a hit without them stands alone); "within:FIELD=1d", times at most that far apart, a
                      number with ms, s, m, h, d or w (the field holds a datetime, an ISO 8601 text, or a number of
                      seconds or milliseconds since 1970; a hit without a readable time stands alone); "length:0.5",
                      shingles of the shorter one / of the longer one at least that, 0..1.
    group_by:         hits with an equal value in this field, or in one of several, are one group, whatever the guards
                      say. A missing value and an empty text equal none. Near-duplicates are one group as well.
    origins:          the field that says where a hit is from, and perhaps the field with its time. Of a URL the host
                      counts: ("source", "published"). Each group then tells how many different origins its hits have,
                      which was first, and how many copies are reprints of one text or edited (see `Origins`).
    max_per:          how many groups one value of a field leads at most, on all pages together: "source:2". Further
                      hits with that value are listed under the first of these groups, and are no copies of it for
                      max_per_group. `keep` chooses among copies that have no other value there than the best hit.
    total:            what `hits.total` counts. "auto" counts the hits that the pages show together, of those examined
                      so far: exact (relation "eq") once these are the whole result, else a lower bound ("gte") above
                      the end of the page, so that each page it promises has hits. "estimate" is the same, with an
                      `ndd.unique` from a sample of the whole result with a 95 % interval, equal on every page.
                      "groups" examines the whole result at once, up to max_window, and is equal on every page. For
                      searches with candidate limits (nearest neighbours, hybrid queries, retrievers) it is the same as
                      "estimate". "hits" is the engine's own number.
    facets:           names of aggregations of the search whose buckets count groups instead of documents. Their kinds
                      are terms, histogram, date_histogram, range, date_range and filters (see docs/paging.md).
    """

    min_similarity: float | str = setting(_Similarity(), "auto")
    mode: Mode = setting(OneOf(get_args(Mode)), "group")
    window: int = setting(Whole(1), 100)
    max_window: int = setting(Whole(1), 10_000)
    max_per_group: int = setting(Whole(1), 1)
    members: Members = setting(OneOf(get_args(Members)), "window")
    keep: tuple[Keep, ...] = setting(_Entries(_Wish(), words=_ORDERS), ("score",))
    guards: tuple[str, ...] = setting(
        _Entries(_Form(_GUARD, ("same:FIELD", "numbers", "within:FIELD=1d", "length:0.5")), words=_GUARDS), ()
    )
    group_by: tuple[str, ...] = setting(Several(Field(), one=True), ())
    origins: tuple[str, ...] = setting(Several(Field(), one=True, most=2), ())
    max_per: tuple[str, ...] = setting(Several(_Form(_LIMIT, ("FIELD:2",))), ())
    total: Total = setting(OneOf(get_args(Total)), "auto")
    facets: tuple[str, ...] = setting(Several(Text()), ())

    def __post_init__(self) -> None:
        if self.window > self.max_window:
            raise ValueError(f"window must be at most max_window, {self.max_window}, got {self.window}")
        if self.members == "all" and (self.mode not in LISTING or self.max_per_group != 1):
            needed = f"set mode to one of {', '.join(LISTING)}, and max_per_group to 1"
            raise ValueError(f'members="all" lists the copies of a hit under it: {needed}')

    @cached_property
    def initial_window(self) -> int:
        """The number of hits that are examined at first."""
        return self.max_window if self.total == "groups" else self.window

    @cached_property
    def ahead(self) -> int:
        """The number of hits beyond a page that are looked for, so that a growing total tells of a next page."""
        return int(self.total in ("auto", "estimate"))

    @cached_property
    def hides_seen(self) -> bool:
        """Whether hits that resemble an item of `seen` are listed apart, instead of shown."""
        return self.mode not in ("demote", "annotate")

    @cached_property
    def reads_keys(self) -> bool:
        """Whether leaders depend on fields beside the guards."""
        return bool(self.group_by or self.max_per)

    @cached_property
    def same_fields(self) -> tuple[str, ...]:
        """The fields in which near-duplicates have equal values."""
        return tuple(dict.fromkeys([found[0] for found in self._guards if found[0]]))

    @cached_property
    def same_numbers(self) -> bool:
        """Whether near-duplicates must hold the same numbers."""
        return "numbers" in self.guards

    @cached_property
    def seconds_apart(self) -> dict[str, float]:
        """How far apart near-duplicates are at most, in seconds, by the field with a time."""
        apart: dict[str, float] = {}
        for found in self._guards:
            if name := found[2]:
                apart[name] = min(seconds_of(found[3]), apart.get(name, inf))
        return apart

    @cached_property
    def most_per(self) -> dict[str, int]:
        """How many groups one value leads at most, by its field."""
        parts = [one.rpartition(":") for one in self.max_per]
        return {name: int(most) for name, _, most in parts}

    @cached_property
    def length_ratio(self) -> float:
        """Shingles of the shorter text / of the longer one, at least, 0..1."""
        return max((float(found[4]) for found in self._guards if found[4]), default=0.0)

    @cached_property
    def _guards(self) -> list[tuple[str, ...]]:
        return [found.groups("") for one in self.guards if (found := _GUARD.fullmatch(one))]

    @cached_property
    def preferences(self) -> tuple[Preference, ...]:
        """`keep`, parsed."""
        return tuple(map(preference_of, self.keep))

    @cached_property
    def as_text(self) -> str:
        """The options as text, for cache keys; equal for equal options, unless `keep` holds a callable."""
        return repr(self)

    @cached_property
    def stream_text(self) -> str:
        """The options that decide which stream is fetched, as text: not those of what a page shows of it."""
        mode = "group" if self.mode in LISTING else self.mode
        return repr((mode, *[getattr(self, name) for name in KINDS if name not in _OF_A_PAGE]))

    @cached_property
    def document_fields(self) -> tuple[str, ...]:
        """The fields of documents that `keep`, the guards, group_by, origins and max_per read."""
        kept = [one.field for one in self.preferences if isinstance(one, ByField | Longest | Preferred)]
        compared = (*self.same_fields, *self.group_by, *self.origins, *self.most_per)
        return tuple(filter(None, dict.fromkeys((*compared, *kept, *self.seconds_apart))))


KINDS = kinds_of(CollapseOptions)
_OF_A_PAGE = ("keep", "members", "origins", "mode")  # any mode of LISTING has the stream of "group"


class _OfBody(Kind):
    """A value that a step of the search checks; of a URL it is read as `kind`, and refused without one."""

    def __init__(self, kind: Kind | None = None) -> None:
        self._kind = kind

    def check(self, name: str, value: Any) -> Any:
        return value

    def read(self, name: str, text: str) -> Any:
        if self._kind is None:
            raise ValueError(f'{name} is for the body of a search: "ndd": {{"{name}": [...]}}')
        return self._kind.read(name, text)


class _Cursor(Kind):
    """The cursor of a search: true for the first page, then the token of the page before."""

    def check(self, name: str, value: Any) -> Any:
        return value

    def read(self, name: str, text: str) -> Any:
        return text in ("", "true") or text


OF_ONE_SEARCH: dict[str, Kind] = {  # what a search, or a block around it, takes beside CollapseOptions
    "enabled": Enabled(),
    "cache": YesNo(),
    "explain": _OfBody(Several(Text())),
    "seen": _OfBody(),
    "cursor": _Cursor(),
}


def preference_of(given: Keep) -> Preference:
    """Parse one entry of `keep`; a callable is returned as it is. Raises ValueError for an unknown one."""
    if callable(given):
        return given
    text = str(given)
    if (match := _KEEP.fullmatch(text)) is None:
        raise ValueError(
            f"keep takes score, newest:FIELD, oldest:FIELD, highest:FIELD, lowest:FIELD, longest, longest:FIELD, "
            f"preferred:FIELD=VALUE,VALUE and callables, got {text!r}{nearest(text.partition(':')[0], _ORDERS)}"
        )
    score, longest, long_field, order, ordered_field, field, values = match.groups()
    if score:
        return ByScore()
    if longest:
        return Longest(long_field or "")
    if order:
        return ByField(ordered_field, order in ("newest", "oldest"), order in ("newest", "highest"))
    return Preferred(field, tuple(values.split(",")))


def check_fit(options: CollapseOptions, recipe: Recipe) -> None:
    """Raise ValueError if an option needs the number of shingles and the recipe's sketches do not give it."""
    if recipe.method != "min-k":
        for name, needed, remedy in (
            ("keep", Longest() in options.preferences, 'name a field, "longest:FIELD"'),
            ("guards", options.length_ratio > 0, "leave out length"),
        ):
            if needed:
                raise ValueError(
                    f"{name} needs the length of texts, which sketches of {recipe.id} do not give: {remedy}"
                )
