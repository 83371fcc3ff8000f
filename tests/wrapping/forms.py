"""Callers of the index `forms`, whose documents all fill one form, and what they ask."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from tests.wrapping.conftest import Caller, body_of, settings_of
from tests.wrapping.proxy import Passed
from tests.wrapping.test_searches import MATCH

NOTHING = {"query": {"match": {"body": "nosuchword"}}}
SEARCH = {"query": MATCH, "size": 5}


def may_read(rights: dict[str, Any]) -> Callable[[Passed], Passed]:
    """What a server with document-level security makes of requests. rights: a filter for each `x-user`."""

    def restricted(request: Passed) -> Passed:
        given = rights.get(request.headers.get("x-user", ""))
        path = request.target.partition("?")[0]
        if given is None or not path.endswith("search") or not request.body:
            return request
        lines = [json.loads(line) for line in request.body.splitlines()]
        for line in lines[1::2] if path.endswith("_msearch") else lines:
            line["query"] = {"bool": {"must": line.get("query", {"match_all": {}}), "filter": given}}
        return replace(request, body="".join(f"{json.dumps(line)}\n" for line in lines).encode())

    return restricted


def stopped(caller: Caller) -> Caller:
    """Stop the clock of the client, so that learned facts do not expire."""
    settings_of(caller).clock = lambda: 0.0
    return caller


def ask(caller: Caller, index: str, body: Any, **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return caller.ask("POST", f"/{index}/_search", body, headers=named)


def at_once(caller: Caller, index: str, bodies: list[Any], headers: Callable[[int], dict[str, str]]) -> list[Any]:
    """The answers to searches that are on their way at the same time."""
    kind = {"accept": "application/json", "content-type": "application/json"}
    plain = not hasattr(caller.client, "options")
    send = caller.client.transport.perform_request if plain else caller.client.perform_request

    def call(number: int) -> Any:
        named = {**headers(number), **({} if plain else kind)}
        return send("POST", f"/{index}/_search", body=bodies[number], headers=named)

    if not caller.asynchronous:
        with ThreadPoolExecutor(32) as pool:
            return [body_of(one) for one in pool.map(call, range(len(bodies)))]

    async def gathered() -> list[Any]:
        return [body_of(one) for one in await asyncio.gather(*map(call, range(len(bodies))))]

    return list(caller.run(gathered()))
