"""The settings everything else takes, checked once where they are made."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import cached_property
from operator import index
from typing import Any, ClassVar, Literal, Self, SupportsIndex, TypedDict, cast

Kind = Literal["words", "characters", "lines", "sentences"]
Method = Literal["min-k", "min-hash", "super-shingles", "frequent", "simhash", "profile"]
Estimator = Literal["kmv", "broder", "overlap"]
Measure = Literal["kmv", "broder", "overlap", "cosine"]
Mode = Literal["group", "drop", "demote", "annotate"]
Keep = str | Callable[[Any], Any]
Strategy = Literal["auto", "one_phase", "two_phase", "one_trip"]

_LETTER: dict[Kind, str] = {"words": "w", "characters": "c", "lines": "l", "sentences": "s"}
_SUFFIX: dict[Method, str] = {  # of an id
    "min-k": "",
    "min-hash": "minhash",
    "super-shingles": "super",
    "frequent": "frequent",
    "simhash": "simhash",
    "profile": "profile",
}
_FIXED_K: dict[Method, int] = {"simhash": 4, "profile": 2}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything that decides a sketch. Sketches compare only within one recipe, told apart by `id`.

    kind:     what a shingle is: `size` words in a row, `size` characters in a row, a line, or a sentence
              in the manner of Smith (2008): stems of its words of four letters and more.
    size:     tokens in a shingle, 1..64; 1 for lines and sentences.
    k:        most values in a sketch, 1..4096: 4 bytes each in the index; the standard error of a resemblance
              near 0.85 is 0.044 at 64 and 0.029 at 128.
    seed:     0..2**64-1; another seed gives unrelated sketches.
    hash:     "mix64" (documented in `shingles`) or "crc32" (lines and sentences only, the numbers of Smith 2008).
    markup:   "keep" takes the text as it is, "html" strips tags, scripts and styles and resolves entities.
    urls:     "keep", or "drop" to leave them out before shingling.
    language: whose Snowball stemmer sentences use; None does not stem. None for every other kind.
    method:   what of its shingles stands for a text. "min-k", the default, takes the k smallest hashes; the others are
              in `signatures`: "min-hash" (k permutations), "super-shingles" (k of them), "frequent" (the k most
              frequent shingles), "simhash" (k is 4), "profile" (k is 2). Only of min-K sketches "auto" asks how rare
              the values are; for the others it is the bar of their source (see `decision`).
    estimator: how alike two min-K sketches are: "kmv" (see `similarity`), "broder", or "overlap" (see `estimators`).
    """

    version: ClassVar[int] = 1  # of normalisation, tokens and hashes: raised when any of them would change a value

    kind: Kind = "words"
    size: int = 3
    k: int = 64
    seed: int = 0
    hash: Literal["mix64", "crc32"] = "mix64"
    markup: Literal["keep", "html"] = "keep"
    urls: Literal["keep", "drop"] = "keep"
    language: str | None = None
    method: Method = "min-k"
    estimator: Estimator = "kmv"

    def __post_init__(self) -> None:
        _one_of("kind", self.kind, _LETTER)
        _one_of("hash", self.hash, ("mix64", "crc32"))
        _one_of("markup", self.markup, ("keep", "html"))
        _one_of("urls", self.urls, ("keep", "drop"))
        _one_of("method", self.method, _SUFFIX)
        _one_of("estimator", self.estimator, ("kmv", "broder", "overlap"))
        _whole("size", self.size, 1, 64)
        _whole("k", self.k, 1, 4096)
        _whole("seed", self.seed, 0, 2**64 - 1)
        if self.kind in ("lines", "sentences"):
            if self.size != 1:
                raise ValueError(f"size must be 1 for {self.kind}, got {self.size}: each of them is one shingle")
        elif self.hash != "mix64":
            raise ValueError(f'hash must be "mix64" for {self.kind}, got "{self.hash}"')
        if self.hash == "crc32" and self.seed:
            raise ValueError(f"seed must be 0 with crc32, got {self.seed}: CRC-32 has no seed")
        if self.language is not None and (self.kind != "sentences" or not re.fullmatch("[a-z]+", self.language)):
            raise ValueError(f"language is the name of a Snowball stemmer, for sentences only, got {self.language!r}")
        self._check_method()

    def _check_method(self) -> None:
        if self.method != "min-k" and self.estimator != "kmv":
            raise ValueError(f'estimator is of "min-k" only, got {self.estimator} with {self.method}')
        if self.k != (fixed := _FIXED_K.get(self.method, self.k)):
            raise ValueError(f"k must be {fixed} for {self.method}, got {self.k}: a sketch has so many values")
        if self.method in _FIXED_K and self.seed:
            raise ValueError(f"seed must be 0 for {self.method}, got {self.seed}: its hash has no seed")
        if self.method == "profile" and (self.kind, self.size) != ("words", 1):
            raise ValueError(f"a profile counts single words, got {self.kind} of size {self.size}")

    @classmethod
    def words(cls, size: int = 3, k: int = 64, **others: Any) -> Self:
        """Shingles of `size` words in a row."""
        return cls(kind="words", size=size, k=k, **others)

    @classmethod
    def characters(cls, size: int = 5, k: int = 64, **others: Any) -> Self:
        """Shingles of `size` characters in a row: for short texts and for many small spelling changes."""
        return cls(kind="characters", size=size, k=k, **others)

    @classmethod
    def lines(cls, k: int = 64, **others: Any) -> Self:
        """Every line is one shingle: for logs, code and lists."""
        return cls(kind="lines", size=1, k=k, **others)

    @classmethod
    def sentences(cls, language: str | None = "english", k: int = 64, **others: Any) -> Self:
        """Every sentence is one shingle, as Smith described (2008); needs the extra "stem" unless language is None."""
        return cls(kind="sentences", size=1, k=k, language=language, **others)

    @classmethod
    def min_hash(cls, size: int = 3, k: int = 64, **others: Any) -> Self:
        """The smallest shingle under each of `k` independent permutations (Broder et al. 1998)."""
        return cls(size=size, k=k, method="min-hash", **others)

    @classmethod
    def super_shingles(cls, size: int = 3, k: int = 6, **others: Any) -> Self:
        """`k` hashes of 14 min-hashes each, near-duplicates share two (Broder 2000): for copies with few edits."""
        return cls(size=size, k=k, method="super-shingles", **others)

    @classmethod
    def frequent(cls, size: int = 5, k: int = 64, kind: Kind = "characters", **others: Any) -> Self:
        """The `k` most frequent runs of `size` characters (Basu 2011)."""
        return cls(kind=kind, size=size, k=k, method="frequent", **others)

    @classmethod
    def simhash(cls, size: int = 1, **others: Any) -> Self:
        """64 bits, words weighed by their count (Charikar 2002; Manku, Jain and Das Sarma 2007), in four values."""
        return cls(size=size, k=4, method="simhash", **others)

    @classmethod
    def profile(cls, **others: Any) -> Self:
        """A signature of the frequent words: equal or not (Nutch and Solr's TextProfileSignature), in two values."""
        return cls(size=1, k=2, method="profile", **others)

    @cached_property
    def id(self) -> str:
        """A short name, stored beside every sketch: w3-k64-v1, c5-k128-v1-html-nourls-seed7, w1-k4-v1-simhash."""
        extras = {
            _SUFFIX[self.method]: self.method != "min-k",
            self.estimator: self.estimator != "kmv",
            "html": self.markup == "html",
            "nourls": self.urls == "drop",
            f"seed{self.seed}": self.seed != 0,
            "crc32": self.hash == "crc32",
            str(self.language): self.language is not None,
        }
        parts = [f"{_LETTER[self.kind]}{self.size}", f"k{self.k}", f"v{self.version}"]
        return "-".join(parts + [name for name, given in extras.items() if given])

    @property
    def measure(self) -> Measure:
        """What two sketches are compared by."""
        if self.method == "min-k":
            return self.estimator
        return "cosine" if self.method == "simhash" else "overlap"

    @cached_property
    def plan(self) -> tuple[bool, int, int, int] | None:
        """For the native core: whether of words, else of characters; size, seed, k. None for what it does not make."""
        if self.method != "min-k" or self.kind not in ("words", "characters"):
            return None
        return self.kind == "words", self.size, self.seed, self.k

    @cached_property
    def keeps_all(self) -> bool:
        """Whether texts are taken as they are, with what looks like markup or a URL."""
        return self.markup == self.urls == "keep"

    @classmethod
    def of(cls, given: Recipe | str | None) -> Recipe:
        """A recipe, or that of an id; the default for None. Raises TypeError for anything else, ValueError as parse."""
        if isinstance(given, Recipe):
            return given
        if given is None:
            return _DEFAULT
        if isinstance(given, str):
            return cls.parse(given)
        raise TypeError(f"a recipe is a Recipe, or an id like {_DEFAULT.id}, got {given!r}")

    @classmethod
    def parse(cls, name: str) -> Self:
        """The recipe of an id. Raises ValueError for an id this version did not make."""
        methods = "|".join(filter(None, _SUFFIX.values()))
        found = re.fullmatch(
            rf"([wcls])(\d+)-k(\d+)-v(\d+)(?:-({methods}))?(?:-(broder|overlap))?"
            r"(-html)?(-nourls)?(?:-seed(\d+))?(-crc32)?(?:-([a-z]+))?",
            name,
            re.ASCII,
        )
        if not found or int(found[4]) != cls.version:
            raise ValueError(f"{name!r} is no recipe id of this version; one looks like {cls().id}")
        letter, size, k, _, method, estimator, html, nourls, seed, crc32, language = found.groups()
        recipe = cls(
            kind=next(kind for kind, sign in _LETTER.items() if sign == letter),
            size=int(size),
            k=int(k),
            seed=int(seed or 0),
            hash="crc32" if crc32 else "mix64",
            markup="html" if html else "keep",
            urls="drop" if nourls else "keep",
            language=language,
            method=next(known for known, suffix in _SUFFIX.items() if suffix == (method or "")),
            estimator=cast(Estimator, estimator or "kmv"),
        )
        if recipe.id != name:
            raise ValueError(f"{name!r} is no recipe id, the nearest is {recipe.id}")
        return recipe


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
            _one_of("min_similarity", self.min_similarity, ("auto", "identical", "high", "moderate"))
        else:
            _share("min_similarity", self.min_similarity)
        if self.min_similarity == 0:
            raise ValueError("min_similarity must be above 0: at 0 every hit would be a near-duplicate of the first")
        _one_of("mode", self.mode, ("group", "drop", "demote", "annotate"))
        _one_of("strategy", self.strategy, ("auto", "one_phase", "two_phase", "one_trip"))
        _whole("window", self.window, 1)
        _whole("max_window", self.max_window, 1)
        if self.window > self.max_window:
            raise ValueError(f"window must be at most max_window, {self.max_window}, got {self.window}")
        _whole("max_per_group", self.max_per_group, 1)
        _whole("min_shingles", self.min_shingles, 0)
        _share("min_length_ratio", self.min_length_ratio)
        for name in ("numbers_must_match", "collapse_unranked"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be true or false, got {getattr(self, name)!r}")
        for name in ("keep", "must_match"):  # lists come from JSON; a frozen value holds tuples
            given = getattr(self, name)
            if isinstance(given, str) or not isinstance(given, Collection):
                raise TypeError(f"{name} must be a list, got {given!r}")
            object.__setattr__(self, name, tuple(given))
        _names("must_match", *self.must_match)
        _names("time_field", self.time_field or "")
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
            _seconds("max_seconds_apart", self.max_seconds_apart)


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


def check_page(size: int, from_: int) -> None:
    """Raise TypeError or ValueError unless both are whole numbers, of any kind, of at least 0."""
    for name, value in (("size", size), ("from_", from_)):
        if not isinstance(value, SupportsIndex):
            raise TypeError(f"{name} must be a whole number, got {value!r}")
        if index(value) < 0:
            raise ValueError(f"{name} must be at least 0, got {value}")


def _one_of(name: str, value: object, allowed: Collection[str]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")


def _whole(name: str, value: object, least: int, most: int | None = None) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    if value < least or (most is not None and value > most):
        raise ValueError(f"{name} must be {f'at least {least}' if most is None else f'{least}..{most}'}, got {value}")


def _names(name: str, *fields: object) -> None:
    if wrong := [field for field in fields if not isinstance(field, str)]:
        raise TypeError(f"{name} must name fields, got {wrong[0]!r}")


def _seconds(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number of seconds, got {value!r}")
    if not value >= 0:
        raise ValueError(f"{name} must be at least 0, got {value}")


def _share(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number in 0..1, got {value!r}")
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be in 0..1, got {value}")


_DEFAULT = Recipe()
