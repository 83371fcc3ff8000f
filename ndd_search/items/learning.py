"""Learns the odds of grades from candidate pairs, without labels or with some.

Expectation maximisation (Dempster, Laird and Rubin 1977; Winkler 1988 for record linkage) alternates between the
probability that each pair is one thing, given the odds, and the odds, given these probabilities. Other pairs are
divided into as many kinds as there are fields, at first by the field in which they agree most: pairs become candidates
because they agree in some field, and what else they have in common depends on which.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ndd_search.items.fields import Field
from ndd_search.items.grades import Graded, default_evidence, grade_count, patterns
from ndd_search.items.model import Grades, Model, Odds, default_odds, probabilities
from ndd_search.items.ragged import Floats

_STRICTER = (0.0, 4.0, 8.0)  # log odds that starts take from the assumptions
_SOME = 30_000  # pairs that the starts are compared on
_TRIED = 40  # rounds after which they are compared
_ROUNDS = 200
_CONVERGED = 1e-4  # mean change of a pair's probability in a round
_BELIEF = 10.0  # pairs that the assumptions about a field count for
_LEAST = 1e-6  # share of a kind of pairs


def learn_odds(fields: Sequence[Field], graded: Graded, labelled: Graded, labels: Sequence[bool]) -> Odds:
    """Return the odds that explain the grades of candidate pairs best.

    labelled, labels: pairs that are known to be one thing, or not. Together they count as much as the other pairs of
    their kind, so that a few answers among many pairs are not lost.
    """
    if not len(graded) and not labels:
        return default_odds(fields)
    whole = _Fit(fields, graded.grades, labelled.grades, labels)
    some = _Fit(fields, graded.grades[:: max(len(graded) // _SOME, 1)], labelled.grades, labels)
    # Expectation maximisation finds a local optimum. Other starts lead to others, of which the likeliest is kept.
    starts = [some.improved(some.first_guess(stricter, None), _TRIED) for stricter in _STRICTER]
    starts += [some.improved(some.first_guess(_STRICTER[1], place), _TRIED) for place in range(len(fields))]
    best = max(starts, key=lambda start: start[0])[1]
    return whole.improved(_expected(best, whole.rows)[0], _ROUNDS)[1]


class _Fit:
    """Grades of pairs, and of labelled pairs, to which odds are fitted."""

    def __init__(self, fields: Sequence[Field], grades: Grades, known: Grades, labels: Sequence[bool]) -> None:
        self.fields = fields
        self.rows, self.counts = patterns(grades)
        same = np.array(labels, np.float64)
        self.known, self.fixed = known, np.vstack([same, *[(1 - same) / len(fields)] * len(fields)])
        once = self.counts[None].astype(np.float64)
        self.before = [_shares(field, self.rows[:, f], once, _assumed(field))[0] for f, field in enumerate(fields)]

    def first_guess(self, stricter: float, place: int | None) -> Floats:
        """Return the probability of each kind for each row of grades, one thing first; shape (fields + 1, rows).

        stricter: log odds that are taken from the assumptions. place: of a field that has to agree or be missing.
        """
        assumed = Model(self.fields, default_odds(self.fields))
        match = probabilities(assumed.log_odds(self.rows, vetoes=False) - stricter)
        evidence = [np.append(default_evidence(field), 0.0)[self.rows[:, f]] for f, field in enumerate(self.fields)]
        if place is not None:
            match[(evidence[place] <= 0) & (self.rows[:, place] >= 0)] = 0.0
        agreement = np.where(self.rows.T >= 0, np.stack(evidence), -9.0)
        weight = np.zeros((len(self.fields) + 1, len(self.rows)))
        weight[0] = match
        weight[1 + agreement.argmax(axis=0), np.arange(len(self.rows))] = 1 - match
        return weight

    def improved(self, weight: Floats, rounds: int) -> tuple[float, Odds]:
        """Alternate until nothing moves. Returns the mean log likelihood of a pair, and the odds."""
        total = max(float(self.counts.sum()), 1.0)
        odds, likelihood = self._maximised(weight), 0.0
        for _ in range(rounds):
            fresh, likelihoods = _expected(odds, self.rows)
            likelihood = float(likelihoods @ self.counts) / total
            moved = float(np.abs(fresh - weight).max(axis=0, initial=0) @ self.counts) / total
            weight = fresh
            odds = self._maximised(weight)
            if moved < _CONVERGED:
                break
        return likelihood, odds

    def _maximised(self, weight: Floats) -> Odds:
        """Return the odds that are most likely, given how much of each row belongs to each kind."""
        rows, weight = self.rows, weight * self.counts
        total = weight.sum(axis=1)
        if len(self.known):
            sides = ((total[0], self.fixed[0].sum()), (total[1:].sum(), self.fixed[1:].sum()))
            one, others = (max(float(part / max(given, 1e-9)), 1.0) for part, given in sides)
            factors = np.array([one, *[others] * len(self.fields)])
            rows = np.concatenate((rows, self.known))
            weight = np.concatenate((weight, self.fixed * factors[:, None]), axis=1)
        tables = []
        for f, field in enumerate(self.fields):
            agreeing = self.before[f] * np.exp(default_evidence(field))
            belief = np.stack([agreeing / agreeing.sum(), *[self.before[f]] * len(self.fields)])
            tables.append(_shares(field, rows[:, f], weight, belief))
        shares = np.maximum(total[1:], _LEAST)
        prior = (total[0] + _BELIEF * default_odds(self.fields).prior) / (total.sum() + _BELIEF)
        return Odds(
            float(prior),
            tuple((shares / shares.sum()).tolist()),
            tuple(tuple(table[0].tolist()) for table in tables),
            tuple(tuple(tuple(table[kind].tolist()) for table in tables) for kind in range(1, len(weight))),
        )


def _assumed(field: Field) -> Floats:
    """Return the share of each grade among other pairs that is assumed before any pair is seen, shape (1, grades)."""
    other = 1 / (1 + np.exp(default_evidence(field)))
    shares: Floats = other[None] / other.sum()
    return shares


def _shares(field: Field, grades: npt.NDArray[np.int16], weights: Floats, belief: Floats) -> Floats:
    """Return the share of each grade in each kind of pairs, with _BELIEF pairs added; shape (kinds, grades)."""
    has = grades >= 0
    counted = np.stack([np.bincount(grades[has], weight[has], grade_count(field)) for weight in weights])
    table = counted.astype(np.float64) + _BELIEF * belief
    shares: Floats = table / table.sum(axis=1, keepdims=True)
    return shares


def _expected(odds: Odds, rows: Grades) -> tuple[Floats, Floats]:
    """Return the probability of each kind for each row, shape (kinds, rows), and the log likelihood of each row."""
    shares = np.array([odds.prior, *((1 - odds.prior) * share for share in odds.shares)])
    log = np.repeat(np.log(shares)[:, None], len(rows), axis=1)
    for f in range(rows.shape[1]):
        table = np.log(np.array([odds.m[f], *(kind[f] for kind in odds.u)]))
        log += np.concatenate((table, np.zeros((len(table), 1))), axis=1)[:, rows[:, f]]
    most = log.max(axis=0)
    weight = np.exp(log - most)
    total = weight.sum(axis=0)
    return weight / total, most + np.log(total)
