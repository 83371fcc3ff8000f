"""All methods on all collections."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from ndd_search.evaluation.collection import Collection, LabelledPairs
from ndd_search.evaluation.measures import Curve, Flags, Quality, best_common_bar, curve, quality
from ndd_search.evaluation.methods import Method, Prepared, automatic, methods
from ndd_search.evaluation.pages import PageQuality, page_quality
from ndd_search.matching.decision import ROUNDING, Constants
from ndd_search.matching.frequency_table import Shares
from ndd_search.recipe import Recipe

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Share:
    """Of `count` scored pairs of one kind (or language), what was found: recall for duplicates, else wrongly called."""

    name: str
    label: int
    count: int
    called: float


@dataclass(frozen=True, eq=False)
class Result:
    """One method on one labelled collection.

    quality: at the method's own bar; curve: at every bar; scores: of the labelled pairs, in their order.
    kinds: by kind of pair; languages: F1 by language of the first document, where more than one is given.
    prepare_seconds, check_seconds: for all documents and for all labelled pairs; bytes: stored per document.
    """

    method: Method
    collection: Collection
    quality: Quality
    curve: Curve
    scores: Shares
    kinds: list[Share]
    languages: dict[str, Quality]
    pages: PageQuality | None
    bytes: float
    prepare_seconds: float
    check_seconds: float


@dataclass(frozen=True)
class Study:
    """The results of all methods on all labelled collections, and the collections without labels."""

    results: list[Result]
    unlabelled: list[Collection]

    @property
    def methods(self) -> list[Method]:
        """In the order they were run."""
        return list({result.method.name: result.method for result in self.results}.values())

    @property
    def collections(self) -> list[Collection]:
        """Those with labels."""
        return list({result.collection.name: result.collection for result in self.results}.values())

    def of(self, method: Method) -> list[Result]:
        """The results of a method, in the order of the collections."""
        return [result for result in self.results if result.method.name == method.name]

    def left_out(self, method: Method) -> list[float]:
        """F1 on each collection at the bar that is best, on average, for all others; nothing with fewer than two."""
        results = self.of(method)
        if len(results) < 2:
            return []
        bars = [best_common_bar([other.curve for other in results if other is not one]) for one in results]
        return [float(one.curve.f1_at(np.array([bar]))[0]) for one, bar in zip(results, bars, strict=True)]

    def best_elsewhere(self) -> list[tuple[Method, Result]]:
        """For each collection, the method with the best mean F1 on all others, and its result on this one."""
        chosen = []
        for collection in self.collections:
            means = [
                np.mean([r.quality.f1 for r in self.of(m) if r.collection is not collection]) for m in self.methods
            ]
            method = self.methods[int(np.argmax(means))]
            chosen.append((method, next(result for result in self.of(method) if result.collection is collection)))
        return chosen


def all_methods() -> dict[str, Method]:
    """By name, the default first."""
    return {method.name: method for method in methods()}


def halved_and_doubled(recipe: Recipe) -> Iterator[Method]:
    """The default decision with each of its constants at half and at double."""
    constants = Constants()
    for name in ("least", "power", "margin", "unknown", "handful"):
        for factor in (0.5, 2):
            value = type(getattr(constants, name))(getattr(constants, name) * factor)
            changed = replace(constants, **{name: value})
            yield Method(f"{name} {value:g}", f"auto with {name} {value:g}", changed.least, automatic(recipe, changed))


def study(collections: Sequence[Collection], methods: Sequence[Method], tell: Tell) -> Study:
    """Run methods on collections. tell: told a sentence about each step."""
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
    sketched = perf_counter()
    scores = prepared.scores(pairs.first, pairs.second)
    checked = perf_counter()
    yes = accepted(scores, method)
    return Result(
        method,
        collection,
        quality(yes, pairs.label),
        curve(scores, pairs.label),
        scores,
        _kinds(yes, pairs),
        _languages(yes, pairs, collection),
        _pages(method, prepared, collection),
        prepared.bytes / max(len(collection.texts), 1),
        sketched - started,
        checked - sketched,
    )


def accepted(scores: Shares, method: Method) -> Flags:
    """Which scores reach the method's bar."""
    reached: Flags = scores >= method.bar - ROUNDING
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


def _pages(method: Method, prepared: Prepared, collection: Collection) -> PageQuality | None:
    if not collection.pages:
        return None
    return page_quality(collection, lambda first, second: accepted(prepared.scores(first, second), method))
