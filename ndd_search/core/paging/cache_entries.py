"""Encodes values as bytes for a cache and decodes them: JSON and arrays behind a checksum, never pickles.

An entry is

    magic and version   4 bytes, b"ndd" and a number
    checksum            4 bytes, the CRC-32 of the key and of everything that follows
    length              4 bytes, of the JSON
    reader              1 byte, b"j" for JSON that only Python's json module decodes exactly, b"o" for any decoder
    JSON                UTF-8
    arrays              the rest; the JSON describes them

with numbers in little-endian order. Bytes that are not an entry of this version under this key decode to None. No bytes
from a cache raise an error or run code. A checksum is not a signature: whoever can write to the cache decides what is
shown. In the memory of the process itself the checksum is of the key alone: that of long documents took as long as all
else that it takes to store them.

If orjson is installed, it reads and writes the JSON in half the time.
"""

from __future__ import annotations

import json
import struct
from dataclasses import fields
from functools import partial
from itertools import pairwise
from math import isfinite
from typing import Any
from zlib import crc32

import numpy as np

from ndd_search import native
from ndd_search.core.paging.stream import Stream
from ndd_search.core.sketching.sketches import Sketches

try:
    import orjson
except ModuleNotFoundError:
    orjson = None  # type: ignore[assignment,unused-ignore]

VERSION = 1
# Errors that decoding a malformed entry can raise.
UNREADABLE = (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError, OverflowError, struct.error)
_MAGIC = b"ndd" + bytes([VERSION])
_HEAD, _ABOUT_JSON = struct.Struct("<4sI"), struct.Struct("<Ic")
_PYTHONS_READER, _ANY_READER = b"j", b"o"  # orjson rounds whole numbers beyond 64 bits, and refuses lone surrogates
_ATOMS = {str, int, float, bool, type(None)}
_ARRAYS = {"ranks": "<i8", "leader": "<i8", "similarity": "<f8"}  # of a stream, beside its sketches
_NOT_STORED = ("sketches", "shown", "earlier", "seen")  # the first are arrays too; a stream with others is not cached
_STORED_AS_IT_IS = [one.name for one in fields(Stream) if one.name not in (*_ARRAYS, *_NOT_STORED)]
_to_json = partial(json.dumps, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def sealed(key: bytes, value: Any, arrays: bytes = b"", own: bool = False) -> bytes | None:
    """Encode a value under a key. Returns None for a value that JSON would not restore exactly.

    value: dicts with text keys, lists, texts, finite numbers, booleans and None; subclasses are refused.
    own: for a cache in the memory of this process.
    """
    if not _is_plain(value):
        return None
    try:
        reader, text = _to_marked_json(value)
        about = _ABOUT_JSON.pack(len(text), reader)
    except UNREADABLE:  # nested too deep or too long
        return None
    checksum = crc32(key) if own else crc32(arrays, crc32(text, crc32(about, crc32(key))))
    return b"".join((_HEAD.pack(_MAGIC, checksum), about, text, arrays))


def unsealed(key: bytes, entry: bytes, own: bool = False) -> tuple[Any, memoryview] | None:
    """Decode an entry to its value and arrays, None if it is not a whole entry of this version and key.

    own: as it was written.
    """
    try:
        magic, checksum = _HEAD.unpack_from(entry)
        rest = memoryview(entry)[_HEAD.size :]
        if magic != _MAGIC or checksum != (crc32(key) if own else crc32(rest, crc32(key))):
            return None
        length, reader = _ABOUT_JSON.unpack_from(rest)
        end = _ABOUT_JSON.size + length
        text, arrays = rest[_ABOUT_JSON.size : end], rest[end:]
        if orjson and reader == _ANY_READER:
            return orjson.loads(text), arrays
        return json.loads(str(text, "utf-8", "surrogatepass")), arrays
    except UNREADABLE:
        return None


def _is_plain(value: Any) -> bool:
    """Return whether JSON restores a value exactly, with the type of every part."""
    if native.core is not None and native.core.is_plain(value):
        return True
    waiting = [[value]]
    while waiting:
        parts: Any = waiting.pop()
        if type(parts) is dict:
            if not {str}.issuperset(map(type, parts)):
                return False
            parts = parts.values()
        elif type(parts) is not list:
            return False
        kinds = set(map(type, parts))
        if not kinds <= _ATOMS:
            waiting += [part for part in parts if type(part) not in _ATOMS]
        if float in kinds and not all(isfinite(part) for part in parts if type(part) is float):
            return False
    return True


def _to_marked_json(value: Any) -> tuple[bytes, bytes]:
    """Return the reader mark and the JSON of a plain value."""
    if orjson:
        try:
            return _ANY_READER, orjson.dumps(value)
        except TypeError:
            pass
    return _PYTHONS_READER, _to_json(value).encode("utf-8", "surrogatepass")


def stream_parts(stream: Stream) -> tuple[dict[str, Any], bytes]:
    """Split a stream into a value and arrays for `sealed`; its hits must be plain."""
    plain = {name: getattr(stream, name) for name in _STORED_AS_IT_IS}
    plain.update(shares=[list(one) for one in stream.shares])
    plain.update(hits=list(stream.hits), lacking=list(stream.lacking))
    if isinstance(stream.sketches, Sketches):
        offsets = stream.sketches.offsets
        plain["lengths"] = (offsets[1:] - offsets[:-1]).tolist()
        values = stream.sketches.values[offsets[0] : offsets[-1]]
    else:
        plain["lengths"] = [len(one) for one in stream.sketches]
        values = np.concatenate((np.empty(0, np.int32), *stream.sketches))
    arrays = [values.astype("<i4", copy=False)]
    arrays += [getattr(stream, name).astype(kind, copy=False) for name, kind in _ARRAYS.items()]
    return plain, b"".join([one.tobytes() for one in arrays])


def stream_of(plain: dict[str, Any], arrays: memoryview) -> Stream:
    """Restore the stream that `stream_parts` split. Raises one of UNREADABLE for invalid parts."""
    ends = np.cumsum([0, *plain.pop("lengths")]).tolist()
    values = np.frombuffer(arrays, "<i4", ends[-1]).astype(np.int32)
    at, count = 4 * ends[-1], len(plain["hits"])
    columns: dict[str, Any] = {}
    shares = plain.pop("shares", ())
    for name, kind in _ARRAYS.items():
        columns[name] = np.frombuffer(arrays, kind, count, at).astype(kind[1:])
        at += 8 * count
    stream = Stream(
        **{**plain, "hits": tuple(plain["hits"]), "lacking": tuple(plain["lacking"])},
        shares=tuple((int(index), str(name)) for index, name in shares),
        **columns,
        sketches=tuple(values[start:end] for start, end in pairwise(ends)),
    )
    leaders_precede = ((stream.leader >= 0) & (stream.leader <= np.arange(count))).all()
    if at != len(arrays) or not count == len(stream.lacking) == len(stream.sketches) or not leaders_precede:
        raise ValueError("these are not the parts of a stream")
    return stream
