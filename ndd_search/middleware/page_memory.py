"""What a wrapped client remembers of its searches, in a cache that other clients and processes may share.

An entry names the tokens of what it was made from (see cache.Cache), as they were before its search began. It is used
while all of them are still the current ones:

- a document or a bulk that is written replaces the tokens of the indexes that the engine says it wrote to;
- any other write (a refresh, an alias, a deletion by query) replaces the token of everything in the cluster;
- both replace the token of the latest write, on which an entry depends whose target is a pattern.

A client that writes reads what it wrote, through whatever alias: it uses no entry from before its own last write.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import unquote

from ndd_search.middleware.origin import Origin, origin_of
from ndd_search.middleware.state import State
from ndd_search.paging.cache import Cache, FailureGuard, cache_key
from ndd_search.paging.entries import UNREADABLE, sealed, stream_of, stream_parts, unsealed
from ndd_search.rest.answers import Answer
from ndd_search.rest.request import Request

_TOKEN_SECONDS = 3600.0  # longer than a cache keeps pages: what an expired token vouched for is not used any more
_MOST_SEEN = 10_000  # tokens
_LATEST, _EVERYTHING = "the latest write", "everything"
_NOT_IN_A_NAME = set("*?,:<>")


@dataclass(frozen=True)
class Moment:
    """The tokens when a search began. latest: of the latest write. of: those that the target depends on, by key."""

    latest: bytes
    of: Mapping[bytes, bytes]


class Memory:
    """Pages and streams of one client. cache: None to remember nothing. Safe for threads."""

    def __init__(self, cache: Cache | None) -> None:
        self._cache, self._guarded = cache, FailureGuard()
        self._transport: Any = None
        self._origin = Origin(uuid.uuid4().bytes, uuid.uuid4().bytes)  # of a client that nothing is known of
        self._untold: dict[object, bytes] = {}  # keys of tokens to replace before the cache is used again
        # Tokens of the latest write that were current after our own last write; None before any write of our own.
        # Replaced as a whole by a write, so that who read the current token before it adds it to the former set.
        self._seen: set[bytes] | None = None

    def serve(self, transport: Any) -> None:
        """Remember for the client that has this transport."""
        if transport is not self._transport:
            self._transport, self._origin = transport, origin_of(transport)

    @property
    def caller(self) -> str:
        """Who the client is, for a key: equal for all that talk to the same addresses with the same credentials."""
        return self._origin.caller.hex()

    def moment(self, target: str) -> Moment | None:
        """What has been written up to now, for a search that begins; None where it cannot be remembered.

        target: the part of the search's path before "/_search", as in "/news,blogs".
        """
        if self._cache is None:
            return None
        with self._guarded():
            seen = self._seen
            self._tell(self._cache)
            names = _names(target)
            depends = [] if names is None else [self._key(name) for name in (_EVERYTHING, *names)]
            latest, *tokens = self._tokens(self._cache, [self._key(_LATEST), *depends])
            _add(seen, latest)
            return Moment(latest, dict(zip(depends or [self._key(_LATEST)], tokens or [latest], strict=True)))
        return None

    def recall_page(self, key: bytes | None) -> dict[str, Any] | None:
        """The finished page under a key, None for none; the caller may change it."""
        with self._guarded():
            if (found := self._recall(key)) is not None and isinstance(found[0], dict):
                return found[0]
        return None

    def recall_state(self, key: bytes | None) -> State | None:
        """What is known of a search under a key, None for nothing."""
        with self._guarded():
            found = self._recall(key)
            try:
                return None if found is None else _state_of(*found)
            except UNREADABLE:  # somebody else's, under a key and with a checksum of ours
                return None
        return None

    def remember_page(self, key: bytes | None, body: dict[str, Any], state: State, moment: Moment | None) -> None:
        """Keep a finished page. state: what it was made from. moment: before its search began."""
        if self._cache is not None and key is not None and moment is not None:
            with self._guarded():
                self._remember(self._cache, key, body, b"", state, moment)

    def remember_state(self, key: bytes | None, state: State, moment: Moment | None) -> None:
        """Keep what is known of a search, but for the client's own answer."""
        if self._cache is not None and key is not None and moment is not None:
            with self._guarded():
                self._remember(self._cache, key, *_state_parts(state), state, moment)

    def forget(self, written: Collection[str] | None) -> None:
        """Use nothing that was found before a write that is over now.

        written: the indexes and aliases that are known to be all that it changed; None for anything.
        """
        if self._cache is None:
            return
        for name in (_LATEST, *([_EVERYTHING] if written is None else written)):  # the latest first, see _remember
            self._untold[object()] = self._key(name)
        with self._guarded():
            self._tell(self._cache)
        self._seen = set()

    def _recall(self, key: bytes | None) -> tuple[Any, memoryview] | None:
        """Value and arrays under a key, as long as all the tokens are current that they depend on."""
        seen, cache = self._seen, self._cache
        if key is None or cache is None:
            return None
        self._tell(cache)
        entry = cache.get(key)
        found = None if entry is None else unsealed(key, entry)
        if found is None:
            return None
        try:
            (latest, tokens, value), arrays = found
            wanted = {bytes.fromhex(name): bytes.fromhex(token) for name, token in tokens.items()}
            since = bytes.fromhex(latest)
        except UNREADABLE:
            return None
        if seen is not None:
            _add(seen, cache.get_many([self._key(_LATEST)])[0])
            if since not in seen:
                return None
        return (value, arrays) if cache.get_many(list(wanted)) == list(wanted.values()) else None

    def _remember(self, cache: Cache, key: bytes, value: Any, arrays: bytes, state: State, moment: Moment) -> None:
        """Put an entry that depends on the moment, and on the indexes that the hits are in.

        What their tokens were at that moment is not known: they are the same if nothing was written in between.
        """
        of = dict(moment.of)
        if self._key(_LATEST) not in of:
            others = [one for one in map(self._key, _indexes_of(state)) if one not in of]
            of.update(zip(others, self._tokens(cache, others), strict=True))
            if others and cache.get_many([self._key(_LATEST)]) != [moment.latest]:
                return
        tokens = {name.hex(): token.hex() for name, token in of.items()}
        if (entry := sealed(key, [moment.latest.hex(), tokens, value], arrays)) is not None:
            cache.put(key, entry)

    def _tokens(self, cache: Cache, keys: list[bytes]) -> list[bytes]:
        """The current tokens; where there is none, which says nothing about the past, a new one is made."""
        found = cache.get_many(keys)
        return [self._renewed(cache, key) if token is None else token for key, token in zip(keys, found, strict=True)]

    def _tell(self, cache: Cache) -> None:
        """Replace the tokens of what this client has written to."""
        for mark, key in list(self._untold.items()):
            self._renewed(cache, key)
            self._untold.pop(mark, None)

    def _renewed(self, cache: Cache, key: bytes) -> bytes:
        token = uuid.uuid4().bytes
        cache.put(key, token, _TOKEN_SECONDS)
        return token

    def _key(self, name: str) -> bytes:
        """Of the token of an index in this cluster, or of what no index can be called."""
        return cache_key("token", self._origin.cluster.hex(), name)


def indexes_written(request: Request, answer: Answer | None) -> set[str] | None:
    """The indexes that a write changed, under all the names that are known; None where there may be others.

    answer: None where there is none. Only the answers for documents and bulks say to which index an alias has led.
    """
    parts = request.path.split("/")
    names = _names(f"/{parts[1]}") if len(parts) > 2 else []
    body: Any = answer.body if answer is not None and answer.ok else None
    try:
        if names is None or not any(part in ("_doc", "_create", "_update", "_bulk") for part in parts[1:3]):
            return None
        items = [one for item in body["items"] for one in item.values()] if parts[-1] == "_bulk" else [body]
        return {*names, *(str(one["_index"]) for one in items)}
    except UNREADABLE:
        return None


def _names(target: str) -> list[str] | None:
    """The names in a target, None where some cannot be told: patterns, everything, other clusters, dates."""
    names = unquote(target.lstrip("/")).split(",")
    usual = all(name and name[0] not in "-_" and not _NOT_IN_A_NAME.intersection(name) for name in names)
    return names if usual else None


def _indexes_of(state: State) -> set[str]:
    hits = (*state.stream.hits, *state.documents.values())
    return {name for hit in hits if isinstance(name := hit.get("_index"), str)}


def _add(seen: set[bytes] | None, token: bytes | None) -> None:
    if seen is not None and token is not None:
        if len(seen) >= _MOST_SEEN:
            seen.clear()  # which makes what depends on them stale
        seen.add(token)


def _state_parts(state: State) -> tuple[dict[str, Any], bytes]:
    """A state as a value and arrays; a document that is the stream's own hit is written once."""
    plain = {
        one.name: getattr(state, one.name) for one in fields(state) if one.name not in ("stream", "documents", "raw")
    }
    stream, arrays = stream_parts(state.stream)
    places = dict(zip(state.stream.ranks.tolist(), state.stream.hits, strict=True))
    shared = [rank for rank, hit in state.documents.items() if places.get(rank) is hit]
    own = [[rank, hit] for rank, hit in state.documents.items() if places.get(rank) is not hit]
    return {"state": plain, "stream": stream, "shared": shared, "documents": own}, arrays


def _state_of(value: dict[str, Any], arrays: memoryview) -> State:
    """The state that _state_parts took apart. Raises one of UNREADABLE for what cannot be one."""
    stream = stream_of(value["stream"], arrays)
    places = dict(zip(stream.ranks.tolist(), stream.hits, strict=True))
    documents = {rank: places[rank] for rank in value["shared"]} | dict(value["documents"])
    state = State(**value["state"], stream=stream, documents=documents)
    hits = (*stream.hits, *documents.values())
    if not all(isinstance(one, dict) for one in (state.envelope, value["state"]["envelope"]["hits"], *hits)):
        raise ValueError("this is no state of a search")
    return state
