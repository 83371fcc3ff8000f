"""Searches of real engines with any combination of options: each page keeps what it promises (see walks).

A table of all pairs is a part of the tests. Here few options or many are drawn.
"""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product
from typing import Any

import ndd_search as ndd
from ndd_search.core.options import EVERY_SEARCH
from ndd_search.search.rest.mapping import mapping_properties
from tests.engines.find import Engine, Engines
from tests.prove.all_pairs import Row, is_allowed
from tests.prove.asked_once import connecting, serving_to
from tests.prove.walks import EXPLAINED, SEEN, UNSKETCHED, Walk, documents
from tests.wrapping.conftest import Connect, bulk

ENGINES = ("elasticsearch9", "opensearch3")
WHICH = ("0", "1", "2")  # sets of documents
ITEMS = ndd.items.Items(body=ndd.items.Text(), isbn=ndd.items.Exact(), needs=[("body",), ("body", "isbn")])
MATCH: dict[str, Any] = {"match": {"body": "market"}}
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
    "must_match": [[], ["language"]],
    "group_by": [[], ["isbn"], ["isbn", "work"]],
    "max_per": [{}, {"source": 2}, {"source": 3, "isbn": 1}],
    "numbers_must_match": [False, True],
    "max_apart": [{}, {"day": "10d"}],
    "min_length_ratio": [0.0, 0.9],
    "seen_mode": ["hide", "demote", "annotate"],
    "also": [[], list(EVERY_SEARCH)],
    "total": ["auto", "groups", "estimate", "hits"],
    "facets": [[], ["sources"]],
    "origins": [[], ["source"], ["source", "day"]],
}
OTHERS: dict[str, list[Any]] = {
    "seen": [None, "texts", "hits", "sketches"],
    "explain": [False, True],
    "items": [None, ITEMS],
    "given": ["body", "rule", "block"],
    "paging": ["from", "cursor", "msearch", "template"],
    "cache": [True, False],
    "splits": [True, False],
    "frequency_table": [True, False],
    "storage": ["integers", "packed", "both"],
    "keys": [8, 0],
    "query": ["sorted", "scored", "all", "tied"],
    "size": [5, 3, 12],
    "target": ["one", "pattern", "list", "alias"],  # one index, or two in each way of naming them
}
VALUES = {name: {str(value): value for value in values} for name, values in (OPTIONS | OTHERS).items()}
FACTORS = {name: list(values) for name, values in VALUES.items()}
NEED_SKETCHES = ("min_length_ratio", "group_by", "max_per", "facets", "members", "numbers_must_match")


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
    *({"items": but("items", None), name: but(name, OPTIONS[name][0])} for name in NEED_SKETCHES),
    {"paging": ["cursor"], "seen_mode": ["demote"], "seen": but("seen", None)},
    {"paging": ["cursor"], "mode": ["demote"]},
]
# Searches that nothing asks to be collapsed: only a body, or `also`, asks for those that do not rank and for templates.
LEFT_ALONE: list[dict[str, list[str]]] = [
    {"query": ["all"], "given": ["rule", "block"], "also": ["[]"]},
    {"paging": ["template"], "given": ["rule", "block"], "also": ["[]"]},
]
FIRST = {name: values[0] for name, values in FACTORS.items()}

AROUND = {"engine": list(ENGINES), "client": ["sync", "async", "proxy"], "which": list(WHICH)}
NOT_BY_PROXY: list[dict[str, list[str]]] = [  # what only a program in Python has
    {"client": ["proxy"], name: values}
    for name, values in {"given": ["block"], "items": but("items", None), "paging": ["template"]}.items()
]

_SHARES = (0.1, 0.3, 0.6, 1.0)  # of the factors with another value than their first
_ENDS = ("whole", "half0", "half1")  # of the names of indexes with the same documents
_running: dict[str, tuple[Engine, dict[str, str], dict[str, Connect]]] = {}


def draw(rng: random.Random) -> Row:
    """Draw an engine, a client, a set of documents, and the values of some factors."""
    share, row = rng.choice(_SHARES), Row()
    for name in rng.sample(list(FACTORS), len(FACTORS)):
        if rng.random() < share:
            values = [one for one in FACTORS[name] if is_allowed({**FIRST, **row, name: one}, [*REFUSED, *LEFT_ALONE])]
            row[name] = rng.choice(values)
    (client,) = rng.choices(AROUND["client"], weights=[3, 3, 1])
    if not is_allowed({**FIRST, **row, "client": client}, NOT_BY_PROXY):
        client = "sync"
    return {"engine": rng.choice(ENGINES), "client": client, "which": rng.choice(WHICH)} | row


def check(case: Row) -> Counter[str]:
    """Compare all pages of a search with what they promise. Returns what was compared. Raises AssertionError."""
    with ExitStack() as served:
        pages = walk_of(case, served).check()
    client = f"through a {case['client']}" if case.get("client") == "proxy" else "by clients"
    return Counter({"pages": pages, f"on {case.get('engine', ENGINES[0])}": 1, client: 1})


@contextmanager
def servers() -> Iterator[None]:
    """Find or start the engines, and make their indexes."""
    engines = Engines(ENGINES, {})
    with ExitStack() as stack:
        stack.callback(engines.close)
        for name in ENGINES:
            stack.enter_context(running(engines.get(name), WHICH))
        yield


@contextmanager
def running(engine: Engine, which: Sequence[str]) -> Iterator[None]:
    """Make an index for each set of documents and form of storage, with keys and without, and two for its halves.

    Every seventh document has no sketch.
    """
    prefix = f"ndd-options-{uuid.uuid4().hex[:8]}"
    number, keyword = {"type": "integer"}, {"type": "keyword"}
    fields = {"place": number, "weight": number, "day": {"type": "date"}}
    fields |= dict.fromkeys(("source", "isbn", "work", "language"), keyword) | {"body": {"type": "text"}}
    body = {
        "mappings": {"properties": {**mapping_properties(), **fields}},
        "settings": {"number_of_shards": 2, "number_of_replicas": 0},
    }
    names, actions = dict[str, str](), list[dict[str, Any]]()
    for one, storage, keys in product(which, OTHERS["storage"], OTHERS["keys"]):
        name = names[f"{one} {storage} {keys}"] = f"{prefix}-{engine.name}-{one}-{storage}-{keys}"
        given: Any = {"fields": ["body"], "keys": keys, "numbers": True, "storage": storage}
        for half in (False, True):
            places = enumerate(documents(one))
            made = [{"_index": index_of(name, place, half), "_id": str(place), **each} for place, each in places]
            actions += ndd.with_sketches([each for each in made if each["place"] not in UNSKETCHED], **given)
            actions += [each for each in made if each["place"] in UNSKETCHED]
    with engine.client() as client:
        try:
            for name in names.values():
                for end in _ENDS:
                    client.indices.create(index=f"{name}-{end}", body=body)
                client.indices.put_alias(index=f"{name}-half0,{name}-half1", name=f"{name}-both")
            bulk(engine, client, actions)
            _running[engine.name] = engine, names, {}
            yield
        finally:
            for name in names.values():
                client.indices.delete(index=",".join(f"{name}-{end}" for end in _ENDS), ignore_unavailable=True)


def index_of(name: str, place: int, halves: bool) -> str:
    """Return the index that holds a document: the one with all of them, or one with half of them."""
    return f"{name}-{f'half{place % 2}' if halves else 'whole'}"


TARGETS = {"one": "{0}-whole", "pattern": "{0}-half*", "list": "{0}-half1,{0}-half0", "alias": "{0}-both"}


def walk_of(row: Row, served: ExitStack | None = None) -> Walk:
    """Return the search of a row. What it lacks has its first value. served: closes proxies, for a row that has one."""
    row = FIRST | {"engine": ENGINES[0], "client": "sync", "which": WHICH[0]} | row
    engine, indexes, clients = _running[row["engine"]]
    if row["client"] not in clients:
        clients[row["client"]] = connecting(engine, row["client"] == "async")
    connect = clients[row["client"]]
    if served is not None and row["client"] == "proxy":
        connect = serving_to(engine, connect, served)
    values = {name: VALUES[name][row[name]] for name in FACTORS}
    name, made = indexes[f"{row['which']} {row['storage']} {row['keys']}"], documents(row["which"])
    always = ("min_similarity", "window")  # the table's first values are not the defaults
    options = {name: values[name] for name in OPTIONS if name in always or row[name] != FIRST[name]}
    beside = {
        "seen": _seen(values["seen"], name, made, row["target"] != "one"),
        "explain": values["explain"] and EXPLAINED,
    }
    body: dict[str, Any] = {"size": values["size"], "query": MATCH}
    match row["query"]:
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
        documents=made,
        body=body,
        options=options,
        beside={name: value for name, value in beside.items() if value},
        given=row["given"],
        paging=paging,
        splits=values["splits"],
        cache=values["cache"],
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
