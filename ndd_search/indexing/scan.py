"""Reads every hit of a query on a snapshot of an index, in pages and slices.

It uses a point in time and `search_after` on `_shard_doc` if the server has them (Elasticsearch, OpenSearch 3.3), else
scroll.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from ndd_search.indexing.rate_and_retries import Retry, status_of
from ndd_search.search.clients.wrap import unwrap
from ndd_search.search.flow.client_settings import options
from ndd_search.search.rest.point_in_time import TIEBREAK

_KEEP = "15m"  # keep-alive: the longest time between two pages
_SAME_ID, _MOST = 1_000, 10_000  # documents of one id in an index, whose routing differs; hits of a search by default
_WHOLE = {"allow_partial_search_results": False}  # an empty page must mean the end, not a failed shard

ODD = "ndd_search: odd"  # a key of such hits, beside "_source"
_COMMENTS = "its JSON holds comments, which an update would drop"
_NOT_UTF_8 = "it holds bytes that are not UTF-8: index it again"
_STRING = r'("(?:[^"\\]|\\.)*")'
_SCROLL_ID = re.compile(f'"_scroll_id":{_STRING}')
_DOCUMENT = re.compile(rf'"_index":{_STRING}(?:,"_type":"\w+")?,"_id":{_STRING}')

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
        body = {**body, "sort": ["_doc"], "track_total_hits": True}  # a scroll requires the total
        request = partial(self.client.search, index=self.index, body=body, scroll=_KEEP, **_WHOLE)
        scroll = ""
        try:
            while True:
                try:
                    response = self.retry.call(request)
                    scroll, hits = response["_scroll_id"], response["hits"]["hits"]
                except Exception as error:  # a scroll does not give a page again
                    text = _unreadable(error)
                    if not (named := _SCROLL_ID.search(text)):
                        raise
                    scroll = json.loads(named[1])
                    found = [(json.loads(index), json.loads(id)) for index, id in _DOCUMENT.findall(text)]
                    hits = self._by_id(body, found)
                if not hits:
                    return
                yield hits
                request = partial(self.client.scroll, body={"scroll_id": scroll, "scroll": _KEEP})
        finally:
            with suppress(Exception):  # see _close
                self.client.clear_scroll(body={"scroll_id": scroll})

    def read(self, body: dict[str, Any]) -> tuple[Any, Hits]:
        """Return the answer to a search, and its hits, also if some are documents that no client can read."""
        try:
            response = self._search(body)
        except Exception as error:
            _unreadable(error)
            response = self._search({**body, "_source": False})
            found = [(hit["_index"], hit["_id"]) for hit in response["hits"]["hits"]]
            return response, self._by_id(body, found)
        return response, response["hits"]["hits"]

    def _by_id(self, body: dict[str, Any], documents: list[tuple[str, str]]) -> Hits:
        """Read documents, by index and id, as they are now: in halves, until those that are no JSON are alone."""
        which = {"ids": {"values": [id for _, id in documents]}}
        where = {"terms": {"_index": sorted({index for index, _ in documents})}}
        size = min(len(documents) + _SAME_ID, _MOST)
        page = {**body, "query": {"bool": {"filter": [body["query"], which, where]}}, "size": size}
        for name in ("slice", "pit", "sort", "search_after"):
            page.pop(name, None)
        try:
            response = self._search(page)
        except Exception as error:
            _unreadable(error)
            response = None if len(documents) > 1 else self._odd(page, error)
        if response is None or (len(documents) > 1 and len(response["hits"]["hits"]) == size):  # some may be missing
            half = len(documents) // 2
            return self._by_id(body, documents[:half]) + self._by_id(body, documents[half:])
        wanted = set(documents)
        return [hit for hit in response["hits"]["hits"] if (hit["_index"], hit["_id"]) in wanted]

    def _search(self, body: dict[str, Any]) -> Any:
        where = {} if "pit" in body else {"index": self.index}
        with options(enabled=False):
            return self.retry.call(partial(self.client.search, body=body, **where, **_WHOLE))

    def _odd(self, body: dict[str, Any], error: Exception) -> Any:
        """Return the answer to a search for one document that no client can read. error: the client's."""
        odd = _NOT_UTF_8 if any(isinstance(one, UnicodeDecodeError) for one in _causes(error)) else _COMMENTS
        try:
            response = self._search({**body, "_source": {"excludes": [ODD]}})
        except Exception as refused:  # the engine cannot read it either
            _unreadable(refused)
            response, odd = self._search({**body, "_source": False}), _NOT_UTF_8
        for hit in response["hits"]["hits"]:
            hit[ODD] = odd
        return response


def _unreadable(error: Exception) -> str:
    """Return the text of an answer that is no JSON, or no UTF-8; raises any other error.

    An engine that has to parse such a document, because `_source` is filtered, refuses the search.
    """
    causes = _causes(error)
    if text := next((one.doc for one in causes if isinstance(one, json.JSONDecodeError)), ""):
        return text
    if coded := [one for one in causes if isinstance(one, UnicodeDecodeError)]:
        return coded[0].object.decode(errors="replace")
    if type(error).__name__ != "SerializationError" and "arse" not in str(error):  # of either client; failed to parse
        raise error
    return ""


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
    reader = copy.copy(client)
    attribute = "_transport" if hasattr(reader, "_transport") else "transport"
    setattr(reader, attribute, copy.copy(getattr(reader, attribute)))  # unwrapping may change the transport itself
    transport = copy.copy(getattr(unwrap(reader), attribute))
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
