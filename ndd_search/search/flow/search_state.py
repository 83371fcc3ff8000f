"""The state of a search between its requests. It is cached for the next page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from ndd_search.core.immutable import dataclass
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.paging.stream import NO_HITS, Stream
from ndd_search.search.rest.read_answer import Hit

LISTED = "list"  # `State.table` of a table that is counted in the stream itself
NOT_STORED = ("stream", "documents", "raw", "frequency_table")  # fields that a cache stores in another way, or not

STALE = (
    "a document has the sketch of an earlier text, and the page compares its text anew: {}; run ndd-search backfill "
    "... --recheck, and name the text fields where the index is written (docs/indexing.md)"
)


@dataclass(frozen=True)
class State:
    """The state of a search. envelope: the first answer without its hits. raw: the client's own first answer.

    documents: hits with everything the user asked for, by rank; the hits of the stream may lack it.
    stopped: why no more hits are fetched, "" if they may be.
    degraded: other reasons for a degraded page, "" for none. partial: whether the first answer is partial.
    lasting: whether the state may be cached: nothing timed out, failed or was cut short.
    table: digest of the frequency table for all hits of the stream; LISTED for one counted in the stream's first
           window, "" for none. frequency_table: that table; for LISTED it is counted when hits are added.
    groups: the number of groups of the whole result (see `count_groups`), None if it is not asked for. facets: the
            buckets of facets counted over groups (see `facet_count`), by facet; None before they are counted.
    total: `hits.total` where it was counted beside the hits, None otherwise. examined: the stream that it was counted
           in. before: number of hits on earlier pages of a cursor.
    """

    stream: Stream = NO_HITS
    documents: Mapping[int, Hit] = field(default_factory=dict)
    envelope: dict[str, Any] | None = None
    raw: Any = None
    stopped: str = ""
    degraded: str = ""
    partial: bool = False
    lasting: bool = True
    table: str = ""
    frequency_table: FrequencyTable | None = None
    groups: dict[str, Any] | None = None
    facets: dict[str, Any] | None = None
    total: dict[str, Any] | None = None
    examined: Stream | None = None
    before: int = 0
    stale: str = ""

    def told_stale(self, hit: Hit) -> State:
        """Return the state with a sentence about a document whose sketch is not of its text; the first one stays."""
        return replace(self, stale=self.stale or STALE.format(f"{hit['_index']}/{hit.get('_id')}"))

    def stop(self, reason: str) -> State:
        """Return the state of a search that fetches no more hits. It is not cached."""
        return replace(self, stopped=reason, lasting=False)
