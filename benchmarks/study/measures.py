"""Precision, recall and F1 from similarities and labels. Pairs labelled -1 are never scored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Shares = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Quality:
    """Precision and recall, each 0..1. Precision is 1 if no pair was accepted, recall is 1 if no pair is labelled 1."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """Return the harmonic mean of precision and recall, 0..1."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def quality(yes: Flags, labels: Labels) -> Quality:
    """Compute precision and recall. yes: whether each pair was accepted as near-duplicates; labels: 1, 0 or -1."""
    correct = int((yes & (labels == 1)).sum())
    wrong, positives = int((yes & (labels == 0)).sum()), int((labels == 1).sum())
    return Quality(correct / (correct + wrong) if correct + wrong else 1.0, correct / positives if positives else 1.0)


@dataclass(frozen=True, eq=False)
class Curve:
    """Precision and recall at each distinct score as the bar, from the highest bar to the lowest."""

    bars: Shares
    precision: Shares
    recall: Shares

    @property
    def f1(self) -> Shares:
        """Return F1 at every bar."""
        return 2 * self.precision * self.recall / np.maximum(self.precision + self.recall, 1e-12)

    @property
    def best(self) -> tuple[float, float]:
        """Return the best F1 and its bar; (0, 1) without a positive pair."""
        if not len(self.bars):
            return 0.0, 1.0
        best = int(self.f1.argmax())
        return float(self.f1[best]), float(self.bars[best])

    @property
    def average_precision(self) -> float:
        """Return the area under the precision-recall curve, as a sum of steps."""
        return float((self.precision * np.diff(self.recall, prepend=0.0)).sum())

    def f1_at(self, bars: Shares) -> Shares:
        """Return F1 at the given bars."""
        if not len(self.bars):
            return np.zeros(len(bars))
        steps = np.searchsorted(-self.bars, -bars + 1e-12, side="right")
        return np.concatenate(([0.0], self.f1))[steps]


def curve(scores: Shares, labels: Labels) -> Curve:
    """Compute precision and recall at every bar. A pair is accepted if score >= bar."""
    scored = labels >= 0
    scores, labels = scores[scored], labels[scored]
    order = np.argsort(-scores, kind="stable")
    scores, labels = scores[order], labels[order]
    positives = int(labels.sum())
    if not positives:
        return Curve(np.empty(0), np.empty(0), np.empty(0))
    last = np.append(scores[1:] != scores[:-1], True)
    correct, accepted = np.cumsum(labels)[last], np.arange(1, len(labels) + 1)[last]
    return Curve(scores[last], correct / accepted, correct / positives)


def best_common_bar(curves: list[Curve]) -> float:
    """Return the bar with the best mean F1 over the curves, searched in steps of 0.01."""
    grid = np.arange(0.01, 1.001, 0.01)
    means = np.mean([curve.f1_at(grid) for curve in curves], axis=0)
    return float(grid[int(means.argmax())])
