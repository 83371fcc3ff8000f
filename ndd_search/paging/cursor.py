"""Cursors: tokens that hold where a search stands and what it has shown. Nothing here does I/O.

A token is URL-safe base64 of

    version    1 byte
    signature  16 bytes: HMAC-SHA-256 with the key, cut short; without a key a BLAKE2b checksum
    entry      as in `entries`: JSON with the fields of Cursor, and the sketches of the leaders as 32-bit integers

so a leader takes 4 bytes a value and some 20 bytes for its id. The newest leaders are kept, as many as fit into
MOST_VALUES: a token never grows beyond that, and neither does the time to read it and to compare hits with it.
A token is not encrypted.
"""

from __future__ import annotations

import binascii
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np

from ndd_search.errors import CursorUnusable
from ndd_search.paging.entries import UNREADABLE, sealed, unsealed
from ndd_search.sketching.sketches import Sketch

MOST_VALUES = 64_000  # sketch values in a token: 1,000 leaders of 64 values, 256 kB
_VERSION = b"\x01"
_SIGNATURE = 16  # bytes
_KEY = b"cursor"
_BEGIN_AGAIN = "begin again with a new cursor"


@dataclass(frozen=True, kw_only=True)
class Leader:
    """A hit that was shown and stands for its group.

    index, id: of the document. fields: those of the hit that guards compare, None without guards.
    sketch:    of the hit. shown: number of hits of its group shown so far, at least 1.
    """

    index: str
    id: str
    sketch: Sketch
    fields: Mapping[str, Any] | None = None
    shown: int = 1


@dataclass(frozen=True, kw_only=True)
class Cursor:
    """Where a search stands between two pages.

    search:  hash of the search that it belongs to.
    pit:     id of the engine's point in time.
    after:   sort values of the last hit that all pages so far have dealt with.
    ahead:   number of hits after it that a page has examined already.
    pages:   number of pages so far.
    leaders: shown hits that later ones are compared with, in the order shown. forgotten: number of older leaders.
    total:   `hits.total` of the first page. unique: the estimate of the first page.
    table:   digest of the frequency table.
    """

    search: str
    pit: str
    after: list[Any]
    ahead: int
    pages: int
    leaders: tuple[Leader, ...] = ()
    forgotten: int = 0
    total: Any = None
    unique: Any = None
    table: str = ""

    def bounded(self) -> Cursor:
        """Return the cursor with as many of its newest leaders as a token holds."""
        ends = np.cumsum([len(one.sketch) for one in reversed(self.leaders)])
        kept = int(np.searchsorted(ends, MOST_VALUES, side="right"))
        forgotten = len(self.leaders) - kept
        return replace(self, leaders=self.leaders[forgotten:], forgotten=self.forgotten + forgotten)


def token_of(cursor: Cursor, key: bytes | None) -> str:
    """Return a cursor as a token. key: signs it, None for a checksum. Raises CursorUnusable if it cannot be encoded."""
    plain = {one.name: getattr(cursor, one.name) for one in fields(cursor) if one.name != "leaders"}
    indexes = sorted({one.index for one in cursor.leaders})
    leaders = [[len(one.sketch), indexes.index(one.index), one.id, one.shown, one.fields] for one in cursor.leaders]
    arrays = np.concatenate((np.empty(0, np.int32), *(one.sketch for one in cursor.leaders))).astype("<i4", copy=False)
    entry = sealed(_KEY, {"cursor": plain, "indexes": indexes, "leaders": leaders}, arrays.tobytes())
    if entry is None:
        raise CursorUnusable("a cursor", "the sort values of a hit cannot be written as JSON", "use another sort")
    return urlsafe_b64encode(_VERSION + _signature(entry, key) + entry).decode()


def cursor_of(token: str, key: bytes | None) -> Cursor:
    """Read a token. Raises CursorUnusable for one that is damaged, forged, or of another version."""
    data = _decoded(token)
    if data[:1] != _VERSION:
        raise CursorUnusable("a cursor", "another version of this library made it", _BEGIN_AGAIN)
    signature, entry = data[1 : 1 + _SIGNATURE], data[1 + _SIGNATURE :]
    if not hmac.compare_digest(signature, _signature(entry, key)):
        raise CursorUnusable("a cursor", "it is damaged, or was signed with another cursor_key", _BEGIN_AGAIN)
    found = unsealed(_KEY, entry)
    try:
        value, arrays = found or ({}, memoryview(b""))
        indexes, ends = value["indexes"], np.cumsum([0, *(one[0] for one in value["leaders"])]).tolist()
        values = np.frombuffer(arrays, "<i4", ends[-1]).astype(np.int32)
        leaders = tuple(
            Leader(index=indexes[index], id=id, fields=fields, sketch=values[start:end], shown=shown)
            for (start, end), (_, index, id, shown, fields) in zip(pairwise(ends), value["leaders"], strict=True)
        )
        return Cursor(**value["cursor"], leaders=leaders)
    except UNREADABLE:
        raise CursorUnusable("a cursor", "it is damaged", _BEGIN_AGAIN) from None


def _decoded(token: str) -> bytes:
    try:
        data = urlsafe_b64decode(token.encode("ascii"))
    except (binascii.Error, UnicodeEncodeError):
        data = b""
    if not data or urlsafe_b64encode(data).decode() != token:  # the decoder ignores what it does not know
        raise CursorUnusable("a cursor", "it is not a token of this library", _BEGIN_AGAIN)
    return data


def _signature(entry: bytes, key: bytes | None) -> bytes:
    if key is None:
        return blake2b(entry, digest_size=_SIGNATURE).digest()
    return hmac.digest(key, entry, "sha256")[:_SIGNATURE]
