"""Which pairs count as near-duplicates: a plain bar on resemblance, or "auto".

"auto" asks besides how much two texts share whether it is as specific as what sets them apart. Copies share what is
their own and differ in counters, headers and advertisements; two texts in one frame or template share what many
documents of the index hold and differ in what is theirs. And it asks whether both have something of their own: a text
in a frame has all that the bare text has, however rare the frame is. With

    j  resemblance in its KMV form (see similarity)
    s  mean rareness of the values both sketches hold
    d  mean rareness of the values only one of them holds
    m  how mutual the difference is: 0 when one holds all that the other has, 1 when both have as much of their own
    n  shingles of the shorter document, q the size of a shingle, N documents behind the table of common values

two hits are near-duplicates when

    j * min(1, s / d) ** (11 * m * min(1, 1 - j + 8 * q / n))  >=  0.27 + q / max(16, min(n, 16 + N))

The left side never exceeds j: rareness can only part what resembles, never join what does not. It weighs as much as
there is that sets the two apart, 1 - j, and a margin of eight words more: where hardly anything is different in a long
text, how rare that is says little, and in a short one it may still be all that matters. The right side asks more of
short texts, where one changed word (q shingles) is a good part of what there is, but of none more than of a text of 16
shingles, and of an index that is not known: without a table s / d is 1 and N is 0, a plain bar of 0.46 for words.
docs/quality.md has the evidence, and what half and double of each constant would do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import cos, pi
from typing import Self

import numpy as np
import numpy.typing as npt

from ndd_search.errors import RecipeMismatch
from ndd_search.matching.frequency_table import HANDFUL, FrequencyTable, Shares
from ndd_search.native import Rule
from ndd_search.recipe import Measure, Recipe

Setting = float | str  # "auto", a name of PLAIN, or a resemblance above 0, at most 1
PLAIN = {"identical": 1.0, "high": 0.8, "moderate": 0.5}  # the named bars on plain resemblance
ROUNDING = 1e-9  # a similarity of exactly the bar counts, whatever the rounding


@dataclass(frozen=True, kw_only=True)
class Constants:
    """The five numbers that make "auto"; changed only to measure what they do (`ndd-search evaluate --sensitivity`).

    least:   resemblance below which no pair counts: two texts with nearly three times as much apart as in common.
    power:   how much s / d weighs where the difference is mutual and half of all there is: two copies with other frames
             are mostly above 0.85, which takes half or less; two texts in one template around 0.6, which takes most.
    margin:  words by which two texts may be more different than is seen, each of them q shingles (see also `census`).
    unknown: an index nobody counted asks as much as a text of that many shingles, and no shorter text asks for more.
    handful: different documents that may share a value before it is common: a name, a quotation, a saying.
    """

    least: float = 0.27
    power: float = 11.0
    margin: float = 8.0
    unknown: float = 16.0
    handful: int = HANDFUL


@dataclass(frozen=True, eq=False)
class Overlaps:
    """What the sketches of some pairs have in common; arrays of one length, one entry a pair.

    shared:      values both hold.
    left, right: values of either up to the smaller limit of the two (see similarity).
    shorter:     shingles of the shorter document, estimated; at least 1.
    rare_shared, rare_left, rare_right: sums of the rareness of the same values; equal to the numbers without a table.
    """

    shared: npt.NDArray[np.int64]
    left: npt.NDArray[np.int64]
    right: npt.NDArray[np.int64]
    shorter: Shares
    rare_shared: Shares
    rare_left: Shares
    rare_right: Shares

    @cached_property
    def resemblance(self) -> Shares:
        """Shared / union, 0..1."""
        share: Shares = self.shared / np.maximum(self.left + self.right - self.shared, 1)
        return share

    @property
    def specificity(self) -> Shares:
        """Mean rareness of what is shared / of what is not, at most 1; 1 where nothing sets the two apart."""
        apart = self.left + self.right - 2 * self.shared
        mean_shared = self.rare_shared / np.maximum(self.shared, 1)
        specific: Shares = np.minimum(mean_shared * apart / self._rare_apart, 1.0)
        specific[apart <= 0] = 1.0
        return specific

    @property
    def mutuality(self) -> Shares:
        """How evenly the rareness of what is not shared lies in both, 0..1: 0 when one holds all of the other."""
        evenly: Shares = 2 * np.maximum(np.minimum(*self._own), 0) / self._rare_apart
        return evenly

    @cached_property
    def _own(self) -> tuple[Shares, Shares]:
        """The rareness that only one of the two holds."""
        return self.rare_left - self.rare_shared, self.rare_right - self.rare_shared

    @cached_property
    def _rare_apart(self) -> Shares:
        return np.maximum(self._own[0] + self._own[1], ROUNDING)


def telling_shingles(recipe: Recipe, constants: Constants | None = None) -> float:
    """Shingles from which on a text tells copies from entries of one form: `margin` words and what must be alike."""
    constants = constants or Constants()
    return min(constants.margin * recipe.size / (1 - constants.least), recipe.k)


@dataclass(frozen=True)
class Decision:
    """A setting of min_similarity, ready to be asked about pairs.

    bar:       resemblance from which two hits are near-duplicates, None for "auto".
    size:      tokens in a shingle of the recipe.
    frequency_table: the table of the index, or None.
    constants: of "auto".
    measure:   of the recipe; a bar is of this measure, and "auto" of "kmv".
    """

    bar: float | None
    size: int
    frequency_table: FrequencyTable | None = None
    constants: Constants = Constants()
    measure: Measure = "kmv"

    @classmethod
    def of(cls, setting: Setting, recipe: Recipe, frequency_table: FrequencyTable | None = None) -> Self:
        """Read a setting. Raises ValueError for an unknown one, RecipeMismatch for a table of another recipe."""
        if frequency_table is not None and frequency_table.recipe != recipe.id:
            raise RecipeMismatch("the table of common values", frequency_table.recipe, recipe.id)
        if setting == "auto" and recipe.measure == "kmv":
            return cls(None, recipe.size, frequency_table if frequency_table and frequency_table.telling else None)
        if setting == "auto":
            return cls(_usual(recipe), recipe.size, measure=recipe.measure)
        if isinstance(setting, str):
            if setting not in PLAIN:
                names = ", ".join(["auto", *PLAIN])
                raise ValueError(f"min_similarity is one of {names} or a number above 0, at most 1, got {setting!r}")
            if recipe.measure == "cosine" and PLAIN[setting] < 1:  # where it would call most texts of a kind the same
                raise ValueError(f'"{setting}" is a resemblance, and {recipe.id} has cosines: give a number, or "auto"')
            setting = PLAIN[setting]
        elif isinstance(setting, bool) or not 0 < setting <= 1:
            raise ValueError(f"min_similarity must be above 0 and at most 1, got {setting!r}")
        return cls(float(setting), recipe.size, measure=recipe.measure)

    @property
    def key(self) -> tuple[float | None, int, Measure, str]:
        """What tells this decision from another one, in a few bytes."""
        return self.bar, self.size, self.measure, self.frequency_table.digest if self.frequency_table else ""

    @cached_property
    def rule(self) -> Rule:
        """The numbers that numpy and the native core decide by."""
        power = self.constants.power if self.frequency_table else 0.0
        margin = self.constants.margin * self.size
        if self.bar is not None:
            return Rule(self.bar, power=power, margin=margin)
        few = self.constants.unknown
        known = few + (self.frequency_table.documents if self.frequency_table else 0)
        return Rule(self.constants.least, self.size, few, known, power, margin)

    @property
    def floor(self) -> float:
        """The plain resemblance below which no pair can count, above 0."""
        return min(self.rule.least + self.rule.asked / self.rule.known, 1.0)

    def similarity(self, pairs: Overlaps) -> Shares:
        """What is held against the bar, 0..1: resemblance, for "auto" less what common values pretend."""
        if self.frequency_table is None:
            return pairs.resemblance
        rule, resemblance = self.rule, pairs.resemblance
        apart = np.minimum(1 - resemblance + rule.margin / np.maximum(pairs.shorter, 1), 1)
        discounted: Shares = resemblance * pairs.specificity ** (rule.power * apart * pairs.mutuality)
        return discounted

    def bars(self, pairs: Overlaps) -> Shares:
        """The bar of each pair."""
        rule = self.rule
        return np.minimum(rule.least + rule.asked / np.minimum(np.maximum(pairs.shorter, rule.few), rule.known), 1.0)

    def surely_accepts(self, resemblance: Shares, specificity: Shares, shortest: float) -> npt.NDArray[np.bool_]:
        """Whether pairs count that are at least so specific, however mutual the difference is.

        shortest: shingles of the shortest document in all of these pairs.
        """
        rule = self.rule
        bar = min(rule.least + rule.asked / min(max(shortest, rule.few), rule.known), 1.0)
        apart = np.minimum(1 + rule.margin / shortest - resemblance, 1)
        sure: npt.NDArray[np.bool_] = resemblance * specificity ** (rule.power * apart) > bar + ROUNDING
        return sure

    def surely_refuses(
        self, shared: Shares, apart: Shares, rare_shared: Shares, own_left: Shares, own_right: Shares
    ) -> npt.NDArray[np.bool_]:
        """Whether pairs do not count that share so many values, at least 1, and have so many apart.

        rare_shared: what is rare of the shared values, at most.
        own_left, own_right: what is rare of the values that only one holds, at least.

        A pair does not count where j < bar * (1 + p * (1 - s / d)), p the power of s / d: e**x >= 1 + x, and
        log(x) <= x - 1. Of its factors 1 - j is apart / union, and m at least 2 * the smaller own / apart, as nothing
        is rarer than 1. So p is at least 2 * power * the smaller own / union; what is divided is multiplied out here.
        """
        smaller, own = np.minimum(own_left, own_right), own_left + own_right
        bar, of_shared = self.floor - 2 * ROUNDING, shared * own
        parts = 2 * bar * self.constants.power * smaller * (of_shared - rare_shared * apart)
        joins = of_shared * (shared - bar * (shared + apart))
        refused: npt.NDArray[np.bool_] = (joins < parts) & (smaller > 0)
        return refused

    def accepts(self, pairs: Overlaps) -> npt.NDArray[np.bool_]:
        """Whether each pair counts."""
        accepted: npt.NDArray[np.bool_] = self.similarity(pairs) >= self.bars(pairs) - ROUNDING
        return accepted


def _usual(recipe: Recipe) -> float:
    """The bar that the source of a recipe's method sets, of the recipe's measure."""
    if recipe.method == "super-shingles":
        return min(2 / recipe.k, 1.0)  # two of six
    if recipe.method == "simhash":
        return cos(3 * pi / 64)  # three bits: Manku, Jain and Das Sarma 2007
    if recipe.method == "profile":
        return 1.0
    return 0.85 if recipe.estimator == "overlap" else 0.5  # Sycamore's dedup; Broder, and for want of one Basu
