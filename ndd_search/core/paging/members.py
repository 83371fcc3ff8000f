"""Adds hits from beyond the window to the groups of a page. Nothing here does I/O."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ndd_search.core.matching.group_by_keys import full_values, values_of
from ndd_search.core.options import CollapseOptions
from ndd_search.core.paging.layout import Group
from ndd_search.core.paging.page import slice_page
from ndd_search.core.paging.stream import Reader, Stream


def members_of(
    stream: Stream, leaders: Sequence[int], hits: Sequence[Any], reader: Reader, options: CollapseOptions
) -> tuple[Stream, set[int]]:
    """Return the stream with those of some later hits that belong to the groups of some leaders.

    leaders: their indexes. hits: in any order; a hit of the stream is ignored. Each joins the best-ranked leader that
    it resembles, as if it had been examined, and gets a rank beyond those fetched. reader: gives their sketches.
    A hit that `max_per` would put under a leader is left out: whether its value leads too many groups depends on the
    hits between, which are unknown.

    If hits of earlier pages lead as many groups of a hit's value as `max_per` allows, one of these pages, whose other
    hits are not in the stream, may have listed the hit under one of them.
    Such a hit is left out, too. The second result are the leaders of these hits.
    """
    whole = stream.extend(hits, len(hits), reader, replace(options, max_per={}))
    known = len(stream.hits)
    added = (known + np.flatnonzero(np.isin(whole.leader[known:], leaders))).tolist()
    before = (stream.hits[index] for index in range(stream.earlier) if stream.leader[index] == index)
    full = full_values(before, options.max_per, reader.value)
    listed = {
        index
        for index in added
        if any(
            (name, one) in full for name in options.max_per for one in values_of(whole.hits[index], name, reader.value)
        )
    }
    kept = [*range(known), *(index for index in added if index not in listed)]
    return whole.only(kept), {int(whole.leader[index]) for index in listed}


def groups_of_members(
    stream: Stream, start: int, size: int, reader: Reader, options: CollapseOptions, unsure: Collection[int]
) -> tuple[Group, ...]:
    """Return the groups of a page with the members that `members_of` has added to the stream.

    unsure: indexes of leaders that may have more members.
    """
    most = max(1, stream.fetched)
    page = slice_page(stream, start, size, reader, replace(options, window=most, max_window=most))
    return tuple(
        group._replace(whole=int(stream.leader[stream.index_of(group.rank)]) not in unsure) for group in page.groups
    )
