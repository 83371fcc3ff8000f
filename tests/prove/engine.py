"""A search engine of one index in memory, in the shapes of Elasticsearch: search, msearch, points in time, writes.

It has a companion index beside it, with the frequency table that a backfill stores there.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from ndd_search.core.matching.document_frequency import count_document_frequency
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.stored_sketch import KEYS, SketchField, keys_of
from ndd_search.search.flow.choose_frequency_table import document, document_id
from ndd_search.search.rest.read_answer import Answer, parsed
from ndd_search.search.rest.read_request import Request

INDEX = "news"
UNREADABLE = {"error": {"root_cause": [{"reason": "a document cannot be read"}]}, "status": 500}
MISSING: dict[str, Any] = {"error": {"type": "search_context_missing_exception"}, "status": 404}


class Engine:
    """Documents by id, as in `oracle`, with a "score" and a "text". One that is written again keeps its place.

    before: called with the number of each request that is no write to the index, before it is answered.
    caller: who asks; "guest" may read two documents of three, anybody else each.
    unreadable: ids of documents that cannot be fetched. Where an answer would hold one, the hits of its shard are
                missing, or with one shard the search fails. shards: one or two.
    """

    def __init__(self, recipe: str) -> None:
        self.recipe = recipe
        self.documents: dict[str, dict[str, Any]] = {}
        self.tables: dict[str, Any] = {}
        self.points: dict[str, list[dict[str, Any]]] = {}
        self.answered = 0
        self.caller = ""
        self.unreadable: set[str] = set()
        self.shards = 1
        self.before: Callable[[int], None] = lambda number: None
        self._opened = 0
        self._written = Counter[bool]()  # documents, of each of two shards

    def ranked(self) -> list[dict[str, Any]]:
        """The documents as every search of the caller finds them: by score, then by age."""
        found = [one for one in self.documents.values() if self.caller != "guest" or sum(map(ord, one["id"])) % 3]
        return sorted(found, key=lambda one: -one["score"])

    def write(self, document: dict[str, Any]) -> None:
        shard = sum(map(ord, document["id"])) % 2 == 0
        self.documents[document["id"]] = {**document, "number": self._written[shard]}
        self._written[shard] += 1

    def delete(self, id: str) -> None:
        self.documents.pop(id, None)

    def store_table(self) -> None:
        """Store the frequency table of the documents, as a backfill does."""
        recipe, where = Recipe.of(self.recipe), SketchField()
        found = [np.array(one["values"], np.int32) for one in self.ranked() if one["lack"] == ""]
        table = count_document_frequency(found, recipe)
        self.tables[document_id(INDEX, where, recipe.id)] = document(INDEX, where, table)

    def send(self, request: Request) -> Answer:
        """Answer a request."""
        name = request.path.rpartition("/")[2]
        if request.path.startswith(f"/{INDEX}/_doc/"):
            return self._answer_to_write(request)
        self.before(self.answered)
        self.answered += 1
        if name == "_pit":
            return self._point(request)
        if name == "_msearch":
            searches = request.body[1::2]
            parts = [self._search(request.path, one) for one in searches]
            return Answer({"took": 1, "responses": [{**one.body, "status": one.status} for one in parts]})
        return self._search(request.path, request.body)

    def _answer_to_write(self, request: Request) -> Answer:
        id = request.path.rpartition("/")[2]
        if request.method == "DELETE":
            self.delete(id)
        else:
            self.write(request.body)
        return Answer({"_index": INDEX, "_id": id, "result": "updated"})

    def _point(self, request: Request) -> Answer:
        if request.method == "DELETE":
            return Answer({"succeeded": self.points.pop(request.body["id"], None) is not None})
        self._opened += 1
        self.points[f"point{self._opened}"] = self.ranked()
        return Answer({"id": f"point{self._opened}"})

    def _search(self, path: str, body: dict[str, Any]) -> Answer:
        if not path.startswith(f"/{INDEX}/") and "pit" not in body:
            return Answer(self._stored_tables(body["query"]["ids"]["values"]))
        point = body["pit"]["id"] if "pit" in body else None
        if point is not None and point not in self.points:
            return Answer(MISSING, 404)
        found = self.ranked() if point is None else self.points[point]
        rows = list(enumerate(found))
        rows = [row for row in rows if _score(body.get("query", {}), row[1])]
        by_value = self._is_sorted_by_value(body)
        if by_value:
            missing = -1 if "_first" in str(body["sort"]) else 2**31
            rows.sort(key=lambda row: (row[1]["values"] or [missing])[0])
        elif "rescore" in body:
            rows.sort(key=lambda row: -_score(body["query"], row[1]))
        total = {"value": len(rows), "relation": "eq"}
        aggregated = self._aggregated(body["aggs"], [one for _, one in rows]) if "aggs" in body else None
        if "search_after" in body:
            after = tuple(body["search_after"])
            rows = [row for row in rows if (-row[1]["score"], row[0]) > (-after[0], after[1])]
        start, size = body.get("from", 0), body.get("size", 10)
        rows, failed = rows[start : start + size], 0
        if body.get("_source") is not False and (bad := {self._shard(one) for _, one in rows if self._is_bad(one)}):
            rows, failed = [row for row in rows if self._shard(row[1]) not in bad], len(bad)
            if failed == self.shards:
                return Answer(UNREADABLE, 500)
        hits = [self._hit(place, one, body) for place, one in rows]
        if by_value:
            hits = [
                {**hit, "sort": one["values"][:1] if one["values"] else [2**63 - 1]}
                for hit, (_, one) in zip(hits, rows, strict=True)
            ]
        shards = {"total": self.shards, "successful": self.shards - failed, "failed": failed}
        answer = {"took": 1, "timed_out": False, "_shards": shards}
        counted = {} if body.get("track_total_hits") is False else {"total": total}
        if point is not None:
            answer["pit_id"] = point
        if aggregated is not None:
            answer["aggregations"] = aggregated
        return Answer({**answer, "hits": {**counted, "max_score": hits[0]["_score"] if hits else None, "hits": hits}})

    def _is_bad(self, document: dict[str, Any]) -> bool:
        return document["id"] in self.unreadable

    def _shard(self, document: dict[str, Any]) -> int:
        return int(document["id"][1:] or 0) % self.shards

    def _aggregated(self, asked: dict[str, Any], documents: list[dict[str, Any]]) -> dict[str, Any]:
        """The aggregations of some documents."""
        return {name: self._aggregation(one, documents) for name, one in asked.items()}

    def _aggregation(self, asked: dict[str, Any], documents: list[dict[str, Any]]) -> dict[str, Any]:
        def bucket(those: list[dict[str, Any]], **key: Any) -> dict[str, Any]:
            return {**key, "doc_count": len(those), **self._aggregated(asked.get("aggs", {}), those)}

        match asked:
            case {"terms": {"field": field}}:
                counts = Counter(one[field] for one in documents if one[field] is not None)
                order = sorted(counts, key=lambda key: (-counts[key], key))
                return {"buckets": [bucket([one for one in documents if one[field] == key], key=key) for key in order]}
            case {"range": {"field": field, "ranges": ranges}}:
                return {"buckets": [bucket([one for one in documents if _is_in(one, field, each)]) for each in ranges]}
            case {"filters": {"filters": filters}}:
                return {
                    "buckets": {name: bucket([d for d in documents if _score(q, d)]) for name, q in filters.items()}
                }
            case {"filter": query}:
                return bucket([one for one in documents if _score(query, one)])
            case {"missing": _}:
                return bucket([one for one in documents if not one["values"]])
            case {"top_hits": given}:
                first = sorted(documents, key=lambda one: one["values"] or [2**31])[: given["size"]]
                return {"hits": {"hits": [self._hit(0, one, given) for one in first]}}
        raise AssertionError(f"an aggregation that this engine does not know: {asked}")

    def _is_sorted_by_value(self, body: dict[str, Any]) -> bool:
        """Return whether the hits are sorted by their smallest value."""
        paths = {"ndd.sketch", "ndd.smallest"}
        return any(paths & one.keys() for one in body.get("sort", ()) if isinstance(one, dict))

    def _stored_tables(self, ids: list[str]) -> dict[str, Any]:
        found = [{"_index": "ndd-tables", "_id": id, "_source": self.tables[id]} for id in ids if id in self.tables]
        shards = {"total": 1 if self.tables else 0, "failed": 0}
        return {"took": 1, "_shards": shards, "hits": {"total": {"value": len(found), "relation": "eq"}, "hits": found}}

    def _hit(self, place: int, document: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        stored = stored_of(document, self.recipe)
        hit: dict[str, Any] = {"_index": INDEX, "_score": document["score"]}
        if body.get("stored_fields") != "_none_":
            hit["_id"] = document["id"]
        if body.get("seq_no_primary_term"):
            hit["_seq_no"], hit["_primary_term"] = document["number"], 1
        if body.get("_source") is not False:
            hit["_source"] = source = source_of(document)
            if stored:
                excluded = isinstance(body.get("_source"), dict)
                source["ndd"] = {name: one for name, one in stored.items() if not (excluded and name == "sketch")}
        fields: dict[str, Any] = {}
        for path in body.get("docvalue_fields", ()):
            value = stored.get(path.rpartition(".")[2]) if path.startswith("ndd.") else None
            if value is not None and value != []:
                fields[path] = list(value) if isinstance(value, list) else [value]
        for name in body.get("fields", ()):
            if document.get(name) is not None:
                fields[name] = [document[name]]
        if fields:
            hit["fields"] = fields
        if "pit" in body:
            hit["sort"] = [document["score"], place]
        return hit


def read_by_client(request: Request, answer: Answer) -> Answer:
    """Return an answer as a client parses it from its text: without the sketches that a request lets be cut out."""
    if request.cut is None:
        return answer
    body, cut = parsed(json.dumps(answer.body), json.loads, request.cut)
    return Answer(body, answer.status, raw=body, cut=cut)


def _score(query: dict[str, Any], document: dict[str, Any]) -> int:
    """Return how well a query matches a document: the number of optional clauses, else 1; 0 if it does not match."""
    match query:
        case {"constant_score": {"filter": inner}}:
            return _score(inner, document)
        case {"terms": {"_seq_no": numbers}}:
            return int(document["number"] in numbers)
        case {"bool": clauses}:
            needed = [_score(one, document) for name in ("must", "filter") for one in clauses.get(name, ())]
            needed += [not _score(one, document) for one in clauses.get("must_not", ())]
            found = sum(_score(one, document) for one in clauses.get("should", ()))
            return max(found, 1) if all(needed) and found >= clauses.get("minimum_should_match", 0) else 0
    return int(_matches(query, document))


def _matches(query: dict[str, Any], document: dict[str, Any]) -> bool:
    match query:
        case {"ids": {"values": ids}}:
            return document["id"] in ids
        case {"exists": _}:
            return bool(document["values"])
        case {"term": {"ndd_keys": key}}:
            return key in keys_of(document["values"] or [], KEYS)
        case {"term": {"ndd.recipe": _}}:
            return document["values"] is not None
        case {"term": {"price": price}}:
            return bool(document["price"] == price)
    return True


def _is_in(document: dict[str, Any], field: str, limits: dict[str, int]) -> bool:
    """Return whether a document has a number of a range in a field, or its smallest value."""
    number = document.get(field) if field == "time" else (document["values"] or [None])[0]
    return number is not None and limits.get("from", -1) <= number < limits.get("to", 2**31)


def source_of(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document as its owner wrote it, without the sketch."""
    fields = {name: document[name] for name in ("price", "time") if document[name] is not None}
    return {"text": document["text"], **fields}


def stored_of(document: dict[str, Any], recipe: str) -> dict[str, Any]:
    """Return the object with the sketch that is stored in a document, empty if there is none."""
    numbers = {} if document["numbers"] is None else {"numbers": document["numbers"]}
    match document["lack"]:
        case "missing":
            return {}
        case "empty":
            return {"sketch": [], "recipe": recipe, **numbers}
        case "foreign":
            return {"sketch": [1, 2, 3], "recipe": "w9-k64-v4", **numbers}
        case "malformed":
            return {"sketch": [-5, 2, 3], "recipe": recipe, **numbers}
    return {"sketch": list(document["values"]), "recipe": recipe, **numbers}
