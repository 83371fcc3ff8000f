"""Reads every hit of a query on a snapshot of an index, in pages and slices.

It uses a point in time and `search_after` on `_shard_doc` if the server has them (Elasticsearch, OpenSearch 3.3), else
scroll.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from ndd_search.errors import IndexUnusable
from ndd_search.indexing.rate_and_retries import Retry, status_of
from ndd_search.search.clients.wrap import unwrap
from ndd_search.search.flow.client_settings import options
from ndd_search.search.rest.point_in_time import TIEBREAK

_KEEP = "15m"  # keep-alive: the longest time between two pages
_WHOLE = {"allow_partial_search_results": False}  # an empty page must mean the end, not a failed shard
_OF_A_PAGE = ("slice", "pit", "sort", "search_after")

ODD = "ndd_search: odd"  # a key of such hits, beside "_source"
_COMMENTS = "its JSON holds comments, which an update would drop"
_NOT_UTF_8 = "it holds bytes that are not UTF-8: index it again"

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

        A hit whose JSON holds comments comes without them, and one with bytes that are not UTF-8 without its `_source`.
        Both have a sentence about it under ODD.
        """
        sliced = {"slice": {"id": part[0], "max": part[1]}} if part[1] > 1 else {}
        body = {**body, **sliced, "size": size, "track_total_hits": False}
        return self._by_scroll(body) if self.point is None else self._by_point(body, self.point)

    def _by_point(self, body: dict[str, Any], point: str) -> Iterator[Hits]:
        page = {**body, "sort": list(TIEBREAK)}
        while True:
            page["pit"] = {"id": point, "keep_alive": _KEEP}
            response, hits = self.read(page)
            if not (found := response["hits"]["hits"]):
                return
            yield hits
            point = response.get("pit_id", point)
            page["search_after"] = found[-1]["sort"]

    def _by_scroll(self, body: dict[str, Any]) -> Iterator[Hits]:
        """Read which documents there are, and each page of them as they are then: a scroll gives no page again."""
        which = {**body, "sort": ["_doc"], "_source": False, "track_total_hits": True}  # a scroll requires the total
        response = self._answer(self.client.search, index=self.index, body=which, scroll=_KEEP, **_WHOLE)
        try:
            while hits := response["hits"]["hits"]:
                if failures := response["_shards"].get("failures"):
                    raise IndexUnusable(self.index, f"a shard failed while it was read ({failures[0]})", "begin again")
                yield self._documents(body, hits)
                scroll = {"scroll_id": response["_scroll_id"], "scroll": _KEEP}
                response = self._answer(self.client.scroll, body=scroll)
        finally:
            with suppress(Exception):  # see _close
                self.client.clear_scroll(body={"scroll_id": response["_scroll_id"]})

    def read(self, body: dict[str, Any]) -> tuple[Any, Hits]:
        """Return the answer to a search, and its hits with their documents, also if no client can read one of these.

        The hits are then fewer than those of the answer if documents are gone meanwhile.
        """
        try:
            response = self._search(body)
        except Exception as error:
            _check_unreadable(error)
        else:
            return response, response["hits"]["hits"]
        response = self._search({**body, "_source": False})
        return response, [one for hit in response["hits"]["hits"] for one in self._documents(body, [hit])]

    def _documents(self, body: dict[str, Any], hits: Hits) -> Hits:
        """Return these hits of a search with their documents as they are now, without those that are gone."""
        found = {_key(hit): hit for hit in hits}
        which = {"ids": {"values": [hit["_id"] for hit in hits]}}
        where = {"terms": {"_index": sorted({hit["_index"] for hit in hits})}}
        filters = [body["query"], which, where, *([_with_routing(hits[0])] if len(hits) == 1 else [])]
        page = {name: value for name, value in body.items() if name not in _OF_A_PAGE}
        page |= {"query": {"bool": {"filter": filters}}, "size": len(hits)}
        try:
            response = self._search(page)
        except Exception as error:
            _check_unreadable(error)
            response = None if len(hits) > 1 else self._odd(page, error)
        given = [] if response is None else response["hits"]["hits"]
        known = [{**found[key], **hit} for hit in given if (key := _key(hit)) in found]
        if len(hits) > 1 and (response is None or len(known) < len(given)):  # another one of an id took a place
            return [one for hit in hits for one in self._documents(body, [hit])]
        return known

    def _odd(self, body: dict[str, Any], error: Exception) -> Any:
        """Return the answer to a search for one document that no client can read. error: the client's."""
        odd = _NOT_UTF_8 if any(isinstance(one, UnicodeDecodeError) for one in _causes(error)) else _COMMENTS
        try:
            response = self._search({**body, "_source": {"excludes": [ODD]}})  # a filter leaves comments out
        except Exception as refused:  # the engine cannot read it either
            _check_unreadable(refused)
            response, odd = self._search({**body, "_source": False}), _NOT_UTF_8
        for hit in response["hits"]["hits"]:
            hit[ODD] = odd
        return response

    def _search(self, body: dict[str, Any]) -> Any:
        where = {} if "pit" in body else {"index": self.index}
        return self._answer(self.client.search, body=body, **where, **_WHOLE)

    def _answer(self, request: Callable[..., Any], **arguments: Any) -> Any:
        with options(enabled=False):
            return self.retry.call(partial(request, **arguments))


def _key(hit: Mapping[str, Any]) -> tuple[Any, ...]:
    return hit["_index"], hit["_id"], hit.get("_routing")


def _with_routing(hit: Mapping[str, Any]) -> dict[str, Any]:
    """Return a query that tells a document from others of its id in its index."""
    if "_routing" in hit:
        return {"term": {"_routing": hit["_routing"]}}
    return {"bool": {"must_not": [{"exists": {"field": "_routing"}}]}}


def _check_unreadable(error: Exception) -> None:
    """Raise any error but that of a document that is no JSON, or no UTF-8.

    An engine that has to parse such a document, because `_source` is filtered, refuses the search.
    """
    is_unreadable = any(isinstance(one, json.JSONDecodeError | UnicodeDecodeError) for one in _causes(error))
    if not is_unreadable and type(error).__name__ != "SerializationError" and "arse" not in str(error):
        raise error


def _causes(error: Exception) -> tuple[Any, ...]:
    """Return what may be the causes of an error of a client."""
    return (*error.args, *getattr(error, "errors", ()), error.__cause__, error.__context__)


def sampled(client: Any, index: str, body: Mapping[str, Any], size: int) -> Hits:
    """Return at most `size` hits of a search: half of them the documents written last, the others at random.

    A program that changed texts and left their sketches may have written the last documents, and few others.
    """
    now = Snapshot(client, index, None, Retry())
    _, last = now.read({**body, "sort": [{"_seq_no": "desc"}], "size": (size + 1) // 2})
    others = {"filter": [body["query"]], "must_not": [{"ids": {"values": [hit["_id"] for hit in last]}}]}
    chance = {"query": {"bool": others}, "random_score": {}, "boost_mode": "replace"}
    _, rest = now.read({**body, "query": {"function_score": chance}, "size": size - len(last)})
    return [hit for hit in (*last, *rest) if "_source" in hit]


@contextmanager
def snapshot(client: Any, index: str, retry: Retry) -> Iterator[Snapshot]:
    """Yield a snapshot of an index; it is released at the end of the block."""
    point = retry.call(partial(open_point, client, index))
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


def with_json(client: Any, parse: Callable[[bytes | str], Any]) -> Any:
    """Return an unwrapped client on the same connections that parses JSON with a function.

    client: of elasticsearch-py or opensearch-py, synchronous, wrapped or not; it is not changed.
    parse:  raises ValueError for what is no JSON; the client then raises its own error.
    """
    reader = unwrap(copy.copy(client))
    attribute = "_transport" if hasattr(reader, "_transport") else "transport"
    transport = copy.copy(getattr(reader, attribute))
    loader = "serializers" if hasattr(transport, "serializers") else "deserializer"
    setattr(transport, loader, _Loader(getattr(transport, loader), parse))
    setattr(reader, attribute, transport)
    return reader


class _Loader:
    """Replaces a client's deserializers: parses JSON itself and delegates everything else."""

    def __init__(self, inner: Any, parse: Callable[[bytes | str], Any]) -> None:
        self._inner, self._parse = inner, parse

    def __getattr__(self, name: str) -> Any:
        if name == "_inner":  # not set yet while copy.copy creates the object
            raise AttributeError(name)
        return getattr(self._inner, name)

    def loads(self, data: bytes | str, mimetype: str | None = None) -> Any:
        """Deserialize a response like the client, but JSON with `parse`."""
        if not data or "json" not in (mimetype or "json") or "ndjson" in (mimetype or ""):
            return self._inner.loads(data, mimetype)
        try:
            return self._parse(data)
        except ValueError:
            return self._inner.loads(data, mimetype)  # raises the error of the client
