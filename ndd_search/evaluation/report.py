"""A study as one HTML file: tables, curves, histograms, and pairs near the bar to look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

import numpy as np

from ndd_search.evaluation.collection import Collection
from ndd_search.evaluation.plots import histogram, lines
from ndd_search.evaluation.study import Result, Study
from ndd_search.evaluation.tables import tables
from ndd_search.matching.decision import ROUNDING, Decision
from ndd_search.matching.document_frequency import count_document_frequency
from ndd_search.matching.frequency_table import Shares
from ndd_search.matching.measures import judged_pairs
from ndd_search.matching.rows import rows_of
from ndd_search.recipe import Recipe
from ndd_search.sketching.sketches import sketch_many

MOST_UNLABELLED = 3000  # documents of a collection without labels whose pairs are all looked at
_SAMPLES = 6
_LABELS = {1: "near-duplicates", 0: "different", -1: "not scored"}
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse;margin:.5rem 0 1.5rem;font-size:.85rem}
td,th{padding:.2rem .6rem;border-bottom:1px solid #ddd}
td+td,th+th{text-align:right;font-variant-numeric:tabular-nums}svg{font:11px system-ui,sans-serif;margin:0 1rem 1rem 0}
.pair{display:grid;grid-template-columns:1fr 1fr;gap:1rem;border-top:1px solid #ddd;padding:.6rem 0;font-size:.85rem}
.pair p{margin:0}.pair mark{background:#fd8}.pair b{grid-column:1/3}.scroll{overflow-x:auto}
"""


def page(study: Study) -> str:
    """The whole report."""
    parts = [f"<h2>{escape(title)}</h2><div class=scroll>{html_table(table)}</div>" for title, table in tables(study)]
    for collection in study.collections:
        parts += _labelled([result for result in study.results if result.collection.name == collection.name])
    for collection in study.unlabelled:
        parts += unlabelled(collection)
    return document("Which pairs count", "".join(parts))


def document(title: str, body: str) -> str:
    """A page that needs nothing else, and may load and run nothing. title: as text; body: as HTML."""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    meta = '<meta charset=utf-8><meta name=viewport content="width=device-width">'
    meta += f'<meta http-equiv=Content-Security-Policy content="{policy}">'
    head = f"{meta}<title>{escape(title)}</title><style>{_STYLE}</style>"
    return f"<!doctype html><html lang=en><head>{head}</head><body><h1>{escape(title)}</h1>{body}</body></html>\n"


def unlabelled(collection: Collection, recipe: Recipe | None = None) -> Iterator[str]:
    """What can be said without labels: how alike the pairs are that meet at all, and those nearest to the bar."""
    recipe = recipe or Recipe()
    rows = rows_of(sketch_many(collection.texts[:MOST_UNLABELLED], recipe), recipe.k)
    sketches = [rows.values[start:end] for start, end in zip(rows.offsets[:-1], rows.offsets[1:], strict=True)]
    decision = Decision.of("auto", recipe, count_document_frequency(sketches, recipe))
    pairs, held, bars = judged_pairs(rows, decision, 0.1)
    left = held - bars
    accepted = left >= -ROUNDING
    yield f"<h2>{escape(collection.name)}, without labels</h2>"
    counted = int(accepted.sum())
    yield f"<p>{len(sketches)} documents; {len(pairs)} pairs resemble by 0.1 or more, {counted} of them count.</p>"
    groups = {"counted as near-duplicates": pairs.similarity[accepted], "not": pairs.similarity[~accepted]}
    yield histogram("pairs that resemble by 0.1 or more", "resemblance", groups)
    for at in np.argsort(np.abs(left), kind="stable")[:_SAMPLES].tolist():
        verdict = "counted" if accepted[at] else "not counted"
        told = f"{verdict}, resemblance {pairs.similarity[at]:.2f}, {left[at]:+.2f} from the bar"
        yield _pair(collection, int(pairs.first[at]), int(pairs.second[at]), told)


def _labelled(results: Sequence[Result]) -> Iterator[str]:
    """Pictures and samples of one collection; histogram and samples are of the first method."""
    first = results[0]
    pairs = first.collection.pairs
    if pairs is None:
        return
    yield f"<h2>{escape(first.collection.name)}</h2>"
    named = {result.method.name: result.curve for result in results}
    yield lines(
        "precision and recall", "recall", "precision", {n: (c.recall, c.precision) for n, c in named.items()}, 0.5
    )
    yield lines("F1 at every bar", "bar", "F1", {name: (one.bars, one.f1) for name, one in named.items()}, 0.5)
    groups: dict[str, Shares] = {_LABELS[label]: first.scores[pairs.label == label] for label in (1, 0)}
    yield histogram(f"{first.method.name}: similarity", "similarity", groups, first.method.bar)
    yield f"<h3>Nearest to the bar of {escape(first.method.name)}</h3>"
    scored = np.flatnonzero(pairs.label >= 0)
    nearest = scored[np.argsort(np.abs(first.scores[scored] - first.method.bar), kind="stable")[:_SAMPLES]]
    for at in nearest.tolist():
        told = f"labelled {_LABELS[int(pairs.label[at])]} ({pairs.kind[at]}), {first.scores[at]:.2f}"
        yield _pair(first.collection, int(pairs.first[at]), int(pairs.second[at]), told)


def _pair(collection: Collection, first: int, second: int, told: str) -> str:
    texts = "".join(f"<p>{escape(' '.join(collection.texts[one][:400].split()))}</p>" for one in (first, second))
    return f"<div class=pair><b>{escape(told)}</b>{texts}</div>"


def html_table(markdown: str) -> str:
    """A table of `tables.markdown` as HTML."""
    rows = [line.strip("| ").split(" | ") for line in markdown.splitlines()]
    head, *body = [rows[0], *rows[2:]]
    cells = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    lines_ = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in body)
    return f"<table><tr>{cells}</tr>{lines_}</table>"
