"""Doubts about what was learnt: fields of a wrong kind or no use, and readings of the same pairs that differ widely."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ndd_search.items.compare_names import Names
from ndd_search.items.compare_values import Rareness
from ndd_search.items.fields import Field
from ndd_search.items.grades import Comparison, Graded, full_agreement
from ndd_search.items.guess_kinds import longitude_of
from ndd_search.items.integer_lists import Floats, Places
from ndd_search.items.learn_odds import expected_wrong
from ndd_search.items.lists_without_duplicates import Said
from ndd_search.items.parse_values import quoted, words_of
from ndd_search.items.probability_model import Model, probabilities

_ENOUGH = 100  # pairs that show what is usual
_SURE = 2.2  # log odds, by all other fields, of the pairs whose values show the kind of a field
_MOST = 2_000  # of these pairs that are looked at
_OFTEN = 0.1  # share of them that differ, and of values that cannot be read, from which a kind may be wrong
_ALIKE = 0.75  # similarity of two values as names from which they are one value with typing errors
_PARTS = "(0[1-9]|[12][0-9]|3[01])"  # of a date, but for the year
_DAY = re.compile(f"(1[0-9]|20)[0-9]{{2}}{_PARTS}{{2}}|{_PARTS}{{2}}(1[0-9]|20)[0-9]{{2}}")
_WORDS = 20  # of a list of values, that are compared as one name
_LONG = 5  # words of a text, of which a sketch tells enough
_ALL = 0.99  # share of compared pairs that are equal in a field, from which it tells nothing
_FEW = 5  # pairs of one thing that differ in one field alone, from which a veto may be right
_RARE = 0.01  # the same, as a share of all: slips are rarer
_USUAL = 0.75  # share of the pairs of one thing that are equal in a field, from which a difference in it is rare
_EXAMPLE = 3  # values of a record in an example
_AGREE = 0.7  # F1 of two readings of the same pairs, below which they differ widely
NOT_LEARNT = (
    "what is assumed about such fields is used: what was learnt would unite things that are near, such as the "
    "districts of a town; answer the questions, or add a field that tells them apart"
)


def doubts_of_fields(
    comparison: Comparison, first: Places, second: Places, graded: Graded, model: Model
) -> tuple[str, ...]:
    """Return a sentence for each field that does not fit its values. graded: pairs of records, compared."""
    table, found = comparison.table, []
    different = int((model.log_odds(graded.grades) < 0).sum())
    held = {name: int((table.columns[name].codes >= 0).sum()) for name in comparison.fields}
    if few := ", ".join(name for name, read in held.items() if 2 * read <= table.records):
        found.append(f"most records have no {few}: the other fields decide about them, fill gaps or add fields")
    numbers = [field.paths(name)[0] for name, field in comparison.fields.items() if field.kind == "number"]
    for latitude, longitude in ((number, longitude_of(number, numbers)) for number in numbers):
        if longitude:
            remedy = f"make them one field, Place(source=({latitude!r}, {longitude!r}))"
            found.append(f"{latitude} and {longitude} are the numbers of a place: {remedy}")
    for place, (name, field) in enumerate(comparison.fields.items()):
        column = table.columns[name]
        read, bad = held[name], table.bad.get(name, 0)
        alike = graded.similarity[:, place][~np.isnan(graded.similarity[:, place])] >= field.edges[0]
        if len(alike) > _ENOUGH and alike.mean() >= _ALL and different > _ENOUGH:
            found.append(f"{name} is equal in {alike.mean():.0%} of the compared pairs: it tells nothing, leave it out")
        if bad > _OFTEN * (read + bad):
            found.append(
                f"{bad:,} of {read + bad:,} values of {name} cannot be read as its kind, {field.kind}: name another "
                "kind, such as Name()"
            )
        if field.kind in ("exact", "category", "name", "text") and _are_dates(column.values):
            found.append(
                f"{name} holds dates, which are no {field.kind} values: make it a Date(), which compares their parts"
            )
            continue
        if (
            field.kind == "text"
            and np.median([len(value.split()) for value in column.values[:_MOST]] or [_LONG]) < _LONG
        ):
            found.append(f"{name} holds short values, of which a sketch tells little: make it a Name()")
        if field.kind in ("exact", "category") or field.veto:
            sure = np.flatnonzero(model.log_odds(graded.grades, without=place) >= _SURE)[:_MOST]
            a, b = column.codes[first[sure]], column.codes[second[sure]]
            found += _often_different(name, field, column.values, a, b, graded.similarity[sure, place])
    return (*found, *_twins(comparison, first, second, graded, model))


def _twins(comparison: Comparison, first: Places, second: Places, graded: Graded, model: Model) -> list[str]:
    """Return a sentence for each field that differs wholly in some pairs of one thing, which agree in all others."""
    one, found = np.flatnonzero(model.log_odds(graded.grades) > 0), []
    with np.errstate(invalid="ignore"):
        agree = graded.similarity[one] >= np.array([field.edges[0] for field in comparison.fields.values()])
    missing = np.isnan(graded.similarity[one])
    for place, (name, field) in enumerate(comparison.fields.items() if len(one) else ()):
        differ = model.is_vetoed(graded.grades[one, place], place)
        others = np.delete(agree, place, axis=1).sum(axis=1)
        alone = differ & (others >= 2) & (others + np.delete(missing, place, axis=1).sum(axis=1) == agree.shape[1] - 1)
        usual = agree[:, place].sum() >= _USUAL * (~missing[:, place]).sum() and differ.mean() <= _OFTEN
        if alone.sum() >= max(_FEW, _RARE * len(one)) and usual and not field.veto:
            at, column = one[int(alone.argmax())], comparison.table.columns[name]
            values = [_shown(column.values[column.codes[ends[at]]]) for ends in (first, second)]
            found.append(
                f"{alone.sum():,} pairs that count as one thing differ in {name} alone, and wholly, as {values[0]} and "
                f"{values[1]} do: if they are two things, as twins are, {name}={type(field).__name__}(veto=True) keeps "
                "such pairs apart"
            )
    return found


def _shown(value: Any) -> str:
    """Return a value, as a field has read it, for a sentence."""
    parts = sorted(value) if isinstance(value, frozenset) else value
    return quoted(" ".join(map(str, parts)) if isinstance(parts, list | tuple) else parts)


def _often_different(
    name: str, field: Field, values: Sequence[Any], a: Places, b: Places, similarity: Floats
) -> list[str]:
    """Return a sentence if a field that is equal or not often differs in pairs that are one thing by all others.

    a, b: the values of these pairs. similarity: of each.
    """
    # A slip in a number is graded as one; codes of letters alone may be names, which differ in more ways.
    letters = field.kind == "exact" and all("".join(value).isalpha() for value in values[:_MOST])
    both, differ = (a >= 0) & (b >= 0), similarity < (field.edges[0] if letters else min(field.edges))
    if differ.sum() <= max(_OFTEN * both.sum(), 10):
        return []
    share = f"{name} differs in {differ.sum() / both.sum():.0%} of the pairs that all other fields call one thing"
    if field.veto:
        return [f"{share}: its veto keeps these apart"]
    texts = [words_of(" ".join(sorted(value)))[:_WORDS] or ("-",) for value in values]
    near = Names(texts, {}, Rareness({}, 1.0)).compare(a[differ], b[differ]).similarity >= _ALIKE
    if near.mean() > 1 / 2:
        return [
            f"{name} differs by a few letters in {near.sum() / both.sum():.0%} of the pairs that are one thing: it is "
            f"no {field.kind} value but one with typing errors, make it a Name()"
        ]
    if field.kind == "exact" and differ.sum() > both.sum() / 2:
        return [f"{share}: name another kind, such as Number() or Category()"]
    return []


def _are_dates(values: Sequence[Any]) -> bool:
    """Return whether nearly all of some values, as fields read them, are days of the last thousand years."""
    some = ["".join(value).replace(" ", "") for value in values[:_MOST]]
    return sum(bool(_DAY.fullmatch(text)) for text in some) > (1 - _OFTEN) * len(some) > 0


def disagreement(
    comparison: Comparison,
    ends: tuple[Places, Places],
    graded: Graded,
    chosen: Model,
    others: Mapping[Model, str],
    bar: float,
) -> tuple[str, ...]:
    """Return a sentence about the first of other models that calls widely different pairs one thing, if one does.

    ends: the records of each pair. others: and what each is. bar: log odds.
    """
    names, odds = list(comparison.fields), chosen.log_odds(graded.grades) - bar
    for other, what in others.items():
        by_other = other.log_odds(graded.grades)
        yes: list[npt.NDArray[np.bool_]] = [odds > 0, by_other > 0]
        if not yes[0].any() | yes[1].any() or agreement(*yes) >= _AGREE:
            continue
        apart = graded.grades[yes[0] != yes[1]][:_MOST]
        moved = [
            np.abs((chosen.tables[f][apart[:, f]] - other.tables[f][apart[:, f]]).mean(axis=1)).mean()
            for f in range(len(names))
        ]
        examples = ""
        for only, where in ((yes[0] & ~yes[1], "evidence in use"), (yes[1] & ~yes[0], "other")):
            if only.any():
                at = int(np.where(only, np.abs(odds - by_other), -1.0).argmax())
                examples += f"; only by the {where}: {' and '.join(_record(comparison, int(end[at])) for end in ends)}"
        return (
            f"{yes[0].sum():,} compared pairs are one thing by the evidence in use, {yes[1].sum():,} by {what}, "
            f"{(yes[0] & yes[1]).sum():,} by both, so how many verdicts are wrong is not known{examples}; they differ "
            f"most about {names[int(np.argmax(moved))]}: answer the questions, which show such pairs, or name its kind "
            "or weight",
        )
    return ()


def agreement(one: npt.NDArray[np.bool_], other: npt.NDArray[np.bool_]) -> float:
    """Return F1 of two sets of pairs, 0..1."""
    return float(2 * (one & other).sum() / max(one.sum() + other.sum(), 1))


def _record(comparison: Comparison, place: int) -> str:
    """Return the first values of a record."""
    columns = comparison.table.columns.values()
    values = [column.values[column.codes[place]] for column in columns if column.codes[place] >= 0]
    return "(" + ", ".join(map(_shown, values[:_EXAMPLE])) + ")"


def basis(comparison: Comparison, graded: Graded, said: Said, chosen: Model, assumed: Model | None) -> str:
    """Return a sentence about the evidence in use: why it is, and which of the simplest rules comes nearest to it.

    The rules are that a field is equal, or the field that fewest pairs are equal in, and one more.
    said: what lists tell about each pair. assumed: what is, None if that is in use.
    """
    odds, names = chosen.log_odds(graded.grades), list(comparison.fields)
    one = odds > 0
    equal = [full_agreement(field, graded.grades[:, f]) for f, field in enumerate(comparison.fields.values())]
    rarest = min(range(len(names)), key=lambda f: float(equal[f].mean()) if equal[f].any() else 1.0)
    rules = {name: equal[f] for f, name in enumerate(names)}
    rules |= {f"{names[rarest]} and {name}": equal[rarest] & equal[f] for f, name in enumerate(names) if f != rarest}
    nearest = max(rules, key=lambda rule: agreement(one, rules[rule]))
    same = int((one & rules[nearest]).sum())
    why = "what is assumed about such fields is in use"
    if assumed:
        models = odds, assumed.log_odds(graded.grades)
        learnt, by_assumed = (f"{100 * expected_wrong(probabilities(each), said):,.0f}" for each in models)
        why = (
            f"what was learnt is in use: for 100 pairs of one thing {learnt} wrong verdicts are expected, {by_assumed} "
            "by what is assumed"
        )
    return (
        f"{why}; of {one.sum():,} compared pairs that are one thing by it, {same:,} have equal {nearest}, as have "
        f"{rules[nearest].sum() - same:,} others"
    )
