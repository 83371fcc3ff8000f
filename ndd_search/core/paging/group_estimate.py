"""Estimates the number of groups of a long result from its first window and a small sample of the rest.

The sample is coordinated (Broder 1997; Cohen and Kaplan 2007, "Summarizing data using bottom-k sketches"): it holds the
hits with the smallest sketch values of the whole result. A document of s shingles is in it with probability
p = 1 - (1 - t)^s, where t is the limit of the sample as a share of all hash values. Near-duplicates share most of their
shingles, so they are in the sample together, and the duplicates among a few hits show how many there are among all.

Every sampled hit has the weight 1 / p. A duplicate of a hit of the first window counts with its weight; a duplicate of
another sampled hit with 1 / (probability that both are sampled), because some pairs are torn apart. The share of
duplicates is the ratio of the two sums (Hajek 1971). Its variance is that of a ratio of sums over groups, with two
duplicates and two other hits added (Agresti and Coull 1998), so that a sample without duplicates still has an interval.

A group that holds a large share of the result may be missing from the sample altogether, and the ratio is then wrong.
Where a large group shows, the sample's number of groups (Horvitz and Thompson 1952) and the first window's share of
groups are estimates of their own: the interval includes all three, and the value is their geometric mean.

With `group_by`, the engine counts the keys. No two leaders have an equal key, so there are at most as many groups as
keys and hits without one. There are fewer where hits resemble a leader of another key; the sample shows how many do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil, exp, expm1, floor, log1p, sqrt
from typing import Any

import numpy as np

from ndd_search.core.matching.group_by_keys import values_of
from ndd_search.core.matching.sketch_rows import Ranks
from ndd_search.core.options import CollapseOptions
from ndd_search.core.paging.stream import Reader, Stream
from ndd_search.core.sketching.estimate_similarity import estimated_shingles
from ndd_search.core.sketching.sketches import VALUES, Lack, Sketch

CONFIDENCE = 0.95
_STANDARD_ERRORS = 1.96  # of a normal distribution, for that confidence
_ADDED = 2  # duplicates, and other hits, that are added for the variance
_MOST = 3.0  # weight of a duplicate, relative to its hit: bounds the weight of pairs with a low resemblance
_LARGE_IN_WINDOW, _LARGE_IN_SAMPLE = 0.06, 0.12  # share of a group from which the sample may have missed others

ReaderOf = Callable[[Sequence[Sketch | Lack]], Reader]


@dataclass(frozen=True)
class GroupEstimate:
    """A number of groups. relation: "eq" for an exact number, "estimate" for one with the 95 % interval low..high."""

    value: int
    relation: str
    low: int
    high: int

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for JSON, with the confidence of the interval of an estimate."""
        return {**vars(self), **({"confidence": CONFIDENCE} if self.relation == "estimate" else {})}

    @classmethod
    def exactly(cls, value: int) -> GroupEstimate:
        """Return an exact number."""
        return cls(value, "eq", value, value)

    @classmethod
    def between(cls, value: float, low: float, high: float, least: int, most: int) -> GroupEstimate:
        """Return an estimate within the bounds least..most, which always hold."""
        bounds = max(floor(low), least), min(ceil(high), most)
        return cls(min(max(round(value), bounds[0]), bounds[1]), "estimate", *bounds)


@dataclass(frozen=True, eq=False)
class Sample:
    """The hits of a result with the smallest sketch values.

    hits:     ascending by their smallest value; all hits that have values if `complete`.
    sketches: of each hit, or why it has none to compare. smallest: its smallest value.
    total:    number of hits of the result. lacking: how many of them have no values.
    keys:     with `group_by`, the number of its different keys and of hits without one.
    """

    hits: Sequence[Any]
    sketches: Sequence[Sketch | Lack]
    smallest: Sequence[int]
    total: int
    lacking: int
    keys: int | None = None

    @property
    def complete(self) -> bool:
        """Whether every hit with values is in the sample."""
        return len(self.hits) >= self.total - self.lacking

    @property
    def limit(self) -> int:
        """Every hit with a smaller value is in the sample. Further hits may have the last value of the sample."""
        return VALUES if self.complete or not self.hits else self.smallest[-1]

    def beyond(self, head: Stream) -> Sample:
        """Return the sampled hits below the limit that the head of the result does not hold.

        Each hit of the head with a smaller value is in the sample, so as many equal sketches of the same index are left
        out as the head has.
        """
        limit, places = self.limit, []
        held = Counter(
            (hit.get("_index"), one.tobytes())
            for hit, one in zip(head.hits, head.sketches, strict=True)
            if len(one) and one[0] < limit
        )
        for place, (hit, one) in enumerate(zip(self.hits, self.sketches, strict=True)):
            if self.smallest[place] >= limit:
                break
            key = hit.get("_index"), b"" if isinstance(one, str) else one.tobytes()
            if held[key]:
                held[key] -= 1
            else:
                places.append(place)
        hits, sketches = ([column[place] for place in places] for column in (self.hits, self.sketches))
        return replace(self, hits=hits, sketches=sketches)


def head_of(stream: Stream, window: int) -> Stream:
    """Return the stream of the first `window` places of the engine's list."""
    if stream.fetched <= window:
        return stream
    return replace(stream.only(range(stream.examined(window))), fetched=window, exhausted=False)


def extrapolated(head: Stream, total: int) -> GroupEstimate:
    """Return the estimate from the first window alone. low, high: bounds that always hold."""
    groups, unseen = _groups(head), max(total - head.fetched, 0)
    share = groups / len(head.hits) if head.hits else 1.0
    return GroupEstimate.between(groups + unseen * share, groups, groups + unseen, groups, groups + unseen)


def estimate_groups(head: Stream, sample: Sample, reader: ReaderOf, options: CollapseOptions) -> GroupEstimate:
    """Return the number of groups of a result.

    head:   the first window of its stream; an empty one for a sample alone.
    reader: makes the reader of hits that follow the head, from their sketches.
    """
    if sample.keys is not None:
        return _estimate_by_keys(head, sample, sample.keys, reader, options)
    groups = _groups(head)
    bare = max(sample.lacking - head.lacking.count("missing") - head.lacking.count("empty"), 0)
    unseen = max(sample.total - head.fetched - bare, 0)  # with values
    if not unseen:
        return GroupEstimate.exactly(groups + bare)
    further = sample.beyond(head)
    if not further.hits:  # all have one smallest value, as the copies of one text do, and there may be more of them
        if not head.hits:
            head = head.extend(sample.hits, len(sample.hits), reader(sample.sketches), options)
        return extrapolated(head, sample.total)
    stream = head.extend(further.hits, len(further.hits), reader(further.sketches), options)
    if sample.complete and not head.hits:
        other = reader(further.sketches[::-1])
        counts = _groups(stream), _groups(head.extend(further.hits[::-1], len(further.hits), other, options))
        return GroupEstimate(bare + counts[0], "estimate", bare + min(counts), bare + max(counts))
    counted = _Counted.of(stream, len(head.hits), sample.limit / VALUES, reader(()).recipe.k)
    share, error = counted.duplicates()
    values = [unseen * (1 - share)]
    bounds = [unseen * (1 - share - error), unseen * (1 - share + error)]
    if _largest(head.leader) > _LARGE_IN_WINDOW or counted.largest > _LARGE_IN_SAMPLE:
        number, spread = counted.groups()
        shares = [unseen * groups / len(head.hits)] if head.hits else []
        values += [number, *shares]
        bounds += [number - spread, number + spread, *shares, *(one / 2 for one in shares)]
    known = groups + bare
    value = float(np.exp(np.mean(np.log([known + max(one, 1.0) for one in values]))))
    return GroupEstimate.between(value, known + min(bounds), known + max(bounds), max(known, 1), known + unseen)


def _estimate_by_keys(
    head: Stream, sample: Sample, keys: int, reader: ReaderOf, options: CollapseOptions
) -> GroupEstimate:
    """Return the number of groups of a result whose hits are also grouped by a field."""
    groups, unseen = _groups(head), max(sample.total - head.fetched, 0)
    if not unseen:
        return GroupEstimate.exactly(groups)
    (name,), value_of = options.group_by, reader(()).value
    if keys >= sample.total and any(values_of(hit, name, value_of) for hit in head.hits):
        return extrapolated(head, sample.total)  # no equal keys: the engine may not have indexed the field
    further, most = sample.beyond(head), max(min(groups + unseen, keys), groups, 1)
    if not further.hits:
        return GroupEstimate.between(most, groups, most, max(groups, 1), most)
    stream = head.extend(further.hits, len(further.hits), reader(further.sketches), options)
    own = [values_of(hit, name, value_of) for hit in stream.hits]
    leaders = zip(own, stream.leader.tolist(), strict=True)
    elsewhere = np.array([own[leader].isdisjoint(values) for values, leader in leaders])
    elsewhere &= stream.leader != np.arange(len(own))
    by_text = replace(stream, leader=np.where(elsewhere, stream.leader, np.arange(len(own))))
    share, error = _Counted.of(by_text, len(head.hits), sample.limit / VALUES, reader(()).recipe.k).duplicates()
    value = keys - int(np.count_nonzero(elsewhere[: len(head.hits)])) - unseen * share
    return GroupEstimate.between(value, value - unseen * error, most, max(groups, 1), most)


@dataclass(frozen=True)
class _Counted:
    """Sampled hits with their weights, as plain numbers: there are too few of them for calls of numpy to pay.

    weights:    1 / probability to be in the sample.
    duplicate:  weight as a duplicate, 0 for a leader.
    group:      of each hit.
    """

    weights: Sequence[float]
    duplicate: Sequence[float]
    group: Sequence[int]

    @classmethod
    def of(cls, stream: Stream, known: int, limit: float, k: int) -> _Counted:
        """Weigh the hits of a stream after the first `known`, which are no sample. limit: a share of all values."""
        absent = log1p(-min(limit, 1 - 1e-12))  # logarithm of the probability that one shingle is above the limit
        leader, similarity = stream.leader[known:].tolist(), stream.similarity[known:].tolist()
        sizes = _sizes(stream, {*range(known, known + len(leader)), *leader}, k)
        weights, duplicate = [], []
        for place, (first, alike) in enumerate(zip(leader, similarity, strict=True), known):
            chance = -expm1(sizes[place] * absent)
            weights.append(1 / chance)
            if first == place:
                duplicate.append(0.0)
            elif first < known:
                duplicate.append(1 / chance)
            else:
                union = (sizes[place] + sizes[first]) / (1 + alike)
                both = chance - expm1(sizes[first] * absent) - 1 + exp(union * absent)
                duplicate.append(min(1 / max(both, 1e-12), _MOST / chance))
        return cls(weights, duplicate, leader)

    def duplicates(self) -> tuple[float, float]:
        """Return the share of duplicates, 0..1, and half of its 95 % interval."""
        total, duplicates = sum(self.weights), sum(self.duplicate)
        mean = sum(weight**2 for weight in self.weights) / total  # few heavy hits are a small sample
        share, whole = min(duplicates / total, 1.0), total + 2 * _ADDED * mean
        smoothed = min((duplicates + _ADDED * mean) / whole, 1.0)
        residuals = self._sums(
            duplicate - smoothed * weight for duplicate, weight in zip(self.duplicate, self.weights, strict=True)
        )
        added = _ADDED * mean**2 * ((1 - smoothed) ** 2 + smoothed**2)
        error = _STANDARD_ERRORS * sqrt(sum(one**2 for one in residuals) + added) / whole
        return share, error + abs(share - smoothed)

    def groups(self) -> tuple[float, float]:
        """Return the number of groups in all, and half of its 95 % interval."""
        led = self._sums(weight - duplicate for weight, duplicate in zip(self.weights, self.duplicate, strict=True))
        added = _ADDED * (sum(self.weights) / len(self.weights)) ** 2
        return max(sum(led), 0.0), _STANDARD_ERRORS * sqrt(sum(one**2 for one in led) + added)

    @property
    def largest(self) -> float:
        """The share of the hits that are in the largest group."""
        return max(Counter(self.group).values()) / len(self.group)

    def _sums(self, values: Iterable[float]) -> list[float]:
        """Return the sum of a value of each hit, by group."""
        sums = dict.fromkeys(self.group, 0.0)
        for group, value in zip(self.group, values, strict=True):
            sums[group] += value
        return list(sums.values())


def _sizes(stream: Stream, places: Collection[int], k: int) -> dict[int, float]:
    """Return the estimated number of shingles of some hits of a stream; of those without values, the mean of others."""
    known = [place for place in places if len(stream.sketches[place])]
    sketches = [stream.sketches[place] for place in known]
    found = estimated_shingles([len(one) for one in sketches], [one[-1] for one in sketches], k).tolist()
    mean = sum(found) / len(found) if found else 1.0
    return {**dict.fromkeys(places, mean), **dict(zip(known, found, strict=True))}


def _groups(stream: Stream) -> int:
    return int(np.count_nonzero(stream.leader == np.arange(len(stream.leader))))


def _largest(leader: Ranks) -> float:
    return float(np.bincount(leader).max() / len(leader)) if len(leader) else 0.0
