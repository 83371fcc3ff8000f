"""The measures of similarity of two sketches, and the pairs of a page that are similar by each.

    kmv      resemblance, see `sketching.estimates`; the only measure that "auto" weighs by idf
    broder   resemblance: the share of common values among the k smallest of the union (Broder 1997)
    overlap  common values / values of the longer sketch. For min-K sketches this estimates about 2 * J / (1 + J) rather
             than the resemblance J (Sycamore's dedup); for min-hashes resemblance; else the share of equal parts
    cosine   cos(pi * d / 64), at least 0, of two simhash fingerprints that differ in d bits; estimates the cosine of
             the weighted features (Charikar 2002)

A pair with a broder or overlap of b has a kmv of at least b / (2 - b), so candidates are found with that bar on kmv.
"""

from __future__ import annotations

from math import acos, pi

import numpy as np
import numpy.typing as npt

from ndd_search.core.matching.decision import ROUNDING, Decision
from ndd_search.core.matching.frequency_table import Places, Shares
from ndd_search.core.matching.pairs import Pairs, overlapping_pairs, overlaps, resembling_pairs
from ndd_search.core.matching.shared_values import shared_values
from ndd_search.core.matching.sketch_rows import Ranks, Rows, rows_of
from ndd_search.core.recipe import Measure, Recipe
from ndd_search.core.sketching.estimates import Estimate, estimate_resemblance, standard_error
from ndd_search.core.sketching.simhash import BITS, Tables, distance, from_sketches

_AT_ONCE = 1 << 20  # pairs of fingerprints compared at a time


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
        prints, known = _prints(rows)
        return np.where(known[first] & known[second], _cosine(distance(prints[first], prints[second])), 0.0)
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
    overlap: Shares = common / np.maximum(np.maximum(a, b), 1)
    return overlap


def estimate(a: npt.ArrayLike, b: npt.ArrayLike, recipe: Recipe) -> Estimate:
    """Return the similarity of two sketches of a recipe, with its standard error if it is an estimate."""
    if recipe.measure == "kmv":
        return estimate_resemblance(a, b, recipe.k)
    rows = rows_of([a, b], recipe.k)
    value = float(similarities(rows, np.array([0]), np.array([1]), recipe.measure)[0])
    estimated = recipe.method == "min-hash" or (recipe.measure == "broder" and bool((rows.lengths == recipe.k).any()))
    return Estimate(value, standard_error(value, recipe.k) if estimated else 0.0)


def _pairs_above(rows: Rows, measure: Measure, least: float) -> Pairs:
    """Return the pairs with a similarity of at least `least`."""
    if measure == "cosine":
        first, second = _near_prints(rows, least)
    else:
        candidates, _ = overlapping_pairs(rows, Decision(1.0, 0), max(least / (2 - least) - ROUNDING, 0.0))
        first, second = candidates.first, candidates.second
    pairs = Pairs(first, second, similarities(rows, first, second, measure))
    return pairs.where(pairs.similarity >= least - ROUNDING)


def bits_of(cosine: float) -> int:
    """Return how many bits may differ in two fingerprints whose cosine is at least this."""
    return int(acos(min(max(cosine, 0.0), 1.0)) / pi * BITS + 1e-6)


def cosine_of(bits: int) -> float:
    """Return the cosine of two fingerprints that differ in so many bits."""
    return float(_cosine(np.array([bits], np.uint8))[0])


def near_prints(rows: Rows, places: Ranks, least: float) -> Pairs:
    """Return the pairs among some rows whose cosine is at least `least`, by block tables (see `sketching.simhash`).

    The time grows with the rows and with the pairs that share a block, not with all pairs.
    """
    prints, known = _prints(rows)
    places = places[known[places]]
    first, second = Tables(prints[places], bits_of(least)).pairs()
    first, second = places[first], places[second]
    return Pairs(first, second, _cosine(distance(prints[first], prints[second])))


def _near_prints(rows: Rows, least: float) -> tuple[Ranks, Ranks]:
    """Return the pairs of fingerprints whose cosine may be at least `least`."""
    prints, _ = _prints(rows)
    most = bits_of(least)
    step = max(_AT_ONCE // max(len(prints), 1), 1)
    first, second = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for start in range(0, len(prints), step):
        near = distance(prints[start : start + step, None], prints[None, start:]) <= most
        row, column = np.nonzero(np.triu(near, 1))
        first.append(row.astype(np.int64) + start)
        second.append(column.astype(np.int64) + start)
    return np.concatenate(first), np.concatenate(second)


def _prints(rows: Rows) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    """Return the fingerprint of each row, and which rows hold one."""
    whole = rows.lengths == 4
    prints, known = np.zeros(len(whole), np.uint64), np.zeros(len(whole), np.bool_)
    held = rows.values[np.repeat(whole, rows.lengths)].reshape(-1, 4)
    prints[whole], known[whole] = from_sketches(held)
    return prints, known


def _cosine(differing: npt.NDArray[np.uint8]) -> Shares:
    cosine: Shares = np.maximum(np.cos(differing * (pi / BITS)), 0.0)
    return cosine
