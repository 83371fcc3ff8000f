"""Groups out of pairs of near-duplicates: connected components, and the communities within them.

A component holds whatever a chain of pairs joins: one document that resembles two large groups makes one group of them.
Communities are the parts of a component that have many pairs inside and few between them (Louvain: Blondel, Guillaume,
Lambiotte and Lefebvre 2008, "Fast unfolding of communities in large networks"), found by networkx.
"""

from __future__ import annotations

import numpy as np

from ndd_search.core.matching.choose_leaders import components
from ndd_search.core.matching.similar_pairs import Pairs
from ndd_search.core.matching.sketch_rows import Ranks
from ndd_search.errors import importing

EACH = 100  # pairs of one document with earlier ones that groups of chains are made of: a chain needs few
_SEED = 1
_RESOLUTION = 1.0


def connected(count: int, pairs: Pairs, same: Ranks) -> Ranks:
    """Of each document the first one that a chain of pairs or equal sketches joins it with. Shape (count,)."""
    return components(count, pairs)[same]


def communities(count: int, pairs: Pairs, same: Ranks, extra: str = "corpus") -> Ranks:
    """Of each document the first one of its community. Shape (count,).

    extra: that MissingExtra names if networkx is missing.
    """
    with importing("networkx", "finding communities", "networkx", extra):
        import networkx as nx
    first = np.arange(count)
    component = components(count, pairs)[pairs.first]
    order = np.lexsort((pairs.second, pairs.first, component))
    ends = np.flatnonzero(np.diff(component[order], append=-1)) + 1
    for chosen in np.split(order, ends[:-1]) if len(order) else []:
        ends_of_pairs = np.concatenate((pairs.first[chosen], pairs.second[chosen]))
        members, numbers = np.unique(ends_of_pairs, return_inverse=True)  # from 0, wherever the component stands
        if 2 * len(chosen) == len(members) * (len(members) - 1):  # everyone pairs with everyone
            first[members] = members[0]
            continue
        graph = nx.Graph()
        edges = (numbers[: len(chosen)], numbers[len(chosen) :], pairs.similarity[chosen])
        graph.add_weighted_edges_from(zip(*(column.tolist() for column in edges), strict=True))
        for community in nx.community.louvain_communities(graph, resolution=_RESOLUTION, seed=_SEED):
            first[members[list(community)]] = members[min(community)]
    return first[same]
