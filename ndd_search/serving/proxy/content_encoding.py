"""The content encoding of bodies: gzip."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import AsyncIterator
from http import HTTPStatus

from ndd_search.serving.proxy.http_exchange import Header, Refused

READ = ("", "identity", "gzip", "x-gzip")
_PIECE = 2**16  # bytes that are unpacked at once
_WORTH_PACKING = 1400  # bytes: less fits in one packet
_GZIP = zlib.MAX_WBITS | 16  # the format that zlib reads


def unpacked(body: bytes, encoding: str, most: int | None) -> bytes | None:
    """Return a body without its content encoding, None if it cannot be read or is longer than `most` bytes."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return body
    if encoding not in READ:
        return None
    unpacker = zlib.decompressobj(_GZIP)
    try:
        plain = unpacker.decompress(body, 0 if most is None else most + 1)
    except zlib.error:
        return None
    return plain if unpacker.eof and not unpacker.unused_data and (most is None or len(plain) <= most) else None


async def unpacking(parts: AsyncIterator[bytes], encoding: str) -> AsyncIterator[bytes]:
    """Yield a body without its content encoding, one of READ, in pieces.

    Raises Refused for a damaged one; the engine then gets no complete request.
    """
    if encoding in ("", "identity"):
        async for part in parts:
            yield part
        return
    unpacker = zlib.decompressobj(_GZIP)
    async for part in parts:
        try:
            piece = unpacker.decompress(part, _PIECE)
            yield piece
            while not unpacker.eof and (unpacker.unconsumed_tail or len(piece) == _PIECE):
                piece = unpacker.decompress(unpacker.unconsumed_tail, _PIECE)
                yield piece
        except zlib.error as error:
            raise Refused(HTTPStatus.BAD_REQUEST, f"the compressed body is damaged ({error}): send it again") from None
        if unpacker.unused_data:
            break
    if not unpacker.eof or unpacker.unused_data:
        raise Refused(HTTPStatus.BAD_REQUEST, "the compressed body does not end where it should: send it again")


def packed(headers: list[Header], content: bytes, accepted: str) -> tuple[list[Header], bytes]:
    """Return headers and body of our own answer, with gzip for a caller who accepts it."""
    if len(content) < _WORTH_PACKING or not re.search(r"\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))", accepted):
        return headers, content
    return [*headers, (b"content-encoding", b"gzip")], gzip.compress(content, 1, mtime=0)
