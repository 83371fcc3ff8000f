"""Marks the near-duplicates among the rows of a pandas or polars frame."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from ndd_search.core.document_fields import text_of
from ndd_search.core.matching.decision import Setting
from ndd_search.core.options import Keep
from ndd_search.core.presets import Preset, chosen
from ndd_search.core.recipe import Recipe
from ndd_search.core.setting_values import fields_in
from ndd_search.core.sketching.sketches import sketch_many
from ndd_search.core.text.numbers import number_signature
from ndd_search.corpus.collection import Corpus
from ndd_search.corpus.guard_columns import NUMBERS
from ndd_search.errors import InvalidDocument

_SERIES = ""  # the name of its values


def mark_duplicates(
    rows: Any,
    text: str | Sequence[str] | None = None,
    *,
    min_similarity: Setting | None = None,
    keep: Sequence[Keep] | None = None,
    guards: Sequence[str] = (),
    preset: str | Preset | None = None,
    recipe: Recipe | str | None = None,
) -> Any:
    """Return for each row whether it is a near-duplicate of another, of which one, and how similar the two are.

    rows: a Series of texts, or a DataFrame, of pandas or polars. It is not modified.
    text: the column of a DataFrame that holds the texts, or several. A row without text is a duplicate of no other.
    min_similarity: as in a search, None for "auto"; "auto" counts common values in the rows themselves.
    keep, guards: which row of a group leads it, and what keeps rows apart, by columns of a DataFrame
          (["newest:published"], ["same:language"]); by default the first leads, and nothing does.
    preset: its recipe and the options above, unless they are given.
    recipe: by which texts are sketched, or its id.

    Returns a DataFrame of the same library, with a row for each row of `rows`, and in pandas with its index:
    duplicate: bool, False for leaders and for rows of their own. leader: the index label (in pandas) or the number from
    0 (in polars) of the row that leads the group. similarity: to that row, 0..1; 1.0 for the leader itself.
    Raises TypeError for objects of other libraries, InvalidDocument if a column does not exist, or if a label of an
    index of pandas repeats: two groups would have one leader.
    """
    library = type(rows).__module__.partition(".")[0]
    is_series = type(rows).__name__ == "Series"
    if library not in ("pandas", "polars") or not (is_series or type(rows).__name__ == "DataFrame"):
        raise TypeError(f"rows must be a Series or DataFrame of pandas or polars, got {type(rows).__name__}")
    if is_series == (text is not None):
        raise TypeError("text names columns of a DataFrame: give it with a DataFrame, and leave it out with a Series")
    if library == "pandas" and not rows.index.is_unique:
        label = rows.index[rows.index.duplicated()][0]
        raise InvalidDocument(
            f"the {type(rows).__name__}", f"its index has the label {label} twice", "call reset_index() before"
        )
    fields = fields_in("text", text) if text else (_SERIES,)
    given: dict[str, Any] = {"keep": keep, "guards": guards or None, "preset": preset}
    given = {name: value for name, value in given.items() if value is not None}
    options, recipe = chosen(None, recipe, given)
    kept = options.document_fields
    columns = (
        {_SERIES: _values(rows)} if is_series else {name: _values(_column(rows, name)) for name in {*fields, *kept}}
    )
    documents = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    texts = [text_of(document, fields) or "" for document in documents]
    if options.same_numbers:
        columns[NUMBERS] = [number_signature(text, recipe) for text in texts]
    sketches = sketch_many(texts, recipe)
    corpus = Corpus([str(row) for row in range(len(rows))], sketches, recipe, columns)
    groups = corpus.groups(min_similarity, **given)
    marks = {"duplicate": ~groups.is_leader, "leader": groups.leader, "similarity": groups.similarity}
    if library == "polars":
        return import_module("polars").DataFrame(marks)
    pandas = import_module("pandas")
    labels = pandas.Series(rows.index.take(groups.leader).to_flat_index(), index=rows.index)
    return pandas.DataFrame({**marks, "leader": labels}, index=rows.index)


def _column(frame: Any, name: str) -> Any:
    if (found := list(frame.columns).count(name)) != 1:
        problem = f"it has {found or 'no'} column{'s' * (found > 1)} {name!r}"
        raise InvalidDocument("the DataFrame", problem, f"its columns are {', '.join(map(str, frame.columns))}")
    return frame[name]


def _values(series: Any) -> list[Any]:
    """Return the values of a column as Python objects, None for missing ones."""
    if type(series).__module__.startswith("polars"):
        return list(series.to_list())
    missing = np.asarray(series.isna())
    return [None if lacks else value for value, lacks in zip(series.tolist(), missing, strict=True)]
