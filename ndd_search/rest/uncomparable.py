"""Duplicates that a response lists under its hits, but without the sketches to compare them with other hits.

A wrapped client lists them so with duplicates="ids", or if a search does not request sketches. On a merged page they
stay under their hit, or under the hit that is shown for it, with the similarity to their own hit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

from ndd_search.paging.layout import Duplicate, Group
from ndd_search.paging.page import Page
from ndd_search.rest.response import SHARES, SIMILARITY

Hit = dict[str, Any]


class Uncomparable:
    """The duplicates without sketches of the hits of several responses.

    identify: returns a key of the document of a hit, None if the hit does not name it.
    """

    def __init__(self, identify: Callable[[Hit], Hashable]) -> None:
        self._identify = identify
        self._of: defaultdict[Hashable, list[Hit]] = defaultdict(list)  # by their hit

    def add(self, hit: Hit, duplicate: Hit) -> None:
        """Add a duplicate of a hit."""
        self._of[self._key(hit)].append(duplicate)

    def keep_once(self, hits: list[Hit]) -> None:
        """Drop duplicates that are among these hits themselves, and those that were added before."""
        known = {self._key(hit) for hit in hits}
        for leader, duplicates in self._of.items():
            kept = {self._key(one): one for one in duplicates if self._key(one) not in known}
            known |= kept.keys()
            self._of[leader] = list(kept.values())

    def _key(self, hit: Hit) -> Hashable:
        return self._identify(hit) or id(hit)

    def listed_on(self, page: Page) -> Page:
        """Return the page with these duplicates listed under its hits, and counted as hidden."""
        count = sum(map(len, self._of.values()))
        if not count:
            return page
        info = replace(page.info, examined=page.info.examined + count, hidden=page.info.hidden + count)
        return replace(page, groups=tuple(map(self._completed, page.groups)), info=info)

    def _completed(self, group: Group) -> Group:
        members = [group.hit, *(one.hit for one in group.duplicates)]
        more = [duplicate for hit in members for duplicate in self._of.get(self._key(hit), ())]
        return group._replace(duplicates=(*group.duplicates, *map(_duplicate, more)))


def _duplicate(hit: Hit) -> Duplicate:
    fields = hit.get("fields") or {}
    (similarity,), (shares,) = fields.get(SIMILARITY, [0.0]), fields.get(SHARES, [""])
    return Duplicate(hit, -1, similarity, shares)
