"""Candidate pairs: records that share a rare token, without comparing all pairs.

Every field turns a value into tokens that near values share: words, cells of the globe, parts of a date. Fields of one
kind share words and codes, as lists write a name into different fields. A token that few records hold is looked up by
itself. Two common tokens are joined into a super token (the word "cathedral" at this place, the words "clinical" and
"microbiology"), which is rarer. Each record looks up its rarest tokens only, and keeps the candidates that share most
information with it. So the number of candidates grows in proportion to the number of records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from ndd_search import native
from ndd_search.core.text.tokens import sorted_distinct
from ndd_search.items.fields import Field
from ndd_search.items.grades import Comparison
from ndd_search.items.integer_lists import Places

_AT_ONCE = 1 << 22  # meetings in memory at a time
_LARGE = 4  # times as many records as are looked up may hold a token of which parts are
_WIDE = 11_000  # records of a collection, below which more candidates of each record cost little
_FINE = 1 << 12  # steps of information, per natural unit: whole numbers add up to the same sum in any order


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What bounds the search.

    holders: records that may hold a token that is looked up; a more common one is joined with another one.
    tokens:  tokens, and super tokens, that each record looks up.
    most:    candidates of one record that are kept, by the information that they share with it.
    """

    holders: int = 100
    tokens: int = 50
    most: int = 100

    def __post_init__(self) -> None:
        for name, least in (("holders", 2), ("tokens", 1), ("most", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")

    @classmethod
    def of(cls, records: int) -> Bounds:
        """Return the bounds of a collection of so many records: the fewer, the more of each record's pairs are met."""
        times = max(_WIDE / max(records, 1), 1.0)
        return cls(**{name: int(value * times) for name, value in asdict(cls()).items()})


@dataclass(frozen=True, eq=False)
class Candidates:
    """Pairs of records worth comparing.

    first, second: places of records, first < second; int64.
    """

    first: Places
    second: Places

    def __len__(self) -> int:
        return len(self.first)

    def where(self, chosen: npt.NDArray[np.bool_]) -> Candidates:
        return Candidates(self.first[chosen], self.second[chosen])


@dataclass(frozen=True, eq=False)
class Entries:
    """Which record holds which token, and in which field."""

    token: Places
    record: Places
    field: Places

    def where(self, chosen: Places) -> Entries:
        return Entries(self.token[chosen], self.record[chosen], self.field[chosen])


def find_candidates(
    comparison: Comparison,
    bounds: Bounds,
    wanted: npt.NDArray[np.bool_] | None = None,
    *,
    needs: Sequence[Sequence[str]] = (),
    step: int = 1,
    across: bool = True,
) -> Candidates:
    """Return the candidate pairs of a table.

    wanted: the records that take part, None for all. step: only of each step-th record, candidates are looked for.
    needs:  combinations of fields, of which one has to meet. Then only tokens of these fields are looked up, and common
            tokens are joined with those of a field of the same combination.
    across: records also meet by two words of one field and, unless `needs` says which fields meet, by numbers that are
            nearly equal and by values of different fields, see `Field.shares_tokens`.
    """
    count = comparison.table.records
    looked_up, allowed = joinable(comparison.fields, needs, within=across)
    entries = entries_of(comparison, np.True_ if wanted is None else wanted, across=across and not needs)
    holders = np.bincount(entries.token)
    held = holders[entries.token]
    rare = np.flatnonzero((held > 1) & (held <= bounds.holders) & looked_up[entries.field])
    common = np.flatnonzero((held > bounds.holders) & (allowed.max(axis=1) > 0)[entries.field])
    direct = rarest(entries.where(rare), held[rare], bounds.tokens)
    few = rarest(entries.where(common), held[common], bounds.tokens)
    token, record = _super_tokens(few, int(holders.size), allowed, bounds)
    parts = parts_of(entries, held, looked_up, bounds.holders)
    behind = holders.size + int(token.max(initial=-1)) + 1
    token = np.concatenate((direct.token, token + holders.size, parts.token + behind))
    record = np.concatenate((direct.record, record, parts.record))
    information = information_of(np.bincount(token), count)
    return Candidates(*meetings(token, record, information, count, bounds.most, step))


def every_pair(count: int, old: int) -> tuple[Places, Places]:
    """Return the pairs of `count` records whose second one is not among the `old` first."""
    nearest = np.maximum(np.arange(count) + 1, old)  # the first record that each is compared with
    times = count - nearest
    first = np.repeat(np.arange(count), times)
    return first, np.arange(len(first)) + np.repeat(nearest - (np.cumsum(times) - times), times)


def parts_of(entries: Entries, held: Places, looked_up: npt.NDArray[np.bool_], holders: int) -> Entries:
    """Return tokens of parts of the records that hold a common token, twice: the second ones overlap the first ones.

    So the records of one thing that has up to _LARGE times as many as `holders` are joined by a chain.
    """
    some = entries.where(np.flatnonzero((held > holders) & (held <= _LARGE * holders) & looked_up[entries.field]))
    order = np.argsort(some.token, kind="stable")
    some = some.where(order)
    place = np.arange(len(order)) - np.searchsorted(some.token, some.token)
    wide = np.int64(2 * _LARGE + 2)
    both = [some.token * wide + (place + shift) // holders for shift in (0, holders // 2)]
    token = np.concatenate((both[0], both[1] + _LARGE + 1))
    _, token = np.unique(token, return_inverse=True)
    return Entries(token, np.tile(some.record, 2), np.tile(some.field, 2))


def joinable(
    fields: Mapping[str, Field], needs: Sequence[Sequence[str]], *, within: bool
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Return the fields whose tokens are looked up, and of which two fields common tokens are joined.

    within: two words of one field are joined, too. The cells of one place all say the same, as do the parts of a date.
    """
    names = list(fields)
    every = needs or [names]
    looked_up = np.array([any(name in each for each in every) for name in names])
    together = np.array([[any(one in each and other in each for each in every) for other in names] for one in names])
    alone = np.array([[name] in map(list, every) for name in names])  # joined with those of any field
    allowed = together | alone[:, None] | alone
    np.fill_diagonal(allowed, [within and field.rare for field in fields.values()])
    return looked_up, allowed.astype(np.int64)


def entries_of(comparison: Comparison, wanted: npt.NDArray[np.bool_] | np.bool_, *, across: bool) -> Entries:
    """Return all tokens of the wanted records, by field, then by record. across: see `Field.shares_tokens`."""
    columns = []
    for place, (name, lists) in enumerate(comparison.tokens(across=across).items()):
        codes = comparison.table.columns[name].codes
        has = np.flatnonzero((codes >= 0) & wanted)
        token, owner = lists.taken(codes[has])
        columns.append((token, has[owner], np.full(len(token), place, np.int64)))
    entries = Entries(*map(np.concatenate, zip(*columns, strict=True)))
    return entries.where(held_once(entries.token, entries.record)) if across else entries


def held_once(token: Places, record: Places) -> Places:
    """Return the places of the entries that are left if each record holds each token in its first field only."""
    keys = record * (int(token.max(initial=0)) + 1) + token
    order = np.argsort(keys, kind="stable")
    return np.sort(order[np.diff(keys[order], prepend=-1) > 0])


def rarest(entries: Entries, holders: Places, most: int) -> Entries:
    """Return the `most` rarest tokens of each record, ordered by record."""
    order = np.argsort(entries.record * (int(holders.max(initial=0)) + 1) + holders, kind="stable")
    record = entries.record[order]
    within = np.arange(len(record)) - np.searchsorted(record, record)
    return entries.where(order[within < most])


def _super_tokens(entries: Entries, tokens: int, allowed: Places, bounds: Bounds) -> tuple[Places, Places]:
    """Join the tokens of each record, pairwise, and return the rarest that are rare enough.

    entries: by record. allowed: whether tokens of two fields are joined, shape (fields, fields).
    Returns the joined tokens, and the record of each.
    """
    if native.core:
        limits = (tokens, len(allowed), bounds.tokens, bounds.holders)
        rows = (entries.token, entries.record, entries.field, allowed.ravel())
        if found := native.core.super_tokens(*rows, limits):
            return np.frombuffer(found[0], np.int64), np.frombuffer(found[1], np.int64)
    one, _, keys = joined_tokens(entries, tokens, allowed)
    _, token, held = np.unique(keys, return_inverse=True, return_counts=True)
    chosen = np.flatnonzero((held[token] > 1) & (held[token] <= bounds.holders))
    chosen = chosen[np.argsort(token[chosen], kind="stable")]
    joined = Entries(token[chosen], entries.record[one[chosen]], entries.field[one[chosen]])
    kept = rarest(joined, held[joined.token], bounds.tokens)
    return kept.token, kept.record


def joined_tokens(entries: Entries, tokens: int, allowed: Places) -> tuple[Places, Places, Places]:
    """Return the two entries of each joined token, and its key: lower token * tokens + higher token.

    entries: by record. allowed: whether tokens of two fields are joined, shape (fields, fields).
    """
    ends = np.searchsorted(entries.record, entries.record, "right")
    left, right = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for shift in range(1, int((ends - np.arange(len(ends))).max(initial=1))):
        at = np.flatnonzero(np.arange(len(ends)) + shift < ends)
        at = at[allowed[entries.field[at], entries.field[at + shift]] > 0]
        left.append(at)
        right.append(at + shift)
    a, b = np.concatenate(left), np.concatenate(right)
    low, high = np.minimum(entries.token[a], entries.token[b]), np.maximum(entries.token[a], entries.token[b])
    return a, b, low * tokens + high


def information_of(held: Places, count: int) -> Places:
    """Return what a token says, in steps. held: how many of `count` records hold it."""
    steps: Places = np.maximum(np.rint(np.log(count / np.maximum(held, 1)) * _FINE), 0).astype(np.int64)
    return steps


def meetings(
    token: Places, record: Places, information: Places, count: int, most: int, step: int
) -> tuple[Places, Places]:
    """Return the pairs of records that share a token, the `most` most informative ones of each record.

    information: of each token. count: of records. step: only of each step-th record.
    """
    limits = (count, most, step, native.THREADS)
    by_core = native.core.meetings(token, record, information, limits) if native.core else None
    if by_core is not None:
        return np.divmod(sorted_distinct(np.frombuffer(by_core, np.int64)), max(count, 1))
    order = np.argsort(token * np.int64(count) + record, kind="stable")
    token, record = token[order], record[order]
    place = np.arange(len(token)) - np.searchsorted(token, token)  # records with the same token before each
    ends = np.cumsum(place)
    keys, weights = np.empty(0, np.int64), np.empty(0, np.int64)
    start = 0
    while start < len(token):
        stop = max(int(np.searchsorted(ends, (ends[start - 1] if start else 0) + _AT_ONCE)), start + 1)
        times = place[start:stop]
        second = np.repeat(np.arange(start, stop), times)
        first = second - 1 - (np.arange(len(second)) - np.repeat(np.cumsum(times) - times, times))
        keys = np.concatenate((keys, record[first] * np.int64(count) + record[second]))
        weights = np.concatenate((weights, information[token[second]]))
        keys, which = np.unique(keys, return_inverse=True)
        weights = np.bincount(which, weights, len(keys)).astype(np.int64)
        start = stop
    kept = _most_informative(keys // max(count, 1), keys % max(count, 1), weights, most, step)
    return keys[kept] // max(count, 1), keys[kept] % max(count, 1)


def _most_informative(first: Places, second: Places, weights: Places, most: int, step: int) -> Places:
    """Return the pairs that are among the `most` best of either of their records; of equal ones those with the first
    other records. step: only the best of each step-th record are kept.
    """
    ends, others = np.concatenate((first, second)), np.concatenate((second, first))
    order = np.lexsort((others, -np.concatenate((weights, weights)), ends))
    ends = ends[order]
    within = np.arange(len(ends)) - np.searchsorted(ends, ends)
    chosen = np.zeros(len(first), np.bool_)
    chosen[order[(within < most) & (ends % step == 0)] % max(len(first), 1)] = True
    return np.flatnonzero(chosen)
