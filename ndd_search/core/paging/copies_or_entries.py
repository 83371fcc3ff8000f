"""Warns of short texts: those that may be copies of one text or entries of one form, and those of too few words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ndd_search.core.matching.choose_leaders import assign_leaders
from ndd_search.core.matching.decision import ALIKE, Decision, telling_shingles
from ndd_search.core.matching.guards import FieldReader, allowed
from ndd_search.core.matching.short_copies import inside
from ndd_search.core.matching.similar_pairs import Pairs
from ndd_search.core.matching.sketch_rows import rows_of
from ndd_search.core.options import CollapseOptions
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import Sketch
from ndd_search.core.text.tokens import sorted_distinct

_FORM = 6  # so many different short texts in one group may be entries of one form
_FEW_WORDS = 10  # of texts with fewer, many copies have too few shingles of words in common (docs/quality.md)


def few_words(values: npt.NDArray[np.int64], recipe: Recipe) -> str:
    """Return a sentence if most of some texts are too short to be compared by words, else "".

    values: how many values each of their sketches has, 0 for no text: of a sketch of fewer than k values, its shingles.
    """
    texts, is_whole = int((values > 0).sum()), (values > 0) & (values < recipe.k)
    short = int((is_whole & (values + recipe.size <= _FEW_WORDS)).sum())
    if recipe.kind != "words" or texts < 2 or 2 * short <= texts:
        return ""
    return (
        f"{short} of {texts} texts have fewer than {_FEW_WORDS} words, and copies of such texts are often missed: for "
        "headlines and posts, use the preset messages"
    )


def joined(
    groups: Iterable[Sequence[int]], sketches: Sequence[Sketch], ranks: Sequence[int], recipe: Recipe
) -> list[str]:
    """Return warnings about groups of short texts that may be entries of one form.

    groups: indexes of hits whose texts resemble each other, the leader first. sketches, ranks: of all hits.
    """
    warnings = []
    for group in groups:
        if len(group) < _FORM or not 0 < len(sketches[group[0]]) < telling_shingles(recipe):
            continue
        rows = inside(rows_of([sketches[index] for index in group], recipe.k))
        different = len({values.tobytes() for values in np.split(rows.values, rows.offsets[1:-1])})
        if different >= _FORM:
            warnings.append(
                f"{different} of {len(ranks)} hits are short texts that differ in a few words and are shown "
                f'as one, hit {ranks[group[0]]}: if they are entries of one form, set min_similarity="identical"'
                f' or guards=["numbers"]'
            )
    return warnings


def kept_apart(
    hits: Sequence[Any],
    leaders: Mapping[int, Sketch],
    shown: int,
    reader: FieldReader,
    recipe: Recipe,
    options: CollapseOptions,
) -> list[str]:
    """Return a warning if leaders are short texts that a bar of ALIKE would join.

    leaders: those among the shown hits, by index of `hits`. shown: number of shown hits, of which some may be copies.
    """
    if options.min_similarity != "auto" or recipe.measure != "kmv":
        return []
    short = {index: sketch for index, sketch in leaders.items() if 0 < len(sketch) < recipe.k}
    if len(short) < 2:
        return []
    page, of = list(short.values()), [hits[index] for index in short]
    leader, similarity = assign_leaders(page, recipe.k, Decision.of(ALIKE, recipe))
    led = np.flatnonzero(leader != np.arange(len(page)))
    if not len(led):
        return []
    pairs = Pairs(leader[led], led, similarity[led])
    verdicts = allowed(pairs, rows_of(page, recipe.k), of, reader, options, recipe.min_shingles)
    pairs = pairs.where(np.logical_and.reduce(list(verdicts.values())))  # guards keep the others apart
    apart = len(sorted_distinct(pairs.first, pairs.second))
    sentence = (
        f"{apart} of {shown} shown hits are short texts that are at least {ALIKE} alike and are kept apart as "
        f"entries of one form: if they are copies, set min_similarity={ALIKE}"
    )
    return [sentence] if apart else []
