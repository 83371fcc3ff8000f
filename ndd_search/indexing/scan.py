"""Reads every hit of a query on a snapshot of an index, in pages and slices.

It uses a point in time and `search_after` on `_shard_doc` if the server has them (Elasticsearch, OpenSearch 3.3), else
scroll.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from ndd_search.indexing.retry import Retry, status_of
from ndd_search.search.rest.point_in_time import TIEBREAK

_KEEP = "15m"  # keep-alive: the longest time between two pages
_WHOLE = {"allow_partial_search_results": False}  # an empty page must mean the end, not a failed shard

COMMENTED = "ndd_search: comments"  # a key of such hits, beside "_source"

Hits = list[dict[str, Any]]


@dataclass(frozen=True)
class Snapshot:
    """A snapshot of an index. point: the id of the point in time, None to use scroll."""

    client: Any
    index: str
    point: str | None
    retry: Retry

    def pages(self, body: Mapping[str, Any], size: int, part: tuple[int, int] = (0, 1)) -> Iterator[Hits]:
        """Yield the hits of a search in pages of `size`. part: (i, n) for the i-th of n slices.

        A hit whose JSON holds comments comes without them, and has a sentence about it under COMMENTED; not by scroll.
        """
        sliced = {"slice": {"id": part[0], "max": part[1]}} if part[1] > 1 else {}
        body = {**body, **sliced, "size": size, "track_total_hits": False}
        return self._by_scroll(body) if self.point is None else self._by_point(body, self.point)

    def _by_point(self, body: dict[str, Any], point: str) -> Iterator[Hits]:
        page = {**body, "sort": list(TIEBREAK)}
        while True:
            page["pit"] = {"id": point, "keep_alive": _KEEP}
            try:
                response = self.retry.call(partial(self.client.search, body=page, **_WHOLE))
            except Exception as error:
                if type(error).__name__ != "SerializationError":  # of either client: it is no JSON
                    raise
                if page["size"] > 1:  # look for the document
                    page["size"] //= 2
                    continue
                filtered = {**page, "_source": {"excludes": [COMMENTED]}}  # what the engine writes has no comments
                response = self.retry.call(partial(self.client.search, body=filtered, **_WHOLE))
                for hit in response["hits"]["hits"]:
                    hit[COMMENTED] = "its JSON holds comments, which an update would drop"
            if not (hits := response["hits"]["hits"]):
                return
            yield hits
            point = response.get("pit_id", point)
            page |= {"search_after": hits[-1]["sort"], "size": min(2 * page["size"], body["size"])}

    def _by_scroll(self, body: dict[str, Any]) -> Iterator[Hits]:
        body = {**body, "sort": ["_doc"], "track_total_hits": True}  # a scroll requires the total
        first = partial(self.client.search, index=self.index, body=body, scroll=_KEEP, **_WHOLE)
        response = self.retry.call(first)
        try:
            while hits := response["hits"]["hits"]:
                yield hits
                request = {"scroll_id": response["_scroll_id"], "scroll": _KEEP}
                response = self.retry.call(partial(self.client.scroll, body=request))
        finally:
            with suppress(Exception):  # see _close
                self.client.clear_scroll(body={"scroll_id": response["_scroll_id"]})


@contextmanager
def snapshot(client: Any, index: str, retry: Retry) -> Iterator[Snapshot]:
    """Yield a snapshot of an index; it is released at the end of the block."""
    point = open_point(client, index)
    try:
        yield Snapshot(client, index, point, retry)
    finally:
        if point is not None:
            _close(client, point)


def open_point(client: Any, index: str) -> str | None:
    """Open a point in time; None if the server has none, or cannot page through it."""
    try:
        if hasattr(client, "open_point_in_time"):
            point: str = client.open_point_in_time(index=index, keep_alive=_KEEP)["id"]
        else:
            point = client.create_pit(index=index, params={"keep_alive": _KEEP})["pit_id"]
    except Exception as error:
        if status_of(error) in (400, 403, 404, 405):  # an old server, or no permission: use scroll
            return None
        raise
    try:
        client.search(body={"pit": {"id": point, "keep_alive": _KEEP}, "sort": ["_shard_doc"], "size": 0})
    except Exception as error:
        _close(client, point)
        if status_of(error) == 400:  # OpenSearch before 3.3 has no _shard_doc
            return None
        raise
    return point


def _close(client: Any, point: str) -> None:
    """Release a point in time. An error here would hide the one that ended the reading; the point expires anyway."""
    with suppress(Exception):
        if hasattr(client, "close_point_in_time"):
            client.close_point_in_time(id=point)
        else:
            client.delete_pit(body={"pit_id": [point]})
