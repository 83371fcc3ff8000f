"""Which pairs of records are one thing, or not, in a collection of lists that hold each thing once.

Several lists without duplicates are a common collection (clean-clean entity resolution: Christophides et al. 2020, "An
overview of end-to-end entity resolution for big data"). Its records seldom say which list they come from, but their
values show it: in four lists of the same counties, 1,526 names are held by four records, and two names by five. A name
that is held as often as there are lists is that of one thing. Two such names are those of two things, however near they
are, as "Dale County" and "Dallas County": similarity alone would teach that near names are variants of one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ndd_search.items.integer_lists import Places
from ndd_search.items.record_columns import Table

Known = npt.NDArray[np.int8]  # of pairs: 1 for one thing, -1 for two, 0 for what is not known

_FEWEST = 50  # values that as many records hold as there are lists
_SHARE = 0.1  # share of the records that hold such values
_VALUES = 1 / 8  # values for each record, from which a field names things
_CLIFF = 0.2  # values with one holder more, as a share of them
_PEAK = 10  # square of their number, as a multiple of the product of its neighbours; 1 in a geometric distribution
_MOST_VALUES = 1 / 2  # share of such values with one alike, from which these are spellings
_CONTRADICTED = 0.05  # share of the pairs that lists know, and that they or the verdicts call one thing
_ENOUGH = 100  # pairs that show whether verdicts are right
_MOST = 30  # lists


def known_pairs(table: Table, first: Places, second: Places, alike: npt.NDArray[np.bool_]) -> Known:
    """Return what the lists say about pairs of records; zeros where no field shows that there are any.

    alike: which pairs may be one thing by their similarity alone.
    A field shows its own number of lists; some lists may lack it. The largest number counts, and the fields that show
    it. Many things may share a name, so records with such fields that are equal in all fields count as a value, too.
    """
    columns = [column.codes for column in table.columns.values()]
    shown = [_lists(codes, table.records) for codes in columns]
    for place, codes in enumerate(columns):
        if shown[place] and _has_two_spellings(codes, shown[place], codes[first[alike]], codes[second[alike]]):
            shown[place] = 0
    count, known = max(shown), np.zeros(len(first), np.int8)
    if not count:
        return known
    telling = [codes for codes, lists in zip(columns, shown, strict=True) if lists == count]
    rows: Places = np.unique(np.stack(columns), axis=1, return_inverse=True)[1].reshape(-1)  # some numpy return a row
    rows[(np.stack(telling) < 0).any(axis=0)] = -1
    for codes in (*telling, *[rows] * (_lists(rows, table.records) == count)):
        full = _held_by(codes, count)[codes]
        both = full[first] & full[second]
        known[both & (known == 0)] = 1
        known[both & (codes[first] != codes[second])] = -1
    return known


def contradicted(known: Known, one: npt.NDArray[np.bool_], copies: npt.NDArray[np.bool_]) -> bool:
    """Return whether verdicts differ from what the lists say about many pairs that are no copies.

    one: which pairs count as one thing. copies: pairs of records that are equal in all fields.
    """
    told = ((one & (known < 0)) | (known > 0)) & ~copies
    wrong = told & (one == (known < 0))
    return bool(told.sum() >= _ENOUGH and wrong.sum() > _CONTRADICTED * told.sum())


def _held_by(codes: Places, count: int) -> npt.NDArray[np.bool_]:
    """Return which values so many records hold; the last one is that of a missing value."""
    return np.append(np.bincount(codes[codes >= 0]) == count, False)


def _has_two_spellings(codes: Places, count: int, one: Places, other: Places) -> bool:
    """Return whether most values that so many records hold are alike to one other such value, and it to no third one.

    Then half of the lists write all names in another way. one, other: codes of pairs of records that are alike.
    """
    full = _held_by(codes, count)
    chosen = full[one] & full[other] & (one != other)
    pairs = np.unique(np.sort(np.stack((one, other), axis=1)[chosen], axis=1), axis=0)
    partners = np.bincount(pairs.ravel(), minlength=1)
    return bool(2 * (partners[pairs] == 1).all(axis=1).sum() > _MOST_VALUES * full.sum())


def _lists(codes: Places, records: int) -> int:
    """Return how many lists hold a thing by the number of records that hold each value; 0 if this does not show."""
    sizes = np.bincount(codes[codes >= 0])
    values = np.bincount(np.minimum(sizes, _MOST + 1), minlength=_MOST + 2)
    for count in range(2, _MOST):
        before, here, after = values[count - 1 : count + 2].tolist()
        if here >= _FEWEST and after <= _CLIFF * here and _PEAK * before * after <= here**2:
            telling = len(sizes) >= _VALUES * records and count * here >= _SHARE * sizes.sum()
            return count if telling else 0
    return 0
