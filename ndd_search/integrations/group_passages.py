"""Which passages are near-duplicates of one another, and which stand word for word in longer ones.

What passages say beyond one another is read from their texts: whole texts tell an edit from a new sentence. Beside
another passage, those words of a passage are new that stand in none of its pairs of neighbouring words. A row of new
words adds something if the other passage has more than three of them nowhere; fewer are an edit or a dateline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ndd_search.core.matching.contained_texts import Extract, joined, lies_inside, normalised, possible_containers
from ndd_search.core.matching.guards import allowed_by_fields
from ndd_search.core.matching.similar_pairs import Pairs
from ndd_search.core.matching.similarity_measures import similarities
from ndd_search.core.matching.sketch_rows import rows_of
from ndd_search.core.options import CollapseOptions
from ndd_search.core.paging.collapse import collapse
from ndd_search.core.paging.hit_reader import stored_sketches
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import Sketch, sketch_many
from ndd_search.core.text.numbers import number_signature, numbers_of
from ndd_search.core.text.tokens import tokens
from ndd_search.integrations.passage_options import Fields, PassageOptions, read

_NO_SKETCH = np.empty(0, np.int32)
_EDIT = 3
_SHARE = 0.25  # of the words of a near-duplicate that may add something to the passage that stands for it
_SCATTERED = 40  # words of a part of a longer passage for each of them that may differ
Neighbours = Counter[tuple[str, str]]  # of neighbouring words, and how often they stand so
_MOST = 16  # different texts of a group that are compared


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

    def similarities(self, ranks: list[int]) -> list[float]:
        """Of passages to the first of them, as estimated."""
        rows = rows_of([self.sketches[rank] for rank in ranks], self.recipe.k)
        places = np.arange(len(ranks))
        found: list[float] = similarities(rows, np.zeros_like(places), places, self.recipe.measure).tolist()
        return found

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


def new_words(words: Sequence[str], other: Neighbours, known: Set[str]) -> int:
    """Return how many words of a passage stand in rows that add something. other, known: pairs and words of another."""
    added = row = unknown = 0
    left, before = dict(other), False  # pairs not met yet; whether the pair that ends here is known
    for word, following in pairwise((*words, "")):
        pair = word, following
        after = left.get(pair, 0) > 0
        if after:
            left[pair] -= 1
        if before or after:
            added, row, unknown = added + (row if unknown > _EDIT else 0), 0, 0
        else:
            row, unknown = row + 1, unknown + (word not in known)
        before = after
    return added + (row if unknown > _EDIT else 0)


class Texts:
    """The texts of passages, by rank, compared when somebody asks."""

    def __init__(self, given: Given, options: CollapseOptions) -> None:
        self.given, self.options = given, options
        self.normalised = cache(lambda rank: normalised(given.texts[rank] or ""))
        self.words = cache(self._words)
        self.adds = cache(self._adds)
        self.holds = cache(self._holds)
        self.inside = cache(self._inside)

    def stands_for(self, shown: int, other: int) -> bool:
        """Return whether a shown passage says nearly all that a near-duplicate says.

        A window that overlaps another one of its document is the next part of it, unless it stands inside.
        """
        if self.are_windows(shown, other):
            return self.normalised(shown) == self.normalised(other) or self.inside(other, shown)
        return self.adds(other, shown) <= _SHARE * len(self.words(other)[0]) and self._allowed(shown, other)

    def are_windows(self, one: int, other: int) -> bool:
        """Return whether two passages are of one document and overlap there."""
        document = self.given.document(one)
        if document is None or document != self.given.document(other):
            return False
        return joined(self.given.extract(one), self.given.extract(other)) is not None

    def _adds(self, one: int, other: int) -> int:
        """Return how many words of a passage add something to another one."""
        if self.holds(other, one):
            return 0
        words, pairs = self.words(other)
        return new_words(self.words(one)[0], pairs, set(words))

    def _holds(self, longer: int, shorter: int) -> bool:
        """Return whether a passage stands word for word in another one."""
        return lies_inside(self.normalised(shorter), self.normalised(longer))

    def _inside(self, shorter: int, longer: int) -> bool:
        """Return whether a passage is a part of a longer one but for scattered words, and no guard keeps them apart."""
        is_part = self.holds(longer, shorter) or self._differs_little(shorter, longer)
        return is_part and self._allowed(shorter, longer)

    def _differs_little(self, shorter: int, longer: int) -> bool:
        """Return whether a part of a longer passage differs in one of _SCATTERED words, none of them a number."""
        (words, pairs), (_, others) = self.words(shorter), self.words(longer)
        if len(pairs - others) > 2 * (len(words) // _SCATTERED) or len(words) < _SCATTERED:
            return False
        texts, recipe = self.given.texts, self.given.recipe
        numbers, of_longer = (numbers_of(texts[rank] or "", recipe) for rank in (shorter, longer))
        return numbers <= of_longer

    def _words(self, rank: int) -> tuple[list[str], Neighbours]:
        words = tokens(self.given.texts[rank] or "", self.given.recipe)
        return words, Counter(pairwise(words))

    def _allowed(self, one: int, other: int) -> bool:
        """Return whether no guard keeps two passages apart by their fields."""
        pair, hits = Pairs(np.array([0]), np.array([1]), np.ones(1)), [self.given.hits[rank] for rank in (one, other)]
        return all(verdict.all() for verdict in allowed_by_fields(pair, hits, self.given, self.options).values())


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
