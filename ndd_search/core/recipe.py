"""The recipe of a sketch: all settings that its values depend on."""

from __future__ import annotations

import re
import struct
from dataclasses import InitVar, dataclass, fields
from typing import Any, ClassVar, Literal, Self, cast, get_args

from ndd_search import native
from ndd_search.core.hash_numbers import HashNumbers, derived
from ndd_search.core.immutable import cached_property
from ndd_search.core.setting_values import OneOf, Whole, checked, setting
from ndd_search.errors import KeyNeeded

Kind = Literal["words", "characters", "lines", "sentences"]
Method = Literal["min-k", "min-hash", "super-shingles", "n-grams", "simhash", "profile"]
Estimator = Literal["kmv", "broder", "overlap"]
Measure = Literal["kmv", "broder", "overlap", "shorter", "cosine"]

_LETTER: dict[Kind, str] = {"words": "w", "characters": "c", "lines": "l", "sentences": "s"}
_SUFFIX: dict[Method, str] = {  # in an id
    "min-k": "",
    "min-hash": "minhash",
    "super-shingles": "super",
    "n-grams": "ngrams",
    "simhash": "simhash",
    "profile": "profile",
}
_FIXED_K: dict[Method, int] = {"simhash": 4, "profile": 2}


@checked
@dataclass(frozen=True, kw_only=True)
class Recipe:
    """All settings that a sketch depends on. Only sketches of one recipe are compared; `id` identifies it.

    kind:     what a shingle is: `size` consecutive words, characters, lines or sentences; a sentence is as defined by
              Smith (2008) the stems of its words of four letters and more.
    size:     of a shingle, 1..64.
    k:        maximum number of values in a sketch, 1..4096, each 4 bytes in the index. The standard error of a
              resemblance near 0.85 is 0.044 at 64 and 0.029 at 128.
    seed:     0..2**64-1; another seed gives unrelated sketches.
    hash:     "mix64" (see `text.shingles`) or "crc32" (lines and sentences only; Smith 2008 used it).
    markup:   "keep" uses the text unchanged, "html" strips tags, scripts and styles and resolves entities, "mail"
              leaves out what a reply quotes, headers and signatures (see `text.mail`).
    urls:     "keep", or "drop" to remove URLs before shingling.
    language: of the Snowball stemmer for sentences; None does not stem. Must be None for other kinds.
    method:   which values represent the text. "min-k", the default, keeps the k smallest hashes. The others are in
              `methods.signatures`: "min-hash" (k permutations), "super-shingles" (k of them), "n-grams" (the k first),
              "simhash" (k is 4), "profile" (k is 2). "auto" weighs rarity for min-K sketches with the "kmv" estimator
              only; for the others it is the bar of their source (see `matching.decision`).
    estimator: of the similarity of two min-K sketches: "kmv" (see `sketching.estimate_similarity`), "broder" or
              "overlap" (see `matching.similarity_measures`).
    key:      a secret of at least 16 characters, for "min-k" sketches by "mix64": without it nobody can write a text
              whose sketch resembles that of another one. It is neither shown, stored nor pickled; who makes sketches
              gives it again. Searches do not need it.
    fingerprint: of the key, "" without one. A recipe made from an id has only this.
    """

    version: ClassVar[int] = 4  # raised when normalisation, tokens or hashes change any value

    kind: Kind = setting(OneOf(get_args(Kind)), "words")
    size: int = setting(Whole(1, 64), 3)
    k: int = setting(Whole(1, 4096), 64)
    seed: int = setting(Whole(0, 2**64 - 1), 0)
    hash: Literal["mix64", "crc32"] = setting(OneOf(("mix64", "crc32")), "mix64")
    markup: Literal["keep", "html", "mail"] = setting(OneOf(("keep", "html", "mail")), "keep")
    urls: Literal["keep", "drop"] = setting(OneOf(("keep", "drop")), "keep")
    language: str | None = None
    method: Method = setting(OneOf(get_args(Method)), "min-k")
    estimator: Estimator = setting(OneOf(get_args(Estimator)), "kmv")
    fingerprint: str = ""
    key: InitVar[str | None] = None

    def __post_init__(self, key: str | None) -> None:
        if self.kind not in ("lines", "sentences") and self.hash != "mix64":
            raise ValueError(f'hash must be "mix64" for {self.kind}, got "{self.hash}"')
        if self.hash == "crc32" and self.seed:
            raise ValueError(f"seed must be 0 with crc32, got {self.seed}: CRC-32 has no seed")
        if self.language is not None and (self.kind != "sentences" or not re.fullmatch("[a-z]+", self.language)):
            raise ValueError(f"language is the name of a Snowball stemmer, for sentences only, got {self.language!r}")
        self._check_method()
        if key is not None:
            self._take_key(key)
        if self.fingerprint and (self.method, self.hash, self.seed) != ("min-k", "mix64", 0):
            raise ValueError('a key is for method "min-k" and hash "mix64" without a seed: it decides the hash')

    def _take_key(self, key: str) -> None:
        fingerprint, numbers = derived(key)
        if self.fingerprint not in ("", fingerprint):
            raise ValueError(f"this is another key: its fingerprint is {fingerprint}, not {self.fingerprint}")
        object.__setattr__(self, "fingerprint", fingerprint)
        object.__setattr__(self, "_numbers", numbers)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the key, which leaves no process."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_numbers", "plan")}

    def with_key(self, key: str) -> Self:
        """Return the same recipe with its key. Raises ValueError for another key than that of the fingerprint."""
        return type(self)(**{field.name: getattr(self, field.name) for field in fields(self)}, key=key)

    def check_key(self) -> None:
        """Raise KeyNeeded if sketches of this recipe cannot be made for want of its key."""
        if self.fingerprint and "_numbers" not in self.__dict__:
            raise KeyNeeded(self.id)

    @property
    def numbers(self) -> HashNumbers | None:
        """Return the secret numbers of the hash; None without a key. Raises KeyNeeded if the key was not given."""
        if not self.fingerprint:
            return None
        self.check_key()
        numbers: HashNumbers = self.__dict__["_numbers"]
        return numbers

    def _check_method(self) -> None:
        if self.method != "min-k" and self.estimator != "kmv":
            raise ValueError(f'estimator is for "min-k" only, got {self.estimator} with {self.method}')
        if self.k != (fixed := _FIXED_K.get(self.method, self.k)):
            raise ValueError(f"k must be {fixed} for {self.method}, got {self.k}: its sketches have {fixed} values")
        if self.method in ("n-grams", *_FIXED_K) and self.seed:
            raise ValueError(f"seed must be 0 for {self.method}, got {self.seed}: its hash has no seed")
        if self.method == "n-grams" and self.kind != "characters":
            raise ValueError(f"n-grams are runs of characters, got {self.kind}")
        if self.method == "profile" and (self.kind, self.size) != ("words", 1):
            raise ValueError(f"a profile counts single words, got {self.kind} of size {self.size}")

    @classmethod
    def words(cls, size: int = 3, k: int = 64, **others: Any) -> Self:
        """Return a recipe with shingles of `size` consecutive words."""
        return cls(kind="words", size=size, k=k, **others)

    @classmethod
    def characters(cls, size: int = 5, k: int = 64, **others: Any) -> Self:
        """Return a recipe with shingles of `size` consecutive characters: for short texts and spelling changes."""
        return cls(kind="characters", size=size, k=k, **others)

    @classmethod
    def lines(cls, size: int = 1, k: int = 64, **others: Any) -> Self:
        """Return a recipe with shingles of `size` consecutive lines: for logs, code and lists."""
        return cls(kind="lines", size=size, k=k, **others)

    @classmethod
    def sentences(cls, language: str | None = "english", size: int = 1, k: int = 64, **others: Any) -> Self:
        """Return a recipe with shingles of `size` sentences (Smith 2008: 1). Needs the extra "stem" if it stems."""
        return cls(kind="sentences", size=size, k=k, language=language, **others)

    @classmethod
    def min_hash(cls, size: int = 3, k: int = 64, **others: Any) -> Self:
        """Return a recipe of the smallest shingle under each of `k` permutations (Broder et al. 1998)."""
        return cls(size=size, k=k, method="min-hash", **others)

    @classmethod
    def super_shingles(cls, size: int = 3, k: int = 6, **others: Any) -> Self:
        """Return a recipe of `k` hashes of 14 min-hashes each (Broder 2000); copies share two. For few edits."""
        return cls(size=size, k=k, method="super-shingles", **others)

    @classmethod
    def n_grams(cls, size: int = 4, k: int = 10, **others: Any) -> Self:
        """Return a recipe of the `k` smallest hashes of runs of `size` characters of the bare text (Basu 2011)."""
        return cls(kind="characters", size=size, k=k, method="n-grams", **others)

    @classmethod
    def simhash(cls, size: int = 1, **others: Any) -> Self:
        """Return a recipe of 64 bits in four values, words weighted by count (Charikar 2002; Manku et al. 2007)."""
        return cls(size=size, k=4, method="simhash", **others)

    @classmethod
    def profile(cls, **others: Any) -> Self:
        """Return a recipe of a hash of the frequent words, in two values (TextProfileSignature of Nutch and Solr)."""
        return cls(size=1, k=2, method="profile", **others)

    @cached_property
    def id(self) -> str:
        """Return a short name, stored beside each sketch: w3-k64-v4, c5-k128-v4-html-seed7, w1-k4-v4-simhash."""
        extras = {
            _SUFFIX[self.method]: self.method != "min-k",
            self.estimator: self.estimator != "kmv",
            self.markup: self.markup != "keep",
            "nourls": self.urls == "drop",
            f"seed{self.seed}": self.seed != 0,
            "crc32": self.hash == "crc32",
            f"key{self.fingerprint}": self.fingerprint != "",
            str(self.language): self.language is not None,
        }
        parts = [f"{_LETTER[self.kind]}{self.size}", f"k{self.k}", f"v{self.version}"]
        return "-".join(parts + [name for name, given in extras.items() if given])

    @cached_property
    def measure(self) -> Measure:
        """Return the measure that compares two sketches."""
        if self.method == "min-k":
            return self.estimator
        return {"simhash": "cosine", "n-grams": "shorter"}.get(self.method, "overlap")  # type: ignore[return-value]

    @cached_property
    def min_shingles(self) -> int:
        """Return the shingles below which a text is a near-duplicate only of one with an equal sketch."""
        return 2 if self.kind == "sentences" else 4

    @cached_property
    def plan(self) -> native.Plan | None:
        """Return the arguments of the native core (see `native.Plan`); None if it cannot make these sketches."""
        if self.method != "min-k" or self.kind not in ("words", "characters"):
            return None
        seed = struct.pack("=8Q", *self.numbers) if self.numbers else self.seed
        return self.kind == "words", self.size, seed, self.k

    @cached_property
    def marks_edges(self) -> bool:
        """Return whether odd values touch an edge of their text (see `text.edges`)."""
        return self.method == "min-k" and self.kind == "words"

    @cached_property
    def keeps_all(self) -> bool:
        """Return whether markup, quotes and URLs stay in the text."""
        return self.markup == self.urls == "keep"

    @classmethod
    def of(cls, given: Recipe | str | None) -> Recipe:
        """Return the recipe of an id, the default for None. Raises TypeError for other types, ValueError as parse."""
        if isinstance(given, Recipe):
            return given
        if given is None:
            return _DEFAULT
        if isinstance(given, str):
            return cls.parse(given)
        raise TypeError(f"a recipe is a Recipe, or an id like {_DEFAULT.id}, got {given!r}")

    @classmethod
    def parse(cls, name: str) -> Self:
        """Return the recipe of an id. Raises ValueError for an id that this version did not write."""
        methods = "|".join(filter(None, _SUFFIX.values()))
        match = re.fullmatch(
            rf"([wcls])(\d+)-k(\d+)-v(\d+)(?:-({methods}))?(?:-(broder|overlap))?"
            r"(?:-(html|mail))?(-nourls)?(?:-seed(\d+))?(-crc32)?(?:-key([0-9a-f]{16}))?(?:-([a-z]+))?",
            name,
            re.ASCII,
        )
        if not match or int(match[4]) != cls.version:
            one = cls()
            known = f"one looks like {one.id}: shingles of {one.size} words, {one.k} values, version {one.version}"
            raise ValueError(f"{name!r} is no recipe id of this version; {known}")
        letter, size, k, _, method, estimator, markup, nourls, seed, crc32, key, language = match.groups()
        recipe = cls(
            kind=next(kind for kind, its_letter in _LETTER.items() if its_letter == letter),
            size=int(size),
            k=int(k),
            seed=int(seed or 0),
            hash="crc32" if crc32 else "mix64",
            markup=cast(Literal["html", "mail"], markup) if markup else "keep",
            urls="drop" if nourls else "keep",
            language=language,
            method=next(known for known, suffix in _SUFFIX.items() if suffix == (method or "")),
            estimator=cast(Estimator, estimator or "kmv"),
            fingerprint=key or "",
        )
        if recipe.id != name:
            raise ValueError(f"{name!r} is no recipe id, the nearest is {recipe.id}")
        return recipe


_DEFAULT = Recipe()
