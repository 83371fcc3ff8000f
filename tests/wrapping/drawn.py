"""Searches drawn at random from the parts that searches are made of, and the index that they are for."""

from __future__ import annotations

import random
from typing import Any

from tests.engines.find import Engine
from tests.wrapping.library import DIMENSIONS, documents, mapping

Body = dict[str, Any]

YEAR = {"field": "published", "format": "yyyy"}
NEAR = {"field": "vector", "query_vector": [1.0] * DIMENSIONS, "k": 200, "num_candidates": 200}  # more than there are
REPORTS: Body = {"match": {"title": "report"}}
COMMENTS: Body = {"nested": {"path": "comments", "query": {"range": {"comments.stars": {"gte": 1}}}}}
LEAVES: list[Body] = [
    *[{"match": {"body": "market"}}] * 4,
    REPORTS,
    {"match_all": {}},
    {"term": {"language": "en"}},
    {"range": {"price": {"gte": 8}}},
    {"query_string": {"query": "market AND NOT language:de"}},
    {"more_like_this": {"fields": ["title"], "like": "story market", "min_term_freq": 1, "min_doc_freq": 1}},
    {"distance_feature": {"field": "published", "origin": "2024-06-01", "pivot": "30d"}},
    {"geo_distance": {"distance": "5000km", "where": {"lat": 0, "lon": 0}}},
    {"ids": {"values": ["7-0", "7-1"]}},
    COMMENTS,
    {"nested": {**COMMENTS["nested"], "inner_hits": {"size": 1, "_source": ["comments.stars"], "version": True}}},
    {"nosuchquery": {}},
]
TOPS: Body = {
    "hits": {"top_hits": {"size": 2}},
    "priced": {"top_hits": {"_source": False, "docvalue_fields": ["price"], "sort": [{"price": "desc"}]}},
}
# Parts of a body by name: the share of searches that have it, and what it may be.
PARTS: dict[str, tuple[float, list[Any]]] = {
    "size": (0.8, [0, 1, 3, 5, 10, 20, 1000, "5", -1, 10_001]),
    "from": (0.3, [0, 1, 10, 40, 500, "3"]),
    "sort": (0.3, ["price", [{"price": "desc"}, "site"], ["_score", {"published": "asc"}], "_doc", [], ("language",)]),
    "_source": (0.4, [False, "title", ["ti*", "price"], [], {"excludes": ["body"]}, ["ndd.recipe"], ("site",), None]),
    "fields": (0.2, [["price"], ["*"], [YEAR], ["comments.*", "where"], ["ndd.*"], "title"]),
    "docvalue_fields": (0.2, [["price"], [YEAR, "site"], ["language"], ["ndd.recipe"]]),
    "stored_fields": (0.06, [["_routing"], "_none_", "_source"]),
    "highlight": (0.15, [{"fields": {"body": {"number_of_fragments": 1}}}]),
    "aggs": (0.3, [TOPS, {"en": {"filter": REPORTS, "aggs": TOPS}}, {"mean": {"avg": {"field": "price"}}}]),
    "suggest": (0.15, [{"begun": {"prefix": "story", "completion": {"field": "begun", "size": 3}}}]),
    "collapse": (0.1, [{"field": "site"}, {"field": "language", "inner_hits": {"name": "more", "size": 2}}]),
    "rescore": (0.1, [{"window_size": 15, "query": {"rescore_query": REPORTS, "query_weight": 0.3}}]),
    "post_filter": (0.1, [{"term": {"language": "en"}}]),
    "min_score": (0.05, [0.05]),
    "track_total_hits": (0.2, [True, False, 10]),
    "indices_boost": (0.05, [[{"nosuch": 2}]]),
    "profile": (0.04, [True]),
    **dict.fromkeys(("explain", "version", "seq_no_primary_term", "track_scores"), (0.1, [True])),
}  # fmt: skip
PARAMS: dict[str, list[str]] = {
    "_source": ["title", "false", "ndd.*"],
    "_source_includes": ["*"],
    "_source_excludes": ["body,comments"],
    "docvalue_fields": ["price"],
    "size": ["5", "many"],
    "q": ["body:market", "_id:7-0"],
    "typed_keys": ["true"],
    "rest_total_hits_as_int": ["true"],
    "preference": ["_local", "mine"],
    "routing": ["north"],
    "search_type": ["dfs_query_then_fetch"],
    "request_cache": ["false"],
    "nosuchparameter": ["1"],
}
OPTIONS: dict[str, list[Any]] = {
    "mode": ["ids", "count", "drop", "annotate"],
    "keep": [["newest:published"], ["longest"]],
    "guards": [["same:price"], ["same:language"]],
    "group_by": ["site", "published"],
    "max_per": [["site:2"]],
    "total": ["groups", "estimate", "hits"],
    "window": [5, 100],
    "cache": [False],
    "min_similarity": ["auto", "identical"],
}


class Draw:
    """Draws searches for one engine."""

    def __init__(self, seed: str, engine: Engine) -> None:
        self.rng, self.family = random.Random(seed), engine.family

    def query(self, depth: int = 0) -> Body:
        """One clause, or clauses in others."""
        pick = self.rng.random()
        if depth == 2 or pick < 0.5:
            return self.rng.choice(LEAVES)
        one, other = self.query(depth + 1), self.query(depth + 1)
        if pick < 0.7:
            place = self.rng.choice(["should", "filter", "must_not"])
            return {"bool": {"must": one, place: [other]}}
        if pick < 0.8:
            return {"function_score": {"query": one, "field_value_factor": {"field": "price", "missing": 1}}}
        if pick < 0.9:
            return {"function_score": {"query": one, "random_score": {"seed": 7, "field": "_seq_no"}}}
        return {"dis_max": {"queries": [one, other]}}

    def body(self) -> Body:
        """A body, sometimes one that engines refuse."""
        body = {"query": self.query()} if self.rng.random() < 0.95 else {}
        if self.family == "elasticsearch" and self.rng.random() < 0.1:
            body = self.rng.choice([{"knn": NEAR}, {"query": {"knn": NEAR}}, {"retriever": {"standard": body}}])
        for name, (share, values) in PARTS.items():
            if self.rng.random() < share:
                body[name] = self.rng.choice(values)
        if self.family == "opensearch" and "collapse" in body:
            body.pop("suggest", None)  # OpenSearch 3.8 fails with 500 if it has both and finds more hits than groups
        return body or {"size": 10}  # an empty body needs a header of its own

    def params(self) -> dict[str, str]:
        names = [name for name in PARAMS if self.rng.random() < 0.03]
        return {name: self.rng.choice(PARAMS[name]) for name in names}

    def options(self) -> Any:
        """What the "ndd" of a search may be, None for a search without it."""
        if self.rng.random() < 0.4:
            return self.rng.choice([None, None, True, False])
        names = [name for name in OPTIONS if self.rng.random() < 0.15]
        return {name: self.rng.choice(OPTIONS[name]) for name in names}


def rich_documents() -> list[Body]:
    """The documents of the library with fields of more types; some lack a price, some have a routing."""
    rng, made = random.Random(5), []
    for number, document in enumerate(documents()):
        one = {**document, "where": {"lat": rng.randrange(-60, 60), "lon": rng.randrange(-90, 90)}}
        one["comments"] = [{"stars": rng.randrange(5), "text": "good"} for _ in range(rng.randrange(3))]
        one["begun"] = {"input": [document["title"]], "weight": number}
        if rng.random() < 0.2:
            del one["price"]
        if rng.random() < 0.1:
            one["_routing"] = "north"
        made.append(one)
    return made


def rich_mapping(engine: Engine) -> Body:
    made = mapping(engine)
    comments = {"type": "nested", "properties": {"stars": {"type": "integer"}, "text": {"type": "text"}}}
    made["mappings"]["properties"] |= {
        "comments": comments,
        "where": {"type": "geo_point"},
        "begun": {"type": "completion"},
    }
    return made
