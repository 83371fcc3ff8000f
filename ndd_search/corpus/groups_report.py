"""A report about the groups of a collection, as one HTML file without scripts or links."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from itertools import pairwise
from pathlib import Path

import numpy as np

from ndd_search.core.text.printable import many
from ndd_search.corpus.collection_groups import Groups
from ndd_search.corpus.guard_columns import NUMBERS
from ndd_search.corpus.read_collection import Documents
from ndd_search.reports.html import bars, document, html_table
from ndd_search.reports.side_by_side import as_html, side_by_side

SHOWN = 10  # largest groups
_MOST_VALUES = 15  # rows of a table by a field


def write_report(groups: Groups, path: str | Path) -> None:
    """Write the report of groups, see `report_of`."""
    Path(path).write_text(report_of(groups), "utf-8", errors="replace")


def report_of(groups: Groups) -> str:
    """The report. The texts of the largest groups are in it when the sources can be read again."""
    corpus = groups.corpus
    parts = [_summary(groups), bars("Groups by size", [(label, count) for label, count in _sizes(groups) if count])]
    if groups.similarity is not None:
        parts.append(bars("Duplicates by resemblance to their leader", _resemblances(groups)))
        if groups.decision.bar is not None:
            parts.append(f"<p>The bar is at {groups.decision.bar:.2f}.</p>")
    for name in (name for name in corpus.columns if name != NUMBERS):
        parts += [f"<h2>By {escape(name)}</h2>", _by_field(groups, name)]
    parts += ["<h2>Largest groups</h2>", _largest(groups)]
    return document(f"Near-duplicates among {many(len(corpus), 'document')}", "\n".join(parts))


def _summary(groups: Groups) -> str:
    count, unique = len(groups.corpus), len(groups)
    empty = len(groups.corpus.textless)
    effort = groups.effort
    rows = [
        ("documents", f"{count:,}"),
        ("groups (unique documents)", f"{unique:,}"),
        ("near-duplicates of another document", f"{count - unique:,} ({_share(count - unique, count)})"),
        ("groups of two or more", f"{int((groups.sizes[groups.is_leader] > 1).sum()):,}"),
        ("documents without text", f"{empty:,}"),
        ("decision", groups.rule),
        ("work", f"{effort.met:,} meetings in lists of values, {effort.compared:,} pairs compared"),
    ]
    if effort.cut:
        rows.append(("left out", f"{effort.cut:,} meetings beyond the budget: some pairs may be missed"))
    else:
        rows.append(("left out", "nothing for want of budget"))
    return html_table((), rows)


def _sizes(groups: Groups) -> list[tuple[str, int]]:
    sizes = groups.sizes[groups.is_leader]
    edges = [1, 2, 3, 4, 6, 11, 21, 51, 101, 1_001, 10_001]
    labels = [f"{low:,}" if high - low == 1 else f"{low:,}-{high - 1:,}" for low, high in pairwise(edges)]
    counts = np.histogram(sizes, [*edges, np.inf])[0].tolist()
    return list(zip([*labels, f"{edges[-1]:,} and more"], counts, strict=True))


def _resemblances(groups: Groups) -> list[tuple[str, int]]:
    assert groups.similarity is not None
    alike = groups.similarity[~groups.is_leader]
    edges = np.linspace(0, 1, 21)
    counts = np.histogram(np.minimum(alike, 1 - 1e-9), edges)[0].tolist()
    found = [(f"{low:.2f}-{low + 0.05:.2f}", count) for low, count in zip(edges, counts, strict=False) if low >= 0.2]
    return [*found, ("exactly 1", int((alike == 1).sum()))]


def _by_field(groups: Groups, name: str) -> str:
    copies = ~groups.is_leader
    counts: dict[str, list[int]] = {}
    for value, copy in zip(groups.corpus.columns[name], copies.tolist(), strict=True):
        of_value = counts.setdefault("" if value is None else str(value), [0, 0])
        of_value[0] += 1
        of_value[1] += copy
    largest = sorted(counts.items(), key=lambda item: -item[1][0])[:_MOST_VALUES]
    rows = [(value or "(nothing)", f"{all_:,}", f"{many:,}", _share(many, all_)) for value, (all_, many) in largest]
    note = f"<p>{len(counts) - len(rows):,} more values.</p>" if len(counts) > len(rows) else ""
    return html_table(("value", "documents", "near-duplicates", "share"), rows) + note


def _largest(groups: Groups) -> str:
    sizes = np.where(groups.is_leader, groups.sizes, 0)
    leaders = [at for at in np.argsort(-sizes, kind="stable")[:SHOWN].tolist() if sizes[at] > 1]
    order = np.argsort(groups.leader, kind="stable")
    starts = np.searchsorted(groups.leader[order], leaders)
    chosen = []
    for leader, start in zip(leaders, starts.tolist(), strict=True):
        members = order[start : start + int(sizes[leader])]
        others = members[members != leader]
        alike = groups.similarity
        chosen.append((leader, int(others[0] if alike is None else others[np.argmin(alike[others])])))
    texts = _texts(groups.corpus, {place for pair in chosen for place in pair})
    parts = []
    for leader, other in chosen:
        ids = groups.corpus.ids
        least = "" if groups.similarity is None else f", the least alike at {groups.similarity[other]:.2f}"
        parts.append(f"<h3>{many(int(sizes[leader]), 'document')} led by {escape(ids[leader])}{least}</h3>")
        if leader in texts and other in texts:
            left, right = map(as_html, side_by_side(texts[leader], texts[other]))
            names = escape(f"{ids[leader]} and {ids[other]}")
            parts.append(f"<div class=pair><b>{names}</b><p>{left}</p><p>{right}</p></div>")
    return "\n".join(parts) or "<p>No document is a near-duplicate of another.</p>"


def _texts(corpus: Documents, places: Iterable[int]) -> dict[int, str]:
    """The texts of some documents; none when the sources cannot be read again."""
    return {} if corpus.pieces is None or corpus.pieces.read_once else corpus.texts(places)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "0%"
