"""From the answers of a person to the setting that suits him: what to ask next, when it is sure, what to recommend.

Pairs fall into cells: how alike they are, in steps of STEP, and whether "auto" joins them; every setting decides all
pairs of a cell alike. Unknown of a cell is the share of its pairs that a reader calls near-duplicates. Before the first
answer he is taken for one who means "auto" or, as likely, one of BARS, wavers around it by a width and, besides, slips;
each cell's share has a Beta distribution around what such a reader would say, which weighs as much as _WORTH answers,
so that no kind of reader has to be right. Answers make some kinds of reader less probable and move the shares, both by
Bayes' rule (a mixture of beta-binomials: Gelman et al., "Bayesian Data Analysis", chapter 5). From draws of the shares
follows how many hits each setting treats rightly, which is best, and what is lost if it is not chosen.

Asked next is a pair, taken at random, of the cell that leaves most doubt about the choice: many hits, few answers, and
a setting that may prove best decides it otherwise. (Without that Beta it would be the psi method of Kontsevich and
Tyler, 1999, "Bayesian adaptive estimation of psychometric slope and threshold", Vision Research 39. That seeks out the
cases that no setting gets right, takes them for evidence, and was led astray by them on labelled pages.) No I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ndd_search.matching.decision import Setting
from ndd_search.matching.rows import Ranks
from ndd_search.tuning.pages import BARS, SETTINGS, STEP, Flags, Pages, Pair, Shares, step_of

CREDIBLE = 0.9  # how probable it is that what is stated holds
SURE = 0.02  # of the hits that resemble another: what a better setting may be right about in addition
ENOUGH = 10  # answers, before it can be sure: people slip
EVIDENCE = 0.8  # how probable it must be that a bar is better before it replaces "auto"

_DRAWS = 400  # few enough that no product of theirs wakes the threads of OpenBLAS
_ENDS = (1 - CREDIBLE) / 2, (1 + CREDIBLE) / 2
_CELLS = 2 * len(BARS)  # those that "auto" parts, by similarity, then those that it joins
_JOINS: Flags = np.array(  # whether a setting joins the pairs of a cell; shape (len(SETTINGS), cells)
    [np.arange(_CELLS) >= len(BARS), *(np.arange(_CELLS) % len(BARS) >= bar for bar in range(len(BARS)))]
)
_WIDTHS = 0.02, 0.1  # how far around his bar somebody wavers
_SLIPS = 0.02, 0.1, 0.3  # how often he says what the setting does not
_WORTH = 2.0  # answers


def _kinds_of_readers() -> tuple[Shares, Shares]:
    """How probable a yes is for readers of each kind, shape (kinds, cells), and how probable each kind is."""
    middles = np.tile(BARS + STEP / 2, 2)
    ahead = np.array([np.where(_JOINS[0], 1.0, -1.0), *(middles - bar for bar in BARS.tolist())])
    kinds = [s + (1 - 2 * s) / (1 + np.exp(np.clip(-ahead / w, -50, 50))) for w in _WIDTHS for s in _SLIPS]
    prior = np.where(np.arange(len(SETTINGS)) == 0, 0.5, 0.5 / len(BARS)) / len(kinds)
    return np.concatenate(kinds), np.tile(prior, len(kinds))


_YES, _PRIOR = _kinds_of_readers()


@dataclass(frozen=True, eq=False)
class Recommendation:
    """A setting, and how far it can be trusted.

    setting:  "auto" or one of BARS; place: of it in SETTINGS.
    interval: where the best bar lies, CREDIBLE probable, were it to be a bar; None without answers.
    right:    of the hits that resemble another, the share that each of SETTINGS treats as the reader would: low, mean
              and high, CREDIBLE probable to lie between; shape (len(SETTINGS), 3).
    doubt:    the share of these hits that a better setting would be right about in addition, CREDIBLE probable.
    sure:     whether doubt is at most SURE.
    yes, no, unknown: answers behind it.
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
    """Pages and what was said about pairs of them; immutable, `answered` makes another one.

    answers: by the key of a pair: True, these are near-duplicates; False, they are not; None, don't know. Answers to
             pairs that the pages do not hold, of an earlier run, count for nothing.
    """

    pages: Pages
    answers: Mapping[str, bool | None] = field(default_factory=dict)

    def answered(self, key: str, answer: bool | None) -> Tuning:
        """With one more answer, or another one to the same pair."""
        return replace(self, answers={**self.answers, key: answer})

    def without(self, key: str) -> Tuning:
        """With an answer taken back."""
        return replace(self, answers={other: answer for other, answer in self.answers.items() if other != key})

    def question(self) -> Pair | None:
        """The pair to ask about next: None when the answer is sure, or no pair is left that matters."""
        place, doubt = self._choice
        if self._is_sure(doubt):
            return None
        open_ = np.array([pair.key not in self.answers for pair in self.pages.pairs])
        otherwise = (_JOINS[self._right.argmax(axis=1)] != _JOINS[place]).mean(axis=0)
        otherwise = np.where(_JOINS.any(axis=0) & ~_JOINS.all(axis=0), otherwise + 1 / _DRAWS, 0)  # none is impossible
        answers = np.bincount(self._cell, [self.answers.get(pair.key) is not None for pair in self.pages.pairs], _CELLS)
        matters = otherwise * self._weight**2 * self._shares.var(axis=0) / (answers + _WORTH + 1)
        matters[np.bincount(self._cell[open_], minlength=_CELLS) == 0] = 0
        if not matters.any():
            return None
        chance = np.where(open_ & (self._cell == matters.argmax()), self._counts, 0)
        chosen = np.random.default_rng(len(self.answers)).choice(len(chance), p=chance / chance.sum())
        return self.pages.pairs[int(chosen)]

    def recommendation(self) -> Recommendation:
        """What follows from the answers so far; "auto" without any."""
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
        """The place in SETTINGS of the one to recommend, and the doubt about it."""
        means = self._right.mean(axis=0)
        bar = int(means[1:].argmax()) + 1
        better = (self._right[:, bar] > self._right[:, 0]).mean()
        place = bar if better >= EVIDENCE and means[bar] > means[0] else 0
        return place, float(np.quantile(self._right.max(axis=1) - self._right[:, place], CREDIBLE))

    @cached_property
    def _given(self) -> list[bool | None]:
        """The answers that count."""
        return [self.answers[pair.key] for pair in self.pages.pairs if pair.key in self.answers]

    def _is_sure(self, doubt: float) -> bool:
        given = len(self._given) - self._given.count(None)
        return doubt <= SURE and given >= min(ENOUGH, len(self.pages.pairs))

    @cached_property
    def _cell(self) -> Ranks:
        """Of each pair."""
        return np.array([step_of(pair.similarity) + pair.joined * len(BARS) for pair in self.pages.pairs], np.int64)

    @cached_property
    def _counts(self) -> Shares:
        """The hits that each pair stands for."""
        return np.array([pair.count for pair in self.pages.pairs])

    @cached_property
    def _weight(self) -> Shares:
        """The share of the hits in each cell; sum 1, or 0 without any."""
        hits = np.bincount(self._cell, self._counts, _CELLS).astype(np.float64)
        return hits / max(float(hits.sum()), 1.0)

    @cached_property
    def _shares(self) -> Shares:
        """Draws of the share of near-duplicates in each cell; shape (draws, cells)."""
        likely, said = np.log(_PRIOR), np.zeros((2, _CELLS))
        for pair, cell in zip(self.pages.pairs, self._cell.tolist(), strict=True):
            if (answer := self.answers.get(pair.key)) is not None:
                yes = (said[1, cell] + _WORTH * _YES[:, cell]) / (said[:, cell].sum() + _WORTH)
                likely += np.log(yes if answer else 1 - yes)
                said[int(answer), cell] += 1
        posterior = np.exp(likely - likely.max())
        rng = np.random.default_rng(0)
        believed = _WORTH * _YES[rng.choice(len(_YES), _DRAWS, p=posterior / posterior.sum())]
        draws: Shares = rng.beta(said[1] + believed, said[0] + _WORTH - believed)
        return draws

    @cached_property
    def _right(self) -> Shares:
        """Draws of the share of the hits that each setting treats as the reader would; shape (draws, settings)."""
        yes, no = self._weight * self._shares, self._weight * (1 - self._shares)
        right: Shares = yes @ _JOINS.T + no @ ~_JOINS.T
        return right
