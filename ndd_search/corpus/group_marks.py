"""Groups written into an index: under `ndd`, the fields `group`, `group_size`, `leads` and `judged` of every document.

A search collapses on `ndd.group`, or counts unique documents by it. `group` is the id of the leader; every document has
it, those that are alone too, because an engine collapses documents without a value into one. `judged` is the
fingerprint of the text that was grouped. A document that has another text by now is left alone; if its text changes
after it was marked, doctor and a backfill find it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any

from ndd_search.core.sketching.fits_text import still_fit
from ndd_search.errors import IndexUnusable
from ndd_search.indexing.concurrent_updates import Rewriter, Tally
from ndd_search.indexing.index_facts import look_up
from ndd_search.indexing.rate_and_retries import Retry
from ndd_search.indexing.scan import Hits
from ndd_search.search.rest.mapping import kept_out_of_source

_PROPERTIES = {
    "group": {"type": "keyword"},
    "group_size": {"type": "integer"},
    "leads": {"type": "boolean"},
    "judged": {"type": "keyword", "index": False, "doc_values": False},
}


@dataclass(frozen=True)
class _Marking:
    """Gives documents their marks.

    wanted: marks by id; other documents are left alone. found: the ids in `wanted` that the index holds.
    """

    wanted: Mapping[str, Mapping[str, Any]]
    field: str
    found: set[str] = dataclass_field(default_factory=set)

    @property
    def search(self) -> Mapping[str, Any]:
        """Fetches the whole `_source`, because an update could change its numbers."""
        return {"query": {"match_all": {}}, "_source": True}

    def changes(self, hits: Hits) -> Sequence[Mapping[str, Any] | str | None]:
        judged = [self.wanted.get(hit["_id"], {}).get("judged") for hit in hits]
        fits = still_fit(judged, [hit.get("_source", {}) for hit in hits])
        return [self._change(hit, fit) for hit, fit in zip(hits, fits, strict=True)]

    def _change(self, hit: Mapping[str, Any], fits: bool) -> Mapping[str, Any] | str | None:
        wanted, stored = self.wanted.get(hit["_id"]), hit.get("_source", {}).get(self.field) or {}
        if wanted is None:
            return None
        self.found.add(hit["_id"])
        if not isinstance(stored, Mapping):
            return f"its field {self.field} holds a value of your own"
        if not fits:
            return "the text has changed since it was grouped; make the groups again"
        if {name: stored.get(name) for name in _PROPERTIES} == wanted:
            return None
        return {"doc": {self.field: wanted}}


def mark(
    client: Any,
    index: str,
    rows: Iterable[Mapping[str, Any]],
    *,
    field: str = "ndd",
    rate: float | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> Tally:
    """Write groups into an index, where they are not there yet; what somebody changes meanwhile is met again.

    rows:  with document, group and size, as Groups.rows gives them, and with fingerprint: a document that has another
           text is left alone. Rows without a fingerprint are not compared.
    field: the object that takes the marks.
    rate:  documents a second, None for as many as the server takes.
    Documents of the index that are in no row are left alone, also marks of theirs. `left` of the tally counts documents
    with another text, and those of which an update would change more: numbers that the engine rounds, or an own value
    under `field`.
    Raises IndexUnusable if every update would lose fields, because _source leaves them out, or if none of the documents
    is in the index.
    """
    _check_source(client, index, field)
    wanted = {
        str(row["document"]): {
            "group": str(row["group"]),
            "group_size": int(row["size"]),
            "leads": row.get("leads", row["document"] == row["group"]),
            "judged": str(row.get("fingerprint") or ""),
        }
        for row in rows
    }
    client.indices.put_mapping(
        index=index, body={"properties": {field: {"type": "object", "dynamic": False, "properties": _PROPERTIES}}}
    )
    marking = _Marking(wanted, field)
    tally = _rewriter(client, index, rate, on_progress).follow(marking)
    if wanted and not marking.found:
        what = f"it holds none of the documents of the groups, such as {next(iter(wanted))!r}"
        raise IndexUnusable(index, what, "name the index whose ids the groups hold; nothing was written")
    return tally


def _check_source(client: Any, index: str, field: str) -> None:
    for facts in look_up(client, index):
        if lost := kept_out_of_source(facts.mapping, field):
            what = f"_source leaves out {', '.join(lost)}, which every update of a document would lose"
            raise IndexUnusable(facts.name, what, "write the groups to a file instead; nothing was changed")


def _rewriter(client: Any, index: str, rate: float | None, on_progress: Callable[[int], None] | None) -> Rewriter:
    told = on_progress or (lambda count: None)
    return Rewriter(client, index, size=1_000, slices=2, retry=Retry(rate), on_progress=told)
