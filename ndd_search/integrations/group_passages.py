"""Which passages are near-duplicates of one another, and which stand word for word in longer ones."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ndd_search.core.matching.contained_texts import Extract, lies_inside, normalised, possible_containers
from ndd_search.core.matching.document_frequency import leaders_of_list
from ndd_search.core.matching.guards import allowed_by_fields
from ndd_search.core.matching.similar_pairs import Pairs
from ndd_search.core.matching.sketch_rows import Ranks
from ndd_search.core.options import CollapseOptions, check_fit
from ndd_search.core.paging.collapse import collapse
from ndd_search.core.paging.hit_reader import HitReader, stored_sketches
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import Sketch, sketch_many
from ndd_search.core.text.numbers import number_signature
from ndd_search.integrations.passage_options import Fields, PassageOptions, read

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
        fresh = [rank for rank, one in enumerate(sketches) if one is _NO_SKETCH and self.texts[rank] is not None]
        made = sketch_many([self.texts[rank] or "" for rank in fresh], self.recipe) if fresh else ()
        for rank, sketch in zip(fresh, made, strict=True):
            sketches[rank] = sketch
        return sketches

    @property
    def came_with(self) -> list[Sketch] | None:
        """The sketches, None if no passage came with one."""
        return self.sketches if any(not isinstance(one, str) for one in self._stored()) else None

    def extract(self, rank: int) -> Extract:
        start = read(self.hits[rank], self.where.start)
        whole = isinstance(start, int) and not isinstance(start, bool)
        return Extract(self.texts[rank] or "", start if whole else None)

    def document(self, rank: int) -> Hashable:
        """Which document a passage is of; None where it does not say, or not in a word."""
        found = read(self.hits[rank], self.where.document)
        return found if found is None or isinstance(found, Hashable) else None

    def id(self, rank: int) -> Any:
        return read(self.hits[rank], self.where.id)

    def source(self, rank: int) -> Any:
        return read(self.hits[rank], self.where.source)

    def value(self, hit: Any, field: str) -> Any:
        """What a passage has in a field, for guards."""
        return read(hit, field)

    def numbers(self, hit: Any) -> int | None:
        """The numbers of its text, for guards; None without a text."""
        text = self.where.text_of(hit)
        return None if text is None else number_signature(text, self.recipe)

    def _stored(self) -> Sequence[Sketch | str]:
        """Of those that `with_sketches` stores; anything else under that name is none."""
        found = [
            one if isinstance(one, Mapping) else None for one in (read(hit, self.where.stored) for hit in self.hits)
        ]
        return stored_sketches(found, self.recipe)


@dataclass(frozen=True)
class Groups:
    """The groups of passages.

    members: of each passage to show, by the best rank of the group, those that it stands for and itself, by rank, with
             the similarity to the first. shares: the field whose value alone put a passage there (group_by, max_per).
    """

    members: dict[int, dict[int, float]] = field(default_factory=dict)
    shares: dict[int, str] = field(default_factory=dict)


def others(members: dict[int, float], shown: int) -> dict[int, float]:
    """Return the members of a group that a shown one stands for, with their similarity."""
    first = min(members)
    alike = members if shown == first else {**members, first: members[shown]}
    return {rank: similarity for rank, similarity in alike.items() if rank != shown}


def groups_of(given: Given, options: PassageOptions) -> Groups:
    """Return the near-duplicates among all passages, by the best rank of each group."""
    chosen, found = options.collapse, None
    check_fit(chosen, given.recipe)
    shows_leaders = (chosen.keep, chosen.mode, chosen.max_per_group) == (("score",), "group", 1)
    plain = shows_leaders and not (chosen.guards or chosen.reads_keys)
    if plain and options.frequency_table is True and chosen.min_similarity == "auto":
        found = leaders_of_list(given.sketches, given.recipe, given.recipe.min_shingles)
    if found is None or _are_apart(given, found[0], chosen):
        return _collapsed(given, options)
    return _led(*found)


def _are_apart(given: Given, leaders: Ranks, options: CollapseOptions) -> bool:
    """Return whether the text of a passage and that of its leader keep them apart, so that `collapse` shows both."""
    apart = HitReader(given.recipe, given.where.text_of, given.came_with).apart(options)
    pairs = ((given.hits[of], given.hits[rank]) for rank, of in enumerate(leaders.tolist()) if rank != of)
    return apart is not None and any(apart(*pair) for pair in pairs)


def _led(leaders: Ranks, similarities: npt.NDArray[np.float64]) -> Groups:
    """Return the groups of leaders, which show their best-ranked passage."""
    groups = Groups()
    for rank, (leader, similarity) in enumerate(zip(leaders.tolist(), similarities.tolist(), strict=True)):
        groups.members.setdefault(leader, {})[rank] = similarity
    return groups


def _collapsed(given: Given, options: PassageOptions) -> Groups:
    count = len(given.hits)
    page = collapse(
        given.hits,
        size=count,
        text=given.where.text_of,
        sketches=given.came_with,
        recipe=given.recipe,
        frequency_table=options.frequency_table,
        options=replace(options.collapse, window=max(count, 1), max_window=max(count, 1)),
    )
    groups = Groups()
    for group in page.groups:
        groups.shares.update((copy.rank, copy.shares) for copy in group.duplicates if copy.shares)
        members = {copy.rank: copy.similarity for copy in group.duplicates}
        first = min(members, default=group.rank)
        if first < group.rank:
            members[group.rank], members[first] = members[first], 1.0
        groups.members[group.rank] = dict(sorted({group.rank: 1.0, **members}.items()))
    return groups


class Containment:
    """Which shown passages stand in longer ones: in those that other groups show.

    And, where no option chooses among near-duplicates but their rank, in members of their own group. Guards that
    keep near-duplicates apart by what is in their fields keep these apart, too. Texts are compared when a passage is
    looked at, and only those whose sketches leave it possible.
    """

    def __init__(self, given: Given, groups: Groups, options: PassageOptions) -> None:
        self.given = given
        self.lengths = [len(text or "") for text in given.texts]
        self.collapse = options.collapse
        self.longer: dict[int, list[int]] = {}  # what each passage may stand in
        self.shorter: dict[int, list[int]] = {}  # the other way round
        self.normalised = cache(lambda rank: normalised(given.texts[rank] or ""))
        self.inside = cache(self._inside)
        possible = possible_containers(given.sketches, self.lengths, given.recipe) if options.contained else {}
        own = options.collapse.keep == ("score",) and not options.limits
        for rank, places in possible.items():
            if rank in groups.members:
                for longer in places:
                    if longer in groups.members or (own and longer in groups.members[rank]):
                        self.longer.setdefault(rank, []).append(longer)
                        self.shorter.setdefault(longer, []).append(rank)

    def containers(self, rank: int) -> list[int]:
        """Return the longer passages that a shown one stands in, longest first."""
        found = [one for one in self.longer.get(rank, ()) if self.inside(rank, one)]
        return sorted(found, key=lambda one: (-self.lengths[one], one))

    def contents(self, rank: int) -> list[int]:
        """Return the shown passages that stand in a longer one."""
        return [one for one in self.shorter.get(rank, ()) if self.inside(one, rank)]

    def _inside(self, shorter: int, longer: int) -> bool:
        """Return whether a passage stands in another one, and no guard keeps them apart."""
        if not lies_inside(self.normalised(shorter), self.normalised(longer)):
            return False
        pair, hits = (
            Pairs(np.array([0]), np.array([1]), np.ones(1)),
            [self.given.hits[rank] for rank in (shorter, longer)],
        )
        return all(verdict.all() for verdict in allowed_by_fields(pair, hits, self.given, self.collapse).values())
