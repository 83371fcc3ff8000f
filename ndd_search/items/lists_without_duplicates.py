"""Which pairs of records are one thing, or not, in a collection of lists that hold each thing once.

Several lists without duplicates are a common collection (clean-clean entity resolution: Christophides et al. 2020, "An
overview of end-to-end entity resolution for big data"). Its records seldom say which list they come from, but their
values show it: in four lists of the same counties, 1,526 names are held by four records, and two names by five. A name
that is held as often as there are lists is that of one thing. Two such names are those of two things, however near they
are, as "Dale County" and "Dallas County": similarity alone would teach that near names are variants of one.

Lists often have fields of their own, too: one names the city of each port, the other one does not. Hardly any name is
then held by two records that have the same fields, and these are two things; for groups that is evidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ndd_search.items.fields import Field
from ndd_search.items.integer_lists import Floats, Places
from ndd_search.items.record_columns import Table

Said = npt.NDArray[np.int8]  # of pairs: 1 for one thing, -1 for two, 0 for what is not known

_FEWEST = 50  # values that as many records hold as there are lists
_SHARE = 0.1  # share of the records that hold such values
_VALUES = 1 / 8  # values for each record, from which a field names things
_CLIFF = 0.2  # values with one holder more, as a share of them
_PEAK = 10  # square of their number, as a multiple of the product of its neighbours; 1 in a geometric distribution
_MOST_VALUES = 1 / 2  # share of such values with one alike, from which these are spellings
_MOST = 30  # lists
_WITHIN = 0.1  # one more than the pairs of holders of a name with the same fields, as a share of those expected


# Of each list the fields that its records have, and no other ones; and the log odds that two of its records are one
# thing, by how many of its names are held by two of them, and how many chance lets expect.
Lists = Mapping[tuple[str, ...], float]


class Known(NamedTuple):
    """What is known about pairs of records, and how many pairs each counts for.

    Pairs that names tell to be two things are a sample: they count as if it was as large as all pairs.
    """

    said: Said
    counts: Floats

    @classmethod
    def nothing(cls, pairs: int) -> Known:
        """Return that nothing is known about so many pairs."""
        return cls(np.zeros(pairs, np.int8), np.ones(pairs))


def known_pairs(
    table: Table, fields: Mapping[str, Field], lists: Lists, first: Places, second: Places, alike: npt.NDArray[np.bool_]
) -> Known:
    """Return what the lists say about pairs of records.

    alike: which pairs may be one thing by their similarity alone.
    """
    columns = _naming(table, fields)
    if not columns:
        return Known.nothing(len(first))
    said = _said_by_names(columns, table.records, first, second, alike)
    within = (said <= 0) & (evidence_of(lists, table, first, second) < 0)
    told = float((said[~within] != 0).mean()) if (said[~within] != 0).any() else 1.0
    counts = np.where((said < 0) & ~within, 1 / told, 1.0)
    return Known(np.where(within, np.int8(-1), said), counts)


def _said_by_names(
    columns: Sequence[Places], records: int, first: Places, second: Places, alike: npt.NDArray[np.bool_]
) -> Said:
    """Return what the numbers of holders of names say about pairs of records; zeros where no field shows any lists.

    A field shows its own number of lists; some lists may lack it. The largest number counts, and the fields that show
    it, but not by less than half as many records as another field: those of a class have a usual number, too. Many
    things may share a name, so records with such fields that are equal in all fields count as a value, too.
    """
    shown = [_lists(codes, records) for codes in columns]
    for place, codes in enumerate(columns):
        if (lists := shown[place][0]) and _has_two_spellings(codes, lists, codes[first[alike]], codes[second[alike]]):
            shown[place] = 0, 0
    most = max(held for _, held in shown)
    count, said = max(lists for lists, held in shown if 2 * held >= most), np.zeros(len(first), np.int8)
    if not count:
        return said
    telling = [codes for codes, (lists, _) in zip(columns, shown, strict=True) if lists == count]
    rows: Places = np.unique(np.stack(columns), axis=1, return_inverse=True)[1].reshape(-1)  # some numpy return a row
    rows[(np.stack(telling) < 0).any(axis=0)] = -1
    for codes in (*telling, *[rows] * (_lists(rows, records)[0] == count)):
        full = _held_by(codes, count)[codes]
        both = full[first] & full[second]
        said[both & (said == 0)] = 1
        said[both & (codes[first] != codes[second])] = -1
    return said


def evidence_of(lists: Lists, table: Table, first: Places, second: Places) -> Floats:
    """Return the log odds of pairs of records that are in one list, 0 for other pairs."""
    filled = {name: (column.codes[first] >= 0, column.codes[second] >= 0) for name, column in table.columns.items()}
    evidence = np.zeros(len(first))
    for fields, odds in lists.items():
        same = np.logical_and.reduce([end == (name in fields) for name, both in filled.items() for end in both])
        evidence[same] = odds
    return evidence


def lists_by_fields(table: Table, fields: Mapping[str, Field]) -> Lists:
    """Return the lists among the records of a table.

    Records with the same fields are a list if far fewer values of a field that names things are held by two of them
    than chance lets expect. Of the values of a field, those count that have the most frequent number of holders; if
    many have one holder more, as a number that some persons have on two forms of one list, these count, too.
    """
    columns, records = _naming(table, fields), table.records
    every = np.stack([column.codes for column in table.columns.values()])
    rows, filled = np.unique(every >= 0, axis=1, return_inverse=True)
    filled = filled.reshape(-1)  # some numpy return a row
    odds = np.zeros(rows.shape[1])
    for codes in columns:
        sizes = np.bincount(codes[codes >= 0])
        values = np.bincount(np.minimum(sizes, _MOST), minlength=_MOST + 2)
        count = int(values[2:].argmax()) + 2
        falls = values[count + 1] <= _CLIFF * values[count]
        if len(sizes) < _VALUES * records or not values[count]:
            continue
        share = np.bincount(filled[codes >= 0], minlength=len(odds)) / (codes >= 0).sum()
        expected, within = np.zeros((2, len(odds)))
        for holding in range(count, count + (1 if falls else 2)):
            held = np.flatnonzero(_held_by(codes, holding)[codes])
            holders = filled[held[np.argsort(codes[held], kind="stable")]].reshape(-1, holding)
            one, other = (holders[:, ends] for ends in np.triu_indices(holding, 1))
            expected += one.size * share**2
            within += np.bincount(one[one == other], minlength=len(odds))
        is_list = within + 1 <= _WITHIN * expected
        odds = np.where(is_list, np.minimum(odds, np.log((within + 1) / (expected + 1))), odds)
    names = np.array(list(table.columns))
    return {tuple(names[rows[:, at]].tolist()): float(odds[at]) for at in np.flatnonzero(odds)}


def _naming(table: Table, fields: Mapping[str, Field]) -> list[Places]:
    """Return the columns that may name things. A day does not: by chance, some persons are born on one."""
    return [table.columns[name].codes for name, field in fields.items() if field.kind != "date"]


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


def _lists(codes: Places, records: int) -> tuple[int, int]:
    """Return how many lists hold a thing by the number of records that hold each value, and how many records show it.

    Zeros if nothing shows.
    """
    sizes = np.bincount(codes[codes >= 0])
    values = np.bincount(np.minimum(sizes, _MOST + 1), minlength=_MOST + 2)
    for count in range(2, _MOST):
        before, here, after = values[count - 1 : count + 2].tolist()
        if here >= _FEWEST and after <= _CLIFF * here and _PEAK * before * after <= here**2:
            telling = len(sizes) >= _VALUES * records and count * here >= _SHARE * sizes.sum()
            return (count, count * here) if telling else (0, 0)
    return 0, 0
