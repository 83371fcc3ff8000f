"""Methods to compare: recipes with their measures, the default decision, presets and exact references.

A method prepares the texts of a collection once (sketches, sets or fingerprints), then scores any pairs of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import cos, pi
from typing import Protocol

import numpy as np
import numpy.typing as npt

from benchmarks.study.collection import Places
from ndd_search.core.matching.decision import PLAIN, Constants, Decision
from ndd_search.core.matching.document_frequency import count_document_frequency
from ndd_search.core.matching.frequency_table import SAMPLE, Shares
from ndd_search.core.matching.guards import long_enough
from ndd_search.core.matching.shared_sketch_values import shared_values
from ndd_search.core.matching.similar_pairs import Pairs, accepted, overlaps
from ndd_search.core.matching.similarity_measures import similarities
from ndd_search.core.matching.sketch_rows import Rows, rows_of
from ndd_search.core.methods.simhash import BITS, Rarity, as_sketches, fingerprints
from ndd_search.core.options import CollapseOptions
from ndd_search.core.presets import PRESETS
from ndd_search.core.recipe import Measure, Recipe
from ndd_search.core.sketching.sketches import sketch_many
from ndd_search.core.text.numbers import number_signature
from ndd_search.core.text.shingles import shingle_texts

SIMHASH = Recipe.simhash()
WHOLE = 2**31  # as k: larger than any set, so all sets count as complete
Judge = Callable[[Rows, Places, Places], Shares]


class Prepared(Protocol):
    """A collection as prepared by a method. bytes: stored for all documents together."""

    @property
    def bytes(self) -> int: ...

    def scores(self, first: Places, second: Places) -> Shares:
        """Return the similarity of each pair, 0..1, to be compared with a bar; shape as `first`."""
        ...


@dataclass(frozen=True)
class Method:
    """A method of comparison.

    about: description on one line. bar: the one its authors use, or ours. prepare: prepares the texts of a collection.
    """

    name: str
    about: str
    bar: float
    prepare: Callable[[Sequence[str]], Prepared]


@dataclass(frozen=True)
class Sketched:
    """Sketches and the measure that scores pairs of them."""

    rows: Rows
    judge: Judge
    bytes: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bytes", 4 * len(self.rows.values))

    def scores(self, first: Places, second: Places) -> Shares:
        return self.judge(self.rows, first, second)


def sketched(recipe: Recipe) -> Callable[[Sequence[str]], Sketched]:
    """Return a function that sketches texts with a recipe, to be scored by its measure."""
    return lambda texts: Sketched(rows_of(sketch_many(texts, recipe), recipe.k), _by(recipe.measure))


def _by(measure: Measure) -> Judge:
    return lambda rows, first, second: similarities(rows, first, second, measure)


def automatic(
    recipe: Recipe, constants: Constants | None = None, with_table: bool = True
) -> Callable[[Sequence[str]], Sketched]:
    """Return a function that prepares sketches and, `with_table`, the frequency table of their index."""
    constants = constants or Constants()

    def prepare(texts: Sequence[str]) -> Sketched:
        sketches = sketch_many(texts, recipe)
        chosen = np.random.default_rng(0).permutation(len(texts))[: SAMPLE if with_table else 0].tolist()
        table = count_document_frequency([sketches[i] for i in chosen], recipe, constants)
        decision = Decision(None, recipe.size, table if table.telling else None, constants, kind=recipe.kind)
        return Sketched(rows_of(sketches, recipe.k), partial(above_floor, decision))

    return prepare


def above_floor(decision: Decision, rows: Rows, first: Places, second: Places) -> Shares:
    """Return similarities shifted so that one bar, `constants.least`, is equivalent to the bar of each pair.

    The default decision has a bar for each pair; a Curve needs one bar for all. Pairs that the decision joins below
    their bar, as they differ at their edges or hardly, are at the bar; those that it keeps apart are below.
    """
    pairs, least = overlaps(rows, first, second, decision.frequency_table), decision.constants.least
    scores = np.clip(decision.similarity(pairs) - decision.bars(pairs) + least, 0, 1)
    below = np.minimum(scores, least - 0.01)
    return np.where(accepted(rows, decision, first, second, pairs), np.maximum(scores, least), below)


@dataclass(frozen=True, eq=False)
class Guarded:
    """Sketches with the guards of a result page: pairs that a guard keeps apart have a score of 0.

    numbers: number signature of each text, None without the guard numbers.
    """

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
    """Return a method for each preset, guards included; presets with equal settings share one method."""
    names_by_settings: dict[tuple[Recipe, CollapseOptions], list[str]] = {}
    for preset in PRESETS.values():
        names_by_settings.setdefault((preset.recipe or Recipe(), preset.options), []).append(preset.name)
    return [
        Method(", ".join(names), f"{recipe.id}, with the guards of a page", Constants.least, _guarded(recipe, options))
        for (recipe, options), names in names_by_settings.items()
    ]


def _guarded(recipe: Recipe, options: CollapseOptions) -> Callable[[Sequence[str]], Prepared]:
    def prepare(texts: Sequence[str]) -> Prepared:
        numbers = [number_signature(text, recipe) for text in texts] if options.same_numbers else None
        return Guarded(automatic(recipe)(texts), recipe.min_shingles, None if numbers is None else np.array(numbers))

    return prepare


@dataclass(frozen=True, eq=False)
class Exact:
    """The sets of all shingles of the documents. counts: frequency of each shingle in its document."""

    rows: Rows
    counts: Shares
    cosine: bool
    bytes: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bytes", 8 * len(self.rows.values))

    def scores(self, first: Places, second: Places) -> Shares:
        if not self.cosine:
            overlap = shared_sums(self.rows, first, second)
            union = self.rows.lengths[first] + self.rows.lengths[second] - overlap
            resemblance: Shares = overlap / np.maximum(union, 1)
            return resemblance
        products = np.zeros(len(first))
        for shared in shared_values(self.rows, first, second):
            products += np.bincount(shared.pair, self.counts[shared.left] * self.counts[shared.right], len(first))
        squares = np.concatenate(([0.0], np.cumsum(self.counts**2)))
        norms = np.sqrt(np.diff(squares[self.rows.offsets]))
        cosine: Shares = np.minimum(products / np.maximum(norms[first] * norms[second], 1e-12), 1)
        return cosine


def shared_sums(rows: Rows, first: Places, second: Places, weight: Shares | None = None) -> Shares:
    """Return for each pair the number of shared values, or the sum of their weights (one for each of rows.values)."""
    sums = np.zeros(len(first))
    for shared in shared_values(rows, first, second):
        sums += np.bincount(shared.pair, None if weight is None else weight[shared.left], len(first))
    return sums


def exact(recipe: Recipe, cosine: bool = False) -> Callable[[Sequence[str]], Prepared]:
    """Return a function that prepares all shingles of a recipe, to be scored by resemblance.

    cosine: score by the cosine of shingle frequencies (Charikar's measure) instead.
    """

    def prepare(texts: Sequence[str]) -> Prepared:
        bags = interned(shingle_texts(text, recipe) for text in texts)
        counted = [np.unique(np.array(bag, np.int64), return_counts=True) for bag in bags]
        rows = rows_of_sets(values.tolist() for values, _ in counted)
        return Exact(rows, np.concatenate([counts for _, counts in counted]).astype(np.float64), cosine)

    return prepare


def tfidf_simhash(texts: Sequence[str]) -> Sketched:
    """Prepare simhash fingerprints with words weighted by tf-idf."""
    sketches = as_sketches(fingerprints(texts, weight=Rarity.count(texts)))
    return Sketched(rows_of(list(sketches), SIMHASH.k), _by(SIMHASH.measure))


@dataclass(frozen=True)
class Both:
    """Two methods in sequence: a pair that reaches the bar of the first has the score of the second, else 0."""

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
    """Return a function that prepares two methods: the second scores what the first accepts (Henzinger 2006)."""
    return lambda texts: Both(first.prepare(texts), first.bar, then.prepare(texts))


def methods() -> list[Method]:
    """Return the methods of this package and of the literature, with the bars of their sources or ours."""
    words, sycamore = Recipe.words(), Recipe.characters(17, k=16, estimator="overlap")
    about = f'resemblance in its KMV form, {words.id}; at 0.5 min_similarity="moderate"'
    resemblance = _of_recipe("min-k", about, words, PLAIN["moderate"])
    simhash = _of_recipe("simhash", "64 bits, words weighted by their count, three bits (Manku et al. 2007)", SIMHASH)
    smith = Recipe.sentences("english", hash="crc32", estimator="broder")
    return [
        Method("auto", "the default, with a frequency table", Constants.least, automatic(words)),
        Method("auto-128", "the same from 128 values a document", Constants.least, automatic(Recipe.words(k=128))),
        Method(
            "auto-whole", "the same from all shingles, up to 4,096", Constants.least, automatic(Recipe.words(k=4096))
        ),
        Method("auto-alone", "the default without the table", Constants.least, automatic(words, with_table=False)),
        Method("exact", "resemblance over all 3-word shingles", 0.5, exact(words)),
        Method("cosine", "cosine over the frequencies of words", 0.9, exact(Recipe.words(size=1), cosine=True)),
        resemblance,
        replace(resemblance, name="high", about='min_similarity="high": the same at 0.8', bar=PLAIN["high"]),
        replace(resemblance, name="identical", about='min_similarity="identical": equal sketches', bar=1.0),
        _of_recipe("min-k-128", "the same from 128 values a document", Recipe.words(k=128), 0.5),
        _of_recipe("broder", "Broder's estimate", Recipe.words(estimator="broder")),
        _of_recipe("characters", "5-character shingles, c5-k64", Recipe.characters(), 0.5),
        simhash,
        Method("simhash-tfidf", "64 bits, words weighted by tf-idf, three bits", simhash.bar, tfidf_simhash),
        Method(
            "min-k+simhash",
            "simhash, eight bits, of what min-k accepts",
            cos(8 * pi / BITS),
            one_after_the_other(resemblance, simhash),
        ),
        _of_recipe("min-hash", "64 independent permutations (Broder et al. 1998)", Recipe.min_hash()),
        _of_recipe("super-shingles", "two of six super-shingles (Broder 2000)", Recipe.super_shingles()),
        _of_recipe("sentences", "CRC-32 of stemmed sentences (Smith 2008)", smith),
        _of_recipe("n-grams", "the first 10 of the hashes of 4-grams of characters (Basu 2011)", Recipe.n_grams()),
        _of_recipe("bottom-16", "16 values of 17 characters, common / 16 (Sycamore)", sycamore),
        _of_recipe("profile", "one signature of the frequent words (Solr)", Recipe.profile()),
    ]


def _of_recipe(name: str, about: str, recipe: Recipe, bar: float | None = None) -> Method:
    """Return a method of a recipe. bar: None for the bar of its source."""
    return Method(name, about, Decision.of("auto", recipe).floor if bar is None else bar, sketched(recipe))


def rows_of_sets(sets: Iterable[Iterable[int]], k: int = WHOLE) -> Rows:
    """Build rows from sets of numbers in 0..2**31-1."""
    arrays = [np.sort(np.fromiter(values, np.int64)) for values in sets]
    offsets = np.concatenate(([0], np.cumsum([len(array) for array in arrays], dtype=np.int64)))
    return Rows(np.concatenate(arrays) if arrays else np.empty(0, np.int64), offsets, k)


def interned(bags: Iterable[Iterable[str]]) -> list[list[int]]:
    """Replace names by numbers; equal names have equal numbers."""
    numbers: dict[str, int] = {}
    return [[numbers.setdefault(name, len(numbers)) for name in bag] for bag in bags]
