"""Count the document frequency of sketch values in a sample of an index, with a lower weight for copies.

Twenty copies of one article are no template, although they share much. Counted one by one, they would make the words of
the article common, so that more copies looked less like copies. But twenty texts in one form look the same, and the
more there are, the more certainly it is a form. As a compromise, g documents that may be copies of one another count
sqrt(g). They count once if at least a third of their different sketches have edges (see `text.edges`), which fillings
of a form seldom have.

Copies, for this purpose, are texts with a resemblance of at least EDITED, and copies of copies; in a short text, nearly
nothing may differ. Texts that share most of a page and differ in forty words, such as the adverts of one employer, each
count: what they share is common. A second pass adds short texts that differ at their edges; to tell these, it needs the
table of the first.

In a large sample, each document is compared only with the first ones to contain its values, because the first version
of an article is the first to contain its own values. So the work grows with the sample, not with its square. Texts
with many copies that differ at their edges only come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf

import numpy as np
import numpy.typing as npt

from ndd_search import native
from ndd_search.core.matching.choose_leaders import components
from ndd_search.core.matching.decision import ROUNDING, Constants, Decision, telling_shingles
from ndd_search.core.matching.frequency_table import FrequencyTable, Places
from ndd_search.core.matching.short_copies import inside
from ndd_search.core.matching.similar_pairs import Pairs, given_pairs, resembling_pairs
from ndd_search.core.matching.sketch_rows import Ranks, Rows, rows_of
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.estimate_similarity import estimated_shingles
from ndd_search.core.sketching.sketches import Lack, Sketches, core_arguments
from ndd_search.core.text.tokens import starts_of_runs

EDITED = 0.68  # resemblance from which two texts count as one that was edited
UNSEEN = 16  # documents without any value of a list, counted with it
_PLACES = 3  # decimals of a count
_FILLINGS = 6  # texts that show a form; fewer may as well be one text that was passed on with additions
_BARE = 2  # a story counts once if it has at most this many sketches without edges for each with edges
_BUCKETS = 2**20  # at most, by the low bits of values, to leave out rare values before the others are sorted
_FEW = 500  # documents up to which all pairs are compared


def count_document_frequency(
    sketches: Sequence[npt.ArrayLike] | Sketches, recipe: Recipe, constants: Constants | None = None
) -> FrequencyTable:
    """Count the values of sketches, best of a random sample of `frequency_table.SAMPLE` documents of an index.

    Equal sketches count once, empty ones are skipped. The table is empty for a recipe whose measure is not "kmv", which
    does not use it. Raises InvalidSketch naming the position of an invalid one.
    """
    if recipe.measure != "kmv":
        return _nothing_counted(recipe)
    return _count_different(*_distinct(sketches, recipe), recipe, constants or Constants())


def count_in_list(sketches: Sequence[npt.ArrayLike | Lack], recipe: Recipe) -> FrequencyTable:
    """Count the values of a list of hits: of its long texts, and of short texts that fill one form.

    A list is a small part of an index, and the hits of a query resemble one another more than other documents do. So a
    value that several hits hold is less common in the index than in the list: UNSEEN further documents are counted,
    which hold none of the values. A list too short to tell common values from rare ones gets none.

    In a text of fewer than telling_shingles, one changed word is much. A sample of an index has few copies of one short
    text, but a list of hits may consist of them. So a short text is counted only if others of the list show that it
    fills a form. The table is empty for a recipe whose measure is not "kmv". Hits without a sketch are left out.
    """
    if recipe.measure != "kmv":
        return _nothing_counted(recipe)
    if not isinstance(sketches, Sketches):
        sketches = [one for one in sketches if not isinstance(one, Lack)]
    handful, rule = Constants().handful, Decision(None, recipe.size, kind=recipe.kind).rule
    rule = rule._replace(power=Constants().power)
    if native.core and (found := native.core.counted(*core_arguments(sketches), recipe.k, rule, handful, UNSEEN)):
        documents, values, counts = found
        return FrequencyTable(documents, np.frombuffer(values, np.int32), np.frombuffer(counts), recipe.id)
    table = _count_list(*_distinct(sketches, recipe), recipe)
    return replace(table, documents=table.documents + UNSEEN) if table.telling else table


def _nothing_counted(recipe: Recipe) -> FrequencyTable:
    return FrequencyTable(0, np.empty(0, np.int32), np.empty(0), recipe.id)


def _distinct(sketches: Sequence[npt.ArrayLike] | Sketches, recipe: Recipe) -> tuple[Rows, Ranks]:
    """Return one of the sketches that differ only at the edges of their texts, and how many different ones have edges.

    Empty ones are left out. In a large sample those with the most edges come first.
    """
    rows = rows_of(sketches, recipe.k)
    alike = _alike(_inside(rows, recipe))
    marked = rows.marked & (recipe.kind == "words")
    first = {places[0] for places in _alike(rows) if marked[places[0]]}
    edged = [len(first.intersection(places)) for places in alike]
    order = range(len(alike)) if len(alike) <= _FEW else sorted(range(len(alike)), key=lambda at: -edged[at])
    return _rows_at(rows, [alike[at][0] for at in order]), np.array([edged[at] for at in order], np.int64)


def _inside(rows: Rows, recipe: Recipe) -> Rows:
    return inside(rows) if recipe.kind == "words" else rows


def _count_list(rows: Rows, edged: Ranks, recipe: Recipe) -> FrequencyTable:
    """Count the values of the long texts of different rows, and of short texts that fill one form."""
    counted = rows.lengths >= telling_shingles(recipe)
    short = np.flatnonzero(~counted)
    counted[short[_fillings(_rows_at(rows, short.tolist()), recipe)]] = True
    places = np.flatnonzero(counted)
    return _count_different(_rows_at(rows, places.tolist()), edged[places], recipe, Constants())


def _count_different(rows: Rows, edged: Ranks, recipe: Recipe, constants: Constants) -> FrequencyTable:
    """Count the values of different rows, in two passes. edged: sketches with edges that each of them stands for."""
    edited, count = _edited(rows, recipe, constants), len(rows.lengths)
    table = _count(rows, components(count, edited), edged * 0, recipe, constants)
    edges = replace(constants, asked=inf, differ=0)  # none but pairs that differ at their edges
    decision = Decision(None, recipe.size, table if table.telling else None, edges, kind=recipe.kind)
    at_edges = _pairs(rows, decision)
    return _count(rows, components(count, edited.with_more(at_edges)), edged, recipe, constants)


def _edited(rows: Rows, recipe: Recipe, constants: Constants) -> Pairs:
    """Return the pairs that count as one text that was edited."""
    pairs = _pairs(rows, Decision(EDITED, recipe.size))
    sizes = estimated_shingles(rows.lengths, rows.largest, recipe.k)
    shorter = np.minimum(sizes[pairs.first], sizes[pairs.second])
    return pairs.where(pairs.similarity >= constants.least + constants.margin * recipe.size / shorter - ROUNDING)


def _fillings(rows: Rows, recipe: Recipe) -> list[int]:
    """Return the places of those different short texts that fill one form with at least _FILLINGS - 1 others.

    Texts that a chain of resembling ones connects are a group. Values that most of them hold belong to its form. A
    filling has nearly all of these, and twice as many others as it lacks: answers, of which some may be frequent. Among
    copies of one text, some have no others, and some lack values that most copies hold. A form is a group of which at
    most a tenth are no fillings.
    """
    found: list[int] = []
    within = _inside(rows, recipe)
    insides = Sketches(within.values, within.offsets)
    group_of = components(len(insides), _pairs(within, Decision(Constants().least, recipe.size)))
    for group in np.flatnonzero(np.bincount(group_of) >= _FILLINGS).tolist():
        places = np.flatnonzero(group_of == group).tolist()
        members = [insides[place] for place in places]
        _, value, counts = np.unique(np.concatenate(members), return_inverse=True, return_counts=True)
        of_form, owner = 2 * counts > len(members), np.repeat(np.arange(len(members)), [len(one) for one in members])
        kept, others = (np.bincount(owner, which[value]) for which in (of_form, ~of_form))
        fills = (others > 0) & (2 * (of_form.sum() - kept) <= others)
        if fills.sum() >= max(_FILLINGS, 0.9 * len(members)):
            found += places
    return found


def _alike(rows: Rows) -> list[list[int]]:
    """Return the places of the rows that are equal, without the empty one."""
    alike, values = dict[bytes, list[int]](), rows.values.tobytes()
    for place, (start, end) in enumerate(pairwise((rows.offsets * rows.values.itemsize).tolist())):
        alike.setdefault(values[start:end], []).append(place)
    alike.pop(b"", None)
    return list(alike.values())


def _rows_at(rows: Rows, places: list[int]) -> Rows:
    """Return the rows at places."""
    ends = rows.offsets.tolist()
    return rows_of([rows.values[ends[place] : ends[place + 1]] for place in places], rows.k)


def _count(rows: Rows, group: Ranks, edged: Ranks, recipe: Recipe, constants: Constants) -> FrequencyTable:
    """Count the values of rows. group: of each row; rows of one group may be copies.

    edged: different sketches with edges that each row stands for, 0 for one without.
    """
    balance = np.bincount(group, np.where(edged > 0, _BARE * edged, -1))
    most = np.where(balance < 0, np.inf, 1.0)  # that a group counts
    documents = round(float(np.minimum(np.sqrt(np.bincount(group)), most).sum()), _PLACES)
    held = _sorted(rows, group, least=int(constants.handful) + 1)  # no count is above the number of rows
    groups = starts_of_runs(held)
    sizes = np.diff(np.append(groups, len(held)))
    weights = np.minimum(np.sqrt(sizes), most[held[groups] & (2**31 - 1)])  # one for each value and group
    values = held[groups] >> 31
    starts = starts_of_runs(values)
    counts = np.add.reduceat(weights, starts).round(_PLACES) if len(starts) else weights
    common = counts > constants.handful
    return FrequencyTable(
        documents, values[starts[common]].astype(np.int32), counts[common], recipe.id, constants.handful
    )


def _sorted(rows: Rows, group: Ranks, least: int) -> Ranks:
    """Return value * 2**31 + group of each value of each row, ascending, without most values that are in few rows.

    group: of each row. least: values in fewer rows may be left out. Most values of a sample are in one row, and sorting
    them would take most of the time of a count.
    """
    buckets = min(_BUCKETS, 16 << len(rows.values).bit_length())
    bucket = rows.values & (buckets - 1)
    many = (np.bincount(bucket, minlength=buckets) >= least).take(bucket)
    return np.sort(rows.values[many].astype(np.int64) << 31 | np.repeat(group, rows.lengths)[many])


def _pairs(rows: Rows, decision: Decision) -> Pairs:
    """Return the pairs of rows that a decision accepts; of many rows, only with the first that has a value."""
    count = len(rows.lengths)
    if count <= _FEW:
        return resembling_pairs(rows, decision)
    held = _sorted(rows, np.arange(count), least=2)
    owner, starts = held & (2**31 - 1), np.diff(held >> 31, prepend=-1) != 0
    first: Places = owner[np.flatnonzero(starts)[np.cumsum(starts) - 1]]
    codes = np.sort(first[~starts] * count + owner[~starts])
    return given_pairs(rows, decision, *np.divmod(codes[np.diff(codes, prepend=-1) != 0], max(count, 1)))
