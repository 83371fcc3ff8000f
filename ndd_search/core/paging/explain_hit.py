"""Explains why a hit is shown or hidden."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ndd_search.core.matching.decision import ALIKE, ROUNDING, Decision
from ndd_search.core.matching.guards import allowed, allowed_by_fields
from ndd_search.core.matching.short_copies import differ_at_edges, inside
from ndd_search.core.matching.similar_pairs import Pairs, as_compared, overlaps
from ndd_search.core.matching.similarity_measures import estimate, judged_pairs
from ndd_search.core.matching.sketch_rows import Rows, rows_of
from ndd_search.core.options import CollapseOptions
from ndd_search.core.paging.record_schema import RecordSchema, bar_of, record_of
from ndd_search.core.paging.stream import Reader, Stream
from ndd_search.core.text.edges import between_edges
from ndd_search.core.text.tokens import prepare


@dataclass(frozen=True)
class Explanation:
    """The decision about one hit and its figures.

    rank:           its place in the engine's list.
    leader:         rank of its leader, its own rank when it is a leader.
    nearest:        rank of the most similar leader before it, None if no leader is comparable.
    similarity:     to its leader, or to `nearest` when the hit is a leader itself; by the recipe's measure, 0..1.
    standard_error: of the similarity; 0 when it is exact.
    rule:           the rule that decided, as text.
    compared:       the value that was compared with `bar`: the similarity, discounted by what many documents share.
    bar:            the least value of a near-duplicate; None if there was nothing to compare.
    shared:         number of values that both sketches contain.
    adds:           estimated share of the hit's shingles that its leader, or `nearest`, lacks, 0..1.
    guards:         names of the guards that keep the hit and `nearest` apart.
    """

    rank: int
    leader: int
    nearest: int | None
    similarity: float
    standard_error: float
    rule: str
    compared: float = 0.0
    bar: float | None = None
    shared: int = 0
    adds: float = 0.0
    guards: tuple[str, ...] = ()

    def __str__(self) -> str:
        fate = "stands for itself" if self.leader == self.rank else f"is shown under hit {self.leader}"
        return f"hit {self.rank} {fate}: {self.rule}"


def hit_at(rank: int) -> str:
    """Return a name for the hit at a rank."""
    return f"hit {rank}"


def explain(
    stream: Stream, rank: int, reader: Reader, options: CollapseOptions, name: Callable[[int], str] = hit_at
) -> Explanation:
    """Explain the hit at a rank of the engine's list. Raises IndexError for a rank that was not examined.

    name: rank -> how the rule names another hit.
    """
    index = stream.index_of(rank)
    leader = int(stream.leader[index])
    if seen := {place: one for place, *one in stream.seen}.get(index):
        return Explanation(rank, rank, None, seen[1], 0.0, f"it resembles item {seen[0]} of what was seen before")
    if shared := dict(stream.shares).get(index):
        similarity, of = float(stream.similarity[index]), int(stream.ranks[leader])
        return Explanation(rank, of, of, similarity, 0.0, f"both have the same {shared}")
    if reader.items is not None:
        return _explain_by_fields(stream, index, reader, reader.items, options)
    if stream.lacking[index]:
        return Explanation(rank, rank, None, 0.0, 0.0, f"its sketch is {stream.lacking[index]}, so it stands alone")
    above = [i for i in range(index) if stream.leader[i] == i and len(stream.sketches[i])]
    if not above:
        return Explanation(rank, rank, None, 0.0, 0.0, "no leader with a sketch comes before it")
    decision = Decision.of(options.min_similarity, reader.recipe, reader.frequency_table)
    sketches = as_compared(stream.sketches, reader.recipe.k, decision)
    estimates = {i: estimate(sketches[i], sketches[index], reader.recipe) for i in above}
    nearest = leader if leader != index else max(above, key=lambda i: (estimates[i].value, -i))
    estimated, other = estimates[nearest], int(stream.ranks[nearest])
    rows = rows_of([sketches[nearest], sketches[index]], reader.recipe.k)
    hits = [stream.hits[nearest], stream.hits[index]]
    compared, bar, guards = _verdict(stream, rows, hits, decision, reader, options)
    adds = _share_added(rows) if reader.recipe.measure == "kmv" else 0.0
    notes = [f"adds {adds:.0%} of its text"] if adds >= 0.005 else []
    if estimated.standard_error:
        notes.append(f"standard error {estimated.standard_error:.2f}")
    figures = f"{estimated.value:.2f} alike" + (f" ({', '.join(notes)})" if notes else "")
    if compared < estimated.value - 0.005:
        figures += f", {compared:.2f} without what many documents have in common"
    if leader != index:
        reached = compared >= bar - ROUNDING
        at_edges = _where_they_differ(rows, hits, decision, reader)
        below = f"below the bar of {bar:.2f}, but {at_edges or 'hardly anything differs'}"
        above_bar = f"which reaches the bar of {bar:.2f}" + (f", and {at_edges}" if at_edges else "")
        rule = f"{figures}, {above_bar if reached else below}"
    elif compared < bar:
        rule = f"the nearest leader, {name(other)}, is {figures}, below the bar of {bar:.2f}"
        short = max(len(stream.sketches[i]) for i in (nearest, index)) < reader.recipe.k
        if short and options.min_similarity == "auto" and estimated.value >= ALIKE:
            rule += ": they look like two entries of one form"
    else:
        apart = f"{', '.join(guards)} keeps them apart" if guards else "more than half of one is not in the other"
        rule = f"{name(other)} is {figures}, but {apart}"
    return Explanation(
        rank,
        int(stream.ranks[leader]),
        other,
        estimated.value,
        estimated.standard_error,
        rule,
        compared=compared,
        bar=bar,
        shared=len(np.intersect1d(sketches[nearest], sketches[index], assume_unique=True)),
        adds=adds,
        guards=guards,
    )


def _share_added(rows: Rows) -> float:
    """Return the share of the second document's shingles that the first one lacks, estimated from their sketches."""
    pair = overlaps(rows, np.array([0]), np.array([1]), None)
    return float((1 - pair.shared / np.maximum(pair.right, 1))[0])


def _where_they_differ(rows: Rows, hits: Sequence[Any], decision: Decision, reader: Reader) -> str:
    """Return a sentence about two hits that differ at their edges, "" about others. rows: their sketches."""
    one, other, table = np.array([0]), np.array([1]), decision.frequency_table
    if not differ_at_edges(rows, one, other, decision.rule, table).all():
        return ""
    half = int(rows.offsets[1])
    first, second = rows.values[:half], rows.values[half:]
    if np.array_equal(first >> 1, second >> 1):
        return "" if np.array_equal(first, second) else "the two have the same words"
    within = inside(rows)
    start = int(within.offsets[1])
    same = np.array_equal(within.values[:start], within.values[start:])
    sentence = "the two differ at their edges only" if same else "the two differ at their edges and hardly inside"
    texts = [reader.text_of(hit) for hit in hits]
    found = [_edges_of(prepare(text, reader.recipe)) for text in texts if text is not None]
    return f"{sentence} (one has {found[0]}, the other {found[1]})" if len(found) == 2 else sentence


def _edges_of(text: str) -> str:
    """Return the edges of a text, with an ellipsis for what stands between them."""
    ends = [(0, 0), *between_edges(text), (len(text), len(text))]
    first, *within, last = [text[end:start].strip() for (_, end), (start, _) in pairwise(ends)]
    found = [first, *filter(None, within), last]
    return f'"{" … ".join(found).strip()}"' if any(found) else "none"


def _explain_by_fields(
    stream: Stream, index: int, reader: Reader, items: RecordSchema, options: CollapseOptions
) -> Explanation:
    """Explain a hit that is compared by its fields."""
    rank, leader = int(stream.ranks[index]), int(stream.leader[index])
    if stream.lacking[index]:
        return Explanation(rank, rank, None, 0.0, 0.0, "it has none of the fields of items, so it stands alone")
    above = [i for i in range(index) if stream.leader[i] == i] if leader == index else [leader]
    record = record_of(stream.hits[index], reader, items)
    found = {i: items.similarity(record_of(stream.hits[i], reader, items), record) for i in above}
    if not found:
        return Explanation(rank, rank, None, 0.0, 0.0, "no leader comes before it")
    nearest = max(found, key=lambda i: (found[i].probability, found[i].similarity, -i))
    other, why = int(stream.ranks[nearest]), "; ".join(found[nearest].explain().splitlines())
    rule = why if leader != index else f"the nearest leader is hit {other}: {why}"
    if (bar := bar_of(options)) is not None:
        rule += f"; here hits are one thing from {bar:g} on"
    if leader == index and found[nearest].probability >= (bar or items.min_probability):
        pair = Pairs(np.array([0]), np.array([1]), np.ones(1))
        verdicts = allowed_by_fields(pair, [stream.hits[nearest], stream.hits[index]], reader, options)
        rule += f"; {', '.join(name for name, verdict in verdicts.items() if not verdict.all())} keeps them apart"
    return Explanation(rank, int(stream.ranks[leader]), other, found[nearest].probability, 0.0, rule)


def _verdict(
    stream: Stream, rows: Rows, hits: Sequence[Any], decision: Decision, reader: Reader, options: CollapseOptions
) -> tuple[float, float, tuple[str, ...]]:
    """Return the similarity that was compared with the bar, the bar, and the guards that keep the two hits apart."""
    pairs, weighted, bars = judged_pairs(rows, decision, least=0.0)
    if not len(pairs):
        return 0.0, decision.floor, ()
    verdicts = allowed(pairs, rows, hits, reader, options, reader.recipe.min_shingles)
    refusing = tuple(name for name, verdict in verdicts.items() if not verdict.all())
    if stream.apart is not None and (why := stream.apart(*hits)):
        refusing = (*refusing, why)
    return float(weighted[0]), float(bars[0]), refusing
