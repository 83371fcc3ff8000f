"""Run all methods on all collections."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from benchmarks.study.collection import Collection, LabelledPairs
from benchmarks.study.measures import Curve, Flags, Quality, best_common_bar, curve, quality
from benchmarks.study.methods import Method, Prepared, automatic, methods
from benchmarks.study.pages import Harms, harms, harms_in_lists
from ndd_search.core.matching.decision import ROUNDING, Constants
from ndd_search.core.matching.frequency_table import Shares
from ndd_search.core.recipe import Recipe

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Share:
    """The share of `count` pairs of one kind that was accepted as near-duplicates.

    For label 1 this is the recall, for 0 the share of wrong answers; pairs labelled -1 have no right answer.
    """

    name: str
    label: int
    count: int
    called: float


@dataclass(frozen=True, eq=False)
class Result:
    """One method on one labelled collection.

    quality: at the method's own bar; curve: at every bar; scores: one per labelled pair, in their order.
    kinds: by kind of pair; languages: quality by language of the first document, if there are at least two languages.
    harms: of the result pages at the method's own bar; tuned_harms: at the bar with the best F1 of this collection.
    harms_in_lists: with a frequency table of each list; of the default only.
    prepare_seconds: for all documents; check_seconds: for all labelled pairs; bytes: stored per document.
    """

    method: Method
    collection: Collection
    quality: Quality
    curve: Curve
    scores: Shares
    kinds: list[Share]
    languages: dict[str, Quality]
    harms: Harms | None
    tuned_harms: Harms | None
    harms_in_lists: Harms | None
    bytes: float
    prepare_seconds: float
    check_seconds: float


@dataclass(frozen=True)
class Study:
    """Results of all methods on all labelled collections, and the collections without labels."""

    results: list[Result]
    unlabelled: list[Collection]

    @property
    def methods(self) -> list[Method]:
        """Return the methods in the order in which they ran."""
        return list({result.method.name: result.method for result in self.results}.values())

    @property
    def collections(self) -> list[Collection]:
        """Return the labelled collections."""
        return list({result.collection.name: result.collection for result in self.results}.values())

    def of(self, method: Method) -> list[Result]:
        """Return the results of a method, in the order of the collections."""
        return [result for result in self.results if result.method.name == method.name]

    def left_out(self, method: Method) -> list[float]:
        """Return F1 on each collection at the bar with the best mean F1 on all others; [] with fewer than two."""
        results = self.of(method)
        if len(results) < 2:
            return []
        bars = [best_common_bar([other.curve for other in results if other is not result]) for result in results]
        return [float(result.curve.f1_at(np.array([bar]))[0]) for result, bar in zip(results, bars, strict=True)]

    def best_elsewhere(self) -> list[tuple[Method, Result]]:
        """Return for each collection the method with the best mean F1 on all others, and its result on this one."""
        chosen = []
        for collection in self.collections:
            means = [
                np.mean([r.quality.f1 for r in self.of(m) if r.collection is not collection]) for m in self.methods
            ]
            method = self.methods[int(np.argmax(means))]
            chosen.append((method, next(result for result in self.of(method) if result.collection is collection)))
        return chosen


def all_methods() -> dict[str, Method]:
    """Return all methods by name, the default first."""
    return {method.name: method for method in methods()}


def halved_and_doubled(recipe: Recipe) -> Iterator[Method]:
    """Yield the default decision with each of its constants halved and doubled, one at a time."""
    constants = Constants()
    for name in ("least", "asked", "common", "power", "margin", "pages", "handful"):
        for factor in (0.5, 2):
            value = type(getattr(constants, name))(getattr(constants, name) * factor)
            changed = replace(constants, **{name: value})
            yield Method(f"{name} {value:g}", f"auto with {name} {value:g}", changed.least, automatic(recipe, changed))


def study(collections: Sequence[Collection], methods: Sequence[Method], tell: Tell) -> Study:
    """Run methods on collections. tell: called with a sentence at each step."""
    results, unlabelled = [], []
    for collection in collections:
        if collection.pairs is None:
            unlabelled.append(collection)
            continue
        for method in methods:
            tell(f"{collection.name}: {method.name}")
            results.append(_result(method, collection, collection.pairs))
    return Study(results, unlabelled)


def _result(method: Method, collection: Collection, pairs: LabelledPairs) -> Result:
    started = perf_counter()
    prepared = method.prepare(collection.texts)
    ready = perf_counter()
    scores = prepared.scores(pairs.first, pairs.second)
    checked = perf_counter()
    yes, found = accepted(scores, method.bar), curve(scores, pairs.label)
    return Result(
        method,
        collection,
        quality(yes, pairs.label),
        found,
        scores,
        _kinds(yes, pairs),
        _languages(yes, pairs, collection),
        _harms(method.bar, prepared, collection),
        _harms(found.best[1], prepared, collection),
        harms_in_lists(collection, Recipe()) if method.name == "auto" and collection.pages else None,
        prepared.bytes / max(len(collection.texts), 1),
        ready - started,
        checked - ready,
    )


def accepted(scores: Shares, bar: float) -> Flags:
    """Return which scores reach a bar."""
    reached: Flags = scores >= bar - ROUNDING
    return reached


def _kinds(yes: Flags, pairs: LabelledPairs) -> list[Share]:
    shares = []
    for label in (1, 0, -1):
        for kind in sorted(set(pairs.kind[pairs.label == label].tolist())):
            chosen = (pairs.kind == kind) & (pairs.label == label)
            shares.append(Share(kind, label, int(chosen.sum()), float(yes[chosen].mean())))
    return shares


def _languages(yes: Flags, pairs: LabelledPairs, collection: Collection) -> dict[str, Quality]:
    languages = collection.languages[pairs.first]
    names = sorted(set(languages.tolist()) - {""})
    if len(names) < 2:
        return {}
    positive = {name: bool((pairs.label[languages == name] == 1).any()) for name in names}
    return {name: quality(yes[languages == name], pairs.label[languages == name]) for name in names if positive[name]}


def _harms(bar: float, prepared: Prepared, collection: Collection) -> Harms | None:
    if not collection.pages:
        return None
    return harms(collection, lambda first, second: accepted(prepared.scores(first, second), bar))
