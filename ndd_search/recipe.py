"""The recipe of a sketch: everything that decides its values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, Self, cast

from ndd_search.checks import check_one_of, check_whole

Kind = Literal["words", "characters", "lines", "sentences"]
Method = Literal["min-k", "min-hash", "super-shingles", "frequent", "simhash", "profile"]
Estimator = Literal["kmv", "broder", "overlap"]
Measure = Literal["kmv", "broder", "overlap", "cosine"]

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
        check_one_of("kind", self.kind, _LETTER)
        check_one_of("hash", self.hash, ("mix64", "crc32"))
        check_one_of("markup", self.markup, ("keep", "html"))
        check_one_of("urls", self.urls, ("keep", "drop"))
        check_one_of("method", self.method, _SUFFIX)
        check_one_of("estimator", self.estimator, ("kmv", "broder", "overlap"))
        check_whole("size", self.size, 1, 64)
        check_whole("k", self.k, 1, 4096)
        check_whole("seed", self.seed, 0, 2**64 - 1)
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


_DEFAULT = Recipe()
