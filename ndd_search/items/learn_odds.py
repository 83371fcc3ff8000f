"""Learns the odds of grades from candidate pairs, without labels.

Expectation maximisation (Dempster, Laird and Rubin 1977; Winkler 1988 for record linkage) alternates between the
probability that each pair is one thing, given the odds, and the odds, given these probabilities. Other pairs are
divided into as many kinds as there are fields, at first by the field in which so much agreement is rarest: pairs become
candidates because they agree in some field, and what else they have in common depends on which.

Likelihood alone cannot tell a kind of other pairs from variants of one thing: both agree far more than chance explains.
A kind of other pairs (a family, a building, a brand) agrees no more than two random records do in some field that pairs
of one thing agree in. A kind without such a field is united with the pairs of one thing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ndd_search.items.fields import Field
from ndd_search.items.grades import Graded, default_evidence, full_agreement, grade_count, pattern_of
from ndd_search.items.integer_lists import Floats
from ndd_search.items.lists_without_duplicates import Known, Said
from ndd_search.items.probability_model import PRIOR, Grades, Model, Odds, default_odds, probabilities

_STRICTER = 4.0  # log odds that starts take from the assumptions
_SOME = 30_000  # pairs on which starts are followed
_FEW = 10  # rounds after which starts that agree count as one
_ONE = 0.005  # change of their probabilities, as a share of the pairs of one thing, up to which they agree
_TRIED = 30  # more rounds, after which the others that agree do
_ROUNDS = 200
_CONVERGED = 1e-4  # mean change of a pair's probability in a round
_BELIEF = 10.0  # pairs that the assumptions about a field count for
_ROUNDING = 1e-9
_BLOCK = 64  # rows
_LEAST = 1e-6  # share of a kind of pairs
_SOMETIMES = 1e-4  # share from which a kind counts
_CHANCE = 0.15  # information of a field, as a share of that in pairs of one thing, up to which a kind agrees by chance
_FAMILY = 0.2  # the same, up to which pairs of one thing by one reading are a family by another
_TELLING = 1.0  # information of a field about pairs of one thing from which it can tell a kind of others from them
_TRUSTED = 1 / 3  # expected wrong verdicts, as below, up to which odds tell that others unite families
_SHARP = 0.08  # expected wrong verdicts, as a share of the pairs called one thing, up to which odds are of use


class Compared(NamedTuple):
    """Grades of pairs of records, the number of pairs that each counts for, and what is known about them."""

    grades: Grades
    weights: Floats
    known: Said

    def with_more(self, others: Compared) -> Compared:
        """Return both."""
        return Compared(
            np.concatenate((self.grades, others.grades)),
            np.concatenate((self.weights, others.weights)),
            np.concatenate((self.known, others.known)),
        )

    def thinned(self) -> Compared:
        """Return about _SOME of them."""
        some = slice(None, None, max(len(self.grades) // _SOME, 1))
        return Compared(self.grades[some], self.weights[some], self.known[some])


class Sample(NamedTuple):
    """What odds are learnt from.

    graded: candidate pairs. known: what lists without duplicates say about each.
    random: pairs of records that were drawn at random. pairs: how many pairs of records there are.
    """

    graded: Graded
    known: Known
    random: Graded
    pairs: float


def learn_odds(fields: Sequence[Field], sample: Sample) -> list[Odds]:
    """Return the odds that explain the grades of candidate pairs, the most trustworthy first, the assumed ones last.

    Two ways of learning are tried: with a kind of other pairs for each field, and with random pairs as the others
    (Fellegi and Sunter's model as it is mostly used). The first one knows families, the second one does not; but where
    most candidates are one thing, the first one takes variants for a kind of others, and its verdicts become vague.
    Those odds count that let expect the fewest wrong verdicts; of several that let expect few, the first way's. Odds
    that call no pair one thing do not, nor those that unite families, as other odds that are sure show: if none are
    left, the assumed ones are the safest.
    """
    assumed = default_odds(fields)
    graded, known, random = sample.graded, sample.known, sample.random
    if not len(graded):
        return [assumed]
    usual, share = _usual(fields, random), len(graded) / sample.pairs
    found = Compared(graded.grades, known.counts, known.said)
    left = np.full(len(random), max(sample.pairs - len(graded), 1.0) / max(len(random), 1))
    others = Compared(random.grades, left, np.zeros(len(random), np.int8))
    by_kinds = _by_kinds(fields, found, usual, share)
    chance = _Fit(fields, found.with_more(others), usual, 1)
    # Random pairs stand for all pairs of records that are no candidates.
    by_chance = chance.improved(chance.first_guess(None), _TRIED, share)
    judged = {odds: probabilities(Model(fields, odds).log_odds(graded.grades)) for odds in (*by_kinds, by_chance)}
    wrong = {odds: expected_wrong(probability, known.said) for odds, probability in judged.items()}
    told = {
        odds: _information(odds.m, usual)
        for odds, of in judged.items()
        if wrong[odds] < 1 and (of > 0.5).any() and not _unites_families(fields, odds, usual)
    }
    sure = [same for odds, same in told.items() if wrong[odds] <= _TRUSTED]
    things = [odds for odds, same in told.items() if not any(_agrees_by_chance(same, other, _FAMILY) for other in sure)]
    best = min(things, key=lambda odds: (max(wrong[odds], _SHARP), odds == by_chance, wrong[odds]), default=assumed)
    return list(dict.fromkeys((best, *[by_chance] * (expected_wrong(judged[by_chance]) <= _SHARP), assumed)))


def _unites_families(fields: Sequence[Field], odds: Odds, usual: Sequence[Floats]) -> bool:
    """Return whether pairs of one thing differ, by what is assumed, in the field that tells most about them.

    Such pairs are near to each other, as the districts of a town, and not the same.
    """
    telling = int(_information(odds.m, usual).argmax())
    return float(np.array(odds.m[telling]) @ default_evidence(fields[telling])) < 0


def expected_wrong(probability: Floats, said: Said | None = None) -> float:
    """Return the wrong verdicts, for each pair that counts as one thing.

    They are those that the probabilities let expect, and the pairs that are known to be two things.
    """
    one = probability >= 0.5
    known = 0 if said is None else int((said[one] < 0).sum())
    return float((np.minimum(probability, 1 - probability).sum() + known) / max(int(one.sum()), 1))


def _usual(fields: Sequence[Field], random: Graded) -> list[Floats]:
    """Return of each field the share of each grade among random pairs of records."""
    held = [random.grades[:, f][random.grades[:, f] >= 0] for f in range(len(fields))]
    counts = [np.bincount(of, minlength=grade_count(field)) for of, field in zip(held, fields, strict=True)]
    return [(n + _assumed(field)[0]) / (n.sum() + 1) for n, field in zip(counts, fields, strict=True)]


def _by_kinds(fields: Sequence[Field], found: Compared, usual: Sequence[Floats], share: float) -> list[Odds]:
    """Return odds with a kind of other pairs for each field, found from several starts. share: see `_Fit.united`."""
    whole, some = (_Fit(fields, pairs, usual, len(fields)) for pairs in (found, found.thinned()))
    # Expectation maximisation finds a local optimum. Other starts lead to others: what is assumed, each field, and the
    # simplest rules, that the field which agrees least by chance is equal, and one more.
    each = [np.arange(grade_count(field), dtype=np.int16) for field in fields]
    equal = [of[full_agreement(field, grades)].sum() for of, field, grades in zip(usual, fields, each, strict=True)]
    name = int(np.argmin(equal))
    guesses = [some.first_guess(place) for place in (None, *range(len(fields)))]
    guesses += [some.by_rule(name, place) for place in range(len(fields)) if place != name]
    starts = some.different([some.improved(guess, _FEW) for guess in guesses])
    starts = some.different([some.united(some.expected(start).weight, _TRIED, share) for start in starts])
    return [whole.united(whole.expected(start).weight, _ROUNDS, share) for start in starts]


def _evidence(kind: Sequence[Sequence[float]], same: Sequence[Sequence[float]], usual: Sequence[Floats]) -> Floats:
    """Return the mean evidence of each field about a kind of pairs, if others are random pairs. same: of one thing."""
    each = zip(kind, same, usual, strict=True)
    return np.array([np.array(of) @ np.log(np.array(one) / other) for of, one, other in each])


def _information(kind: Sequence[Sequence[float]], usual: Sequence[Floats]) -> Floats:
    """Return the information of each field about a kind of pairs against random ones, in natural units."""
    return _evidence(kind, kind, usual)


def _agrees_by_chance(kind: Floats, same: Floats, most: float = _CHANCE) -> bool:
    """Return whether a kind of pairs agrees by chance in some field that pairs of one thing agree in."""
    return bool((kind < most * same)[same >= _TELLING].any())


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
    """Pairs to whose grades odds are fitted.

    Columns of all grades are numbered: 0 is that of the shares of kinds, then follow the grades of each field, and a
    column for a missing value. `has` tells in blocks of rows which columns a row has, so that sums over rows are
    products of small matrices: threads, which large ones are divided among, cost more than they spare here. The last
    block is filled with rows that count for no pair.
    """

    def __init__(self, fields: Sequence[Field], pairs: Compared, usual: Sequence[Floats], kinds: int) -> None:
        self.fields, self.usual, self.kinds = fields, usual, kinds
        which = pattern_of(np.column_stack((pairs.grades, pairs.known)).astype(np.int16))
        rows, counts = np.unique(which, return_index=True)[1], np.bincount(which, pairs.weights)
        left = -len(rows) % _BLOCK
        rows = np.append(rows, np.repeat(rows[:1], left))
        self.rows = pairs.grades[rows]
        self.counts: Floats = np.append(counts, np.zeros(left))
        self.one, self.two = pairs.known[rows] > 0, pairs.known[rows] < 0
        sizes = np.array([grade_count(field) + 1 for field in fields])
        self.starts = 1 + np.cumsum(sizes) - sizes
        columns = self.starts + np.where(self.rows < 0, sizes - 1, self.rows)
        has = np.zeros((len(rows), 1 + int(sizes.sum())), np.float32)
        has[:, 0] = has[np.arange(len(rows))[:, None], columns] = 1.0
        self.has = has.reshape(-1, _BLOCK, has.shape[1])
        once = self._sums(self.counts[:, None].astype(np.float64))
        self.prior = default_odds(fields).prior
        self.beliefs = []
        for f, field in enumerate(fields):
            before = _shares(self._of(f, once), _assumed(field))[0] if kinds > 1 else usual[f]
            agreeing = before * np.exp(default_evidence(field))
            self.beliefs.append(np.stack([agreeing / agreeing.sum(), *[before] * kinds]))

    def _sums(self, weight: Floats) -> Floats:
        """Return the weight of all rows and of those with each grade, shape (columns, kinds)."""
        blocks = weight.astype(np.float32).reshape(-1, _BLOCK, weight.shape[1])
        sums: Floats = (self.has.transpose(0, 2, 1) @ blocks).sum(axis=0, dtype=np.float64)
        return sums

    def _of(self, place: int, table: Floats) -> Floats:
        """Return the columns of the grades of a field, shape (kinds, grades)."""
        return table[self.starts[place] : self.starts[place] + grade_count(self.fields[place])].T

    def first_guess(self, place: int | None) -> Floats:
        """Return the probability of each kind for each row of grades, one thing first; shape (rows, fields + 1).

        place: of a field that has to agree or be missing.
        """
        assumed = Model(self.fields, default_odds(self.fields))
        match = probabilities(assumed.log_odds(self.rows, vetoes=False) - _STRICTER)
        evidence = [np.append(default_evidence(field), 0.0)[self.rows[:, f]] for f, field in enumerate(self.fields)]
        if place is not None:
            match[(evidence[place] <= 0) & (self.rows[:, place] >= 0)] = 0.0
        return self._guessed(match, evidence, self.rows.T >= 0)

    def by_rule(self, *places: int) -> Floats:
        """Return the same, where pairs that are equal in some fields are one thing, and no others.

        Only fields whose evidence is positive divide the others: a household, which is rare, is a kind of its own then,
        and is not lost among the many pairs whose streets share a word.
        """
        evidence = [np.append(default_evidence(field), 0.0)[self.rows[:, f]] for f, field in enumerate(self.fields)]
        equal = [full_agreement(self.fields[f], self.rows[:, f]) for f in places]
        return self._guessed(np.logical_and.reduce(equal).astype(np.float64), evidence, np.stack(evidence) > 0)

    def _guessed(self, match: Floats, evidence: Sequence[Floats], agree: npt.NDArray[np.bool_]) -> Floats:
        """Divide other pairs among the kinds.

        match: probability that each row is one thing, which is changed. agree: the rows that each field may divide;
        shape (fields, rows). Those that no field may are of the kind of the field that may divide most pairs.
        """
        match[self.one], match[self.two] = 1.0, 0.0
        if self.kinds == 1:
            return np.stack((match, 1 - match), axis=1)
        surprise = [self._surprise(of, self.rows[:, f] >= 0) for f, of in enumerate(evidence)]
        rarest = np.where(agree, surprise, -1.0)
        rarest[int((agree @ self.counts).argmax()), ~agree.any(axis=0)] = 0.0
        chosen = (rarest >= rarest.max(axis=0) - _ROUNDING).astype(np.float64)
        weight: Floats = np.concatenate((match[None], (1 - match) * chosen / chosen.sum(axis=0))).T
        return weight

    def _surprise(self, evidence: Floats, has: npt.NDArray[np.bool_]) -> Floats:
        """Return -log of the share of all pairs that agree at least so much in a field; -1 for a missing value."""
        values, which = np.unique(np.where(has, -evidence, np.inf), return_inverse=True)
        least = np.cumsum(np.bincount(which, self.counts, len(values))) / self.counts.sum()
        surprise: Floats = np.where(has, -np.log(least)[which], -1.0)
        return surprise

    def _assumed_odds(self, kind: Sequence[Sequence[float]]) -> float:
        evidence = [float(np.array(of) @ default_evidence(field)) for of, field in zip(kind, self.fields, strict=True)]
        return PRIOR + sum(evidence)

    def united(self, weight: Floats, rounds: int, scale: float) -> Odds:
        """Return what `improved` does, after kinds of others that no field tells from one thing were united with it.

        scale: candidates as a share of all pairs. A kind is united only if its pairs are one thing by the odds of one
        thing against random pairs, or by those assumed; and only once: if it comes back, it is no variant.
        """
        odds = self.improved(weight, rounds)
        left = set(range(1, self.kinds + 1))
        while left:
            same, prior = _information(odds.m, self.usual), np.log(odds.prior * scale)
            variants = [
                place
                for place, (kind, share) in enumerate(zip(odds.u, odds.shares, strict=True), start=1)
                if place in left
                and share > _SOMETIMES
                and not _agrees_by_chance(_information(kind, self.usual), same)
                and max(_evidence(kind, odds.m, self.usual).sum() + prior, self._assumed_odds(kind)) > 0
            ]
            if not variants:
                break
            left.difference_update(variants)
            weight = self.expected(odds).weight.copy()
            moved = np.where(self.two[:, None], 0.0, weight[:, variants])
            weight[:, 0] += moved.sum(axis=1)
            weight[:, variants] -= moved
            odds = self.improved(weight, rounds)
        return odds

    def improved(self, weight: Floats, rounds: int, scale: float = 1.0) -> Odds:
        """Return the odds after alternating until nothing moves. scale: the share of all pairs that may move."""
        total = max(float(self.counts.sum()), 1.0)
        odds = self._maximised(self._sums(weight * self.counts[:, None]))
        for _ in range(rounds):
            found = self.expected(odds, weight)
            weight = found.weight
            odds = self._maximised(found.sums)
            if found.moved / total < _CONVERGED * scale:
                break
        return odds

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

    def expected(self, odds: Odds, before: Floats | float = 0.0) -> _Expected:
        """Return how much of each row belongs to each kind, given the odds. before: the same of the round before."""
        kinds = len(odds.u) + 1
        logs = np.zeros((self.has.shape[2], kinds))
        logs[0] = np.log([odds.prior, *((1 - odds.prior) * share for share in odds.shares)])
        for f in range(len(self.fields)):
            self._of(f, logs)[:] = np.log([odds.m[f], *(kind[f] for kind in odds.u)])
        weight = (self.has @ logs.astype(np.float32)).reshape(-1, kinds)
        weight[self.two, 0] = weight[self.one, 1:] = -np.inf
        most = _largest(weight)[:, None]
        weight = np.exp(weight - most)
        total = weight.sum(axis=1, keepdims=True)
        weight /= total
        likelihoods = (most + np.log(total))[:, 0]
        moved = float(_largest(np.abs(weight - before)) @ self.counts)
        return _Expected(weight, likelihoods, self._sums(weight * self.counts[:, None]), moved)

    def _maximised(self, sums: Floats) -> Odds:
        """Return the odds that are most likely, given how much of each grade belongs to each kind."""
        total = sums[0]
        tables = [_shares(self._of(f, sums), belief).tolist() for f, belief in enumerate(self.beliefs)]
        shares = np.maximum(total[1:], _LEAST)
        prior = (total[0] + _BELIEF * self.prior) / (total.sum() + _BELIEF)
        return Odds(
            float(prior),
            tuple((shares / shares.sum()).tolist()),
            tuple(tuple(table[0]) for table in tables),
            tuple(tuple(tuple(table[kind]) for table in tables) for kind in range(1, len(total))),
        )


def _largest(table: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the largest value of each row. Rows are short: numpy compares whole columns many times faster."""
    largest: npt.NDArray[Any] = np.ascontiguousarray(table.T).max(axis=0)
    return largest


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
