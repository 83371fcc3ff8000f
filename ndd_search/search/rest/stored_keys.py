"""Query clauses that find documents by the keys stored beside their sketches.

The keys are the smallest values of a sketch, indexed as terms. Documents that resemble each other share some of them.
"""

from __future__ import annotations

from math import comb
from typing import Any

from ndd_search.core.matching.decision import Decision
from ndd_search.core.recipe import Measure, Recipe
from ndd_search.core.sketching.sketches import Sketch
from ndd_search.core.sketching.stored_sketch import SketchField, keys_of

_MISSED = 0.01  # largest share of documents at exactly min_similarity that may share too few keys to be found


def shares_keys(wanted: Sketch, keys: int, decision: Decision, field: SketchField, recipe: Recipe) -> dict[str, Any]:
    """Return the clauses of a `bool` query for documents that share keys with a sketch; the score is their number.

    keys: number of keys in the query. decision: its floor decides how many of them a document must share.
    """
    found = [keys_of(equal, len(equal)) for equal in looked_up(wanted, keys, decision)]
    terms = [{"constant_score": {"filter": {"terms": {field.keys: equal}}}} for equal in found]
    return {
        "should": terms,
        "minimum_should_match": needed_keys(len(terms), decision),
        "filter": [{"term": {field.recipe: recipe.id}}],
    }


def looked_up(wanted: Sketch, keys: int, decision: Decision) -> list[list[int]]:
    """Return for each of the first keys of a sketch the values by which documents that share it are found.

    All blocks of a fingerprint are looked up, and what differs in a quarter of the bits that may differ: then every
    document within them is found. Raises ValueError for more bits than that finds.
    """
    if decision.unmarks:
        return [[value & -2, value | 1] for value in wanted[:keys].tolist()]
    if decision.measure != "cosine":
        return [[value] for value in wanted[:keys].tolist()]
    from ndd_search.core.methods.simhash import bits_of, near_blocks  # imported here because it is rarely used

    return [near_blocks(value, bits_of(decision.bar or 0.0)) for value in wanted.tolist()]


def needed_keys(keys: int, decision: Decision) -> int:
    """Return the number of keys that a document must share with the given one to be compared."""
    if decision.measure == "cosine":
        return 1  # keys are blocks of bits
    return shared_keys(keys, decision.floor, decision.measure)


def shared_keys(keys: int, min_similarity: float, measure: Measure = "kmv") -> int:
    """Return the number of keys that two documents must share to be compared, 1..keys.

    Two documents of resemblance J share each of their smallest values with probability 2J / (1 + J); with overlap b the
    probability is b. The result is the largest number that at most 1 % of the documents at exactly min_similarity do
    not reach.
    """
    share = min_similarity if measure == "overlap" else 2 * min_similarity / (1 + min_similarity)
    short = 0.0
    for needed in range(1, keys + 1):
        short += comb(keys, needed - 1) * share ** (needed - 1) * (1 - share) ** (keys - needed + 1)
        if short > _MISSED:
            return max(needed - 1, 1)
    return keys
