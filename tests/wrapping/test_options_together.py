"""Each value of each option meets each value of every other one, on all pages of a search, on each server.

The rows are generated (see all_pairs). A row holds what every page promises (see walks). REFUSED names the
combinations that have no meaning: each is refused with a sentence that names its options, and all others work.
NDD_TEST_LONG=1 checks many tables, whose rows combine the same pairs in other ways.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.core.options import EVERY_SEARCH, KINDS
from ndd_search.indexing.mapping import mapping_properties
from tests.engines.find import Engine
from tests.wrapping.all_pairs import Row, all_pairs, each_of
from tests.wrapping.conftest import Connect, bulk
from tests.wrapping.walks import DOCUMENTS, EXPLAINED, SEED, SEEN, UNSKETCHED, Walk, document

pytestmark = [pytest.mark.one_kind_of_client, pytest.mark.newest_servers]

TABLES = 40 if os.environ.get("NDD_TEST_LONG") else 1
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
    "query": ["sorted", "scored", "all"],
    "size": [5, 3, 12],
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
    {"max_per": but("max_per", {}), "keep": but("keep", ["score"])},
    {"max_per": but("max_per", {}), "max_per_group": ["2"]},
    {"window": ["60"], "max_window": ["17"]},
    {"items": but("items", None), "seen": but("seen", None)},
    {"items": but("items", None), "min_similarity": ["identical", "high"]},
    {"items": but("items", None), "keep": [str(["longest"])]},
    *({"items": but("items", None), name: but(name, OPTIONS[name][0])} for name in NEED_SKETCHES),
    {"paging": ["cursor"], "items": but("items", None)},
    {"paging": ["cursor"], "explain": ["True"]},
    {"paging": ["cursor"], "seen_mode": ["demote"], "seen": but("seen", None)},
    {"paging": ["cursor"], "mode": ["demote"]},
    {"paging": ["cursor"], "max_per_group": ["2"], "keep": but("keep", ["score"])},
]
# Searches that nothing asks to be collapsed: only a body, or `also`, asks for those that do not rank and for templates.
LEFT_ALONE: list[dict[str, list[str]]] = [
    {"query": ["all"], "given": ["rule", "block"], "also": ["[]"]},
    {"paging": ["template"], "given": ["rule", "block"], "also": ["[]"]},
]
FIRST = {name: values[0] for name, values in FACTORS.items()}
FAULTS: list[dict[str, Any]] = [  # three or more options that once failed together
    {"size": 5, "group_by": ["isbn"], "window": 4},
    {"size": 3, "members": "all", "max_per": {"source": 3, "isbn": 1}, "window": 15},
    {"size": 5, "mode": "annotate", "seen": "texts", "window": 15},
    {"size": 5, "mode": "demote", "seen": "texts", "window": 4},
    {"size": 12, "max_window": 17, "window": 4},
    {"size": 12, "facets": ["sources"], "seen": "texts", "window": 60},
    {"size": 3, "items": ITEMS, "total": "estimate", "window": 4},
]
TABLE: list[Row] = [FIRST | {name: str(value) for name, value in one.items()} for one in FAULTS]
for number in range(TABLES):
    TABLE += all_pairs(FACTORS, [*REFUSED, *LEFT_ALONE], f"{SEED} {number}")


@pytest.fixture(scope="module")
def indexes(engine: Engine) -> Iterator[dict[str, str]]:
    """An index for each form of storage, with keys and without; every seventh document has no sketch."""
    prefix = f"ndd-options-{uuid.uuid4().hex[:8]}"
    number, keyword = {"type": "integer"}, {"type": "keyword"}
    fields = {"place": number, "weight": number, "day": {"type": "date"}}
    fields |= dict.fromkeys(("source", "isbn", "work", "language"), keyword) | {"body": {"type": "text"}}
    names = {f"{one} {keys}": f"{prefix}-{one}-{keys}" for one, keys in product(OTHERS["storage"], OTHERS["keys"])}
    with engine.client() as client:
        for which, name in names.items():
            storage, keys = which.split()
            body = {"mappings": {"properties": {**mapping_properties(keys=True), **fields}}}
            client.indices.create(index=name, body={**body, "settings": {"number_of_shards": 2}})
            made = [{"_index": name, "_id": str(place), **document(place)} for place in range(DOCUMENTS)]
            sketched = [one for one in made if one["place"] not in UNSKETCHED]
            rest = [one for one in made if one["place"] in UNSKETCHED]
            given: Any = {"fields": ["body"], "keys": int(keys), "numbers": True, "storage": storage}
            bulk(engine, client, [*ndd.with_sketches(sketched, **given), *rest])
        yield names
        client.indices.delete(index=",".join(names.values()))


def walk_of(row: Row, indexes: dict[str, str], engine: Engine, connect: Connect) -> Walk:
    """The search of a row."""
    values = {name: VALUES[name][value] for name, value in row.items()}
    index = indexes[f"{row['storage']} {row['keys']}"]
    always = ("min_similarity", "window")  # the clients of these tests have others
    options = {name: values[name] for name in OPTIONS if name in always or row[name] != FACTORS[name][0]}
    beside = {"seen": seen_of(values["seen"], index), "explain": EXPLAINED}
    body: dict[str, Any] = {"size": values["size"], "query": MATCH}
    match row["query"]:
        case "sorted":
            body["sort"] = [{"place": "asc"}]
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
        index=index,
        body=body,
        options=options,
        beside={name: value for name, value in beside.items() if values[name]},
        given=row["given"],
        paging=paging,
        splits=values["splits"],
        cache=values["cache"],
        settings={"items": values["items"], "frequency_table": values["frequency_table"]},
    )


def seen_of(form: str | None, index: str) -> list[Any]:
    """What was shown before."""
    match form:
        case "texts":
            return [document(place)["body"] for place in SEEN]
        case "sketches":
            return [ndd.sketch(document(place)["body"]).tolist() for place in SEEN]
    return [{"_index": index, "_id": str(place)} for place in SEEN]


def test_every_option_is_in_the_table() -> None:
    assert OPTIONS.keys() == KINDS.keys()
    default = ndd.CollapseOptions()
    for name in OPTIONS.keys() - {"window"}:
        first = OPTIONS[name][0]
        assert ndd.CollapseOptions(**{name: first}) == default, name


@pytest.mark.parametrize("number", range(len(TABLE)))
def test_pages_keep_their_promises_whatever_is_combined(
    number: int, indexes: dict[str, str], engine: Engine, connect: Connect
) -> None:
    row = TABLE[number]
    try:
        walk_of(row, indexes, engine, connect).check()
    except Exception as error:
        told = {name: value for name, value in row.items() if value != FACTORS[name][0]}
        raise AssertionError(f"row {number}, NDD_TEST_SEED={SEED}: {told}") from error


@pytest.mark.parametrize("pair", list(each_of(REFUSED)), ids=lambda pair: " ".join(f"{k}={v}" for k, v in pair.items()))
@pytest.mark.parametrize("given", OTHERS["given"])
def test_a_combination_without_a_meaning_is_refused_by_its_names(
    given: str, pair: Row, indexes: dict[str, str], engine: Engine, connect: Connect
) -> None:
    row = FIRST | {"given": given} | pair
    with pytest.raises((ValueError, ndd.errors.NDDError)) as refused:
        walk_of(row, indexes, engine, connect).check()
    told = str(refused.value)
    for name in pair:
        assert (pair[name] if name == "paging" else name) in told
