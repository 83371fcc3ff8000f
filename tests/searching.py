"""Searches and their answers, for tests of conversations without an engine."""

from __future__ import annotations

from typing import Any

from ndd_search.collapse_options import Strategy
from ndd_search.middleware.fetch_strategies import Timings
from ndd_search.recipe import Recipe
from ndd_search.rest.answers import Answer
from ndd_search.rest.request import Request

MATCH = {"match": {"body": "market"}}


def seen_after(*times: tuple[Strategy, int, float]) -> Timings:
    """Figures after searches, given as strategy, number and seconds."""
    timings = Timings()
    for strategy, number, seconds in times:
        for _ in range(number):
            timings = timings.after(strategy, seconds, 1.5, 60.0)
    return timings


def hit_of(id: str) -> dict[str, Any]:
    """A hit with a sketch."""
    fields = {"ndd.sketch": [1], "ndd.recipe": [Recipe().id]}
    return {"_index": "news", "_id": id, "_score": 1.0, "fields": fields}


def one_hit(_: Request) -> Answer:
    return Answer({"took": 1, "hits": {"total": {"value": 1, "relation": "eq"}, "hits": [hit_of("1")]}})


SEARCH = Request("POST", "/news/_search", {}, {}, {"query": MATCH})
