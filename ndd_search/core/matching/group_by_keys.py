"""Assigns leaders by fields as well as by texts: equal keys are one group, and a value leads only so many groups."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ndd_search.core.document_fields import is_missing
from ndd_search.core.matching.guards import Value, comparable
from ndd_search.core.matching.similar_pairs import Pairs
from ndd_search.core.matching.similarity_measures import similarities
from ndd_search.core.matching.sketch_rows import Ranks, rows_of
from ndd_search.core.options import CollapseOptions
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import Sketch

FieldValue = tuple[str, Hashable]  # a field, and one of its values


def values_of(hit: Any, name: str, value: Value) -> set[Hashable]:
    """Return the values of a field of a hit. A missing value, also NaN, and an empty text are none."""
    found = value(hit, name)
    listed = found if isinstance(found, list | tuple | set) else [found]
    return {comparable(one) for one in listed if not is_missing(one) and one != ""}


def passed_over(shares: Iterable[tuple[int, str]], options: CollapseOptions) -> set[int]:
    """Return the hits that max_per alone put under their leader. shares: of each hit that a field put there."""
    fields = options.most_per.keys() - set(options.group_by)
    return {index for index, field in shares if field in fields} if fields else set()


def full_values(leaders: Iterable[Any], most: Mapping[str, int], value: Value) -> set[FieldValue]:
    """Return the values that lead as many groups as `max_per` allows. most: groups for each value, by field."""
    led = Counter((name, one) for hit in leaders for name in most for one in values_of(hit, name, value))
    return {key for key, groups in led.items() if groups >= most[key[0]]}


@dataclass(frozen=True, eq=False)
class LeadersByKeys:
    """Assigns leaders in rank order. hits, sketches: those that are leaders already, then the hits to be assigned."""

    hits: Sequence[Any]
    sketches: Sequence[Sketch]
    recipe: Recipe
    value: Value
    options: CollapseOptions

    def choose(self, pairs: Pairs, old: int, shown: int) -> tuple[Ranks, npt.NDArray[np.float64], dict[int, str]]:
        """Assign each hit to the best-ranked leader that it resembles or whose key it has; else it becomes a leader.

        A hit that would become a leader, and has a value that leads as many groups as `max_per` allows, joins the first
        of these instead. pairs: of near-duplicates, ordered by the first. old: the first hits are leaders. shown: as
        many of them were shown before this search; their values are not counted.
        Returns the leaders, the similarities, and by place the field for which a hit joined its leader.
        """
        count, resembled = len(self.hits), _by_second(pairs)
        leader, similarity, shares = np.arange(count), np.ones(count), dict[int, str]()
        of_key: dict[FieldValue, int] = {}
        led: dict[FieldValue, list[int]] = {}  # by value: the groups that count for max_per
        for place in range(count):
            keys = self._values(place, self.options.group_by)
            capped = self._values(place, self.options.most_per)
            if place >= old:
                near = next(((first, alike) for first, alike in resembled[place] if leader[first] == first), None)
                keyed = min(((of_key[key], key[0]) for key in keys if key in of_key), default=None)
                if keyed is None and near is None:
                    full = [(led[key][0], key[0]) for key in capped if self._is_full(key, led)]
                    keyed = min(full, default=None)
                if keyed is not None and (near is None or keyed[0] < near[0]):
                    leader[place], shares[place] = keyed
                    continue
                if near is not None:
                    leader[place], similarity[place] = near
                    continue
            for key in keys:
                of_key.setdefault(key, place)
            if place >= shown:
                for key in capped:
                    led.setdefault(key, []).append(place)
        if shares:
            joined = np.array(list(shares))
            rows = rows_of(self.sketches, self.recipe.k)
            similarity[joined] = similarities(rows, leader[joined], joined, self.recipe.measure)
        return leader, similarity, shares

    def _is_full(self, key: FieldValue, led: dict[FieldValue, list[int]]) -> bool:
        return len(led.get(key, ())) >= self.options.most_per[key[0]]

    def _values(self, place: int, names: Collection[str]) -> list[FieldValue]:
        hit = self.hits[place]
        return [(name, one) for name in names for one in values_of(hit, name, self.value)]


def _by_second(pairs: Pairs) -> dict[int, list[tuple[int, float]]]:
    """Return the first hits of the pairs of each second one, the best-ranked first, with their similarities."""
    found = defaultdict[int, list[tuple[int, float]]](list)
    columns = pairs.first.tolist(), pairs.second.tolist(), pairs.similarity.tolist()
    for first, second, similarity in zip(*columns, strict=True):
        found[second].append((first, similarity))
    return found
