"""The passages to show, and what each of them stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Literal, overload

from ndd_search.core.paging.origins import Origins, different, independent

Relation = Literal["similar", "contained", "merged", "shares"]

LISTED = "near_duplicates"  # the metadata that holds the provenance
LEFT_OUT = "near_duplicates_left_out"  # the metadata of the last passage that names those without room
SOURCES = "near_duplicate_sources"  # the metadata that holds the different sources, to be cited
ORIGINS = "near_duplicate_origins"  # the metadata that holds a sentence about the origins, if they are asked for


@dataclass(frozen=True, slots=True)
class Copy:
    """A passage that another one stands for.

    hit, rank:  the passage as it was given, and its place in the list.
    id, source: as `Fields` finds them, None where there are none.
    relation:   "similar": a near-duplicate; "contained": it stands word for word in the passage that is shown;
                "merged": it overlaps that passage and is a part of its text; "shares": another text, which has the
                same value in a field of group_by or max_per.
    similarity: to the best-ranked passage of its group, 0..1, as estimated; 1.0 for "contained" and "merged".
    """

    hit: Any = field(repr=False)
    rank: int
    id: Any
    source: Any
    relation: Relation
    similarity: float


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage to show.

    hit, rank: the passage as it was given, and its place in the list. Its own place among the shown ones is that of the
               best-ranked passage that it stands for.
    text:      to show; longer than that of `hit` where others were merged into it.
    score:     the highest of the passage and of what it stands for, in a list of (passage, score); None without one.
    copies:    what it stands for, by rank.
    start, end: the first character of the text in its document and the one behind its last, where that is known.
    tokens:    of its text, None where no max_tokens asked for them.
    origins:   where it and its copies are from, None unless the option `origins` asks for it.
    """

    hit: Any = field(repr=False)
    rank: int
    text: str
    id: Any
    source: Any
    score: Any
    copies: tuple[Copy, ...]
    start: int | None
    end: int | None
    tokens: int | None
    origins: Origins | None = None

    @property
    def sources(self) -> list[Any]:
        """The different sources of the passage and of what it stands for, in order of rank, to be cited.

        "Reuters" and "REUTERS" are one, and so are a page and the same page on the site's host for phones.
        """
        found = [(self.rank, self.source), *((one.rank, one.source) for one in self.copies if one.relation != "shares")]
        return different(source for _, source in sorted(found, key=itemgetter(0)))

    @property
    def provenance(self) -> list[dict[str, Any]]:
        """What the passage stands for, for the metadata of frameworks and for JSON."""
        return [
            {
                "id": copy.id,
                "source": copy.source,
                "rank": copy.rank,
                "relation": copy.relation,
                "similarity": round(copy.similarity, 4),
            }
            for copy in self.copies
        ]


@dataclass(frozen=True)
class Passages(Sequence[Passage]):
    """The passages to show, best first.

    left_out: passages as they were given that max_tokens had no room for, by rank.
    examined: how many were given. min_similarity: the setting that decided.
    warnings: sentences where the decision may be wrong, as those of a page.
    """

    shown: tuple[Passage, ...]
    left_out: tuple[Any, ...]
    examined: int
    min_similarity: float | str
    warnings: tuple[str, ...] = ()

    @property
    def texts(self) -> list[str]:
        return [passage.text for passage in self.shown]

    @property
    def hits(self) -> list[Any]:
        """The shown passages as they were given."""
        return [passage.hit for passage in self.shown]

    @property
    def origins(self) -> str:
        """For the prompt, as "3 independent sources, 41 reprints"; "" unless the option `origins` asks for it."""
        found = [passage.origins for passage in self.shown if passage.origins is not None]
        return independent(found) if found else ""

    @property
    def tokens(self) -> int | None:
        """Of all that is shown, None where no max_tokens asked for them."""
        counts = [passage.tokens for passage in self.shown if passage.tokens is not None]
        return sum(counts) if len(counts) == len(self.shown) else None

    def told(
        self, passage: Passage, metadata: Callable[[Any], Mapping[str, Any]], id: Callable[[Any], Any]
    ) -> dict[str, Any]:
        """Return what a framework is told of a passage in its metadata, {} if there is nothing to tell.

        That is the provenance, with that of earlier filters, the sources of the passage and of all that it stands for,
        and the origins; with the last passage also the ids of those that max_tokens had no room for. Ranks of earlier
        entries are those of the earlier list.
        metadata, id: passage as it was given -> its metadata, its id.
        """
        left_out = {LEFT_OUT: [id(one) for one in self.left_out]} if self.left_out and passage is self.shown[-1] else {}
        if not passage.copies:
            return left_out
        entries = _listed(metadata(passage.hit))
        for copy, entry in zip(passage.copies, passage.provenance, strict=True):
            entries += entry, *_listed(metadata(copy.hit))
        alike = (entry.get("source") for entry in entries if entry.get("relation") != "shares")
        sources = {SOURCES: named} if (named := different([*passage.sources, *alike])) else {}
        origins = {} if passage.origins is None else {ORIGINS: str(passage.origins)}
        return {LISTED: entries, **sources, **origins, **left_out}

    def __len__(self) -> int:
        return len(self.shown)

    @overload
    def __getitem__(self, index: int) -> Passage: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Passage, ...]: ...
    def __getitem__(self, index: int | slice) -> Passage | tuple[Passage, ...]:
        return self.shown[index]


def _listed(metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a copy of the list that an earlier filter wrote, empty if there is none."""
    found = metadata.get(LISTED)
    return list(found) if isinstance(found, list) else []
