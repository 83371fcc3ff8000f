"""Cursors: tokens that hold where a search stands and what it has shown. Nothing here does I/O.

A token is URL-safe base64 of

    version    1 byte
    signature  16 bytes: HMAC-SHA-256 with the key, cut short; without a key a BLAKE2b checksum
    entry      as in `cache_entries`: JSON with the fields of Cursor, and the sketches of the leaders as 32-bit integers

so a leader takes 4 bytes a value and some 20 bytes for its id. The newest leaders are kept, as many as fit into
MOST bytes: a token never grows beyond that, and neither does the time to read it and to compare hits with it.
A token is not encrypted.
"""

from __future__ import annotations

import binascii
import hmac
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np

from ndd_search.core.paging.cache_entries import UNREADABLE, sealed, unsealed
from ndd_search.core.sketching.sketches import Sketch
from ndd_search.errors import CursorUnusable

MOST = 270_000  # bytes of leaders in a token: a thousand leaders of 64 values with short ids
_VERSION = b"\x01"
_SIGNATURE = 16  # bytes
_KEY = b"cursor"
_TOTAL: Mapping[str, type] = {"value": int, "relation": str}
_UNIQUE: Mapping[str, type] = {"value": int, "relation": str, "low": int, "high": int}
_COUNT: Mapping[str, type] = {"documents": int, **_UNIQUE}
_BEGIN_AGAIN = "begin again with a new cursor"


@dataclass(frozen=True, kw_only=True, eq=False)
class Leaders:
    """Hits that were shown and stand for their groups, as columns: a token holds a thousand of them.

    indexes, ids: of the documents. sketches: of the hits.
    fields:       of each hit those that guards compare, None for a hit without any.
    shown:        of each group, the number of hits shown so far, at least 1.
    """

    indexes: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    sketches: tuple[Sketch, ...] = ()
    fields: tuple[Mapping[str, Any] | None, ...] = ()
    shown: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    def fit(self, k: int, most: int, by_keys: bool = False) -> bool:
        """Return whether these can be leaders of sketches of k values, with at most so many hits shown of a group.

        by_keys: whether hits without a sketch are kept, for their fields.
        Without a key, whoever sends a token decides what is in it.
        """
        texts = all(isinstance(one, str) for one in (*self.indexes, *self.ids))
        shown = all(isinstance(one, int) and 1 <= one <= most for one in self.shown)
        fields = all(one is None or isinstance(one, dict) for one in self.fields)
        sketches = all(len(one) <= k and _is_ascending(one) for one in self.sketches)
        return texts and shown and fields and sketches and (by_keys or all(map(len, self.sketches)))

    def newest(self, most: int) -> Leaders:
        """Return the newest leaders, as many as take at most so many bytes with their ids and fields."""
        each = zip(reversed(self.sketches), reversed(self.ids), reversed(self.fields), strict=True)
        ends = np.cumsum([4 * len(sketch) + len(ascii((id, fields))) for sketch, id, fields in each])
        older = len(self) - int(np.searchsorted(ends, most, side="right"))
        return Leaders(**{one.name: getattr(self, one.name)[older:] for one in fields(self)}) if older else self


@dataclass(frozen=True, kw_only=True, eq=False)
class Cursor:
    """Where a search stands between two pages.

    search:  hash of the search and the point in time that it belongs to.
    pit:     id of the engine's point in time.
    after:   sort values of the last hit that all pages so far have dealt with.
    ahead:   number of hits after it that a page has examined already.
    pages:   number of pages so far.
    leaders: shown hits that later ones are compared with, in the order shown. forgotten: number of older leaders.
    shown:   number of hits on these pages.
    total:   `hits.total` of the first page. unique: the estimate of the first page. facets: its counts of facets.
    table:   digest of the frequency table. listed: the table itself, as JSON, if the first page counted it in its hits.
    """

    search: str
    pit: str
    after: list[Any]
    ahead: int
    pages: int
    leaders: Leaders = Leaders()
    forgotten: int = 0
    shown: int = 0
    total: Any = None
    unique: Any = None
    facets: Any = None
    table: str = ""
    listed: Any = None

    def check(self) -> None:
        """Raise TypeError if a field has another value than a page could have given it."""
        fit = {
            **{name: isinstance(getattr(self, name), str) for name in ("search", "pit", "table")},
            **{name: _is_count(getattr(self, name)) for name in ("ahead", "pages", "forgotten", "shown")},
            "after": isinstance(self.after, list),
            "total": self.total is None or isinstance(self.total, int) or _has(self.total, _TOTAL),
            "unique": self.unique is None or _has(self.unique, _UNIQUE),
            "facets": self.facets is None or _are_facets(self.facets),
            "listed": self.listed is None or isinstance(self.listed, dict),
            "leaders": len({len(getattr(self.leaders, one.name)) for one in fields(self.leaders)}) == 1,
        }
        if wrong := [name for name, fits in fit.items() if not fits]:
            raise TypeError(f"{wrong[0]} of a cursor is of a wrong type")

    def bounded(self) -> Cursor:
        """Return the cursor with as many of its newest leaders as a token holds."""
        leaders = self.leaders.newest(MOST)
        return replace(self, leaders=leaders, forgotten=self.forgotten + len(self.leaders) - len(leaders))


def token_of(cursor: Cursor, key: bytes | None) -> str:
    """Return a cursor as a token. key: signs it, None for a checksum. Raises CursorUnusable if it cannot be encoded."""
    plain = {one.name: getattr(cursor, one.name) for one in fields(cursor) if one.name != "leaders"}
    leaders = cursor.leaders
    names = {name: place for place, name in enumerate(sorted(set(leaders.indexes)))}
    columns = {
        "names": list(names),
        "indexes": [names[name] for name in leaders.indexes] if len(names) > 1 else [],
        "ids": list(leaders.ids),
        "lengths": [len(sketch) for sketch in leaders.sketches],
        "fields": list(leaders.fields) if any(leaders.fields) else [],
        "shown": list(leaders.shown) if max(leaders.shown, default=1) > 1 else [],
    }
    arrays = np.concatenate((np.empty(0, np.int32), *leaders.sketches)).astype("<i4", copy=False)
    entry = sealed(_KEY, {"cursor": plain, "leaders": columns}, arrays.tobytes())
    if entry is None:
        raise CursorUnusable(
            "a cursor", "a value by which hits are sorted or compared is none of JSON", "use another field"
        )
    return urlsafe_b64encode(_VERSION + _signature(entry, key) + entry).decode()


def cursor_of(token: str, key: bytes | None) -> Cursor:
    """Read a token. Raises CursorUnusable for one that is damaged, forged, or of another version."""
    data = _decoded(token)
    if data[:1] != _VERSION:
        problem = "it is not a token of this library, or another version made it" if token else "it is empty"
        raise CursorUnusable("a cursor", problem, _BEGIN_AGAIN)
    signature, entry = data[1 : 1 + _SIGNATURE], data[1 + _SIGNATURE :]
    if not hmac.compare_digest(signature, _signature(entry, key)):
        raise CursorUnusable("a cursor", "it is damaged, or was signed with another cursor_key", _BEGIN_AGAIN)
    found = unsealed(_KEY, entry)
    try:
        value, arrays = found or ({}, memoryview(b""))
        columns = value["leaders"]
        count, names, ends = len(columns["ids"]), columns["names"], np.cumsum([0, *columns["lengths"]]).tolist()
        values = np.frombuffer(arrays, "<i4", ends[-1]).astype(np.int32)
        leaders = Leaders(
            indexes=tuple(names[place] for place in columns["indexes"] or [0] * count),
            ids=tuple(columns["ids"]),
            sketches=tuple(values[start:end] for start, end in pairwise(ends)),
            fields=tuple(columns["fields"] or [None] * count),
            shown=tuple(columns["shown"] or [1] * count),
        )
        cursor = Cursor(**value["cursor"], leaders=leaders)
        cursor.check()
        return cursor
    except UNREADABLE:
        raise CursorUnusable("a cursor", "it is damaged", _BEGIN_AGAIN) from None


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**31


def _has(value: Any, types: Mapping[str, type]) -> bool:
    """Return whether a value is an object with these keys, and values of these types."""
    return isinstance(value, dict) and {name: type(one) for name, one in value.items()}.items() >= types.items()


def _are_facets(value: Any) -> bool:
    """Return whether a value is an object of lists of buckets."""
    lists = value.values() if isinstance(value, dict) else [None]
    return all(isinstance(one, list) and all(map(_is_bucket, one)) for one in lists)


def _is_bucket(value: Any) -> bool:
    inner = value.get("facets", {}) if _has(value, _COUNT) else None
    return isinstance(inner, dict) and _are_facets({name: one["buckets"] for name, one in inner.items()})


def _is_ascending(sketch: Sketch) -> bool:
    return not len(sketch) or (sketch[0] >= 0 and bool((sketch[1:] > sketch[:-1]).all()))


def _decoded(token: str) -> bytes:
    try:
        return b64decode(token.encode("ascii"), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise CursorUnusable("a cursor", "it is not a token of this library", _BEGIN_AGAIN) from None


def _signature(entry: bytes, key: bytes | None) -> bytes:
    if key is None:
        return blake2b(entry, digest_size=_SIGNATURE).digest()
    return hmac.digest(key, entry, "sha256")[:_SIGNATURE]
