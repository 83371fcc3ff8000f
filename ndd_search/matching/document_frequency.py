"""Which sketch values many documents of an index hold, counted in a sample of it, and copies counted less.

A story that twenty documents tell is no template, however much they share. Counted one by one they would make its words
common, and the more copies it had the less they would look like copies. But twenty that fill one form look the same,
and the more they are, the more a form it is: so g documents that may be copies of one another count as sqrt(g).

What may be a copy is said in two rounds. In the first, which knows nothing yet, it is who would still be alike if
`margin` words of the shorter text were changed: few in a long text, but in a short one nearly nothing may be different
as it is. In the second it is what the default takes for a copy with the table of the first, and copies of copies: the
twentieth revision of a text may share little with the first.

In a large sample copies are looked for among those who held a value first: the first telling of a story is the first to
hold what is its own. So the work grows with the sample, not with its square, however many documents share a frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ndd_search.matching.decision import Constants, Decision, telling_shingles
from ndd_search.matching.frequency_table import FrequencyTable, Places
from ndd_search.matching.groups import choose_leaders
from ndd_search.matching.pairs import Pairs, overlaps, resembling_pairs
from ndd_search.matching.rows import Ranks, Rows, rows_of
from ndd_search.matching.shared_values import compare
from ndd_search.recipe import Recipe
from ndd_search.sketching.estimates import estimated_shingles
from ndd_search.sketching.sketches import Sketches

_PLACES = 3  # decimals of a count
_FEW = 500  # documents of which every pair is compared


def count_document_frequency(
    sketches: Sequence[npt.ArrayLike] | Sketches, recipe: Recipe, constants: Constants | None = None
) -> FrequencyTable:
    """Count the values of some sketches, at best a random sample of `common_values.SAMPLE` documents of an index.

    Equal sketches count once, empty ones not at all. Of a recipe whose measure is not "kmv", where nobody asks for it,
    the table is empty. Raises InvalidSketch naming the place of one that is none.
    """
    if recipe.measure != "kmv":
        return FrequencyTable(0, np.empty(0, np.int32), np.empty(0), recipe.id)
    constants = constants or Constants()
    rows = _different(rows_of(sketches, recipe.k))
    few = len(rows.lengths) <= _FEW
    alike = Decision(constants.least, recipe.size)
    pairs = resembling_pairs(rows, alike) if few else _pairs_with_the_first(rows, constants.least)
    sizes = estimated_shingles(rows.lengths, rows.largest, recipe.k)
    shorter = np.minimum(sizes[pairs.first], sizes[pairs.second])
    copies = pairs.similarity >= constants.least + constants.margin * recipe.size / shorter
    leaders, _ = choose_leaders(len(rows.lengths), pairs.where(copies))
    frequency_table = _count(rows, leaders, recipe, constants)
    if not len(pairs):
        return frequency_table
    decision = Decision(None, recipe.size, frequency_table if frequency_table.telling else None, constants)
    if few:
        copied = resembling_pairs(rows, decision)
    else:
        copied = pairs.where(decision.accepts(overlaps(rows, pairs.first, pairs.second, decision.frequency_table)))
    return _count(rows, _connected(len(rows.lengths), copied), recipe, constants)


def count_in_list(sketches: Sequence[npt.ArrayLike], recipe: Recipe) -> FrequencyTable:
    """The same of a list of hits, without its short texts.

    In texts of fewer than `margin` words and what must be alike besides, the first round takes no two for copies. In a
    sample of an index the copies of one short text are few, but a list of hits may be little else.
    """
    shortest = telling_shingles(recipe)
    return count_document_frequency([one for one in sketches if np.size(one) >= shortest], recipe)


def _different(rows: Rows) -> Rows:
    """One of each, without the empty one."""
    different = dict.fromkeys(rows.values[start:end].tobytes() for start, end in pairwise(rows.offsets.tolist()))
    different.pop(b"", None)
    return rows_of([np.frombuffer(one, np.int32) for one in different], rows.k)


def _count(rows: Rows, group: Ranks, recipe: Recipe, constants: Constants) -> FrequencyTable:
    """Count the values of rows. group: of each row; those of one group may be copies of one another."""
    held = np.sort(rows.values.astype(np.int64) << 31 | np.repeat(group, rows.lengths))
    groups = np.flatnonzero(np.diff(held, prepend=-1))
    weights = np.sqrt(np.diff(groups, append=len(held)).astype(np.float64))  # of those in each group that hold a value
    values = held[groups] >> 31
    starts = np.flatnonzero(np.diff(values, prepend=-1))
    counts = np.add.reduceat(weights, starts).round(_PLACES) if len(starts) else weights
    frequency_table = counts > constants.handful
    documents = round(float(np.sqrt(np.bincount(group)).sum()), _PLACES)
    return FrequencyTable(
        documents,
        values[starts[frequency_table]].astype(np.int32),
        counts[frequency_table],
        recipe.id,
        constants.handful,
    )


def _connected(count: int, pairs: Pairs) -> Ranks:
    """The first row that each row is connected with, by any number of pairs."""
    group = np.arange(count)
    while True:
        first = np.minimum(group[pairs.first], group[pairs.second])
        nearer = group.copy()
        np.minimum.at(nearer, pairs.first, first)
        np.minimum.at(nearer, pairs.second, first)
        nearer = nearer[nearer]
        if (nearer == group).all():
            return group
        group = nearer


def _pairs_with_the_first(rows: Rows, floor: float) -> Pairs:
    """The pairs of a row and one before it, the first of all to hold one of its values, that resemble by `floor`."""
    count = len(rows.lengths)
    held = np.sort(rows.values.astype(np.int64) << 31 | np.repeat(np.arange(count), rows.lengths))
    owner, starts = held & (2**31 - 1), np.diff(held >> 31, prepend=-1) != 0
    first: Places = owner[np.flatnonzero(starts)[np.cumsum(starts) - 1]]
    codes = np.sort(first[~starts] * count + owner[~starts])
    codes = codes[np.diff(codes, prepend=-1) != 0]
    if not len(codes):
        none = np.empty(0, np.int64)
        return Pairs(none, none, np.empty(0))
    found = compare(rows.table, codes, floor)
    return Pairs(found.first, found.second, found.shared / (found.left + found.right - found.shared))
