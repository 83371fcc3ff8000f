"""A report about the groups of a collection, as one HTML file without scripts or links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from html import escape
from itertools import pairwise
from pathlib import Path

import numpy as np

from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.matching.sketch_rows import Ranks
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import Sketches
from ndd_search.core.text.printable import many
from ndd_search.core.text.shingles import shingle_hashes, shingle_texts
from ndd_search.corpus.collection_groups import Groups
from ndd_search.corpus.guard_columns import NUMBERS
from ndd_search.corpus.read_collection import Documents
from ndd_search.reports.html import bars, document, html_table
from ndd_search.reports.side_by_side import as_html, side_by_side

SHOWN = 10  # largest groups, and frames
_LOOKED_UP = 2_000  # values of the table that frames are made of, the most common first
_COMPANIONS = 4  # documents that a document is compared with
_LEAST = 3  # common values of a document, and shingles of a passage
_LONGEST = 1_500  # characters of a text that are shown
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
    if corpus.recipe.measure == "kmv" and (frames := _frames(groups)):
        parts += ["<h2>Passages that many documents share</h2>", frames]
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


def _frames(groups: Groups) -> str:
    """The frames of the collection as text, "" where there are none or the sources cannot be read again."""
    corpus = groups.corpus
    table = corpus.frequency_table
    found = _find_frames(corpus.sketches, groups.leader, table, corpus.recipe, partial(_texts, corpus))
    rows = [(f"{frame.share:.1%}", corpus.ids[frame.document], frame.text[:_LONGEST]) for frame in found]
    return html_table(("share of documents", "for example", "passages"), rows) if rows else ""


def _texts(corpus: Documents, places: Iterable[int]) -> dict[int, str]:
    """The texts of some documents; none when the sources cannot be read again."""
    return {} if corpus.pieces is None or corpus.pieces.read_once else corpus.texts(places)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "0%"


@dataclass(frozen=True)
class _Frame:
    """What a document has in common with others that are not near-duplicates of it.

    text: its passages. share: of the documents that hold the most common part of them, 0..1, in a sample.
    """

    document: int
    text: str
    share: float


def _find_frames(
    sketches: Sketches,
    leader: Ranks,
    table: FrequencyTable,
    recipe: Recipe,
    read: Callable[[Iterable[int]], Mapping[int, str]],
) -> list[_Frame]:
    """The most common passages, each out of one document, the most common first.

    leader: of each document, as in Groups; documents of one group are not compared, as they share more than a frame.
    read:   returns the texts of some documents by place; those that cannot be read may be missing.
    """
    order = np.argsort(-table.counts, kind="stable")[:_LOOKED_UP]
    shares = dict(zip(table.values[order].tolist(), (table.counts[order] / table.documents).tolist(), strict=True))
    examples = _examples(sketches, leader, table.values[order])
    texts = read({place for example, others in examples.items() for place in (example, *others)})
    frames = []
    for example, others in examples.items():
        there = [texts[place] for place in others if place in texts]
        if example in texts and there:
            passages, share = _passages(texts[example], there, shares, recipe)
            if passages:
                frames.append(_Frame(example, " … ".join(passages), share))
    return sorted(frames, key=lambda frame: -frame.share)


def _examples(sketches: Sketches, leader: Ranks, values: np.ndarray) -> dict[int, list[int]]:
    """A few documents that hold most of some values together, each with others that share most of its values."""
    at = np.flatnonzero(np.isin(sketches.values, values))
    owners: Ranks = np.searchsorted(sketches.offsets, at, side="right") - 1
    held, left = sketches.values[at], np.ones(len(at), np.bool_)
    examples: dict[int, list[int]] = {}
    while len(examples) < SHOWN and left.any():
        counts = np.bincount(owners[left])
        best = int(counts.argmax())
        if counts[best] < _LEAST:
            break
        covered = np.isin(held, held[(owners == best) & left])
        shared = np.bincount(owners[covered], minlength=len(leader)) * (leader != leader[best])
        others = np.argsort(-shared, kind="stable")[:_COMPANIONS]
        examples[best] = [int(place) for place in others if shared[place] >= _LEAST]
        left &= ~covered
    return examples


def _passages(text: str, others: list[str], shares: Mapping[int, float], recipe: Recipe) -> tuple[list[str], float]:
    """The passages of a text that half of some others have, too, and the share of their most common shingle."""
    holders = Counter[int]()
    for other in others:
        holders.update(set(_values(other, recipe)))
    values, shingles = _values(text, recipe), shingle_texts(text, recipe)
    common = [place for place, value in enumerate(values) if 2 * holders[value] >= len(others)]
    passages, share, start = [], 0.0, 0
    for end in range(1, len(common) + 1):
        if end < len(common) and common[end] == common[end - 1] + 1:
            continue
        if end - start >= _LEAST:
            passages.append(_joined([shingles[place] for place in common[start:end]], recipe))
            share = max(share, *(shares.get(values[place], 0.0) for place in common[start:end]))
        start = end
    return passages, share


def _values(text: str, recipe: Recipe) -> list[int]:
    """The sketch value of each shingle of a text, in order."""
    values: list[int] = (shingle_hashes([text], recipe)[0] >> np.uint64(33)).tolist()
    return values


def _joined(shingles: list[str], recipe: Recipe) -> str:
    """The text of consecutive shingles. Those of words overlap in all but one word."""
    if recipe.kind != "words":
        return " ".join(shingles)
    return " ".join([*(shingle.split(" ")[0] for shingle in shingles[:-1]), shingles[-1]])
