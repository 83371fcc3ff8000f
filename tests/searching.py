"""Searches and their answers, for tests of conversations without an engine."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

from ndd_search.core.recipe import Recipe
from ndd_search.search.flow.client_settings import Settings
from ndd_search.search.flow.learned_targets import Facts, Learned
from ndd_search.search.rest.read_answer import Answer
from ndd_search.search.rest.read_request import Request

MATCH = {"match": {"body": "market"}}


class _Refused(Learned):
    """What a client has learned whose split searches every target refuses."""

    def about(self, key: bytes) -> Facts:
        return replace(super().about(key), whole_until=inf)


def in_one_phase(settings: Settings) -> Settings:
    """The same settings, with which every search is fetched in one phase."""
    settings.known = _Refused()
    return settings


def hit_of(id: str) -> dict[str, Any]:
    """A hit with a sketch."""
    fields = {"ndd.sketch": [1], "ndd.recipe": [Recipe().id]}
    return {"_index": "news", "_id": id, "_seq_no": 1, "_primary_term": 1, "_score": 1.0, "fields": fields}


def one_hit(_: Request) -> Answer:
    return Answer({"took": 1, "hits": {"total": {"value": 1, "relation": "eq"}, "hits": [hit_of("1")]}})


SEARCH = Request("POST", "/news/_search", {}, {}, {"query": MATCH})
