"""Between a client and its transport: which requests are ours, and the two short loops that carry out a conversation.

The loops differ by an `await`. Each has its own `Flights`: a thread that waits for a coroutine of its own loop would
wait for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping
from concurrent.futures import wait
from contextlib import closing
from dataclasses import replace
from typing import Any, Self, Unpack

from ndd_search.middleware.conversation import Conversation, conversation
from ndd_search.middleware.msearch import MultiConversation, multi_conversation
from ndd_search.middleware.page_memory import indexes_written
from ndd_search.middleware.round_trips import Wait
from ndd_search.middleware.scope import surrounding
from ndd_search.middleware.settings import Settings, WrapSettings, settings_of
from ndd_search.paging.cache import SingleFlight
from ndd_search.rest.answers import Answer
from ndd_search.rest.request import Request, is_write, stripped

Send = Callable[[Request], Answer]
AsyncSend = Callable[[Request], Awaitable[Answer]]
Writable = Callable[[Any], bool]
Flow = Generator[Request | Wait, Any, Answer]

_WAIT = 30.0  # seconds for somebody else's computation of the same page, at most


def _landed(wish: Wait) -> Answer | None:
    """None, when it has landed or takes too long."""
    wait([wish.flight], wish.seconds)
    return None


async def _landed_async(wish: Wait) -> Answer | None:
    await asyncio.wait([asyncio.wrap_future(wish.flight)], timeout=wish.seconds)
    return None


def _anything(body: Any) -> bool:
    return True


class Driver:
    """What a wrapped client asks before each request."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._flights, self._async_flights = SingleFlight(), SingleFlight()

    def __reduce__(self) -> tuple[Any, ...]:
        return Driver, (replace(self.settings),)  # a copy starts with what it was told, and learns for itself

    def handle(
        self, request: Request, send: Send, is_writable: Writable = _anything, timeout: float | None = None
    ) -> Answer:
        """Answer a request, sending what is needed.

        is_writable: whether the client can write a body; one that it cannot write goes to it as it came, so that the
                     error is the client's own.
        timeout: seconds that the caller lets one request take, and so his wait for somebody else's; None for any time.
        """
        try:
            if (talk := self._conversation(request)) is not None:
                return _carried_out(self._flow(talk, self._flights, timeout), send)
        except Exception:
            if is_writable(stripped(request).body):
                raise
        answer: Answer | None = None
        try:
            answer = send(self._sent(request))
            return answer
        finally:
            self._after(request, answer)

    async def handle_async(
        self, request: Request, send: AsyncSend, is_writable: Writable = _anything, timeout: float | None = None
    ) -> Answer:
        """The same for coroutines."""
        try:
            if (talk := self._conversation(request)) is not None:
                return await _carried_out_async(self._flow(talk, self._async_flights, timeout), send)
        except Exception:
            if is_writable(stripped(request).body):
                raise
        answer: Answer | None = None
        try:
            answer = await send(self._sent(request))
            return answer
        finally:
            self._after(request, answer)

    def _flow(self, talk: Conversation | MultiConversation, flights: SingleFlight, timeout: float | None) -> Flow:
        """What it takes to answer a search: requests to send, and flights to wait for."""
        if (known := talk.remembered()) is not None:
            return known
        if isinstance(talk, MultiConversation) or talk.key is None:
            return (yield from talk.flow())
        if (other := flights.acquire(talk.key)) is not None:
            yield from talk.wait(other, _WAIT if timeout is None else min(_WAIT, timeout))
            return talk.remembered() or (yield from talk.flow())
        try:
            return (yield from talk.flow())
        finally:
            flights.release(talk.key)

    def _conversation(self, request: Request) -> Conversation | MultiConversation | None:
        changes = surrounding()
        return conversation(request, self.settings, changes) or multi_conversation(request, self.settings, changes)

    def _sent(self, request: Request) -> Request:
        """What to send for a request that is not collapsed."""
        return self.settings.writes(stripped(request))

    def _after(self, request: Request, answer: Answer | None) -> None:
        """Searches through this client see what was written through it."""
        if is_write(request):
            self.settings.memory.forget(indexes_written(request, answer))


def _carried_out(flow: Flow, send: Send) -> Answer:
    with closing(flow):
        step = _next_step(flow)
        while not isinstance(step, Answer):
            try:
                answer = _landed(step) if isinstance(step, Wait) else send(step)
            except Exception as error:
                step = _next_step(flow, error=error)
            else:
                step = _next_step(flow, answer)
        return step


async def _carried_out_async(flow: Flow, send: AsyncSend) -> Answer:
    with closing(flow):
        step = _next_step(flow)
        while not isinstance(step, Answer):
            try:
                answer = await (_landed_async(step) if isinstance(step, Wait) else send(step))
            except Exception as error:
                step = _next_step(flow, error=error)
            else:
                step = _next_step(flow, answer)
        return step


def _next_step(flow: Flow, answer: Answer | None = None, error: Exception | None = None) -> Request | Wait | Answer:
    """What a flow wants after an answer or an error; an Answer when it has ended.

    Raises what the flow raises. No generator can pass on a StopIteration that is thrown into it: Python makes it the
    cause of a RuntimeError, so it is raised here.
    """
    try:
        return flow.send(answer) if error is None else flow.throw(error)
    except StopIteration as finished:
        made: Answer = finished.value
        return made
    except RuntimeError as raised:
        if error is not None and raised.__cause__ is error:
            raise error from None
        raise


class DriverMixin:
    """What our transport classes add to a client's own. ndd: None once the client is unwrapped."""

    _settings: Mapping[str, Any] = {}

    def __init__(self, *arguments: Any, **others: Any) -> None:
        self.ndd: Driver | None = Driver(settings_of(**self._settings))
        super().__init__(*arguments, **others)  # after that: with sniff_on_start it sends a request

    @classmethod
    def using(cls, **settings: Unpack[WrapSettings]) -> type[Self]:
        """This class with settings of `ndd_search.wrap`."""
        settings_of(**settings)  # to refuse here what cannot be
        return type(cls.__name__, (cls,), {"_settings": settings})
