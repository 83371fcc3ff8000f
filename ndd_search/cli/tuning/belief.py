"""Estimate from a person's answers which setting is best: the next pair to ask about, when to stop, what to recommend.

Model. Pairs are binned into cells by similarity, in steps of STEP, and by whether "auto" joins them; a setting decides
all pairs of a cell alike. The unknown is, for each cell, the share of its pairs that the reader calls near-duplicates.
The prior is a mixture over kinds of readers. A reader follows "auto" (probability 1/2) or one of BARS (together 1/2),
is uncertain within a width around that bar, and gives a wrong answer with some probability. Given the kind of reader,
the share of a cell has a Beta distribution around that reader's probability of "yes", with the weight of _WORTH
answers, so that the data can contradict every kind. Answers update the probabilities of the kinds and the shares by
Bayes' rule (a mixture of beta-binomials: Gelman et al., "Bayesian Data Analysis", chapter 5). Draws of the shares give
the hits that each setting decides as the reader would, the best setting, and what is lost by another choice.

Next question. A random pair of the cell that contributes most doubt to the choice: it holds many hits, has few
answers, and settings that may be best decide it differently. (Without the Beta distributions this would be the psi
method: Kontsevich and Tyler, 1999, "Bayesian adaptive estimation of psychometric slope and threshold", Vision
Research 39. On labelled pages the psi method gave wrong results: it prefers pairs that no setting decides rightly and
treats them as evidence about the bar.) No I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ndd_search.cli.tuning.compare_settings import BARS, SETTINGS, STEP, Flags, Pages, Pair, Shares, step_of
from ndd_search.core.matching.decision import Setting
from ndd_search.core.matching.sketch_rows import Ranks

CREDIBLE = 0.9  # probability of the credible intervals and bounds that are reported
SURE = 0.02  # share of the hits with a similar hit above; asking stops when a better setting could gain no more
ENOUGH = 10  # answers needed before asking stops: some answers are mistakes
EVIDENCE = 0.8  # probability that a bar is better than "auto", from which it is recommended instead

_DRAWS = 400  # few enough that OpenBLAS starts no threads for their matrix products
_ENDS = (1 - CREDIBLE) / 2, (1 + CREDIBLE) / 2
_CELLS = 2 * len(BARS)  # by similarity: first the pairs that "auto" keeps apart, then those that it joins
_JOINS: Flags = np.array(  # whether a setting joins the pairs of a cell; shape (len(SETTINGS), cells)
    [np.arange(_CELLS) >= len(BARS), *(np.arange(_CELLS) % len(BARS) >= bar for bar in range(len(BARS)))]
)
_WIDTHS = 0.02, 0.1  # scale of a reader's uncertainty around the bar, in resemblance
_SLIPS = 0.02, 0.1, 0.3  # probability of a wrong answer
_WORTH = 2.0  # weight of the prior of a cell, in answers


def _kinds_of_readers() -> tuple[Shares, Shares]:
    """Return the probability of "yes" by kind of reader, shape (kinds, cells), and the prior of each kind."""
    middles = np.tile(BARS + STEP / 2, 2)
    ahead = np.array([np.where(_JOINS[0], 1.0, -1.0), *(middles - bar for bar in BARS.tolist())])
    kinds = [s + (1 - 2 * s) / (1 + np.exp(np.clip(-ahead / w, -50, 50))) for w in _WIDTHS for s in _SLIPS]
    prior = np.where(np.arange(len(SETTINGS)) == 0, 0.5, 0.5 / len(BARS)) / len(kinds)
    return np.concatenate(kinds), np.tile(prior, len(kinds))


_YES, _PRIOR = _kinds_of_readers()


@dataclass(frozen=True, eq=False)
class Recommendation:
    """A recommended setting and its uncertainty.

    setting:  "auto" or one of BARS; place: its position in SETTINGS.
    interval: CREDIBLE interval of the best bar; None without answers.
    right:    of the hits with a similar hit above, the share that each of SETTINGS decides as the reader would: lower
              end, mean and upper end of the CREDIBLE interval; shape (len(SETTINGS), 3).
    doubt:    upper bound, with probability CREDIBLE, of the share of these hits that a better setting would gain.
    sure:     whether doubt is at most SURE and there are at least ENOUGH answers, or one for every pair.
    yes, no, unknown: counts of the answers used.
    """

    setting: Setting
    place: int
    interval: tuple[float, float] | None
    right: Shares
    doubt: float
    sure: bool
    yes: int
    no: int
    unknown: int


@dataclass(frozen=True)
class Tuning:
    """Pages and answers about their pairs. Immutable: `answered` and `without` return a new object.

    answers: by key of a pair: True for near-duplicates, False for different, None for "don't know". Answers to pairs
             that the pages do not hold (from an earlier run) are ignored.
    """

    pages: Pages
    answers: Mapping[str, bool | None] = field(default_factory=dict)

    def answered(self, key: str, answer: bool | None) -> Tuning:
        """Return a copy with this answer added or replaced."""
        return replace(self, answers={**self.answers, key: answer})

    def without(self, key: str) -> Tuning:
        """Return a copy without the answer to this pair."""
        return replace(self, answers={other: answer for other, answer in self.answers.items() if other != key})

    def question(self) -> Pair | None:
        """Return the pair to ask about next, None if the recommendation is sure or no remaining pair can change it."""
        place, doubt = self._choice
        if self._is_sure(doubt):
            return None
        open_ = np.array([pair.key not in self.answers for pair in self.pages.pairs])
        otherwise = (_JOINS[self._right.argmax(axis=1)] != _JOINS[place]).mean(axis=0)
        # One draw is added: a setting that no draw finds best is not impossible.
        otherwise = np.where(_JOINS.any(axis=0) & ~_JOINS.all(axis=0), otherwise + 1 / _DRAWS, 0)
        answers = np.bincount(self._cell, [self.answers.get(pair.key) is not None for pair in self.pages.pairs], _CELLS)
        matters = otherwise * self._weight**2 * self._shares.var(axis=0) / (answers + _WORTH + 1)
        matters[np.bincount(self._cell[open_], minlength=_CELLS) == 0] = 0
        if not matters.any():
            return None
        chance = np.where(open_ & (self._cell == matters.argmax()), self._counts, 0)
        chosen = np.random.default_rng(len(self.answers)).choice(len(chance), p=chance / chance.sum())
        return self.pages.pairs[int(chosen)]

    def recommendation(self) -> Recommendation:
        """Return the recommendation from the answers so far; "auto" without any."""
        place, doubt = self._choice
        given, interval = self._given, None
        if any(answer is not None for answer in given):
            low, high = BARS[np.quantile(self._right[:, 1:].argmax(axis=1), _ENDS, method="nearest")].tolist()
            interval = low, high
        low, high = np.quantile(self._right, _ENDS, axis=0)
        return Recommendation(
            setting=SETTINGS[place],
            place=place,
            interval=interval,
            right=np.stack([low, self._right.mean(axis=0), high], axis=1),
            doubt=doubt,
            sure=self._is_sure(doubt),
            yes=given.count(True),
            no=given.count(False),
            unknown=given.count(None),
        )

    @cached_property
    def _choice(self) -> tuple[int, float]:
        """Return the position in SETTINGS of the recommended setting, and its doubt."""
        means = self._right.mean(axis=0)
        bar = int(means[1:].argmax()) + 1
        better = (self._right[:, bar] > self._right[:, 0]).mean()
        place = bar if better >= EVIDENCE and means[bar] > means[0] else 0
        return place, float(np.quantile(self._right.max(axis=1) - self._right[:, place], CREDIBLE))

    @cached_property
    def _given(self) -> list[bool | None]:
        """Return the answers to pairs of these pages."""
        return [self.answers[pair.key] for pair in self.pages.pairs if pair.key in self.answers]

    def _is_sure(self, doubt: float) -> bool:
        given = len(self._given) - self._given.count(None)
        return doubt <= SURE and given >= min(ENOUGH, len(self.pages.pairs))

    @cached_property
    def _cell(self) -> Ranks:
        """Return the cell of each pair."""
        return np.array([step_of(pair.similarity) + pair.joined * len(BARS) for pair in self.pages.pairs], np.int64)

    @cached_property
    def _counts(self) -> Shares:
        """Return the number of hits that each pair represents."""
        return np.array([pair.count for pair in self.pages.pairs])

    @cached_property
    def _weight(self) -> Shares:
        """Return the share of the hits in each cell; the sum is 1, or 0 without hits."""
        hits = np.bincount(self._cell, self._counts, _CELLS).astype(np.float64)
        return hits / max(float(hits.sum()), 1.0)

    @cached_property
    def _shares(self) -> Shares:
        """Return draws of the share of near-duplicates in each cell; shape (draws, cells)."""
        log_posterior, counts = np.log(_PRIOR), np.zeros((2, _CELLS))  # counts: of "no" and of "yes" in each cell
        for pair, cell in zip(self.pages.pairs, self._cell.tolist(), strict=True):
            if (answer := self.answers.get(pair.key)) is not None:
                yes = (counts[1, cell] + _WORTH * _YES[:, cell]) / (counts[:, cell].sum() + _WORTH)
                log_posterior += np.log(yes if answer else 1 - yes)
                counts[int(answer), cell] += 1
        posterior = np.exp(log_posterior - log_posterior.max())
        rng = np.random.default_rng(0)
        prior_yes = _WORTH * _YES[rng.choice(len(_YES), _DRAWS, p=posterior / posterior.sum())]
        draws: Shares = rng.beta(counts[1] + prior_yes, counts[0] + _WORTH - prior_yes)
        return draws

    @cached_property
    def _right(self) -> Shares:
        """Return draws of the share of hits that each setting decides as the reader would; shape (draws, settings)."""
        yes, no = self._weight * self._shares, self._weight * (1 - self._shares)
        right: Shares = yes @ _JOINS.T + no @ ~_JOINS.T
        return right
