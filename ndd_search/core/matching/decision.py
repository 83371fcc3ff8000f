"""The decision which pairs are near-duplicates: a fixed bar on resemblance, or "auto".

"auto" hides a text under another one if it adds nothing, as far as two sketches tell. In doubt it shows both. It asks:

* How much do the two share? The shorter a text is, the more it has to share: one changed word may be another thing.
  Less is enough if hardly any other document of the index has what they share. Nothing else resembles the two then, so
  they are no members of a family, such as the entries of one form.
* Is the shared text as rare in the index as the text that differs? Copies share their own content and differ in
  counters, headers and advertisements. Two texts in one template share what many documents of the index contain, and
  differ in their own content. Each has content that the other lacks, where a text inside a frame contains all of the
  bare text.
* Does one of them say twice as much? If more than half of a text is not in the other one, it is an update or another
  part.
* Has each of the two a third of a page of its own? Two editions of a report share most of their words. Frames and
  corrections seldom fill that much on both sides.

With

    j  resemblance, KMV estimate (see `sketching.estimate_similarity`)
    s  mean idf of the values that both sketches contain (see FrequencyTable.idf)
    d  mean idf of the values that only one of them contains
    m  mutuality of the difference: 0 if one contains all of the other, 1 if both have equally much of their own
    n  shingles of the shorter document, q the size of a shingle
    o  shingles that one of them has of its own, the smaller of the two numbers; each counts its idf
    r  sum of the idf of the values that both contain
    a  sum of the idf of the values that only one of them contains, the larger of the two sums

two hits are near-duplicates when all of these hold:

    j * min(1, s / d) ** (11 * m * min(1, 1 - j + 8 * q / n))  >=  b
    j  >=  b + (1 - 0.24 - b) * o**6 / (o**6 + 100**6)
    a  <=  0.5 * (a + r)
    with  b = 0.24 + 4 * q / n * min(1, 1/2 + (1 - s) / 0.05)

The first left side never exceeds j: the idf can only keep similar texts apart, never join dissimilar ones. Its exponent
grows with the share of the texts that differs, 1 - j, plus a margin of eight words: if hardly anything differs in a
long text, its idf means little, but in a short text the same difference may decide. The bar b is higher for short
texts, where one changed word (q shingles) is a large share; half as much higher if the mean idf s says that no other
document has the shared text: two texts may be alone with it and say two things. The second bar rises, up to 0.76, with
the content that each of two long texts has of its own (100 shingles of three words are a third of a page of print). It
applies to the resemblance itself, so that one difference does not count twice.
Without a frequency table s / d is 1 and each idf is 1. docs/quality.md has the evidence, and the effect of
halving and doubling each constant.
"""

from __future__ import annotations

from math import cos, log, pi
from typing import Self

import numpy as np
import numpy.typing as npt

from ndd_search.core.immutable import cached_property, dataclass
from ndd_search.core.matching.frequency_table import HANDFUL, UNIT, FrequencyTable, Shares
from ndd_search.core.recipe import Kind, Measure, Recipe
from ndd_search.errors import RecipeMismatch
from ndd_search.native import Rule

Setting = float | str  # "auto", a name of PLAIN, or a resemblance above 0, at most 1
PLAIN = {"identical": 1.0, "high": 0.8, "moderate": 0.5}  # the named bars on resemblance
PAGE: dict[Kind, float] = {"words": 300, "characters": 1800, "lines": 40, "sentences": 15}  # shingles of a printed page
ALIKE = 0.7  # resemblance: two short texts above it are copies or fillings of one form
ENOUGH = 80  # shingles: of shorter texts, less than a tenth may differ, as one changed word may be another thing
ROUNDING = 1e-9  # tolerance, so that rounding cannot reject a similarity that equals the bar


@dataclass(frozen=True, kw_only=True)
class Constants:
    """The constants of "auto"; changed only to measure their effect (`python -m benchmarks.study --sensitivity`).

    least:   resemblance below which no pair is accepted: three times as much differs as is shared.
    asked:   words, q shingles each, that a short text shares beyond that.
    common:  twice the 1 - s from which a short text has to share all of these; half of them are enough if no other
             document has the shared text, and 1 - s is 0.
    power:   exponent of s / d if m * (1 - j) were 1. With m 1 and j 0.5, s / d of two copies in different frames is
             mostly above 0.85, which removes half or less; of two texts in one template about 0.6, which removes most.
    margin:  words, q shingles each, that are added to the difference of two texts (see also `document_frequency`).
    pages:   pages of print (see PAGE) that both texts have of their own if the bar on their resemblance is half-way up
             to 1 - least, where nearly three times as much is shared as differs.
    handful: documents that may share a value before it is common: a name, a quotation, a saying.
    differ:  share of a text of ENOUGH shingles that may differ, whatever the idf.
    adds:    share of the idf of either text that the other may lack: more than half is another text.
    """

    least: float = 0.24
    asked: float = 4.0
    common: float = 0.05
    power: float = 11.0
    margin: float = 8.0
    pages: float = 1 / 3
    handful: int = HANDFUL
    differ: float = 0.1
    adds: float = 0.5


@dataclass(frozen=True, eq=False)
class Overlaps:
    """The overlap of the two sketches of each pair; arrays of one length.

    shared:      number of values that both contain.
    left, right: number of values of each up to the limit t (see `sketching.estimate_similarity`).
    shorter, longer: shingles of the shorter and the longer document, estimated; at least 1.
    rare_shared, rare_left, rare_right: sums of the idf of the same values; without a table equal to the numbers.
    """

    shared: npt.NDArray[np.int64]
    left: npt.NDArray[np.int64]
    right: npt.NDArray[np.int64]
    shorter: Shares
    longer: Shares
    rare_shared: Shares
    rare_left: Shares
    rare_right: Shares

    @cached_property
    def resemblance(self) -> Shares:
        """Return shared / union, 0..1."""
        share: Shares = self.shared / np.maximum(self.left + self.right - self.shared, 1)
        return share

    @property
    def specificity(self) -> Shares:
        """Return s / d, at most 1; 1 if the two sketches do not differ."""
        apart = self.left + self.right - 2 * self.shared
        mean_shared = self.rare_shared / np.maximum(self.shared, 1)
        specific: Shares = np.minimum(mean_shared * apart / self._rare_apart, 1.0)
        specific[apart <= 0] = 1.0
        return specific

    @property
    def commonness(self) -> Shares:
        """Return 1 - s, 0..1: 0 if no other documents hold what both contain."""
        common: Shares = (self.shared - self.rare_shared) / np.maximum(self.shared, 1)
        return common

    @property
    def mutuality(self) -> Shares:
        """Return m, 0..1: twice the smaller share of the idf that only one of the two contains."""
        mutual: Shares = 2 * np.maximum(np.minimum(*self._own), 0) / self._rare_apart
        return mutual

    @property
    def added(self) -> Shares:
        """Return the sum of the idf that one of the two adds to the other, the larger of the two sums."""
        return np.maximum(np.maximum(*self._own), 0)

    @property
    def own(self) -> Shares:
        """Return o: the estimated idf sum of the shingles that only one of the two documents has, the smaller one."""
        shingles: Shares = self.longer / np.maximum(np.maximum(self.left, self.right), 1)  # that each value stands for
        return np.maximum(np.minimum(*self._own), 0) * shingles

    @cached_property
    def _own(self) -> tuple[Shares, Shares]:
        """Return the sums of the idf of the values that only the left and only the right sketch contains."""
        return self.rare_left - self.rare_shared, self.rare_right - self.rare_shared

    @cached_property
    def _rare_apart(self) -> Shares:
        return np.maximum(self._own[0] + self._own[1], ROUNDING)


def telling_shingles(recipe: Recipe, constants: Constants | None = None) -> float:
    """Return the shingles a text needs so that copies can be told from texts in one template: margin / (1 - least)."""
    constants = constants or Constants()
    return min(constants.margin * recipe.size / (1 - constants.least), recipe.k)


@dataclass(frozen=True)
class Decision:
    """A setting of min_similarity, applied to pairs.

    bar:       similarity from which two hits are near-duplicates, None for "auto".
    size:      tokens in a shingle of the recipe.
    frequency_table: of the index, or None.
    constants: of "auto".
    measure:   of the recipe; the bar applies to it. "auto" requires "kmv".
    kind:      of the recipe's shingles, for "auto".
    unmarks:   whether odd values of the recipe's sketches mark an edge, and the decision compares them as even ones.
    """

    bar: float | None
    size: int
    frequency_table: FrequencyTable | None = None
    constants: Constants = Constants()
    measure: Measure = "kmv"
    kind: Kind = "words"
    unmarks: bool = False

    @classmethod
    def of(cls, setting: Setting, recipe: Recipe, frequency_table: FrequencyTable | None = None) -> Self:
        """Parse a setting. Raises ValueError for an unknown one, RecipeMismatch for a table of another recipe."""
        if frequency_table is not None and frequency_table.recipe != recipe.id:
            raise RecipeMismatch("the table of common values", frequency_table.recipe, recipe.id)
        if setting == "auto" and recipe.measure == "kmv":
            told = frequency_table if frequency_table and frequency_table.telling else None
            return cls(None, recipe.size, told, kind=recipe.kind)
        if setting == "auto":
            return cls(_usual(recipe), recipe.size, measure=recipe.measure, unmarks=recipe.marks_edges)
        if isinstance(setting, str):
            if setting not in PLAIN:
                names = ", ".join(["auto", *PLAIN])
                raise ValueError(f"min_similarity is one of {names} or a number above 0, at most 1, got {setting!r}")
            if recipe.measure == "cosine" and PLAIN[setting] < 1:  # most texts of one language are above
                raise ValueError(f'"{setting}" is a resemblance, and {recipe.id} has cosines: give a number, or "auto"')
            setting = PLAIN[setting]
        elif isinstance(setting, bool) or not 0 < setting <= 1:
            raise ValueError(f"min_similarity must be above 0 and at most 1, got {setting!r}")
        return cls(float(setting), recipe.size, measure=recipe.measure, unmarks=recipe.marks_edges)

    @property
    def key(self) -> tuple[float | None, int, Measure, Kind, str]:
        """Return a short key that differs for different decisions."""
        return self.bar, self.size, self.measure, self.kind, self.frequency_table.digest if self.frequency_table else ""

    @cached_property
    def rule(self) -> Rule:
        """Return the rule that numpy and the native core apply."""
        constants, table = self.constants, self.frequency_table
        rule = Rule(
            constants.least if self.bar is None else self.bar,
            power=constants.power if table else 0.0,
            margin=constants.margin * self.size,
        )
        if self.bar is not None:
            return rule
        rule = rule._replace(
            asked=constants.asked * self.size,
            adds=constants.adds,
            common=constants.common,
            content=constants.pages * PAGE[self.kind],
            differ=constants.differ / ENOUGH,
            edges=float(self.kind == "words"),
        )
        if table is None:
            return rule
        return rule._replace(twice=round(UNIT * log(2) / log(table.documents / table.handful)))

    @property
    def floor(self) -> float:
        """Return the resemblance below which no pair is accepted, above 0; but pairs that differ at their edges."""
        rule = self.rule
        return min(rule.least, 1 - rule.differ * ENOUGH)

    def similarity(self, pairs: Overlaps) -> Shares:
        """Return the value that is compared with the bar, 0..1: resemblance, with a table discounted by the idf."""
        return pairs.resemblance if self.frequency_table is None else pairs.resemblance * self._discounts(pairs)

    def bars(self, pairs: Overlaps) -> Shares:
        """Return the bar of each pair on its similarity: the higher of the two, the second one discounted alike."""
        bars = self._bars(pairs)
        own_bars = self._own_bars(bars, pairs.own)
        return own_bars if self.frequency_table is None else np.maximum(bars, own_bars * self._discounts(pairs))

    def _discounts(self, pairs: Overlaps) -> Shares:
        """Return what the idf leaves of the resemblance of each pair, 0..1."""
        rule = self.rule
        apart = np.minimum(1 - pairs.resemblance + rule.margin / np.maximum(pairs.shorter, 1), 1)
        discounts: Shares = pairs.specificity ** (rule.power * apart * pairs.mutuality)
        return discounts

    def _bars(self, pairs: Overlaps) -> Shares:
        """Return b of pairs."""
        rule = self.rule
        if not rule.asked:
            return np.full(pairs.shorter.shape, rule.least)
        family = np.minimum(pairs.commonness / rule.common + 0.5, 1)
        bars: Shares = np.minimum(rule.least + rule.asked * family / np.maximum(pairs.shorter, 1), 1.0)
        return bars

    def _own_bars(self, bars: Shares, own: Shares) -> Shares:
        """Return the bars on resemblance: those given, raised towards 1 - least for content of both documents' own."""
        if not self.rule.content:
            return np.broadcast_to(bars, own.shape)
        pages = own / self.rule.content
        square = pages * pages
        sixth = square * square * square  # in this order the native core rounds alike
        own_bars: Shares = bars + np.maximum(1 - self.rule.least - bars, 0) * (sixth / (1 + sixth))
        return own_bars

    def accepts(self, pairs: Overlaps) -> npt.NDArray[np.bool_]:
        """Return which pairs are near-duplicates, apart from those that differ at their edges (see `similar_pairs`)."""
        bars = self._bars(pairs)
        accepted: npt.NDArray[np.bool_] = self.similarity(pairs) >= bars - ROUNDING
        accepted &= pairs.resemblance >= self._own_bars(bars, pairs.own) - ROUNDING
        accepted &= pairs.added <= self.rule.adds * (pairs.added + pairs.rare_shared) + ROUNDING
        return accepted | self.surely_copies(pairs.resemblance, pairs.shorter)

    def surely_copies(self, resemblance: Shares, shorter: Shares) -> npt.NDArray[np.bool_]:
        """Return which pairs hardly differ: by a tenth, or less if they are short. shorter: as in Overlaps."""
        differ: npt.NDArray[np.bool_] = 1 - resemblance <= self.rule.differ * np.minimum(shorter, ENOUGH) + ROUNDING
        return differ & (self.rule.differ > 0)


def _usual(recipe: Recipe) -> float:
    """Return the bar that the publication of a recipe's method uses, on the recipe's measure."""
    if recipe.method == "super-shingles":
        return min(2 / recipe.k, 1.0)  # two of six
    if recipe.method == "simhash":
        return cos(3 * pi / 64)  # three bits: Manku, Jain and Das Sarma 2007
    if recipe.method == "profile":
        return 1.0
    if recipe.method == "n-grams":
        return 0.6  # Basu names none; between the 0.7 of his copies and the 0.5 of his other texts
    return 0.85 if recipe.estimator == "overlap" else 0.5  # 0.85: Sycamore's dedup; 0.5: Broder
