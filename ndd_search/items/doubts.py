"""Doubts about what was learnt: fields of a wrong kind, and readings of the same pairs that differ widely."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ndd_search.items.compare import Rareness
from ndd_search.items.grades import Comparison, Graded
from ndd_search.items.model import Model
from ndd_search.items.names import Names
from ndd_search.items.ragged import Floats, Places
from ndd_search.items.values import words_of

_SURE = 0.9  # probability of the pairs whose values show the kind of a field
_MOST = 2_000  # of these pairs that are looked at
_OFTEN = 0.1  # share of them that differ, and of values that cannot be read, from which a kind may be wrong
_ALIKE = 0.75  # similarity of two values as names from which they are one value with typing errors
_AGREE = 0.7  # F1 of two readings of the same pairs, below which they differ widely


def doubts_of_kinds(comparison: Comparison, first: Places, second: Places, probability: Floats) -> tuple[str, ...]:
    """Return a sentence for each field whose kind does not fit its values. probability: of pairs of records."""
    table, found = comparison.table, []
    sure = np.flatnonzero(probability >= _SURE)[:_MOST]
    for name, field in comparison.fields.items():
        column = table.columns[name]
        read, bad = int((column.codes >= 0).sum()), table.bad.get(name, 0)
        if bad > _OFTEN * (read + bad):
            found.append(
                f"{bad:,} of {read + bad:,} values of {name} cannot be read as its kind, {field.kind}: name another "
                "kind, such as Name()"
            )
        if field.kind not in ("exact", "category"):
            continue
        a, b = column.codes[first[sure]], column.codes[second[sure]]
        both = (a >= 0) & (b >= 0)
        differ = both & (comparison.graded_by(name, first[sure], second[sure])[0] < min(field.edges))
        if differ.sum() > max(_OFTEN * both.sum(), 10):
            texts = [words_of(" ".join(sorted(value))) or ("-",) for value in column.values]
            alike = Names(texts, {}, Rareness({}, 1.0)).compare(a[differ], b[differ]).similarity >= _ALIKE
            if alike.mean() > 1 / 2:
                found.append(
                    f"{name} differs by a few letters in {alike.sum() / both.sum():.0%} of the pairs that are one "
                    f"thing: it is no {field.kind} value but one with typing errors, make it a Name()"
                )
    return tuple(found)


def disagreement(
    names: Sequence[str], chosen: Model, other: Model, bar: float, graded: Graded, what: str
) -> tuple[str, ...]:
    """Return a sentence if two models call widely different pairs one thing. what: the other one is. bar: log odds."""
    odds = [chosen.log_odds(graded.grades) - bar, other.log_odds(graded.grades)]
    yes: list[npt.NDArray[np.bool_]] = [one > 0 for one in odds]
    both, either = int((yes[0] & yes[1]).sum()), int(yes[0].sum() + yes[1].sum())
    if not either or 2 * both >= _AGREE * either:
        return ()
    apart = graded.grades[yes[0] != yes[1]][:_MOST]
    moved = [
        np.abs((chosen.tables[f][apart[:, f]] - other.tables[f][apart[:, f]]).mean(axis=1)).mean()
        for f in range(len(names))
    ]
    return (
        f"{yes[0].sum():,} compared pairs are one thing by what was learnt, {yes[1].sum():,} by {what}, {both:,} by "
        f"both; they differ most about {names[int(np.argmax(moved))]}: answer the questions, which show such pairs, "
        "or name its kind or weight",
    )
