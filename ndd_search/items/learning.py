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

from ndd_search.items.compare import Floats
from ndd_search.items.fields import Field
from ndd_search.items.grades import Graded, default_evidence, grade_count, patterns
from ndd_search.items.model import Grades, Model, Odds, default_odds, probabilities

_STARTS = (0.0, 4.0, 8.0)
_TRIED = 40  # rounds after which the starts are compared
_ROUNDS = 200
_CONVERGED = 1e-4  # mean change of a pair's probability in a round
_BELIEF = 10.0  # pairs that the assumptions about a field count for
_LEAST = 1e-6  # share of a kind of pairs


def learn_odds(fields: Sequence[Field], graded: Graded, labelled: Graded, labels: Sequence[bool]) -> Odds:
    """Return the odds that explain the grades of candidate pairs best.

    labelled, labels: pairs that are known to be one thing, or not. Together they count as much as the other pairs of
    their kind, so that a few answers among many pairs are not lost.
    """
    rows, counts = patterns(graded)
    if not len(rows) and not labels:
        return default_odds(fields)
    before = [
        _shares(field, rows[:, f], counts[None].astype(np.float64), _smooth(field))[0] for f, field in enumerate(fields)
    ]
    same = np.array(labels, np.float64)
    known, fixed = labelled.grades, np.vstack([same, *[(1 - same) / len(fields)] * len(fields)])

    def improved(weight: Floats, rounds: int) -> tuple[float, Floats, Odds]:
        """Alternate until nothing moves. Returns the mean log likelihood of a pair, the probabilities and the odds."""
        odds = _maximised(fields, before, rows, weight * counts, known, fixed)
        likelihood = 0.0
        for _ in range(rounds):
            fresh, likelihoods = _expected(odds, rows)
            moved = float(np.abs(fresh - weight).max(axis=0, initial=0) @ counts / max(counts.sum(), 1))
            likelihood = float(likelihoods @ counts / max(counts.sum(), 1))
            weight = fresh
            odds = _maximised(fields, before, rows, weight * counts, known, fixed)
            if moved < _CONVERGED:
                break
        return likelihood, weight, odds

    # Expectation maximisation finds a local optimum. Starts that call fewer pairs one thing lead to others.
    starts = [improved(_first_guess(fields, rows, stricter), _TRIED) for stricter in _STARTS]
    return improved(max(starts, key=lambda start: start[0])[1], _ROUNDS)[2]


def _first_guess(fields: Sequence[Field], rows: Grades, stricter: float) -> Floats:
    """Return the probability of each kind for each row of grades, one thing first; shape (fields + 1, rows).

    stricter: log odds that are taken from the assumptions.
    """
    match = probabilities(Model(fields, default_odds(fields)).log_odds(rows, vetoes=False) - stricter)
    agreement = np.stack([np.append(default_evidence(field), -9.0)[rows[:, f]] for f, field in enumerate(fields)])
    weight = np.zeros((len(fields) + 1, len(rows)))
    weight[0] = match
    weight[1 + agreement.argmax(axis=0), np.arange(len(rows))] = 1 - match
    return weight


def _smooth(field: Field) -> Floats:
    return np.full((1, grade_count(field)), 1 / grade_count(field))


def _shares(field: Field, grades: npt.NDArray[np.int16], weights: Floats, belief: Floats) -> Floats:
    """Return the share of each grade in each kind of pairs, with _BELIEF pairs added; shape (kinds, grades)."""
    has = grades >= 0
    counted = np.stack([np.bincount(grades[has], weight[has], grade_count(field)) for weight in weights])
    table = counted.astype(np.float64) + _BELIEF * belief
    shares: Floats = table / table.sum(axis=1, keepdims=True)
    return shares


def _maximised(
    fields: Sequence[Field], before: Sequence[Floats], rows: Grades, weight: Floats, known: Grades, fixed: Floats
) -> Odds:
    """Return the odds that are most likely, given how much of each row belongs to each kind."""
    total = weight.sum(axis=1)
    if known.size:
        factor = [max(whole / max(part, 1e-9), 1.0) for whole, part in (
            (total[0], fixed[0].sum()), (total[1:].sum(), fixed[1:].sum())
        )]  # fmt: skip
        rows = np.concatenate((rows, known))
        weight = np.concatenate(
            (weight, fixed * np.array([factor[0], *[factor[1]] * (len(fixed) - 1)])[:, None]), axis=1
        )
    tables = []
    for f, field in enumerate(fields):
        agreeing = before[f] * np.exp(default_evidence(field))
        belief = np.stack([agreeing / agreeing.sum(), *[before[f]] * (len(weight) - 1)])
        tables.append(_shares(field, rows[:, f], weight, belief))
    shares = np.maximum(total / max(total.sum(), 1e-9), _LEAST)
    others = shares[1:] / shares[1:].sum()
    return Odds(
        float(np.clip(shares[0], _LEAST, 1 - _LEAST)),
        tuple(others.tolist()),
        tuple(tuple(table[0].tolist()) for table in tables),
        tuple(tuple(tuple(table[kind].tolist()) for table in tables) for kind in range(1, len(weight))),
    )


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
