"""What becomes of a new document that resembles one that is there: the optional policy of with_sketches."""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ndd_search.config import Recipe
from ndd_search.indexing.candidates import CandidateSearch
from ndd_search.sketches import Sketch

logger = logging.getLogger("ndd_search")

Target = tuple[str, str | None]  # an index and a document's id, None when the engine is to make one


@dataclass(frozen=True)
class FoundDuplicate:
    """A new document that resembles an earlier one. id, of: None for a document the engine has yet to name."""

    id: str | None
    of: str | None
    similarity: float


@dataclass(frozen=True)
class DuplicatePolicy:
    """What to do with a new document that resembles one of the index, or of this run.

    action:         "report" counts it, "mark" stores the other one's id in ndd.duplicate_of, "skip" leaves it out.
    client:         searches the index; asynchronous with an async helper.
    index:          where to look; None: the index each action names.
    min_similarity: from when on it counts, as in CollapseOptions.
    remembered:     how many of the last documents are kept at hand (about 1 kB each), at least 0: a search does not see
                    what was sent since the last refresh.
    on_duplicate:   called with each.
    A document is never called the duplicate of one that is marked as a duplicate itself. When the search fails the
    document is stored as if nothing had been found.
    """

    action: Literal["report", "mark", "skip"]
    client: Any
    index: str | None = None
    min_similarity: float | str = 0.8
    remembered: int = 20_000
    on_duplicate: Callable[[FoundDuplicate], None] | None = None

    def __post_init__(self) -> None:
        if self.action not in ("report", "mark", "skip"):
            raise ValueError(f'action must be "report", "mark" or "skip", got {self.action!r}')
        if self.remembered < 0:
            raise ValueError(f"remembered must be at least 0, got {self.remembered}")

    def recent(self, recipe: Recipe, field: str, keys: int) -> Recent:
        """An empty memory for one run."""
        search = CandidateSearch(recipe=recipe, field=field, keys=keys, min_similarity=self.min_similarity, examined=20)
        return Recent(search, self.remembered)

    def target(self, action: Mapping[str, Any]) -> Target:
        """The index to search for an action, and the document's id."""
        index = self.index or action.get("_index")
        if index is None:
            raise ValueError(
                "an action names no _index: say in DuplicatePolicy(index=...) where to look for duplicates"
            )
        return index, action.get("_id")


class Recent:
    """The last documents of this run that were no duplicates, beside those the index shows."""

    def __init__(self, search: CandidateSearch, most: int) -> None:
        self._search, self._most = search, most
        self._documents: OrderedDict[int, tuple[Target, Sketch]] = OrderedDict()
        self._by_key: dict[int, list[int]] = {}
        self._by_target: dict[Target, int] = {}
        self._next = 0
        self._failed = False

    def request(self, sketches: Sequence[Sketch], targets: Sequence[Target]) -> list[dict[str, Any]]:
        """The body of a multi search, one search for each document."""
        lines: list[dict[str, Any]] = []
        for wanted, (index, _) in zip(sketches, targets, strict=True):
            lines += [{"index": index, "ignore_unavailable": True}, self._search.body(wanted, only_leaders=True)]
        return lines

    def settle(
        self,
        sketches: Sequence[Sketch],
        targets: Sequence[Target],
        responses: Sequence[Mapping[str, Any]],
    ) -> Iterator[FoundDuplicate | None]:
        """For each document, in order, what it is a duplicate of; one that is new is remembered for the next."""
        for wanted, target, response in zip(sketches, targets, responses, strict=True):
            self._forget(self._by_target.get(target))  # the same id again replaces
            stored = self._search.verified(wanted, self._hits(response))
            others = [(one.similarity, one.id) for one in stored if one.id != target[1]]
            best = max([*others, *self._seen(wanted)], key=lambda one: one[0], default=None)
            if best is None:
                self._remember(wanted, target)
                yield None
            else:
                yield FoundDuplicate(target[1], best[1], best[0])

    def _hits(self, response: Mapping[str, Any]) -> list[dict[str, Any]]:
        if "hits" in response:
            return list(response["hits"]["hits"])
        if not self._failed:
            self._failed = True
            logger.warning("looking for duplicates failed (%s): documents are stored as new", response.get("error"))
        return []

    def _seen(self, wanted: Sketch) -> list[tuple[float, str | None]]:
        keys = wanted[: self._search.keys].tolist()
        met = Counter(number for key in keys for number in self._by_key.get(key, ()))
        needed = self._search.needed(len(keys))
        likely = [number for number, shared in met.most_common(self._search.examined) if shared >= needed]
        similarity = self._search.similarities(wanted, [self._documents[number][1] for number in likely])
        return [(float(similarity[i]), self._documents[likely[i]][0][1]) for i in np.flatnonzero(similarity).tolist()]

    def _remember(self, wanted: Sketch, target: Target) -> None:
        if not self._most:
            return
        number, self._next = self._next, self._next + 1
        self._documents[number] = (target, wanted.copy())  # a copy: a view would keep its whole batch
        if target[1] is not None:
            self._by_target[target] = number
        for key in wanted[: self._search.keys].tolist():
            self._by_key.setdefault(key, []).append(number)
        if len(self._documents) > self._most:
            self._forget(next(iter(self._documents)))

    def _forget(self, number: int | None) -> None:
        if number is None:
            return
        target, stored = self._documents.pop(number)
        self._by_target.pop(target, None)
        for key in stored[: self._search.keys].tolist():
            holders = self._by_key[key]
            holders.remove(number)
            if not holders:
                del self._by_key[key]
