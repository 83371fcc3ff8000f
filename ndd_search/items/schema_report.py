"""A report about a schema that was learnt, as one HTML file."""

from __future__ import annotations

from html import escape
from pathlib import Path

import numpy as np

from ndd_search.items.fields import Field
from ndd_search.items.grades import grade_count
from ndd_search.items.probability_model import probabilities
from ndd_search.items.record_groups import ItemGroups
from ndd_search.items.record_similarity import similarity_of
from ndd_search.reports.html import document, html_table
from ndd_search.reports.plots import bars

_SHOWN = 10  # pairs near the bar


def write_report(groups: ItemGroups, path: str | Path) -> None:
    """Write the report of groups, see `report_of`."""
    Path(path).write_text(report_of(groups), "utf-8", errors="replace")


def report_of(groups: ItemGroups) -> str:
    """Return the report: evidence of each grade of each field, probabilities of pairs, and pairs near the bar."""
    schema, table = groups.schema, groups.table
    comparison = schema.comparison(table)
    candidates = groups.candidates
    chosen = np.linspace(0, max(len(candidates) - 1, 0), min(len(candidates), 50_000)).astype(np.int64)
    first, second = candidates.first[chosen], candidates.second[chosen]
    odds = schema.log_odds(comparison.graded(first, second))
    probability = probabilities(odds)
    steps = (np.arange(20) / 20, np.histogram(probability, 20, (0, 1))[0].tolist())
    facts = [
        ("records", f"{len(groups.records):,}"),
        ("different things", f"{len(groups):,}"),
        ("candidate pairs compared", f"{len(candidates):,}"),
        ("pairs that are one thing", f"{len(groups.pairs):,}"),
        ("of these and of the others, expected to be wrong", f"{groups.unsure:.1%}"),
        *((f"values of {name} that could not be read", f"{count:,}") for name, count in groups.bad.items()),
    ]
    rows = _evidence(groups)
    nearest = np.argsort(np.abs(odds - schema.bar), kind="stable")[:_SHOWN]
    pairs = [_pair(groups, int(first[i]), int(second[i])) for i in nearest.tolist()]
    parts = [
        html_table(("", "count"), facts),
        *(f"<p>{escape(doubt)}</p>" for doubt in (schema.learnt.doubts if schema.learnt else ())),
        "<h2>Evidence</h2><p>Log odds that a grade of agreement adds, at the average of the other pairs.</p>",
        bars("Evidence for one thing", [(label, [evidence]) for label, evidence, _, _ in rows], "+.1f"),
        html_table(
            ("grade", "evidence", "one thing", "others"),
            [(label, f"{evidence:+.1f}", f"{same:.3f}", f"{other:.3f}") for label, evidence, same, other in rows],
        ),
        "<h2>Probabilities</h2>",
        bars(
            "Candidate pairs by probability", [(f"from {low:.2f}", [count]) for low, count in zip(*steps, strict=True)]
        ),
        f"<h2>Pairs nearest to the bar at {schema.min_probability:g}</h2>",
        *pairs,
    ]
    return document(f"Items {schema.id}", "".join(parts))


def _evidence(groups: ItemGroups) -> list[tuple[str, float, float, float]]:
    """Return (grade, evidence, share among pairs of one thing, share among others) of each grade that has pairs."""
    learnt = groups.schema.learnt
    if learnt is None:
        return []
    rows = []
    for f, (name, field) in enumerate(groups.schema.fields.items()):
        same = np.array(learnt.odds.m[f])
        other = np.array([kind[f] for kind in learnt.odds.u]).T @ np.array(learnt.odds.shares)
        for grade in np.flatnonzero((same > 0.001) | (other > 0.001)).tolist():
            label = f"{name}: {grade_label(field, grade)}"
            rows.append((label, float(np.log(same[grade] / other[grade])), float(same[grade]), float(other[grade])))
    return rows


def grade_label(field: Field, grade: int) -> str:
    """Return what a grade means, in words."""
    each = grade_count(field) // (len(field.edges) + 1)
    step, rarity = divmod(grade, each)
    label = f"at least {field.edges[step]:g} alike" if step < len(field.edges) else f"below {field.edges[-1]:g}"
    return (
        f"{label}, {('common', 'less common', 'rare')[rarity]} value" if each > 1 and step < len(field.edges) else label
    )


def _pair(groups: ItemGroups, first: int, second: int) -> str:
    a, b = groups.records[first], groups.records[second]
    compared = similarity_of(groups.schema, a, b)
    ids = f"{escape(groups.ids[first])} and {escape(groups.ids[second])}"
    sides = "".join(
        "<p>" + "<br>".join(f"{escape(str(name))}: {escape(str(value))}" for name, value in record.items()) + "</p>"
        for record in (a, b)
    )
    why = "<br>".join(escape(line) for line in compared.explain().splitlines())
    return f'<div class="pair"><b>{ids}: probability {compared.probability:.2f}</b>{sides}<b>{why}</b></div>'
