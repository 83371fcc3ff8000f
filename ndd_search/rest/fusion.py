"""Reciprocal rank fusion by group (Cormack, Clarke and Büttcher 2009, "Reciprocal rank fusion outperforms ...").

A text that two lists hold under different ids is one group. It counts once for each list, at the best rank of its
members there, so that it is fused as one document with one id would be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ndd_search.paging.stream import Stream

RANK_CONSTANT = 60  # of the paper, and the engines' default

Ranks = Mapping[int, int]  # list -> rank in it, from 1


def reciprocal(ranks: Ranks) -> float:
    """Return the sum of the reciprocal ranks."""
    return sum(1 / (RANK_CONSTANT + rank) for rank in ranks.values())


def fused_by_group(stream: Stream, ranks: Sequence[Ranks]) -> Stream:
    """Return a stream in which each leader stands at the place of its group, and every other hit at its own.

    ranks: of each hit. No hit moves before its leader, whose group has at least the reciprocal ranks of each member.
    """
    groups: dict[int, dict[int, int]] = {}
    leader = stream.leader.tolist()
    for index, of in enumerate(leader):
        best = groups.setdefault(of, {})
        for response, rank in ranks[index].items():
            best[response] = min(rank, best.get(response, rank))
    scores = [reciprocal(groups[of] if of == index else ranks[index]) for index, of in enumerate(leader)]
    order = sorted(range(len(leader)), key=lambda index: (-scores[index], index))
    return replace(stream.only(order), ranks=np.arange(len(order)))
