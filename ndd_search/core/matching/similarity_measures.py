"""The measures of similarity of two sketches, and the pairs of a page that are similar by each.

    kmv      resemblance, see `sketching.estimate_similarity`; the only measure that "auto" weighs by idf
    broder   resemblance: the share of common values among the k smallest of the union (Broder 1997)
    overlap  common values / values of the longer sketch. For min-K sketches this estimates about 2 * J / (1 + J) rather
             than the resemblance J (Sycamore's dedup); for min-hashes resemblance; else the share of equal parts
    shorter  common values / values of the shorter sketch (Basu 2011)
    cosine   cos(pi * d / 64), at least 0, of two simhash fingerprints that differ in d bits; estimates the cosine of
             the weighted features (Charikar 2002)

Candidates are found with a bar on kmv, see `least_resemblance`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ndd_search.core.matching.decision import ROUNDING, Decision
from ndd_search.core.matching.frequency_table import Places, Shares
from ndd_search.core.matching.shared_sketch_values import shared_values
from ndd_search.core.matching.similar_pairs import Pairs, overlapping_pairs, overlaps, resembling_pairs
from ndd_search.core.matching.sketch_rows import Ranks, Rows, rows_of
from ndd_search.core.recipe import Measure, Recipe
from ndd_search.core.sketching.estimate_similarity import Estimate, estimate_resemblance, standard_error


def similar_pairs(rows: Rows, decision: Decision) -> Pairs:
    """Return all pairs of a page that a decision accepts."""
    if decision.measure == "kmv" or decision.bar is None:
        return resembling_pairs(rows, decision)
    return _pairs_above(rows, decision.measure, decision.bar)


def judged_pairs(rows: Rows, decision: Decision, least: float) -> tuple[Pairs, Shares, Shares]:
    """Return the pairs with a similarity of at least `least`, the values compared with their bars, and the bars."""
    if decision.measure == "kmv" or decision.bar is None:
        pairs, pair_overlaps = overlapping_pairs(rows, decision, least)
        return pairs, decision.similarity(pair_overlaps), decision.bars(pair_overlaps)
    pairs = _pairs_above(rows, decision.measure, least)
    return pairs, pairs.similarity, np.full(len(pairs), decision.bar)


def similarities(rows: Rows, first: Places, second: Places, measure: Measure) -> Shares:
    """Return the similarity of given pairs of sketches, 0..1; 0 for an empty sketch."""
    if measure == "cosine":
        from ndd_search.core.methods.simhash import cosine, distance, from_rows  # imported here: rarely used

        prints, known = from_rows(rows.values, rows.lengths)
        return np.where(known[first] & known[second], cosine(distance(prints[first], prints[second])), 0.0)
    if measure == "kmv":
        return overlaps(rows, first, second, None).resemblance
    common, counted = np.zeros(len(first), np.int64), np.zeros(len(first), np.int64)
    for shared in shared_values(rows, first, second):
        numbers = np.bincount(shared.pair, minlength=len(first))
        before = np.arange(len(shared.pair)) - (np.cumsum(numbers) - numbers)[shared.pair]
        left, right = shared.left - rows.offsets[first[shared.pair]], shared.right - rows.offsets[second[shared.pair]]
        within = left + right - before < rows.k  # the value is among the k smallest of the union
        common += numbers
        counted += np.bincount(shared.pair[within], minlength=len(first))
    a, b = rows.lengths[first], rows.lengths[second]
    if measure == "broder":
        broder: Shares = counted / np.maximum(np.minimum(a + b - common, rows.k), 1)
        return broder
    overlap: Shares = common / np.maximum((np.maximum if measure == "overlap" else np.minimum)(a, b), 1)
    return overlap


def estimate(a: npt.ArrayLike, b: npt.ArrayLike, recipe: Recipe) -> Estimate:
    """Return the similarity of two sketches of a recipe, with its standard error if it is an estimate."""
    if recipe.measure == "kmv":
        return estimate_resemblance(a, b, recipe.k)
    rows = rows_of([a, b], recipe.k)
    value = float(similarities(rows, np.array([0]), np.array([1]), recipe.measure)[0])
    estimated = recipe.method == "min-hash" or (recipe.measure == "broder" and bool((rows.lengths == recipe.k).any()))
    return Estimate(value, standard_error(value, recipe.k) if estimated else 0.0)


def least_resemblance(decision: Decision, k: int, shortest: int = 1) -> Decision:
    """Return the decision on kmv that every pair reaches which another decision on sets of values accepts.

    k: values of a sketch at most. shortest: values of a sketch at least, 1..k.
    By broder or overlap, pairs of similarity b share 2 * b / (1 + b) of their values at least, or b of the longer one:
    kmv is at least b / (2 - b). By "shorter" they share b * shortest of shortest + k.
    """
    share = decision.bar or 0.0
    short, long = (shortest, k) if decision.measure == "shorter" else (1, 1)
    return Decision(max(share * short / (short + long - share * short) - ROUNDING, ROUNDING), decision.size)


def _pairs_above(rows: Rows, measure: Measure, least: float) -> Pairs:
    """Return the pairs with a similarity of at least `least`."""
    if measure == "cosine":
        return near_prints(rows, np.arange(len(rows.lengths)), least)
    bar = least_resemblance(Decision(least, 1, measure=measure), rows.k).floor
    candidates, _ = overlapping_pairs(rows, Decision(1.0, 0), bar if least else 0.0)
    first, second = candidates.first, candidates.second
    pairs = Pairs(first, second, similarities(rows, first, second, measure))
    return pairs.where(pairs.similarity >= least - ROUNDING)


def near_prints(rows: Rows, places: Ranks, least: float) -> Pairs:
    """Return the pairs among some rows whose cosine is at least `least`, by block tables (see `methods.simhash`).

    Raises ValueError for more bits than tables for so many fingerprints find.
    """
    from ndd_search.core.methods.simhash import Tables, bits_of, cosine, distance, from_rows

    prints, known = from_rows(rows.values, rows.lengths)
    places = places[known[places]]
    first, second = Tables(prints[places], bits_of(least)).pairs()
    first, second = places[first], places[second]
    return Pairs(first, second, cosine(distance(prints[first], prints[second])))
