"""Learns the odds of grades from candidate pairs, without labels or with some.

Expectation maximisation (Dempster, Laird and Rubin 1977; Winkler 1988 for record linkage) alternates between the
probability that each pair is one thing, given the odds, and the odds, given these probabilities. Other pairs are
divided into as many kinds as there are fields, at first by the field in which so much agreement is rarest: pairs become
candidates because they agree in some field, and what else they have in common depends on which.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ndd_search.items.fields import Field
from ndd_search.items.grades import Graded, default_evidence, grade_count, patterns
from ndd_search.items.model import Grades, Model, Odds, default_odds, probabilities
from ndd_search.items.ragged import Floats, Places

_STRICTER = (0.0, 4.0, 8.0)  # log odds that starts take from the assumptions
_SOME = 30_000  # pairs on which starts are followed
_FEW = 10  # rounds after which starts that agree count as one
_ONE = 0.005  # change of their probabilities, as a share of the pairs of one thing, up to which they agree
_TRIED = 30  # more rounds, after which the others that agree do
_ROUNDS = 200
_CONVERGED = 1e-4  # mean change of a pair's probability in a round
_BELIEF = 10.0  # pairs that the assumptions about a field count for
_ROUNDING = 1e-9
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
    guesses = [some.first_guess(stricter, None) for stricter in _STRICTER]
    guesses += [some.first_guess(_STRICTER[1], place) for place in range(len(fields))]
    starts = some.different([some.improved(guess, _FEW)[1] for guess in guesses])
    starts = some.different([some.improved(some.expected(start).weight, _TRIED)[1] for start in starts])
    # Which optimum is likelier shows in all pairs, and where it is reached.
    return max((whole.improved(whole.expected(start).weight, _ROUNDS) for start in starts), key=itemgetter(0))[1]


class _Expected(NamedTuple):
    """How much of each row of grades belongs to each kind of pairs, one thing first.

    weight: shape (rows, kinds). likelihoods: log likelihood of each row; shape (rows,).
    moved:  the largest change of each row's weight since the round before, summed over all pairs.
    sums:   weight of all pairs of each kind, then of those with each grade of each field; shape (columns, kinds).
    """

    weight: Floats
    likelihoods: Floats
    sums: Floats
    moved: float


class _Fit:
    """Grades of pairs, and of labelled pairs, to which odds are fitted.

    Columns of all grades are numbered: 0 is that of the shares of kinds, then follow the grades of each field, and a
    column for a missing value.
    """

    def __init__(self, fields: Sequence[Field], grades: Grades, known: Grades, labels: Sequence[bool]) -> None:
        self.fields = fields
        self.rows, self.counts = patterns(grades)
        sizes = np.array([grade_count(field) + 1 for field in fields])
        self.starts = 1 + np.cumsum(sizes) - sizes
        self.columns = self._columns(self.rows)
        same = np.array(labels, np.float64)[:, None]
        self.fixed = self._sums(self._columns(known), np.hstack([same, *[(1 - same) / len(fields)] * len(fields)]))
        once = self._sums(self.columns, self.counts[:, None].astype(np.float64))
        self.prior = default_odds(fields).prior
        self.beliefs = []
        for f, field in enumerate(fields):
            before = _shares(self._of(f, once), _assumed(field))[0]
            agreeing = before * np.exp(default_evidence(field))
            self.beliefs.append(np.stack([agreeing / agreeing.sum(), *[before] * len(fields)]))

    def _columns(self, rows: Grades) -> Places:
        columns: Places = self.starts + np.where(rows < 0, [grade_count(field) for field in self.fields], rows)
        return columns

    def _sums(self, columns: Places, weight: Floats) -> Floats:
        """Return the weight of all rows and of those with each grade, shape (columns, kinds)."""
        size = int(self.starts[-1]) + grade_count(self.fields[-1]) + 1
        flat = columns.ravel()
        sums: Floats = np.stack(
            [np.bincount(flat, np.repeat(kind, columns.shape[1]), size) for kind in weight.T], axis=1
        ).astype(np.float64)
        sums[0] = weight.sum(axis=0)
        return sums

    def _of(self, place: int, table: Floats) -> Floats:
        """Return the columns of the grades of a field, shape (kinds, grades)."""
        return table[self.starts[place] : self.starts[place] + grade_count(self.fields[place])].T

    def first_guess(self, stricter: float, place: int | None) -> Floats:
        """Return the probability of each kind for each row of grades, one thing first; shape (rows, fields + 1).

        stricter: log odds that are taken from the assumptions. place: of a field that has to agree or be missing.
        """
        assumed = Model(self.fields, default_odds(self.fields))
        match = probabilities(assumed.log_odds(self.rows, vetoes=False) - stricter)
        evidence = [np.append(default_evidence(field), 0.0)[self.rows[:, f]] for f, field in enumerate(self.fields)]
        if place is not None:
            match[(evidence[place] <= 0) & (self.rows[:, place] >= 0)] = 0.0
        rarest = np.stack([self._surprise(of, self.rows[:, f] >= 0) for f, of in enumerate(evidence)])
        chosen = (rarest >= rarest.max(axis=0) - _ROUNDING).astype(np.float64)
        weight: Floats = np.concatenate((match[None], (1 - match) * chosen / chosen.sum(axis=0))).T
        return weight

    def _surprise(self, evidence: Floats, has: npt.NDArray[np.bool_]) -> Floats:
        """Return -log of the share of all pairs that agree at least so much in a field; -1 for a missing value."""
        values, which = np.unique(np.where(has, -evidence, np.inf), return_inverse=True)
        least = np.cumsum(np.bincount(which, self.counts, len(values))) / self.counts.sum()
        surprise: Floats = np.where(has, -np.log(least)[which], -1.0)
        return surprise

    def improved(self, weight: Floats, rounds: int) -> tuple[float, Odds]:
        """Alternate until nothing moves. Returns the mean log likelihood of a pair, and the odds."""
        total = max(float(self.counts.sum()), 1.0)
        odds, likelihood = self._maximised(self._sums(self.columns, weight * self.counts[:, None])), 0.0
        for _ in range(rounds):
            found = self.expected(odds, weight)
            likelihood = float(found.likelihoods @ self.counts) / total
            weight = found.weight
            odds = self._maximised(found.sums)
            if found.moved / total < _CONVERGED:
                break
        return likelihood, odds

    def different(self, starts: Sequence[Odds]) -> list[Odds]:
        """Return starts; of those that agree about which pairs are one thing, only the likeliest."""
        found = sorted(
            ((self.expected(odds), odds) for odds in starts), key=lambda one: -float(one[0].likelihoods @ self.counts)
        )
        kept: list[tuple[Floats, Odds]] = []
        for expected, odds in found:
            match = expected.weight[:, 0]
            same = _ONE * float(match @ self.counts)
            if all(float(np.abs(match - other) @ self.counts) > same for other, _ in kept):
                kept.append((match, odds))
        return [odds for _, odds in kept]

    def expected(self, odds: Odds, before: Floats | None = None) -> _Expected:
        """Return how much of each row belongs to each kind, given the odds. before: the same of the round before."""
        kinds = len(odds.u) + 1
        before = np.zeros((len(self.rows), kinds)) if before is None else before
        logs = np.zeros((int(self.starts[-1]) + grade_count(self.fields[-1]) + 1, kinds))
        logs[0] = np.log([odds.prior, *((1 - odds.prior) * share for share in odds.shares)])
        for f in range(len(self.fields)):
            self._of(f, logs)[:] = np.log([odds.m[f], *(kind[f] for kind in odds.u)])
        weight = logs[0] + logs[self.columns].sum(axis=1)
        most = weight.max(axis=1, keepdims=True)
        weight = np.exp(weight - most)
        total = weight.sum(axis=1, keepdims=True)
        weight /= total
        likelihoods = (most + np.log(total))[:, 0]
        moved = float(np.abs(weight - before).max(axis=1, initial=0) @ self.counts)
        return _Expected(weight, likelihoods, self._sums(self.columns, weight * self.counts[:, None]), moved)

    def _maximised(self, sums: Floats) -> Odds:
        """Return the odds that are most likely, given how much of each grade belongs to each kind."""
        total = sums[0]
        if self.fixed[0].any():
            sides = ((total[0], self.fixed[0, 0]), (total[1:].sum(), self.fixed[0, 1:].sum()))
            one, others = (max(float(part / max(given, 1e-9)), 1.0) for part, given in sides)
            sums = sums + self.fixed * np.array([one, *[others] * len(self.fields)])
        tables = [_shares(self._of(f, sums), belief).tolist() for f, belief in enumerate(self.beliefs)]
        shares = np.maximum(total[1:], _LEAST)
        prior = (total[0] + _BELIEF * self.prior) / (total.sum() + _BELIEF)
        return Odds(
            float(prior),
            tuple((shares / shares.sum()).tolist()),
            tuple(tuple(table[0]) for table in tables),
            tuple(tuple(tuple(table[kind]) for table in tables) for kind in range(1, len(total))),
        )


def _assumed(field: Field) -> Floats:
    """Return the share of each grade among other pairs that is assumed before any pair is seen, shape (1, grades)."""
    other = 1 / (1 + np.exp(default_evidence(field)))
    shares: Floats = other[None] / other.sum()
    return shares


def _shares(counted: Floats, belief: Floats) -> Floats:
    """Return the share of each grade in each kind of pairs, with _BELIEF pairs added; shape (kinds, grades)."""
    table = counted + _BELIEF * belief
    shares: Floats = table / table.sum(axis=1, keepdims=True)
    return shares
