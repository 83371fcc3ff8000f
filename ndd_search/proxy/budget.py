"""Bounds the memory that the bodies of all requests together take: a request waits until others have ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from ndd_search.proxy.exchange import Exchange


class ByteBudget:
    """total: bytes that may be held at once. One request may hold more than that if it is alone."""

    def __init__(self, total: int) -> None:
        self._total, self._taken = total, 0
        self._changed = asyncio.Condition()

    def of(self, exchange: Exchange, small: int, most: int) -> AbstractAsyncContextManager[None]:
        """Wait until the body of a request may be held. Up to `small` bytes do not count.

        most: bytes of a body that is held at all.
        """
        length = exchange.header(b"content-length")
        packed = exchange.header(b"content-encoding") not in ("", "identity")
        size = int(length) if length.isdigit() and not packed else most
        if not exchange.has_body or size <= small:
            return nullcontext()
        return self.hold(min(size, most))

    @asynccontextmanager
    async def hold(self, size: int) -> AsyncIterator[None]:
        """Wait until so many bytes are free, and take them for the block."""
        size = min(size, self._total)
        async with self._changed:
            await self._changed.wait_for(lambda: self._taken + size <= self._total)
            self._taken += size
        try:
            yield
        finally:
            self._taken -= size
            async with self._changed:
                self._changed.notify_all()
