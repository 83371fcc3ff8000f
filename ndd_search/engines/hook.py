"""Between a client and its transport: which requests are ours, and the two short loops that carry out a conversation.

The loops differ by an `await`. Each has its own `Flights`: a thread that waits for a coroutine of its own loop would
wait for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from concurrent.futures import wait
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Self

from ndd_search.cache import Flights
from ndd_search.config import collapse_options
from ndd_search.engines.answers import Answer
from ndd_search.engines.middleware import Conversation, conversation
from ndd_search.engines.multi import MultiConversation, multi_conversation
from ndd_search.engines.remembered import indexes_written
from ndd_search.engines.request import Request, is_write, stripped
from ndd_search.engines.settings import Settings, settings_of
from ndd_search.engines.trips import Wait

Send = Callable[[Request], Answer]
AsyncSend = Callable[[Request], Awaitable[Answer]]
Wishes = Generator[Request | Wait, Any, Answer]

_WAIT = 30.0  # seconds for somebody else's computation of the same page, at most
_surrounding: ContextVar[tuple[bool, Mapping[str, Any]]] = ContextVar("ndd_search.options", default=(True, {}))


@contextmanager
def options(enabled: bool | None = None, **changes: Any) -> Iterator[None]:
    """Other options for the searches inside the block, through any wrapped client, in this thread or task.

    enabled: False lets searches through as if clients were not wrapped, True ends that; None leaves it as it is around
             the block.
    changes: CollapseOptions by name, and `cache=False` to neither read nor fill the cache; on top of those around it.
    Raises TypeError for an unknown option, ValueError for a value that cannot be.
    """
    collapse_options(**{name: value for name, value in changes.items() if name != "cache"})
    before, others = _surrounding.get()
    token = _surrounding.set((before if enabled is None else enabled, {**others, **changes}))
    try:
        yield
    finally:
        _surrounding.reset(token)


def _landed(wish: Wait) -> Answer | None:
    """None, when it has landed or takes too long."""
    wait([wish.flight], wish.seconds)
    return None


async def _landed_async(wish: Wait) -> Answer | None:
    await asyncio.wait([asyncio.wrap_future(wish.flight)], timeout=wish.seconds)
    return None


class Hook:
    """What a wrapped client asks before each request."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._flights, self._async_flights = Flights(), Flights()

    def __reduce__(self) -> tuple[Any, ...]:
        return Hook, (replace(self.settings),)  # a copy starts with what it was told, and learns for itself

    def handle(self, request: Request, send: Send, timeout: float | None = None) -> Answer:
        """Answer a request, sending what is needed.

        timeout: seconds that the caller lets one request take, and so his wait for somebody else's; None for any time.
        """
        with closing(self._flow(request, self._flights, timeout)) as flow:
            try:
                wish = next(flow)
                while True:
                    try:
                        answer = _landed(wish) if isinstance(wish, Wait) else send(wish)
                    except Exception as error:
                        wish = flow.throw(error)
                    else:
                        wish = flow.send(answer)
            except StopIteration as finished:
                made: Answer = finished.value
                return made

    async def handle_async(self, request: Request, send: AsyncSend, timeout: float | None = None) -> Answer:
        """The same for coroutines."""
        with closing(self._flow(request, self._async_flights, timeout)) as flow:
            try:
                wish = next(flow)
                while True:
                    try:
                        answer = await (_landed_async(wish) if isinstance(wish, Wait) else send(wish))
                    except Exception as error:
                        wish = flow.throw(error)
                    else:
                        wish = flow.send(answer)
            except StopIteration as finished:
                made: Answer = finished.value
                return made

    def _flow(self, request: Request, flights: Flights, timeout: float | None) -> Wishes:
        """What it takes to answer a request: requests to send, and flights to wait for."""
        talk = self._conversation(request)
        if talk is None:
            answer: Answer | None = None
            try:
                answer = yield stripped(request)
                return answer
            finally:
                self._after(request, answer)
        if (known := talk.remembered()) is not None:
            return known
        if isinstance(talk, MultiConversation) or talk.key is None:
            return (yield from talk.flow())
        if (other := flights.board(talk.key)) is not None:
            yield from talk.wait(other, _WAIT if timeout is None else min(_WAIT, timeout))
            return talk.remembered() or (yield from talk.flow())
        try:
            return (yield from talk.flow())
        finally:
            flights.land(talk.key)

    def _conversation(self, request: Request) -> Conversation | MultiConversation | None:
        enabled, others = _surrounding.get()
        changes = others if enabled else None
        return conversation(request, self.settings, changes) or multi_conversation(request, self.settings, changes)

    def _after(self, request: Request, answer: Answer | None) -> None:
        """Who writes through this client reads what he wrote."""
        if is_write(request):
            self.settings.memory.forget(indexes_written(request, answer))


class Hooked:
    """What our transport classes add to a client's own."""

    _settings: Mapping[str, Any] = {}

    def __init__(self, *arguments: Any, **others: Any) -> None:
        super().__init__(*arguments, **others)
        self.ndd: Hook | None = Hook(settings_of(**self._settings))  # None once the client is unwrapped

    @classmethod
    def using(cls, **settings: Any) -> type[Self]:
        """This class with settings of `ndd_search.wrap`."""
        settings_of(**settings)  # to refuse here what cannot be
        return type(cls.__name__, (cls,), {"_settings": settings})
