"""From grades of agreement to the probability that two records are one thing.

The model is that of Fellegi and Sunter (1969, "A theory for record linkage"): the grade of each field is more likely
among records of one thing (m) than among others (u), and log(m / u) is its evidence. Fields are not independent among
records of different things: two airports of one city agree in city, country and, nearly, in place. So u is a mixture of
several kinds of pairs (a latent class model), within each of which fields are independent.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ndd_search.items.compare_values import Rareness
from ndd_search.items.fields import Field
from ndd_search.items.grades import default_evidence, grade_count
from ndd_search.items.integer_lists import Floats

Grades = npt.NDArray[np.int16]

_COST: dict[str, float] = {"name": 3.0, "text": 2.0, "url": 3.0}  # of comparing two values
_ROUNDING = 1e-6
PRIOR = -3.0  # log odds of a candidate pair before anything is learnt
THIN = float(np.log(9))  # log odds above or below the bar, up to which a verdict has a thin margin
UNSURE = 0.15  # verdicts of a thin margin, for each pair that counts as one thing, that are worth a warning
_FEWEST = 100  # pairs of one thing from which evidence is learnt reliably


@dataclass(frozen=True)
class Odds:
    """What is known about the grades of pairs.

    prior:  share of candidate pairs that are one thing, in 0..1.
    shares: of each kind of other pairs; they sum to 1.
    m:      of each field the probability of each grade among pairs of one thing.
    u:      of each kind of other pairs and each field, the same.
    """

    prior: float
    shares: tuple[float, ...]
    m: tuple[tuple[float, ...], ...]
    u: tuple[tuple[tuple[float, ...], ...], ...]


def default_odds(fields: Sequence[Field]) -> Odds:
    """Return what is assumed before anything is learnt: the evidence of each kind of field."""
    m, u = [], []
    for field in fields:
        evidence = np.clip(default_evidence(field), -9, 9)
        other = 1 / (1 + np.exp(evidence))
        m.append(tuple((np.exp(evidence) * other).tolist()))
        u.append(tuple(other.tolist()))
    return Odds(float(1 / (1 + np.exp(-PRIOR))), (1.0,), tuple(m), (tuple(u),))


def expected_share(odds: Odds, grades: Grades) -> Floats:
    """Return the share of compared pairs that odds let expect to have the grades of each of some pairs; shape (n,).

    How many pairs lack a value is not known, so a missing value counts as any value.
    """
    priors = odds.prior, *((1 - odds.prior) * np.array(odds.shares))
    shares: Floats = np.zeros(len(grades))
    for prior, kind in zip(priors, (odds.m, *odds.u), strict=True):
        shares += prior * np.prod([np.append(of, 1.0)[grades[:, f]] for f, of in enumerate(kind)], axis=0)
    return shares


class Model:
    """Log odds of pairs. shares: the logarithm of the share of each kind of other pairs."""

    def __init__(self, fields: Sequence[Field], odds: Odds) -> None:
        self._fields = list(fields)
        weights = [field.weight for field in self._fields]
        self._prior = np.log(odds.prior) - np.log1p(-odds.prior)
        self._u = odds.u
        self.shares: Floats = np.log(np.maximum(np.array(odds.shares), 1e-12))
        # Of each field and kind of other pairs: log(u / m) of each grade, and 0 at the end, for a missing value.
        self._against = [
            np.array([_against(field, odds.m[f], kind[f]) for kind in odds.u]) * weight
            for f, (field, weight) in enumerate(zip(self._fields, weights, strict=True))
        ]

    @cached_property
    def stages(self) -> list[tuple[int, Floats]]:
        """The fields, those first that the core compares, and that tell most pairs apart for their cost.

        Of each, a lower bound of what all later fields add to log(u / m), for each kind of other pairs.
        """

        def turn(place: int) -> tuple[bool, float]:
            field = self._fields[place]
            return not field.compiled, -self._telling(place) / _COST.get(field.kind, 1.0)

        order = sorted(range(len(self._fields)), key=turn)
        least = np.array([self._against[f].min(axis=1) for f in order])
        return [(f, least[place + 1 :].sum(axis=0)) for place, f in enumerate(order)]

    def _telling(self, place: int) -> float:
        """Return the mean of log(u / m) among pairs of different things."""
        shares = np.exp(self.shares)[:, None] * np.array([kind[place] for kind in self._u])
        return float((shares * self._against[place][:, :-1]).sum())

    def most_against(self, bar: float) -> float:
        """Return the log(u / m) of some fields, and of bounds of the others, above which no pair reaches a bar."""
        return float(self._prior - bar + _ROUNDING)

    @cached_property
    def tables(self) -> list[Floats]:
        """Of each field log(u / m), shape (grades + 1, kinds); the last row is that of a missing value."""
        return [np.ascontiguousarray(table.T) for table in self._against]

    def log_odds(self, grades: Grades, *, without: int | None = None, vetoes: bool = True) -> Floats:
        """Return the log odds that pairs are one thing; shape (n,).

        without: a field that is left out, as if its value was missing. vetoes: give -inf where a veto holds.
        """
        against = np.repeat(self.shares[:, None], len(grades), axis=1)
        for f, table in enumerate(self._against):
            if f != without:
                against += table[:, grades[:, f]]
        most = against.max(axis=0)
        odds: Floats = self._prior - most - np.log(np.exp(against - most).sum(axis=0))
        for f, field in enumerate(self._fields):
            if vetoes and field.veto and f != without:
                odds[self.is_vetoed(grades[:, f], f)] = -np.inf
        return odds

    def is_vetoed(self, grades: npt.NDArray[np.int16], place: int) -> npt.NDArray[np.bool_]:
        """Return which grades of a field are its lowest one. place: of the field."""
        field = self._fields[place]
        lowest: npt.NDArray[np.bool_] = grades >= grade_count(field) - grade_count(field) // (len(field.edges) + 1)
        return lowest


def _against(field: Field, m: Sequence[float], u: Sequence[float]) -> Floats:
    """Return log(u / m) of each grade: never above 0 for full agreement, never below 0 for the lowest grade.

    Of values that are equally common, less similar ones never have a lower one: grades that few pairs have are learnt
    with errors, which this evens out.
    """
    ratio = np.log(np.array(u)) - np.log(np.array(m))
    each = grade_count(field) // (len(field.edges) + 1)
    ratio[:each] = np.minimum(ratio[:each], 0)
    ratio[-each:] = np.maximum(ratio[-each:], 0)
    weights = np.array(m) + np.array(u)
    for rarity in range(each):
        ratio[rarity::each] = _ascending(ratio[rarity::each].tolist(), weights[rarity::each].tolist())
    return np.concatenate((ratio, [0.0]))


def _ascending(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Return the ascending values that are nearest to some by weighted squares.

    Neighbours in the wrong order are replaced by their mean (Ayer et al. 1955, "pool adjacent violators").
    """
    pools: list[tuple[float, float, int]] = []  # mean, weight and number of values
    for value, weight in zip(values, weights, strict=True):
        pools.append((value, weight, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (mean, some, count), (other, more, others) = pools[-2:]
            pools[-2:] = [((mean * some + other * more) / (some + more), some + more, count + others)]
    return [mean for mean, _, count in pools for _ in range(count)]


def log_odds_of(probability: float) -> float:
    """Return a probability above 0 and below 1 as log odds."""
    return float(np.log(probability) - np.log1p(-probability))


def probabilities(log_odds: Floats) -> Floats:
    """Return log odds as probabilities in 0..1."""
    found: Floats = 1 / (1 + np.exp(-np.clip(log_odds, -700, 700)))
    found[np.isneginf(log_odds)] = 0.0
    return found


def unsure(odds: Floats) -> float:
    """Return how many verdicts have a thin margin, for each pair that counts as one thing. odds: above the bar.

    It is a count and no estimate, and may be above 1; benchmarks/figures/items.md says how many verdicts were wrong.
    """
    return float((np.abs(odds) < THIN).sum() / max(int((odds >= 0).sum()), 1))


@dataclass(frozen=True)
class Learnt:
    """What was learnt from a collection.

    odds:    of the grades of each field, in the order of the schema's fields.
    common:  how many records hold the most common values, by field.
    records: how many records it was learnt from. pairs: how many candidate pairs; of a large collection, those of a
             sample of its records.
    same:    how many of these pairs are expected to be one thing.
    unsure:  verdicts about these pairs that have a thin margin, for each pair that counts as one thing.
    notes:   doubts about kinds of fields, and about other readings of the same pairs.
    lists:   log odds of two records of a list that holds each thing once: see lists_without_duplicates.
    basis:   a sentence: why these odds are in use, and which simple rule comes nearest.
    """

    odds: Odds
    common: Mapping[str, Rareness]
    records: int
    pairs: int
    same: int = 0
    unsure: float = 0.0
    notes: tuple[str, ...] = ()
    lists: Mapping[tuple[str, ...], float] = dataclasses.field(default_factory=dict)
    basis: str = ""

    @property
    def doubts(self) -> tuple[str, ...]:
        """Sentences about why the verdicts may be poor; none if nothing points to that (figures in docs/items.md)."""
        few = f"only about {self.same} of {self.pairs:,} compared pairs are expected to be one thing"
        return (
            *[f"{few}, fewer than {_FEWEST}: learn from more records of the same collection, or answer questions"]
            * (self.same < _FEWEST),
            *[unsure_because(self.unsure)] * (self.unsure > UNSURE),
            *self.notes,
        )


def unsure_because(share: float) -> str:
    """Return a sentence about many verdicts of a thin margin. share: what `unsure` returns."""
    return (
        f"for 100 pairs that count as one thing, {100 * share:,.0f} verdicts have a thin margin (odds below 9 to 1): "
        "many of these are wrong; the fields say too little, or the schema was learnt from too few or from other "
        "records: add fields, or answer questions"
    )
