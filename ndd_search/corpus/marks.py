"""Groups written into an index: under `ndd`, the fields `group`, `group_size` and `leads` of every document.

A search collapses on `ndd.group`, or counts unique documents by it. `group` is the id of the leader; every document has
it, those that are alone too, because an engine collapses documents without a value into one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ndd_search.indexing.retry import Retry
from ndd_search.indexing.rewrite import Rewriter, Tally
from ndd_search.indexing.scan import Hits
from ndd_search.sketching.field import holds_marks, is_sketch_object

_PROPERTIES = {"group": {"type": "keyword"}, "group_size": {"type": "integer"}, "leads": {"type": "boolean"}}


@dataclass(frozen=True)
class _Marking:
    """Gives documents their marks. wanted: by id; other documents are left alone."""

    wanted: Mapping[str, Mapping[str, Any]]
    field: str

    @property
    def search(self) -> Mapping[str, Any]:
        return {"query": {"match_all": {}}, "_source": [f"{self.field}.{name}" for name in _PROPERTIES]}

    def changes(self, hits: Hits) -> Sequence[Mapping[str, Any] | None]:
        return [self._change(hit) for hit in hits]

    def _change(self, hit: Mapping[str, Any]) -> Mapping[str, Any] | None:
        wanted = self.wanted.get(hit["_id"])
        if wanted is None or hit.get("_source", {}).get(self.field) == wanted:
            return None
        return {"doc": {self.field: wanted}}


@dataclass(frozen=True)
class _Removal:
    """Takes the marks away."""

    field: str

    @property
    def search(self) -> Mapping[str, Any]:
        return {"query": {"exists": {"field": f"{self.field}.group"}}, "_source": [self.field]}

    def changes(self, hits: Hits) -> Sequence[Mapping[str, Any] | str]:
        return [self._change(hit) for hit in hits]

    def _change(self, hit: Mapping[str, Any]) -> Mapping[str, Any] | str:
        stored = hit.get("_source", {}).get(self.field)
        if not is_sketch_object(stored) and not (isinstance(stored, Mapping) and holds_marks(stored)):
            return f"its field {self.field} holds no marks of a group"
        nothing = dict.fromkeys(_PROPERTIES)  # a script could remove the names, but not every server runs scripts
        return {"doc": {self.field: nothing}}


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

    rows:  with document, group and size, as Groups.rows gives them.
    field: the object that takes the marks.
    rate:  documents a second, None for as many as the server takes.
    Documents of the index that are in no row are left alone, also marks of theirs.
    """
    wanted = {
        str(row["document"]): {
            "group": str(row["group"]),
            "group_size": int(row["size"]),
            "leads": row["document"] == row["group"],
        }
        for row in rows
    }
    client.indices.put_mapping(
        index=index, body={"properties": {field: {"type": "object", "dynamic": False, "properties": _PROPERTIES}}}
    )
    return _rewriter(client, index, rate, on_progress).repeat(_Marking(wanted, field))


def unmark(client: Any, index: str, *, field: str = "ndd", rate: float | None = None) -> Tally:
    """Set the marks of `mark` to null again, which no search finds; whatever else the object holds stays.

    Documents with other values under these names are left alone, and counted in `left` of the tally.
    """
    return _rewriter(client, index, rate, None).repeat(_Removal(field))


def _rewriter(client: Any, index: str, rate: float | None, on_progress: Callable[[int], None] | None) -> Rewriter:
    told = on_progress or (lambda count: None)
    return Rewriter(client, index, size=1_000, slices=2, retry=Retry(rate), on_progress=told)
