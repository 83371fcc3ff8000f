"""Similarities and labels to figures. Pairs labelled -1 are never scored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Shares = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Quality:
    """How well yes and no agree with the labels; all 0..1. Precision is 1 when nothing was called a duplicate."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def quality(yes: Flags, labels: Labels) -> Quality:
    """Judge some answers."""
    found = int((yes & (labels == 1)).sum())
    wrong, there = int((yes & (labels == 0)).sum()), int((labels == 1).sum())
    return Quality(found / (found + wrong) if found + wrong else 1.0, found / there if there else 1.0)


@dataclass(frozen=True, eq=False)
class Curve:
    """Precision and recall at every bar that changes something, from the highest bar to the lowest."""

    bars: Shares
    precision: Shares
    recall: Shares

    @property
    def f1(self) -> Shares:
        """At every bar."""
        return 2 * self.precision * self.recall / np.maximum(self.precision + self.recall, 1e-12)

    @property
    def best(self) -> tuple[float, float]:
        """The best F1 and its bar; (0, 1) without a positive pair."""
        if not len(self.bars):
            return 0.0, 1.0
        at = int(self.f1.argmax())
        return float(self.f1[at]), float(self.bars[at])

    @property
    def average_precision(self) -> float:
        """The area under precision over recall, as a sum of steps."""
        return float((self.precision * np.diff(self.recall, prepend=0.0)).sum())

    def f1_at(self, bars: Shares) -> Shares:
        """F1 at any bars."""
        if not len(self.bars):
            return np.zeros(len(bars))
        steps = np.searchsorted(-self.bars, -bars + 1e-12, side="right")
        return np.concatenate(([0.0], self.f1))[steps]


def curve(scores: Shares, labels: Labels) -> Curve:
    """Precision and recall over all bars "score >= bar"."""
    scored = labels >= 0
    scores, labels = scores[scored], labels[scored]
    order = np.argsort(-scores, kind="stable")
    scores, labels = scores[order], labels[order]
    positives = int(labels.sum())
    if not positives:
        return Curve(np.empty(0), np.empty(0), np.empty(0))
    last = np.append(scores[1:] != scores[:-1], True)
    found, called = np.cumsum(labels)[last], np.arange(1, len(labels) + 1)[last]
    return Curve(scores[last], found / called, found / positives)


def best_common_bar(curves: list[Curve]) -> float:
    """The bar with the best mean F1 over some collections, found on a grid of hundredths."""
    grid = np.arange(0.01, 1.001, 0.01)
    means = np.mean([one.f1_at(grid) for one in curves], axis=0)
    return float(grid[int(means.argmax())])
