"""A report about a schema that was learnt, as one HTML file."""

from __future__ import annotations

from html import escape
from pathlib import Path

import numpy as np

from ndd_search.items.fields import Field
from ndd_search.items.grades import grade_count
from ndd_search.items.probability_model import THIN, probabilities
from ndd_search.items.record_groups import ItemGroups
from ndd_search.items.record_similarity import similarity_of
from ndd_search.reports.html import bars, document, html_table

_SHOWN = 10  # pairs near the bar
_MOST = 50_000  # candidates of which probabilities are shown


def write_report(groups: ItemGroups, path: str | Path) -> None:
    """Write the evidence of each grade of each field, probabilities of candidate pairs, and pairs near the bar."""
    schema, candidates = groups.schema, groups.candidates
    chosen = np.linspace(0, max(len(candidates) - 1, 0), min(len(candidates), _MOST)).astype(np.int64)
    first, second = candidates.first[chosen], candidates.second[chosen]
    odds = schema.log_odds(schema.graded(schema.comparison(groups.table), first, second))
    probability = probabilities(odds)
    counts = np.histogram(probability, 20, (0, 1))[0].tolist()
    thin = (np.abs(odds - schema.bar) < THIN).sum() * len(candidates) / max(len(odds), 1)
    nearest = np.argsort(np.abs(odds - schema.bar), kind="stable")[:_SHOWN]
    facts = [
        ("records", f"{len(groups.records):,}"),
        ("different things", f"{len(groups):,}"),
        ("candidate pairs compared", f"{len(candidates):,}"),
        ("pairs that are one thing", f"{len(groups.pairs):,}"),
        ("verdicts of a thin margin (odds below 9 to 1), many of which are wrong", f"{thin:,.0f}"),
        *((f"values of {name} that could not be read", f"{count:,}") for name, count in groups.bad.items()),
    ]
    parts = [
        html_table(("", "count"), facts),
        *(f"<p>{escape(doubt)}</p>" for doubt in (schema.learnt.doubts if schema.learnt else ())),
        "<h2>Evidence</h2><p>Log odds that a grade of agreement adds, at the average of the other pairs.</p>",
        html_table(("grade", "evidence", "one thing", "others"), _evidence(groups)),
        "<h2>Probabilities</h2>",
        bars("Candidate pairs by probability", [(f"from {i / 20:.2f}", count) for i, count in enumerate(counts)]),
        f"<h2>Pairs nearest to the bar at {schema.min_probability:g}</h2>",
        *(_pair(groups, int(first[i]), int(second[i])) for i in nearest.tolist()),
    ]
    Path(path).write_text(document(f"Items {schema.id}", "".join(parts)), "utf-8", errors="replace")


def _evidence(groups: ItemGroups) -> list[tuple[str, str, str, str]]:
    """Return grade, evidence, share among pairs of one thing and among others, of each grade that has pairs."""
    if (learnt := groups.schema.learnt) is None:
        return []
    rows = []
    for f, (name, field) in enumerate(groups.schema.fields.items()):
        same = np.array(learnt.odds.m[f])
        other = np.array([kind[f] for kind in learnt.odds.u]).T @ np.array(learnt.odds.shares)
        for grade in np.flatnonzero((same > 0.001) | (other > 0.001)).tolist():
            evidence = f"{np.log(same[grade] / other[grade]):+.1f}"
            rows.append((f"{name}: {_label(field, grade)}", evidence, f"{same[grade]:.3f}", f"{other[grade]:.3f}"))
    return rows


def _label(field: Field, grade: int) -> str:
    """Return what a grade means, in words."""
    each = grade_count(field) // (len(field.edges) + 1)
    step, rarity = divmod(grade, each)
    if step == len(field.edges):
        return f"below {field.edges[-1]:g}"
    value = f", {('common', 'less common', 'rare')[rarity]} value" if each > 1 else ""
    return f"at least {field.edges[step]:g} alike{value}"


def _pair(groups: ItemGroups, first: int, second: int) -> str:
    a, b = groups.records[first], groups.records[second]
    compared = similarity_of(groups.schema, a, b)
    ids = f"{escape(groups.own_ids[first])} and {escape(groups.own_ids[second])}"
    sides = "".join(
        "<p>" + "<br>".join(f"{escape(str(name))}: {escape(str(value))}" for name, value in record.items()) + "</p>"
        for record in (a, b)
    )
    why = "<br>".join(escape(line) for line in compared.explain().splitlines())
    return f'<div class="pair"><b>{ids}: probability {compared.probability:.2f}</b>{sides}<b>{why}</b></div>'
