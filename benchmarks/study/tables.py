"""A study as Markdown tables, as `python -m benchmarks.study` prints and figures.md holds them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.study.study import Study
from ndd_search.reports.html import Cells


def tables(study: Study, speed: bool = True) -> Iterator[tuple[str, str]]:
    """Yield titles and tables. speed: add times, which differ between machines and runs; all else does not."""
    yield "F1 at the default bar", f1_table(study)
    yield "Best F1 with its bar, average precision", best_table(study)
    if len(study.collections) > 1:
        yield "F1 at the bar that suits all other collections best (leave one out)", left_out_table(study)
    if any(result.harms for result in study.results):
        yield "Pages of ten: share that hides a different text / share that shows a copy", harms_table(study)
    yield "Share called near-duplicates, by kind of pair", kinds_table(study)
    if any(result.languages for result in study.results):
        yield "F1 by language at the default bar", languages_table(study)
    if speed:
        yield "Bytes per document and speed", speed_table(study)


def f1_table(study: Study) -> str:
    """Return F1 with precision and recall, at the default bars."""
    heads = ["method", "bar", *(collection.name for collection in study.collections), "mean"]
    rows = []
    for method in study.methods:
        qualities = [result.quality for result in study.of(method)]
        cells = [f"{each.f1:.3f} ({each.precision:.2f}/{each.recall:.2f})" for each in qualities]
        rows.append([method.name, f"{method.bar:.2f}", *cells, f"{np.mean([each.f1 for each in qualities]):.3f}"])
    return markdown(heads, rows)


def best_table(study: Study) -> str:
    """Return the best F1 on each collection with its bar, and average precision."""
    heads = ["method", *(collection.name for collection in study.collections)]
    rows = []
    for method in study.methods:
        curves = [result.curve for result in study.of(method)]
        cells = [f"{curve.best[0]:.3f} @ {curve.best[1]:.2f}, {curve.average_precision:.3f}" for curve in curves]
        rows.append([method.name, *cells])
    return markdown(heads, rows)


def left_out_table(study: Study) -> str:
    """Return F1 on each collection at the bar chosen on all others."""
    heads = ["method", *(collection.name for collection in study.collections), "mean"]
    rows = []
    for method in study.methods:
        figures = study.left_out(method)
        rows.append([method.name, *(f"{figure:.3f}" for figure in figures), f"{np.mean(figures):.3f}"])
    return markdown(heads, rows)


def best_elsewhere_table(study: Study) -> str:
    """Return the method that is best on all other collections, and its F1 on the one left out."""
    rows = [
        [result.collection.name, method.name, f"{result.quality.f1:.3f}"] for method, result in study.best_elsewhere()
    ]
    return markdown(["left out", "best on the others", "F1"], rows)


def harms_table(study: Study) -> str:
    """Return both harms of result pages, at the bar of each method and at the best one of each collection."""
    heads = ["method", *(collection.name for collection in study.collections if collection.pages), "mean"]
    rows = []
    for method in study.methods:
        results = [result for result in study.of(method) if result.harms]
        for name, found in (
            (method.name, [result.harms for result in results]),
            (f"{method.name}, tuned", [result.tuned_harms for result in results]),
            (f"{method.name}, counted in each list", [result.harms_in_lists for result in results]),
        ):
            if not all(found):
                continue
            shares = [(one.hidden, one.shown) for one in found if one]
            shares.append(tuple(np.mean(shares, axis=0)))
            rows.append([name, *(f"{hidden:.3f} / {shown:.2f}" for hidden, shown in shares)])
    return markdown(heads, rows)


def kinds_table(study: Study) -> str:
    """Return the share of accepted pairs by kind: recall for label 1, wrong answers for 0, neither for -1."""
    heads = ["collection, kind (label, pairs)", *(method.name for method in study.methods)]
    rows = []
    for collection in study.collections:
        results = [result for result in study.results if result.collection.name == collection.name]
        for position, kind in enumerate(results[0].kinds):
            name = f"{collection.name}, {kind.name} ({kind.label}, {kind.count})"
            rows.append([name, *(f"{result.kinds[position].called:.3f}" for result in results)])
    return markdown(heads, rows)


def languages_table(study: Study) -> str:
    """Return F1 by language, a row for each language of each collection."""
    heads = ["collection, language", *(method.name for method in study.methods)]
    rows = []
    for collection in study.collections:
        results = [result for result in study.results if result.collection.name == collection.name]
        for language in results[0].languages:
            cells = (f"{result.languages[language].f1:.3f}" for result in results)
            rows.append([f"{collection.name}, {language}", *cells])
    return markdown(heads, rows)


def speed_table(study: Study) -> str:
    """Return bytes and speed over all collections. Pairs are timed in one batch, not page by page."""
    heads = ["method", "bytes a document", "documents a second", "MB a second", "thousand pairs a second"]
    rows = []
    for method in study.methods:
        results = study.of(method)
        documents = sum(len(result.collection.texts) for result in results)
        size = sum(len(text.encode("utf-8", "replace")) for result in results for text in result.collection.texts)
        prepare = sum(result.prepare_seconds for result in results)
        check = sum(result.check_seconds for result in results)
        pairs = sum(len(result.scores) for result in results)
        stored = np.mean([result.bytes for result in results])
        figures = (documents / prepare, size / prepare / 1e6, pairs / max(check, 1e-9) / 1e3)
        rows.append([method.name, f"{stored:.0f}", *(f"{figure:,.0f}" for figure in figures)])
    return markdown(heads, rows)


def markdown(heads: Cells, rows: Sequence[Cells]) -> str:
    """Return a table whose first column is left-aligned and whose others, numbers, are right-aligned."""
    rule = ["---", *["---:"] * (len(heads) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (heads, rule, *rows))


def cells_of(table: str) -> tuple[list[str], list[list[str]]]:
    """Return the heads and the rows of a table of `markdown`."""
    heads, _, *rows = [line.strip("| ").split(" | ") for line in table.splitlines()]
    return heads, rows
