"""The methods of the field on given pairs: recipes by their measure, the default decision, exact references.

A method makes something of the texts of a collection once, then answers for any pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import cos, pi
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ndd_search.collapse_options import CollapseOptions
from ndd_search.evaluation.collection import Places
from ndd_search.evaluation.sets import interned, rows_of_sets
from ndd_search.matching.decision import PLAIN, Constants, Decision
from ndd_search.matching.document_frequency import count_document_frequency
from ndd_search.matching.frequency_table import SAMPLE, Shares
from ndd_search.matching.guards import long_enough
from ndd_search.matching.measures import similarities
from ndd_search.matching.pairs import Pairs, overlaps
from ndd_search.matching.rows import Rows, rows_of
from ndd_search.matching.shared_values import shared_sums, shared_values
from ndd_search.presets import PRESETS
from ndd_search.recipe import Measure, Recipe
from ndd_search.sketching.simhash import BITS, Rarity, as_sketches, fingerprints
from ndd_search.sketching.sketches import sketch_many
from ndd_search.text.numbers import number_signature
from ndd_search.text.shingles import shingle_texts

SIMHASH = Recipe.simhash()
Judge = Callable[[Rows, Places, Places], Shares]


class Prepared(Protocol):
    """What a method made of a collection. bytes: of everything stored for all its documents."""

    @property
    def bytes(self) -> int: ...

    def scores(self, first: Places, second: Places) -> Shares:
        """How alike the pairs are, 0..1, to be held against a bar; shape as given."""
        ...


@dataclass(frozen=True)
class Method:
    """name, what it is in a line, the bar its authors or we would set, and how it prepares texts."""

    name: str
    about: str
    bar: float
    prepare: Callable[[Sequence[str]], Prepared]


@dataclass(frozen=True)
class Sketched:
    """Sketches, and how to judge pairs of them."""

    rows: Rows
    judge: Judge
    bytes: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bytes", 4 * len(self.rows.values))

    def scores(self, first: Places, second: Places) -> Shares:
        return self.judge(self.rows, first, second)


def sketched(recipe: Recipe) -> Callable[[Sequence[str]], Sketched]:
    """Prepare by sketching with a recipe, to judge by its measure."""
    return lambda texts: Sketched(rows_of(sketch_many(texts, recipe), recipe.k), _by(recipe.measure))


def _by(measure: Measure) -> Judge:
    return lambda rows, first, second: similarities(rows, first, second, measure)


def automatic(
    recipe: Recipe, constants: Constants | None = None, with_table: bool = True
) -> Callable[[Sequence[str]], Sketched]:
    """Prepare for the default decision: sketches, and the table that an index of these texts would have."""
    constants = constants or Constants()

    def prepare(texts: Sequence[str]) -> Sketched:
        sketches = sketch_many(texts, recipe)
        chosen = np.random.default_rng(0).permutation(len(texts))[: SAMPLE if with_table else 0].tolist()
        table = count_document_frequency([sketches[i] for i in chosen], recipe, constants)
        decision = Decision(None, recipe.size, table if table.telling else None, constants)
        return Sketched(rows_of(sketches, recipe.k), partial(above_floor, decision))

    return prepare


def above_floor(decision: Decision, rows: Rows, first: Places, second: Places) -> Shares:
    """The decision's similarity less what the bar of a pair asks above the least: that is the bar for all."""
    pairs = overlaps(rows, first, second, decision.frequency_table)
    return np.clip(decision.similarity(pairs) - decision.bars(pairs) + decision.constants.least, 0, 1)


@dataclass(frozen=True, eq=False)
class Guarded:
    """Sketches, and what the guards of a page keep apart: a score of 0. numbers: of each text, None where it is off."""

    inner: Sketched
    min_shingles: int
    numbers: npt.NDArray[np.int64] | None

    @property
    def bytes(self) -> int:
        return self.inner.bytes + (0 if self.numbers is None else 4 * len(self.numbers))

    def scores(self, first: Places, second: Places) -> Shares:
        rows = self.inner.rows
        apart = ~long_enough(Pairs(first, second, similarities(rows, first, second, "kmv")), rows, self.min_shingles)
        if self.numbers is not None:
            apart |= self.numbers[first] != self.numbers[second]
        return np.where(apart, 0.0, self.inner.scores(first, second))


def by_presets() -> list[Method]:
    """Every preset as a page applies it, guards included; those that are alike as one."""
    alike: dict[tuple[Recipe, CollapseOptions], list[str]] = {}
    for one in PRESETS.values():
        alike.setdefault((one.recipe, one.options), []).append(one.name)
    return [
        Method(", ".join(names), f"{recipe.id}, with the guards of a page", Constants.least, _guarded(recipe, options))
        for (recipe, options), names in alike.items()
    ]


def _guarded(recipe: Recipe, options: CollapseOptions) -> Callable[[Sequence[str]], Prepared]:
    def prepare(texts: Sequence[str]) -> Prepared:
        numbers = [number_signature(text, recipe) for text in texts] if options.numbers_must_match else None
        return Guarded(automatic(recipe)(texts), options.min_shingles, None if numbers is None else np.array(numbers))

    return prepare


@dataclass(frozen=True, eq=False)
class Exact:
    """All shingles of every document, as whole sets."""

    rows: Rows
    counts: Shares
    cosine: bool
    bytes: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bytes", 8 * len(self.rows.values))

    def scores(self, first: Places, second: Places) -> Shares:
        if not self.cosine:
            shared = shared_sums(self.rows, first, second)
            resemblance: Shares = shared / np.maximum(self.rows.lengths[first] + self.rows.lengths[second] - shared, 1)
            return resemblance
        products = np.zeros(len(first))
        for one in shared_values(self.rows, first, second):
            products += np.bincount(one.pair, self.counts[one.left] * self.counts[one.right], len(first))
        squares = np.concatenate(([0.0], np.cumsum(self.counts**2)))
        norms = np.sqrt(np.diff(squares[self.rows.offsets]))
        cosine: Shares = np.minimum(products / np.maximum(norms[first] * norms[second], 1e-12), 1)
        return cosine


def exact(recipe: Recipe, cosine: bool = False) -> Callable[[Sequence[str]], Prepared]:
    """Prepare all shingles of a recipe; cosine over their frequencies (Charikar's measure) or resemblance."""

    def prepare(texts: Sequence[str]) -> Prepared:
        bags = interned(shingle_texts(text, recipe) for text in texts)
        counted = [np.unique(np.array(bag, np.int64), return_counts=True) for bag in bags]
        rows = rows_of_sets(values.tolist() for values, _ in counted)
        return Exact(rows, np.concatenate([counts for _, counts in counted]).astype(np.float64), cosine)

    return prepare


def printed(texts: Sequence[str]) -> Sketched:
    """Prepare simhash with words weighed by tf-idf."""
    sketches = as_sketches(fingerprints(texts, weight=Rarity.count(texts)))
    return Sketched(rows_of(list(sketches), SIMHASH.k), _by(SIMHASH.measure))


@dataclass(frozen=True)
class Both:
    """One method after the other: a pair has the score of the second if the first calls it a duplicate, else 0."""

    first: Prepared
    bar: float
    then: Prepared

    @property
    def bytes(self) -> int:
        return self.first.bytes + self.then.bytes

    def scores(self, first: Places, second: Places) -> Shares:
        passed = self.first.scores(first, second) >= self.bar
        return np.where(passed, self.then.scores(first, second), 0.0)


def one_after_the_other(first: Method, then: Method) -> Callable[[Sequence[str]], Prepared]:
    """Prepare two methods, the second to judge what the first lets through (Henzinger 2006)."""
    return lambda texts: Both(first.prepare(texts), first.bar, then.prepare(texts))


def methods() -> list[Method]:
    """Those of this package and those of the field, with the bars that their sources set or we would."""
    words, sycamore = Recipe.words(), Recipe.characters(17, k=16, estimator="overlap")
    about = f'resemblance in its KMV form, {words.id}; at 0.5 min_similarity="moderate"'
    resembling = _of_recipe("min-k", about, words, PLAIN["moderate"])
    counted = _of_recipe("simhash", "64 bits, words weighed by their count, three bits (Manku et al. 2007)", SIMHASH)
    smith = Recipe.sentences("english", hash="crc32", estimator="broder")
    return [
        Method("auto", "the default, with the table of common values", Constants.least, automatic(words)),
        Method("auto-128", "the same from 128 values a document", Constants.least, automatic(Recipe.words(k=128))),
        Method(
            "auto-whole", "the same from all shingles, up to 4,096", Constants.least, automatic(Recipe.words(k=4096))
        ),
        Method("auto-alone", "the default without a table", Constants.least, automatic(words, with_table=False)),
        Method("exact", "resemblance over all 3-word shingles", 0.5, exact(words)),
        Method("cosine", "cosine over the frequencies of words", 0.9, exact(Recipe.words(size=1), cosine=True)),
        resembling,
        replace(resembling, name="high", about='min_similarity="high": the same at 0.8', bar=PLAIN["high"]),
        replace(resembling, name="identical", about='min_similarity="identical": equal sketches', bar=1.0),
        _of_recipe("min-k-128", "the same from 128 values a document", Recipe.words(k=128), 0.5),
        _of_recipe("broder", "Broder's estimate", Recipe.words(estimator="broder")),
        _of_recipe("characters", "5-character shingles, c5-k64", Recipe.characters(), 0.5),
        counted,
        Method("simhash-tfidf", "64 bits, words weighed by tf-idf, three bits", counted.bar, printed),
        Method(
            "min-k+simhash",
            "simhash, eight bits, of what min-k lets through",
            cos(8 * pi / BITS),
            one_after_the_other(resembling, counted),
        ),
        _of_recipe("min-hash", "64 independent permutations (Broder et al. 1998)", Recipe.min_hash()),
        _of_recipe("super-shingles", "two of six super-shingles (Broder 2000)", Recipe.super_shingles()),
        _of_recipe("sentences", "CRC-32 of stemmed sentences (Smith 2008)", smith),
        _of_recipe("frequent", "the 64 most frequent 5-grams of characters (Basu 2011)", Recipe.frequent()),
        _of_recipe("bottom-16", "16 values of 17 characters, common / 16 (Sycamore)", sycamore),
        _of_recipe("profile", "one signature of the frequent words (Solr)", Recipe.profile()),
    ]


def _of_recipe(name: str, about: str, recipe: Recipe, bar: float | None = None) -> Method:
    """A recipe at a bar, None for that of its source."""
    return Method(name, about, Decision.of("auto", recipe).floor if bar is None else bar, sketched(recipe))
