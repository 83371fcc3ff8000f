"""Which passages are near-duplicates of one another, and which stand word for word in longer ones."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from ndd_search.core.matching.contained_texts import possible_containers
from ndd_search.core.matching.document_frequency import leaders_of_list
from ndd_search.core.matching.sketch_rows import Ranks
from ndd_search.core.options import CollapseOptions, check_fit
from ndd_search.core.paging.collapse import collapse
from ndd_search.core.paging.hit_reader import HitReader
from ndd_search.integrations.added_words import Texts
from ndd_search.integrations.given_passages import Given
from ndd_search.integrations.passage_options import PassageOptions

_MOST = 16


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


def without_additions(groups: Groups, texts: Texts) -> Groups:
    """Return the groups without members that add something to the shown passage: these are shown, too.

    Where a member adds more to the shown passage than that one to it, the member is shown in its place. Of a group with
    more than _MOST different texts, the others are shown as they are.
    """
    found: list[tuple[int, dict[int, float]]] = []
    for members in groups.members.values():
        ranks, first = list(members), min(members)
        for _ in range(_MOST):
            if not ranks:
                break
            shown = ranks[0]
            for rank in ranks[1:]:
                if texts.adds(rank, shown) > texts.adds(shown, rank) and texts.stands_for(rank, shown):
                    shown = rank
            alike = [rank for rank in ranks if rank == shown or texts.stands_for(shown, rank)]
            similar = [members[rank] for rank in alike] if alike[0] == first else texts.given.similarities(alike)
            found.append((shown, dict(zip(alike, similar, strict=True))))
            ranks = [rank for rank in ranks if rank not in alike]
        found += [(rank, {rank: 1.0}) for rank in ranks]
    return Groups(dict(sorted(found, key=lambda one: min(one[1]))), groups.shares)


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
    """Which shown passages stand in longer ones that other groups show.

    Texts are compared when a passage is looked at, and only those whose sketches leave it possible.
    """

    def __init__(self, texts: Texts, groups: Groups, options: PassageOptions) -> None:
        given = texts.given
        self.texts = texts
        self.lengths = [len(text or "") for text in given.texts]
        self.longer: dict[int, list[int]] = {}  # what each passage may stand in
        self.shorter: dict[int, list[int]] = {}  # the other way round
        possible = possible_containers(given.sketches, self.lengths, given.recipe) if options.contained else {}
        for rank, places in possible.items():
            for longer in places if rank in groups.members else ():
                if longer in groups.members:
                    self.longer.setdefault(rank, []).append(longer)
                    self.shorter.setdefault(longer, []).append(rank)

    def containers(self, rank: int) -> list[int]:
        """Return the longer passages that a shown one stands in, longest first."""
        found = [one for one in self.longer.get(rank, ()) if self.texts.inside(rank, one)]
        return sorted(found, key=lambda one: (-self.lengths[one], one))

    def contents(self, rank: int) -> list[int]:
        """Return the shown passages that stand in a longer one."""
        return [one for one in self.shorter.get(rank, ()) if self.texts.inside(one, rank)]
