"""A study as one HTML file: tables, curves, histograms, and sample pairs near the bar."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

import numpy as np

from benchmarks.study.collection import Collection
from benchmarks.study.plots import histogram, lines
from benchmarks.study.study import Result, Study
from benchmarks.study.tables import cells_of, tables
from ndd_search.core.matching.decision import ROUNDING, Decision
from ndd_search.core.matching.document_frequency import count_document_frequency
from ndd_search.core.matching.frequency_table import Shares
from ndd_search.core.matching.similarity_measures import judged_pairs
from ndd_search.core.matching.sketch_rows import rows_of
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import sketch_many
from ndd_search.reports.html import document, html_table

MOST_UNLABELLED = 3000  # documents of a collection without labels; all their pairs are compared
_SAMPLES = 6
_LABELS = {1: "near-duplicates", 0: "different", -1: "not scored"}


def page(study: Study) -> str:
    """Return the report as an HTML page."""
    parts = [
        f"<h2>{escape(title)}</h2><div class=scroll>{html_table(*cells_of(table))}</div>"
        for title, table in tables(study)
    ]
    for collection in study.collections:
        parts += _labelled([result for result in study.results if result.collection.name == collection.name])
    for collection in study.unlabelled:
        parts += unlabelled(collection)
    return document("Which pairs count", "".join(parts))


def unlabelled(collection: Collection, recipe: Recipe | None = None) -> Iterator[str]:
    """Yield a histogram of similarities and the pairs nearest to the bar, for a collection without labels."""
    recipe = recipe or Recipe()
    rows = rows_of(sketch_many(collection.texts[:MOST_UNLABELLED], recipe), recipe.k)
    sketches = [rows.values[start:end] for start, end in zip(rows.offsets[:-1], rows.offsets[1:], strict=True)]
    decision = Decision.of("auto", recipe, count_document_frequency(sketches, recipe))
    pairs, similarity, bars = judged_pairs(rows, decision, 0.1)
    margin = similarity - bars
    accepted = margin >= -ROUNDING
    yield f"<h2>{escape(collection.name)}, without labels</h2>"
    counted = int(accepted.sum())
    yield f"<p>{len(sketches)} documents; {len(pairs)} pairs resemble by 0.1 or more, {counted} of them count.</p>"
    groups = {"counted as near-duplicates": pairs.similarity[accepted], "not": pairs.similarity[~accepted]}
    yield histogram("pairs that resemble by 0.1 or more", "resemblance", groups)
    for at in np.argsort(np.abs(margin), kind="stable")[:_SAMPLES].tolist():
        verdict = "counted" if accepted[at] else "not counted"
        caption = f"{verdict}, resemblance {pairs.similarity[at]:.2f}, {margin[at]:+.2f} from the bar"
        yield _pair(collection, int(pairs.first[at]), int(pairs.second[at]), caption)


def _labelled(results: Sequence[Result]) -> Iterator[str]:
    """Yield the plots and sample pairs of one collection; histogram and samples are of the first method."""
    first = results[0]
    pairs = first.collection.pairs
    if pairs is None:
        return
    yield f"<h2>{escape(first.collection.name)}</h2>"
    named = {result.method.name: result.curve for result in results}
    yield lines(
        "precision and recall", "recall", "precision", {n: (c.recall, c.precision) for n, c in named.items()}, 0.5
    )
    yield lines("F1 at every bar", "bar", "F1", {name: (curve.bars, curve.f1) for name, curve in named.items()}, 0.5)
    groups: dict[str, Shares] = {_LABELS[label]: first.scores[pairs.label == label] for label in (1, 0)}
    yield histogram(f"{first.method.name}: similarity", "similarity", groups, first.method.bar)
    yield f"<h3>Nearest to the bar of {escape(first.method.name)}</h3>"
    scored = np.flatnonzero(pairs.label >= 0)
    nearest = scored[np.argsort(np.abs(first.scores[scored] - first.method.bar), kind="stable")[:_SAMPLES]]
    for at in nearest.tolist():
        caption = f"labelled {_LABELS[int(pairs.label[at])]} ({pairs.kind[at]}), {first.scores[at]:.2f}"
        yield _pair(first.collection, int(pairs.first[at]), int(pairs.second[at]), caption)


def _pair(collection: Collection, first: int, second: int, caption: str) -> str:
    texts = "".join(f"<p>{escape(' '.join(collection.texts[at][:400].split()))}</p>" for at in (first, second))
    return f"<div class=pair><b>{escape(caption)}</b>{texts}</div>"
