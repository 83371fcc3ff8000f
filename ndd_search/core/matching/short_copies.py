"""Which pairs of short texts are copies that differ at their edges (see `text.edges`), or in a few places more.

A value of a sketch of words is odd if its shingle touches an edge of the text wherever it occurs, else even. So two
complete sketches tell what two texts have inside, and whether they differ there. They are copies if they share as many
inner values as the least bar of any pair asks of those of either, and have the same shingles, whatever touches an edge
in one of them only, as case and punctuation show edges; or if

* a value that touches an edge is in only one of them,
* they share at least SHARED inner values: of two edited copies of a brief, each with an edge of its own, most values
  differ. What their edges share is the name of a site or of a section, which other texts have,
* the inner values that only one of them has are, in the one that has fewer of these, at most as many as they share, or
  it says something else of the same event; and at most half of APART: two changed words. The other may have more, as it
  may begin or end with words that no sign sets apart. Without a table half of APART_UNTOLD, as two words that differ
  are more often two slots,
* and if a table tells that what they share is common, at most APART inner values are in only one of them. If both have
  inner values of their own, one of these is in the table and in at least half as many documents as the shared ones are
  on average: an edited copy lacks what the other copies share, but a form leaves a place where no answer is as
  frequent. And less than a quarter of the shared inner values are in more than twice as many documents as they are on
  average: what copies share is about equally common, but fillings that are alike in some places share these and, with
  all others, the frame. If only one of them has own values, the other holds nothing that fills a form.

What they share is rare if it is in fewer than twice a handful of documents on average, or if two thirds of the shared
inner values are, and these are at least twice as many as the smaller number of own ones: a story may contain a phrase
that many texts have.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ndd_search.core.matching.frequency_table import FrequencyTable, Places
from ndd_search.core.matching.sketch_rows import Ranks, Rows
from ndd_search.native import Rule

SHARED, APART, APART_UNTOLD = 4, 12, 11  # values; a changed word is in three of each text
FRAME = 4  # less than one in so many shared values may be more than twice as common as they are on average
_AT_ONCE = 2**20  # values compared at a time
_ROUNDING = 1e-9
Flags = npt.NDArray[np.bool_]


def inside(rows: Rows) -> Rows:
    """Return rows without the values that touch an edge; those of k values, which are samples, as they are."""
    if not (marked := rows.marked).any():
        return rows
    kept = ~((rows.values & 1 == 1) & np.repeat(marked, rows.lengths))
    lengths = np.bincount(np.repeat(np.arange(len(rows.lengths)), rows.lengths)[kept], minlength=len(rows.lengths))
    return Rows(rows.values[kept], np.concatenate(([0], np.cumsum(lengths))), rows.k)


def may_differ_at_edges(rows: Rows, first: Places, second: Places, rule: Rule) -> Flags:
    """Return which of given pairs are whole and have edges."""
    if not rule.edges or not (marked := rows.marked).any():
        return np.zeros(len(first), np.bool_)
    may: Flags = rows.whole[first] & rows.whole[second] & (marked[first] | marked[second])
    return may


def differ_at_edges(rows: Rows, first: Places, second: Places, rule: Rule, table: FrequencyTable | None) -> Flags:
    """Return which of given pairs are copies as above. table: of `rule`, or None."""
    copies = np.zeros(len(first), np.bool_)
    at = np.flatnonzero(may_differ_at_edges(rows, first, second, rule))
    for part in _parts(rows.lengths[first[at]] + rows.lengths[second[at]]):
        copies[at[part]] = _copies(rows, first[at[part]], second[at[part]], rule, table)
    return copies


def _parts(sizes: Ranks) -> Iterator[slice]:
    """Yield runs of pairs of about _AT_ONCE values."""
    done = 0
    ends = np.cumsum(sizes)
    while done < len(ends):
        stop = max(int(np.searchsorted(ends, (ends[done - 1] if done else 0) + _AT_ONCE)), done + 1)
        yield slice(done, stop)
        done = stop


def _copies(rows: Rows, first: Places, second: Places, rule: Rule, table: FrequencyTable | None) -> Flags:
    """Return which pairs of complete sketches are copies."""
    count = len(first)
    weights = np.zeros(len(rows.values))
    if table is not None:
        at, which = table.find(rows.values)
        weights[at] = table.weights[which]
    pair, place = (
        np.concatenate(sides) for sides in zip(*(_values_of(rows, side) for side in (first, second)), strict=True)
    )
    keys = pair << 32 | rows.values[place].astype(np.int64) >> 1
    order = np.argsort(keys, kind="stable")
    keys, pair, place = keys[order], pair[order], place[order]
    same = np.zeros(len(keys) + 1, np.bool_)
    np.equal(keys[1:], keys[:-1], out=same[1:-1])
    alone, met = ~(same[1:] | same[:-1]), same[1:]
    inner = rows.values[place] & 1 == 0
    of_second = order >= rows.lengths[first].sum()
    own = [np.bincount(pair[alone & inner & (of_second == side)], minlength=count) for side in (False, True)]
    edge = np.bincount(pair[alone & ~inner], minlength=count) > 0
    shared = np.bincount(pair[met & inner & np.append(inner[1:], False)], minlength=count)
    insides = [np.bincount(pair[inner & (of_second == side)], minlength=count) for side in (False, True)]
    smaller, apart = np.minimum(*own), own[0] + own[1]
    enough: Flags = shared >= (rule.least - _ROUNDING) * np.maximum(*insides)
    same_words: Flags = ~edge & (apart == 0)
    copies: Flags = edge & (shared >= SHARED) & (shared >= smaller)
    if table is None:
        copies &= 2 * smaller <= APART_UNTOLD
        return enough & (copies | same_words)
    common = np.bincount(pair[met], minlength=count)
    usual = np.bincount(pair[met], np.minimum(weights[place[met]], weights[place[np.flatnonzero(met) + 1]]), count)
    most = np.zeros(count)
    np.maximum.at(most, pair[alone & inner], weights[place[alone & inner]])
    both = np.flatnonzero(met & inner & np.append(inner[1:], False))
    weight = np.minimum(weights[place[both]], weights[place[both + 1]])
    of_frame = np.bincount(pair[both], weight * common[pair[both]] > (usual + rule.twice * common)[pair[both]], count)
    scarce = np.bincount(pair[both], weight <= rule.twice + 1, count)  # stored weights are rounded by less than one
    rare = (usual < rule.twice * common) | ((scarce >= 2 * smaller) & (3 * scarce >= 2 * shared))
    copies &= np.where(rare, 2 * smaller, apart) <= APART
    alike = (most > 0) & ((most + rule.twice) * common >= usual) & (FRAME * of_frame < shared)
    copies &= rare | (smaller == 0) | alike
    return enough & (copies | same_words)


def _values_of(rows: Rows, side: Places) -> tuple[Places, Places]:
    """Return the number of the pair and the position in rows.values of each value of one side of pairs."""
    lengths = rows.lengths[side]
    pair = np.repeat(np.arange(len(side)), lengths)
    within = np.arange(len(pair)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return pair, rows.offsets[side[pair]] + within
