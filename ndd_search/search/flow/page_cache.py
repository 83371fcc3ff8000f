"""Stores pages and streams of a wrapped client in a cache that other clients and processes may share.

An entry holds the tokens of the indexes that it was made from (see cache.Cache), as they were when its search began. It
is valid while all of them are current:

- a written document or bulk replaces the tokens of the indexes that the engine reports as written;
- any other write (a refresh, an alias, a deletion by query) replaces the token of the whole cluster;
- both replace the token of the latest write. Entries whose target is a pattern depend on that token.

A client always reads its own writes, through any alias: it uses no entry from before its own last write.

A cached page costs one round trip to a cache in a server: the entry and the tokens that it probably depends on are read
together. If that cache has locks (see cache.SharedCache), one process at a time extends a stream.
"""

from __future__ import annotations

import platform
import uuid
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import lru_cache, partial
from typing import Any
from urllib.parse import unquote

from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.paging.cache import Cache, FailureGuard, MemoryCache, SharedCache, cache_key, is_shared
from ndd_search.core.paging.cache_entries import UNREADABLE, sealed, stream_of, stream_parts, unsealed
from ndd_search.search.flow.search_state import LISTED, NOT_STORED, State
from ndd_search.search.rest.read_answer import Answer, Hit
from ndd_search.search.rest.read_request import Request, identifying

_TOKEN_SECONDS = 3600.0  # longer than a cache keeps pages; entries of an expired token are invalid
_MOST_TOKENS = 10_000
_MOST_TARGETS = 1_000  # whose further tokens are remembered
LOCK_SECONDS = 5.0  # after which a process that holds a lock is taken for dead
_NO_LOCK = b""  # the token of a cache without locks, or one that fails
_LATEST, _EVERYTHING = "the latest write", "everything"  # names of tokens that no index can have
_NOT_IN_A_NAME = set("*?,:<>")
_STORED_AS_IT_IS = [one.name for one in fields(State) if one.name not in NOT_STORED]

Made = dict[bytes, State | dict[str, Any]]  # by key: the state of a search, or a finished page


@dataclass(frozen=True)
class Moment:
    """The tokens when a search began, by key. latest: of the latest write.

    depends: those of its target, later also those of the indexes of its hits. They were unknown then; if nothing was
    written since, they are the current ones.
    """

    latest: bytes
    depends: dict[bytes, bytes]


class Memory:
    """Pages and streams of one client. cache: None to store nothing. Thread-safe.

    caller:    the client's identity in keys, equal for clients with the same addresses and credentials.
    has_locks: whether processes that share the cache can wait for one another.
    Where the cache fails, a block `with self._guarded` ends, and the method continues after it as if nothing was found.
    """

    def __init__(self, cache: Cache | None) -> None:
        self._cache, self._guarded = cache, FailureGuard()
        self._transport: Any = None
        self._use(Origin(uuid.uuid4().bytes, uuid.uuid4().bytes))  # of an unknown client
        # Keys of tokens to replace before the cache is used again. Each write has marks of its own, because another
        # write of the same index may end while its token is replaced.
        self._to_replace: dict[object, bytes] = {}
        # Tokens of the latest write, by any client, that were current after our own last write; None before any write
        # of our own. Our write replaces the whole set, so a search that began before it adds its token to the old set.
        self._since_own_write: set[bytes] | None = None
        self._behind_alias: dict[str, list[bytes]] = {}  # by target: keys of tokens of the indexes behind it
        self._shared: SharedCache | None = cache if cache is not None and is_shared(cache) else None
        self.has_locks, self._own = self._shared is not None, type(cache) is MemoryCache
        self._sender: tuple[Any, str] = (), ""  # see `sender`

    def serve(self, transport: Any) -> None:
        """Use the identity of the client that has this transport."""
        if transport is not self._transport:
            self._use(origin_of(transport))
            self._transport = transport  # last: from then on other threads rely on the origin

    def _use(self, origin: Origin) -> None:
        self.caller, self._cluster = origin.caller.hex(), origin.cluster
        self._key = partial(_token_key, origin.cluster)  # of the token of an index, or of a name that no index can have
        self._latest = self._key(_LATEST)

    @property
    def sender(self) -> str:
        """A hash of the credentials that connections of the client hold, "" for none. They may change at any time."""
        held, (known, sender) = _held_by(self._transport), self._sender
        if held != known:
            named = [{name.lower(): text for name, text in one.items()} if type(one) is dict else one for one in held]
            plain = [identifying(one) if type(one) is dict else one for one in named if one]
            texts = sorted({repr(one) for one in plain}) if _is_comparable(plain) else [uuid.uuid4().hex]
            sender = cache_key("sender", texts).hex() if plain else ""
            self._sender = held, sender
        return sender

    def moment(self, target: str) -> Moment | None:
        """Return the current tokens for a search that begins, None if it cannot be cached.

        target: the part of the search's path before "/_search", as in "/news,blogs".
        """
        if self._cache is None:
            return None
        with self._guarded:
            since_own_write = self._since_own_write
            if self._to_replace:
                self._replace_tokens(self._cache)
            keys = _token_keys(self._cluster, target)
            latest, *tokens = self._tokens(self._cache, [self._latest, *keys])
            if since_own_write is not None:
                _add(since_own_write, latest)
            return Moment(latest, dict(zip(keys or (self._latest,), tokens or [latest], strict=True)))
        return None

    def recall_page(self, key: bytes | None, target: str) -> dict[str, Any] | None:
        """Return the finished page under a key, None if there is none. The caller may change it. target: as above."""
        if key is None:
            return None
        with self._guarded:
            if (found := self._recall(key, target)) is not None and isinstance(found[0], dict):
                return found[0]
        return None

    def recall_state(self, key: bytes | None, target: str) -> State | None:
        """Return the state of a search under a key, None if there is none."""
        if key is None:
            return None
        with self._guarded:
            found = self._recall(key, target)
            try:
                return None if found is None else _state_of(*found)
            except UNREADABLE:  # written by another program under a valid key and checksum
                return None
        return None

    def remember(self, made: Made, hits: Iterable[Hit], moment: Moment) -> None:
        """Store what one search has made, the state without the client's own answer.

        hits: that these hold. moment: before the search began.
        """
        if (cache := self._cache) is None:
            return
        with self._guarded:
            indexes = set[str]() if self._latest in moment.depends else {hit["_index"] for hit in hits}
            if missing := [key for key in map(self._key, indexes) if key not in moment.depends]:
                tokens = self._tokens(cache, missing)
                if cache.get_many([self._latest]) != [moment.latest]:
                    return
                moment.depends.update(zip(missing, tokens, strict=True))
            depends = {name.hex(): token.hex() for name, token in moment.depends.items()}
            for key, one in made.items():
                value, arrays = _state_parts(one, not self._own) if isinstance(one, State) else (one, b"")
                if (entry := sealed(key, [moment.latest.hex(), depends, value], arrays, self._own)) is not None:
                    cache.put(key, entry)

    def forget(self, written: Collection[str] | None) -> None:
        """Invalidate entries from before a write that has ended.

        written: all indexes and aliases that it changed, None if unknown.
        """
        if self._cache is None:
            return
        names = [_EVERYTHING] if written is None else written
        for name in (_LATEST, *names):  # the latest write first, see _remember
            self._to_replace[object()] = self._key(name)
        with self._guarded:
            self._replace_tokens(self._cache)
        self._since_own_write = set()

    def acquire(self, key: bytes) -> bytes | None:
        """Return a token for `release` if the caller may compute what is under a key, None if another computes it.

        The other is a process or a thread, for a few seconds at most. b"" if the cache has no locks, or fails.
        """
        if self._shared is None:
            return _NO_LOCK
        with self._guarded:
            return self._shared.acquire(cache_key("lock", key.hex()), LOCK_SECONDS)
        return _NO_LOCK

    def release(self, key: bytes, token: bytes) -> None:
        """Let others compute what is under a key, unless they already may. token: of `acquire`."""
        if self._shared is not None and token != _NO_LOCK:
            with self._guarded:
                self._shared.release(cache_key("lock", key.hex()), token)

    def _recall(self, key: bytes, target: str) -> tuple[Any, memoryview] | None:
        """Return value and arrays under a key if all the tokens that they depend on are current."""
        since_own_write, cache = self._since_own_write, self._cache
        if cache is None:
            return None
        if self._to_replace:
            self._replace_tokens(cache)
        if self._shared is None and (entry := cache.get(key)) is None:
            return None
        of_target = _token_keys(self._cluster, target)
        keys = list(dict.fromkeys((self._latest, *of_target, *self._behind_alias.get(target, ()))))
        entry, tokens = (entry, cache.get_many(keys)) if self._shared is None else self._shared.get_with(key, keys)
        if entry is None or (found := unsealed(key, entry, self._own)) is None:
            return None
        current = dict(zip(keys, tokens, strict=True))
        try:
            (latest, depends, value), arrays = found
            needed = {bytes.fromhex(name): bytes.fromhex(token) for name, token in depends.items()}
            latest = bytes.fromhex(latest)
        except UNREADABLE:
            return None
        if further := [name for name in needed if name not in current]:
            current.update(zip(further, cache.get_many(further), strict=True))
            if len(self._behind_alias) >= _MOST_TARGETS:
                self._behind_alias.clear()
            self._behind_alias[target] = further  # read together with the next entries
        if since_own_write is not None:
            _add(since_own_write, current[self._latest])
            if latest not in since_own_write:
                return None
        return (value, arrays) if all(current[name] == token for name, token in needed.items()) else None

    def _tokens(self, cache: Cache, keys: list[bytes]) -> list[bytes]:
        """Return the current tokens. A missing token is created; entries from before it are invalid."""
        found = cache.get_many(keys)
        return [self._renewed(cache, key) if token is None else token for key, token in zip(keys, found, strict=True)]

    def _replace_tokens(self, cache: Cache) -> None:
        """Replace the tokens of the indexes that this client has written to."""
        for mark, key in list(self._to_replace.items()):
            self._renewed(cache, key)
            self._to_replace.pop(mark, None)

    def _renewed(self, cache: Cache, key: bytes) -> bytes:
        token = uuid.uuid4().bytes
        cache.put(key, token, _TOKEN_SECONDS)
        return token


def indexes_written(request: Request, answer: Answer | None) -> set[str] | None:
    """Return the indexes that a write changed, under all known names; None if there may be others.

    answer: None if there is none. Only answers for documents and bulks name the index behind an alias.
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


@lru_cache(_MOST_TOKENS)
def _token_key(cluster: bytes, name: str) -> bytes:
    return cache_key("token", cluster.hex(), name)


@lru_cache(_MOST_TARGETS)
def _token_keys(cluster: bytes, target: str) -> tuple[bytes, ...]:
    """Return the keys of the tokens of a target, none for a pattern."""
    names = _names(target)
    return () if names is None else tuple([_token_key(cluster, name) for name in (_EVERYTHING, *names)])


def _names(target: str) -> list[str] | None:
    """Return the names in a target, None if it holds patterns, everything, other clusters or date expressions."""
    names = unquote(target.lstrip("/")).split(",")
    usual = all(name and name[0] not in "-_" and not _NOT_IN_A_NAME.intersection(name) for name in names)
    return names if usual else None


def _add(tokens: set[bytes], token: bytes | None) -> None:
    """Add a token to those since our own last write, if it is known."""
    if token is not None:
        if len(tokens) >= _MOST_TOKENS:
            tokens.clear()  # entries that depend on these tokens become invalid
        tokens.add(token)


def _state_parts(state: State, with_table: bool) -> tuple[dict[str, Any], bytes]:
    """Split a state into a value and arrays. A document that is the stream's own hit is stored once.

    with_table: whether other processes extend its stream: they may have read another frequency table, or none.
    """
    table = state.frequency_table if with_table and state.table != LISTED else None
    plain = {name: getattr(state, name) for name in _STORED_AS_IT_IS}
    stream, arrays = stream_parts(state.stream)
    places = dict(zip(state.stream.ranks.tolist(), state.stream.hits, strict=True)) if state.documents else {}
    shared = [rank for rank, hit in state.documents.items() if places.get(rank) is hit]
    own = [[rank, hit] for rank, hit in state.documents.items() if places.get(rank) is not hit]
    parts = {"state": plain, "stream": stream, "shared": shared, "documents": own, "table": table and table.to_dict()}
    return parts, arrays


def _state_of(value: dict[str, Any], arrays: memoryview) -> State:
    """Restore the state that _state_parts split. Raises one of UNREADABLE for invalid parts."""
    stream = stream_of(value["stream"], arrays)
    places = dict(zip(stream.ranks.tolist(), stream.hits, strict=True))
    documents = {rank: places[rank] for rank in value["shared"]} | dict(value["documents"])
    table = None if value["table"] is None else FrequencyTable.from_dict(value["table"])
    state = State(**value["state"], stream=stream, documents=documents, frequency_table=table)
    hits = (*stream.hits, *documents.values())
    if not all(isinstance(one, dict) for one in (state.envelope, value["state"]["envelope"]["hits"], *hits)):
        raise ValueError("these are not the parts of a state")
    return state


_HOLDING = "_headers", "headers", "http_auth", "_http_auth", "auth"  # attributes of connections and their sessions
_KNOWN_PACKAGES = {"elastic_transport", "opensearchpy", "ndd_search", "abc", "typing", "builtins"}


@dataclass(frozen=True)
class Origin:
    """Hashes that identify a client.

    cluster: of the addresses that it talks to. caller: of these and of all its settings, which hold its credentials.
    """

    cluster: bytes
    caller: bytes


def origin_of(transport: Any) -> Origin:
    """Return the origin of a client's transport, equal in every process that creates the client with the same settings.

    Some credentials cannot be compared: a function that signs requests, a class of the user's own that may add a
    header. Such a client gets a random caller and shares cache entries with no other client.
    """
    kwargs = getattr(transport, "kwargs", None) or {}  # an asynchronous one adds "loop" with its first request
    nodes, settings = _nodes(transport), {name: kwargs[name] for name in kwargs if name != "loop"}
    addresses, given = sorted(map(_address, nodes)), [nodes, settings]
    cluster = cache_key("cluster", addresses) if nodes else uuid.uuid4().bytes
    if nodes and _is_comparable(given) and all(map(_is_known, _classes(transport))):
        return Origin(cluster, cache_key("caller", addresses, given))
    return Origin(cluster, uuid.uuid4().bytes)


def _nodes(transport: Any) -> list[dict[str, Any]]:
    """Return the settings of each node, from the node pool of elasticsearch-py or the hosts of opensearch-py."""
    if pool := getattr(transport, "node_pool", None):
        if not all(hasattr(node, "config") for node in pool.all()):
            return []  # of a class of the user's own, whose addresses are unknown
        configs = [node.config for node in pool.all()]
        return [{one.name: _plain(getattr(config, one.name)) for one in fields(config)} for config in configs]
    hosts = getattr(transport, "hosts", None) or []
    return [dict(host) if isinstance(host, Mapping) else {"host": host} for host in hosts]


def _held_by(transport: Any) -> list[Any]:
    """Return the headers and credentials that the connections of a client hold.

    Those of elasticsearch-py are nodes. opensearch-py sets a connection aside while its server is down, and connects an
    asynchronous client with its first request: until then, these are connections that it would make now.
    """
    connections: Any = []
    if (pool := getattr(transport, "node_pool", None)) is not None:
        connections = pool.all()
    elif (pool := getattr(transport, "connection_pool", None)) is not None:
        connections = getattr(pool, "orig_connections", None) or pool.connections
        with suppress(Exception):  # which the client raises with its first request
            connections = connections or [
                transport.connection_class(**{**transport.kwargs, **host}) for host in transport.hosts
            ]
    held: list[Any] = []
    for one in connections:
        own = getattr(one, "__dict__", {})
        for holder in (own, getattr(own.get("session"), "__dict__", {})):
            for name in _HOLDING:
                if (value := holder.get(name)) is not None:
                    held.append(dict(value.items()) if hasattr(value, "items") else value)
    return held


def _plain(value: Any) -> Any:
    """Return headers as sorted pairs, any other value as it is."""
    return sorted(map(list, value.items())) if isinstance(value, Mapping) else value


def _address(node: Mapping[str, Any]) -> str:
    """Return the URL of a node. A local address gets the name of this machine, to differ between machines."""
    scheme = node.get("scheme") or ("https" if node.get("use_ssl") else "http")
    prefix = str(node.get("path_prefix") or node.get("url_prefix") or "").strip("/")
    host = str(node.get("host", "localhost"))
    local = host == "localhost" or host.startswith("127.") or host.strip("[]") == "::1"
    return f"{scheme}://{platform.node() + '/' if local else ''}{host}:{node.get('port', 9200)}/{prefix}"


def _classes(transport: Any) -> list[type]:
    if pool := getattr(transport, "node_pool", None):
        return [type(transport), *(type(node) for node in pool.all())]
    return [type(transport), transport.connection_class]


def _is_known(kind: type) -> bool:
    """Return whether a class and its bases come from known packages, which keep credentials in their settings."""
    return all(one.__module__.partition(".")[0] in _KNOWN_PACKAGES for one in kind.__mro__)


def _is_comparable(value: Any) -> bool:
    """Return whether equal values have the same meaning in another process."""
    if isinstance(value, Mapping):
        return all(isinstance(name, str) and _is_comparable(one) for name, one in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_comparable, value))
    return value is None or isinstance(value, str | int | float | bytes)
