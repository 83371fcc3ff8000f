"""Which passages are near-duplicates of one another, and which stand word for word in longer ones."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ndd_search.collapse_options import CollapseOptions, check_fit
from ndd_search.integrations.options import Fields, PassageOptions, Where, read
from ndd_search.integrations.verbatim import Extract, lies_inside, normalised, possible_containers
from ndd_search.matching.decision import Constants, Decision
from ndd_search.matching.frequency_table import FrequencyTable
from ndd_search.matching.groups import leaders
from ndd_search.matching.guards import allowed, reads_hits
from ndd_search.matching.keys import reads_keys
from ndd_search.matching.pairs import Pairs
from ndd_search.matching.rows import rows_of
from ndd_search.paging.collapse import collapse
from ndd_search.recipe import Recipe
from ndd_search.sketching.field import SketchField
from ndd_search.sketching.sketches import Sketch, sketch_many
from ndd_search.text.numbers import number_signature

_FEW = 500  # passages of which every pair is compared to find out whether any resemble at all
_NO_SKETCH = np.empty(0, np.int32)


@dataclass(frozen=True)
class Given:
    """The passages as they were given, and what was read from them."""

    hits: list[Any]
    scores: list[Any]
    where: Fields
    recipe: Recipe

    @cached_property
    def texts(self) -> list[str | None]:
        return [self.where.text_of(hit) for hit in self.hits]

    @cached_property
    def sketches(self) -> list[Sketch]:
        """Those stored with the passages, and of the others' texts."""
        sketches = [_NO_SKETCH if isinstance(one, str) else one for one in self._stored()]
        fresh = [rank for rank, one in enumerate(sketches) if not len(one) and self.texts[rank] is not None]
        made = sketch_many((self.texts[rank] or "" for rank in fresh), self.recipe) if fresh else ()
        for rank, sketch in zip(fresh, made, strict=True):
            sketches[rank] = sketch
        return sketches

    def extract(self, rank: int) -> Extract:
        start = self._read(rank, self.where.start)
        whole = isinstance(start, int) and not isinstance(start, bool)
        return Extract(self.texts[rank] or "", start if whole else None)

    def document(self, rank: int) -> Hashable:
        """Which document a passage is of; None where it does not say, or not in a word."""
        found = self._read(rank, self.where.document)
        return found if isinstance(found, Hashable) else None

    def id(self, rank: int) -> Any:
        return self._read(rank, self.where.id)

    def source(self, rank: int) -> Any:
        return self._read(rank, self.where.source)

    def _read(self, rank: int, what: Where) -> Any:
        return read(self.hits[rank], what)

    def value(self, hit: Any, field: str) -> Any:
        """What a passage has in a field, for guards."""
        return read(hit, field)

    def numbers(self, hit: Any) -> int | None:
        """The numbers of its text, for guards; None without a text."""
        text = self.where.text_of(hit)
        return None if text is None else number_signature(text, self.recipe)

    def _stored(self) -> Sequence[Sketch | str]:
        place = SketchField()
        found = [read(hit, self.where.stored) for hit in self.hits]
        as_read = [
            {place.sketch: one.get("sketch"), place.packed: one.get("packed"), place.recipe: [one.get("recipe")]}
            if isinstance(one, Mapping)
            else {}
            for one in found
        ]
        return place.decode(as_read, self.recipe) if any(as_read) else ["missing"] * len(found)


@dataclass(frozen=True)
class Group:
    """Near-duplicates of one another. shown: the one to show. members: by rank, with the similarity to the first."""

    shown: int
    members: dict[int, float]

    def others(self, shown: int) -> dict[int, float]:
        """The members that a shown one stands for, with their similarity."""
        first = min(self.members)
        alike = {**self.members, first: self.members[shown]}
        return {rank: similarity for rank, similarity in alike.items() if rank != shown}


def groups_of(given: Given, options: PassageOptions) -> list[Group]:
    """The near-duplicates among all passages, by the best rank of each group."""
    count, chosen = len(given.hits), options.collapse
    check_fit(chosen, given.recipe)
    by_text = not reads_keys(chosen)
    if by_text and count <= _FEW and not _some_resemble(given, chosen, options.frequency_table):
        return [Group(rank, {rank: 1.0}) for rank in range(count)]
    page = collapse(
        given.hits,
        size=count,
        text=given.where.text_of,
        sketches=given.sketches,
        recipe=given.recipe,
        frequency_table=options.frequency_table,
        options=replace(chosen, window=max(count, 1), max_window=max(count, 1)),
    )
    groups = []
    for group in page.groups:
        members = {copy.rank: copy.similarity for copy in group.duplicates}
        first = min(members, default=group.rank)
        if first < group.rank:
            members[group.rank], members[first] = members[first], 1.0
        groups.append(Group(group.rank, dict(sorted({group.rank: 1.0, **members}.items()))))
    return groups


def _some_resemble(given: Given, options: CollapseOptions, frequency_table: FrequencyTable | bool) -> bool:
    """Whether any two passages can be near-duplicates: their plain resemblance is at least what is held to the bar."""
    table = frequency_table if isinstance(frequency_table, FrequencyTable) else None
    decision = Decision.of(options.min_similarity, given.recipe, table)
    if given.recipe.measure != "kmv":
        return True
    bar = decision.bar or Constants().least
    leader = leaders(given.sketches, bar, given.recipe.k)
    return bool((leader != np.arange(len(leader))).any())


def longer_ones(given: Given, groups: Sequence[Group], options: CollapseOptions) -> dict[int, list[int]]:
    """For shown passages, the longer ones that each stands in, longest first: what other groups show.

    And, where `keep` leaves the choice among near-duplicates to their rank, members of its own group. Guards that keep
    near-duplicates apart by what is in their fields keep these apart, too.
    """
    shown = {group.shown: number for number, group in enumerate(groups)}
    lengths = [len(text or "") for text in given.texts]
    plain: dict[int, str] = {}

    def text(rank: int) -> str:
        return plain.get(rank) or plain.setdefault(rank, normalised(given.texts[rank] or ""))

    found = {}
    for rank, possible in possible_containers(given.sketches, lengths).items():
        if rank in shown:
            members = groups[shown[rank]].members if options.keep == ("score",) else ()
            longer = [one for one in possible if one in shown or one in members]
            longer = [one for one in longer if lies_inside(text(rank), text(one))]
            if longer:
                found[rank] = sorted(longer, key=lambda one: (-lengths[one], one))
    return _let_through(found, given, options) if found else found


def _let_through(found: dict[int, list[int]], given: Given, options: CollapseOptions) -> dict[int, list[int]]:
    """The same without the pairs whose fields guards keep apart."""
    asked = replace(options, min_shingles=0, min_length_ratio=0.0)
    if not reads_hits(asked):
        return found
    first, second = np.array([(rank, one) for rank, longer in found.items() for one in longer]).T
    pairs, rows = Pairs(first, second, np.ones(len(first))), rows_of(given.sketches, given.recipe.k)
    verdicts = allowed(pairs, rows, given.hits, given, asked)
    let: dict[int, list[int]] = {}
    passed = pairs.where(np.logical_and.reduce(list(verdicts.values())))
    for rank, one in zip(passed.first.tolist(), passed.second.tolist(), strict=True):
        let.setdefault(rank, []).append(one)
    return let
