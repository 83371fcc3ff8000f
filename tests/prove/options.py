"""Searches of real engines with any combination of options: each page keeps what it promises (see walks).

A table of all pairs is a part of the tests. Here few options or many are drawn.
"""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from threading import Thread
from typing import Any

import ndd_search as ndd
from ndd_search.core.options import EVERY_SEARCH
from ndd_search.search.rest.mapping import mapping_properties
from tests.engines.find import Engine, Engines
from tests.engines.jars import Unavailable
from tests.prove.all_pairs import Row, is_allowed
from tests.prove.asked_once import connecting, serving_to
from tests.prove.walks import EXPLAINED, SEEN, UNSKETCHED, Walk, documents
from tests.redis_server import given_address, server
from tests.wrapping.conftest import Connect, bulk

ENGINES = ("elasticsearch9", "opensearch3")
WHICH = ("0", "1", "2")  # sets of documents
ITEMS = ndd.items.Items(body=ndd.items.Text(), isbn=ndd.items.Exact(), needs=[("body",), ("body", "isbn")])
MATCH: dict[str, Any] = {"match": {"body": "market"}}
VECTOR = {"type": "dense_vector", "dims": 2, "similarity": "l2_norm", "index_options": {"type": "flat"}}
NEAR = {"field": "vector", "query_vector": [0.0, 1.0], "k": 80, "num_candidates": 80}
SCORED = {"function_score": {"query": MATCH, "field_value_factor": {"field": "weight"}, "boost_mode": "replace"}}

OPTIONS: dict[str, list[Any]] = {  # the first value of each is the default, but for windows
    "min_similarity": ["auto", 0.6, "identical", "high"],
    "mode": ["group", "ids", "count", "drop", "demote", "annotate"],
    "window": [15, 4, 60],
    "max_window": [10_000, 60, 17],
    "max_per_group": [1, 2],
    "members": ["window", "all"],
    "keep": [
        ["score"],
        ["newest:day"],
        ["longest"],
        ["preferred:source=site2,site1", "oldest:day"],
        ["longest:body"],
        ["lowest:place"],
    ],
    "guards": [
        [],
        ["same:language"],
        ["numbers"],
        ["within:day=10d"],
        ["length:0.9"],
        ["same:language", "within:day=10d"],
        ["same:language", "numbers", "within:day=10d", "length:0.9"],
    ],
    "group_by": [[], ["isbn"], ["isbn", "work"]],
    "max_per": [[], ["source:2"], ["source:3", "isbn:1"]],
    "total": ["auto", "groups", "estimate", "hits"],
    "facets": [[], ["sources"]],
    "origins": [[], ["source"], ["source", "day"]],
}
OTHERS: dict[str, list[Any]] = {
    "seen": [None, "texts", "hits", "sketches"],
    "explain": [False, True],
    "items": [None, ITEMS],
    "given": ["body", "rule", "block", "url"],
    "enabled": [True, list(EVERY_SEARCH)],
    "paging": ["from", "cursor", "msearch", "template"],
    "cache": [True, False, "redis"],  # in a server, which two clients share
    "splits": [True, False],
    "frequency_table": [True, False],
    "keys": [8, 0],
    "query": ["sorted", "scored", "all", "tied", "neighbours", "knn"],  # the last two where there are vectors
    "k": [80, 6],  # of these two: as many as there are documents, or fewer
    "asked": ["body", "url", "more"],  # where size, from and sort stand
    "size": [5, 3, 12],
    "target": ["one", "pattern", "list", "alias"],  # one index, or two in each way of naming them
}
VALUES = {name: {str(value): value for value in values} for name, values in (OPTIONS | OTHERS).items()}
FACTORS = {name: list(values) for name, values in VALUES.items()}
NEED_SKETCHES = ("group_by", "max_per", "facets", "members")


def but(name: str, *values: Any) -> list[str]:
    """The other values of a factor, by their names."""
    return [value for value in FACTORS[name] if value not in map(str, values)]


REFUSED: list[dict[str, list[str]]] = [
    {"members": ["all"], "mode": ["drop", "demote", "annotate"]},
    {"members": ["all"], "max_per_group": ["2"]},
    {"window": ["60"], "max_window": ["17"]},
    {"items": but("items", None), "seen": but("seen", None)},
    {"items": but("items", None), "min_similarity": ["identical", "high"]},
    {"items": but("items", None), "keep": [str(["longest"])]},
    {"items": but("items", None), "guards": [one for one in FACTORS["guards"] if "numbers" in one or "length" in one]},
    *({"items": but("items", None), name: but(name, OPTIONS[name][0])} for name in NEED_SKETCHES),
    {"paging": ["cursor"], "mode": ["demote"]},
]
# Searches that nothing asks to be collapsed: only a body or `enabled` asks for those that do not rank, and templates.
LEFT_ALONE: list[dict[str, list[str]]] = [
    {"query": ["all"], "given": ["rule", "block"], "enabled": ["True"]},
    {"paging": ["template"], "given": ["rule", "block"], "enabled": ["True"]},
]
NOT_TOGETHER: list[dict[str, list[str]]] = [
    *LEFT_ALONE,
    {"query": ["neighbours", "knn"], "paging": ["cursor"]},
    {"given": ["url"], "items": but("items", None)},  # only a proxy reads a URL
    {"given": ["url"], "paging": ["template"]},
    {"asked": but("asked", "body"), "paging": ["template"]},
]
FIRST = {name: values[0] for name, values in FACTORS.items()}

AROUND = {"engine": list(ENGINES), "client": ["sync", "async", "proxy"], "which": list(WHICH)}
NOT_BY_PROXY: list[dict[str, list[str]]] = [  # what only a program in Python has, and what only a proxy reads
    {"client": ["proxy"], "given": ["block"]},
    {"client": ["proxy"], "items": but("items", None)},
    {"client": ["proxy"], "paging": ["template"]},
    {"client": ["sync", "async"], "given": ["url"]},
]

_SEARCHED = ("keys", "query", "k", "target", "size", "splits", "frequency_table")
WHOLE = ("total", "facets", "seen")  # what a page with a cursor shows beside its hits
_WHOLE = 0.15  # share of the cases that have all of it
_SHARES = (0.1, 0.3, 0.6, 1.0)  # of the factors with another value than their first
_ENDS = ("whole", "half0", "half1")  # of the names of indexes with the same documents


@dataclass(frozen=True)
class Place:
    """Where the searches of a row go. indexes: names by what is stored in them. clients: by kind, made when needed.

    redis: the address of a cache, None where there is none. changes: whether documents change.
    """

    engine: Engine
    indexes: dict[str, str]
    clients: dict[str, Connect]
    redis: str | None
    changes: bool

    def connect(self, client: str, served: ExitStack | None) -> Connect:
        """Return how to make clients. served: closes proxies."""
        if client not in self.clients:
            self.clients[client] = connecting(self.engine, client == "async", self.changes)
        connect = self.clients[client]
        return serving_to(self.engine, connect, served) if client == "proxy" and served is not None else connect

    def cache(self, value: bool | str) -> Any:
        """Return the cache of a row: a server if there is one, which this row alone uses."""
        if isinstance(value, bool) or self.redis is None:
            return bool(value)
        return ndd.plugins.RedisCache(self.redis, prefix=uuid.uuid4().hex, budget=60.0, seconds=600.0)


_running: dict[str, Place] = {}


def draw(rng: random.Random, shared: random.Random | None = None) -> Row:
    """Draw an engine, a client, a set of documents, and the values of some factors.

    shared: draws what decides most of the requests to an engine. For cases with equal ones, few requests are new.
    """
    row = _drawn(shared, _SEARCHED, Row()) if shared else Row()
    if rng.random() < _WHOLE and row.get("query") not in ("neighbours", "knn"):
        row |= {name: rng.choice(but(name, FACTORS[name][0])) for name in WHOLE} | {"paging": "cursor"}
    row = _drawn(rng, [name for name in FACTORS if name not in row], row)
    (client,) = rng.choices(AROUND["client"], weights=[3, 3, 1])
    if not is_allowed({**FIRST, **row, "client": client}, NOT_BY_PROXY):
        client = "proxy" if row.get("given") == "url" else "sync"
    shared = shared or rng
    return {"engine": shared.choice(ENGINES), "client": client, "which": shared.choice(WHICH)} | row


def _drawn(rng: random.Random, names: Sequence[str], row: Row) -> Row:
    """Return a row with values of a share of some factors."""
    share, row = rng.choice(_SHARES), Row(row)
    for name in rng.sample(list(names), len(names)):
        if rng.random() < share:
            refused, whole = [one for one in (*REFUSED, *NOT_TOGETHER) if name in one], FIRST | row
            row[name] = rng.choice([one for one in FACTORS[name] if is_allowed({**whole, name: one}, refused)])
    return row


def check(case: Row) -> Counter[str]:
    """Compare all pages of a search with what they promise. Returns what was compared. Raises AssertionError."""
    served = ExitStack()
    try:
        pages = walk_of(case, served).check()
    finally:
        Thread(target=served.close).start()  # a proxy takes its time to stop
    client = f"through a {case['client']}" if case.get("client") == "proxy" else "by clients"
    counts = Counter({"pages": pages, f"on {case.get('engine', ENGINES[0])}": 1, client: 1})
    if case.get("paging") == "cursor" and all(case.get(name, FIRST[name]) != FIRST[name] for name in WHOLE):
        counts["cursors with a total, facets and seen"] = 1
    return counts


@contextmanager
def servers(make: Callable[[Engine], AbstractContextManager[Place]] | None = None) -> Iterator[None]:
    """Find or start the engines, and make their indexes. make: those of one engine; None for all that options need."""
    engines = Engines(ENGINES, {})
    with ExitStack() as stack:
        stack.callback(engines.close)
        for name in ENGINES:
            engine = engines.get(name)
            stack.enter_context(make(engine) if make else running(engine, WHICH))
        yield


@contextmanager
def running(engine: Engine, which: Sequence[str], changes: bool = False) -> Iterator[Place]:
    """Make an index for each set of documents, with keys and without, and two for its halves.

    Every seventh document has no sketch. changes: whether requests change them.
    """
    prefix = f"ndd-options-{uuid.uuid4().hex[:8]}"
    number, keyword = {"type": "integer"}, {"type": "keyword"}
    fields: dict[str, Any] = {"place": number, "weight": number, "day": {"type": "date"}}
    fields |= dict.fromkeys(("source", "isbn", "work", "language"), keyword) | {"body": {"type": "text"}}
    if engine.family == "elasticsearch":
        fields |= {"vector": VECTOR}
    body = {
        "mappings": {"properties": {**mapping_properties(), **fields}},
        "settings": {"number_of_shards": 2, "number_of_replicas": 0},
    }
    names, actions = dict[str, str](), list[dict[str, Any]]()
    for one, keys in product(which, OTHERS["keys"]):
        name = names[f"{one} {keys}"] = f"{prefix}-{engine.name}-{one}-{keys}"
        given: Any = {"fields": ["body"], "keys": keys, "numbers": True}
        for half in (False, True):
            places = enumerate(documents(one))
            made = [{"_index": index_of(name, place, half), "_id": str(place), **each} for place, each in places]
            actions += ndd.with_sketches([each for each in made if each["place"] not in UNSKETCHED], **given)
            actions += [each for each in made if each["place"] in UNSKETCHED]
    with engine.client() as client, many_points_in_time(client, engine):
        try:
            for name in names.values():
                for end in _ENDS:
                    client.indices.create(index=f"{name}-{end}", body=body)
                client.indices.put_alias(index=f"{name}-half0,{name}-half1", name=f"{name}-both")
            bulk(engine, client, actions)
            with _redis() as redis:
                place = _running[engine.name] = Place(engine, names, {}, redis, changes)
                yield place
                for connect in place.clients.values():
                    connect(wrapped=False).close()
        finally:
            for name in names.values():
                client.indices.delete(index=",".join(f"{name}-{end}" for end in _ENDS), ignore_unavailable=True)


@contextmanager
def many_points_in_time(client: Any, engine: Engine) -> Iterator[None]:
    """Let OpenSearch hold more than 300 points in time: cursors that ended keep theirs for minutes."""
    if engine.family != "opensearch":
        yield
        return
    points = {"search.max_open_pit_context": 100_000}
    client.cluster.put_settings(body={"transient": points})
    try:
        yield
    finally:
        client.cluster.put_settings(body={"transient": dict.fromkeys(points)})


@contextmanager
def _redis() -> Iterator[str | None]:
    """Find or start a cache that clients share. None if this machine has none."""
    if (address := given_address()) or find_spec("redis") is None:
        yield address
        return
    with ExitStack() as stack:
        with suppress(Unavailable):
            address = stack.enter_context(server("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")).url
        yield address


def index_of(name: str, place: int, halves: bool) -> str:
    """Return the index that holds a document: the one with all of them, or one with half of them."""
    return f"{name}-{f'half{place % 2}' if halves else 'whole'}"


TARGETS = {"one": "{0}-whole", "pattern": "{0}-half*", "list": "{0}-half1,{0}-half0", "alias": "{0}-both"}


def walk_of(row: Row, served: ExitStack | None = None, place: Place | None = None) -> Walk:
    """Return the search of a row. What it lacks has its first value. served: closes proxies, for a row that has one.

    place: of its index, None for the one that is running.
    """
    row = FIRST | {"engine": ENGINES[0], "client": "sync", "which": WHICH[0]} | row
    place = place or _running[row["engine"]]
    engine, connect = place.engine, place.connect("proxy" if row["given"] == "url" else row["client"], served)
    values = {name: VALUES[name][row[name]] for name in FACTORS}
    name, made = place.indexes[f"{row['which']} {row['keys']}"], documents(row["which"])
    always = ("min_similarity", "window")  # the table's first values are not the defaults
    options = {name: values[name] for name in OPTIONS if name in always or row[name] != FIRST[name]}
    beside = {
        "seen": _seen(values["seen"], name, made, row["target"] != "one"),
        "explain": values["explain"] and EXPLAINED,
    }
    body: dict[str, Any] = {"size": values["size"], "query": MATCH}
    near = NEAR | {"k": values["k"]}
    match row["query"]:
        case "neighbours" | "knn" if engine.family != "elasticsearch":  # its published jars have no vectors
            body["query"] = SCORED
        case "neighbours":
            del body["query"]
            body["knn"] = near
        case "knn":
            body["query"] = {"knn": near}
        case "sorted":
            body["sort"] = [{"place": "asc"}]
        case "tied":
            body["sort"] = [{"day": "desc"}]
        case "scored":
            body["query"] = SCORED
        case "all":
            body["query"] = {"match_all": {}}
    if values["facets"]:
        body["aggs"] = {"sources": {"terms": {"field": "source"}}}
    paging = row["paging"]
    if paging == "template" and engine.family == "elasticsearch":  # the server of these tests has no mustache
        paging = "from"
    return Walk(
        connect=connect,
        index=TARGETS[row["target"]].format(name),
        rule=f"{name}*",
        documents=dict(enumerate(made)),
        body=body,
        options=options,
        beside={name: value for name, value in beside.items() if value},
        given=row["given"],
        enabled=values["enabled"],
        paging=paging,
        splits=values["splits"],
        shards=2 if row["target"] == "one" else 4,
        asked=row["asked"],
        cache=place.cache(values["cache"]),
        settings={"items": values["items"], "frequency_table": values["frequency_table"]},
    )


def _seen(form: str | None, name: str, made: list[dict[str, Any]], halves: bool) -> list[Any]:
    """Return what was shown before."""
    match form:
        case "texts":
            return [made[place]["body"] for place in SEEN]
        case "hits":
            return [{"_index": index_of(name, place, halves), "_id": str(place)} for place in SEEN]
        case "sketches":
            return [ndd.sketch(made[place]["body"]).tolist() for place in SEEN]
    return []
