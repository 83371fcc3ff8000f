"""Every method of the clients, plain and wrapped, compared on the wire: all but collapsed searches are unchanged.

What arrives at a server, what comes back, what is raised and the caller's own objects afterwards are the same. The
methods are found by looking at the clients, their arguments are made by name and type. NDD_TEST_LONG=1 tries each
method with many more arguments.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import os
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.engines.find import MODULES
from tests.wrapping.pair import Call, Pair, Unwritable
from tests.wrapping.recorder import Received

ROUNDS = 30 if os.environ.get("NDD_TEST_LONG") else 1
NOT_CALLED = {"transport", "client", "close", "options", "perform_request", "search", "msearch"}
SEARCH = re.compile(r"(/[^/]+)?/_m?search")


NESTED = {"sketch": [2**31 - 1, 0], "recipe": "w3-k64-a1", "ndd": {"ndd": None}}
TRICKY: list[dict[str, Any]] = [
    {
        "ndd": NESTED,
        "ndd_keys": [1, None],
        "title": "Ünï\u2028códe \U0001f409",
        "long": 2**70,
        "float": 0.1 + 0.2,
    },
    {"ndd": False, "query": {"match_all": {}}, "docs": [{"ndd": True}], "": {"": ""}},
    {"ndd": "text", "settings": {"ndd": 1e-320}, "a.b": {"c": [[], {}, None]}, "bool": True},
    {"ndd": {"mode": "drop"}, "size": 3, "_source": ["ndd.*"], "docvalue_fields": ["ndd.sketch"]},
    {"properties": {"ndd": {"type": "object"}, "ndd_keys": {"type": "integer"}}, "nan": float("nan"), "half": "\ud800"},
]
LINES = b'{"index":{"_index":"idx"}}\n{"ndd": {"sketch": [1]}, "x":  1.0}\n{"delete":{"_id":"2"}}\n'
BODIES: list[Any] = [*TRICKY, LINES, LINES.decode(), [{"index": {"_id": "1"}}, TRICKY[0]], {"ndd": Unwritable()}]
URLS = ["/idx/_doc/ndd", "/_ndd", "//idx/_settings", "/idx/_search/template?pretty"]
HEADERS = [{"x-user": "me", "X-Opaque-Id": "7"}]
PARAMS: list[Any] = [{"routing": "ü"}, {"routing": 5, "pretty": True}, {"request_timeout": 9, "x": b"\xff"}]
WORDS = ["idx", "ndd", "a,b*", "ünï códe", "x/y?z", "_all", "%2Fhex", "a+b&c=d#e"]


def methods(client: Any, prefix: str = "") -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public methods of a client and of its namespaces."""
    for name in sorted({*dir(type(client)), *vars(client)}):
        if name.startswith("_") or name in NOT_CALLED:
            continue
        found = getattr(client, name)
        if callable(found):
            yield prefix + name, found
        elif type(found).__module__.startswith(("elasticsearch.", "opensearchpy.")) and prefix.count(".") < 2:
            yield from methods(found, f"{prefix}{name}.")


def value_of(name: str, kind: str, rng: random.Random) -> Any:
    """Something to hand over, by a parameter's name and annotation."""
    named = {"body": BODIES, "url": URLS, "headers": HEADERS, "params": PARAMS}
    if name in ("operations", "searches", "search_templates", "docs") or "Sequence[Mapping" in kind:
        return [{"index": {}}, rng.choice(TRICKY)]
    if name in ("document", "doc") or "Mapping" in kind or "Dict" in kind:
        return rng.choice(TRICKY)
    if "Sequence[str" in kind and rng.random() < 0.3:
        return ["a", "b c"]
    if "int" in kind or "float" in kind:
        return rng.choice([0, 3, 2**53 + 1, 1.5])
    words = [True, False] if "bool" in kind else re.findall(r"'([^']+)'", kind) or WORDS
    return rng.choice(named.get(name, words))


def arguments_for(method: Callable[..., Any], rng: random.Random, share: float) -> dict[str, Any]:
    """What a method needs, and a share of what it takes besides."""
    made = {}
    for name, one in inspect.signature(method).parameters.items():
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            continue
        if one.default is one.empty or rng.random() < (0.6 if name == "body" else share):
            made[name] = value_of(name, str(one.annotation), rng)
    return made


def calls(client: Any) -> Iterator[Call]:
    for name, method in methods(client):
        rng = random.Random(name)
        for _ in range(ROUNDS):
            yield Call(name, arguments_for(method, rng, share=rng.choice([0.0, 0.15, 0.5])))


def is_search(received: list[Received]) -> bool:
    """Whether a request is a search of ours: any, or one by a template whose body has our key."""
    return any(
        (SEARCH.fullmatch(one.path) and "scroll=" not in one.target)
        or (one.path.endswith("/_search/template") and b'"ndd":' in (one.body or b""))
        for one in received
    )


def test_every_method_does_through_a_wrapped_client_what_it_does_without(pair: Pair) -> None:
    compared = sent = 0
    for call in calls(pair.plain):
        plain, wrapped = pair.both(call)
        assert wrapped.arguments == plain.arguments, f"{call}: the caller's own objects"
        if is_search(plain.received):
            continue
        assert wrapped == plain, call
        compared += 1
        sent += bool(plain.received)
    assert compared > 250
    assert sent > compared / 2


@pytest.mark.parametrize("status", [400, 404, 429, 500, 503])
def test_failures_come_as_they_are(pair: Pair, status: int) -> None:
    """What the engine says of a request that is left alone reaches the caller in the client's own exception."""
    error = {"error": {"root_cause": [{"type": "x", "reason": "ndd"}], "type": "x", "ndd": 1}, "status": status}
    pair.at.reply = lambda _: (status, error)
    document = {"index": "idx", "id": "1", "body": {"ndd": 1}}
    for name, arguments in (("index", document), ("get", {"index": "idx", "id": "1"}), ("indices.refresh", {})):
        plain, wrapped = pair.both(Call(name, arguments))
        assert wrapped == plain
        assert len(plain.received) == 1


ACTIONS: list[Any] = [
    {"_op_type": "index", "_index": "idx", "_id": 1, **TRICKY[0]},
    {"_op_type": "create", "_index": "idx", "_id": "2", "_source": TRICKY[1]},
    {"_op_type": "update", "_index": "idx", "_id": "3", "doc": TRICKY[2], "ndd": {"mode": "drop"}},
    {"_op_type": "delete", "_index": "idx", "_id": "4"},
    *({"_index": "idx", "ndd": {"sketch": [number]}} for number in range(20)),
]


def helper_calls(pair: Pair, client: Any) -> list[Callable[[], Any]]:
    """The helpers of the client's own library that write or read in bulk."""
    helpers = importlib.import_module(f"{MODULES[pair.family]}.helpers")
    kind = "async_" if pair.asynchronous else ""

    def named(name: str, *arguments: Any, **others: Any) -> Callable[[], Any]:
        def call() -> Any:
            made = getattr(helpers, kind + name)(client, *copy.deepcopy(arguments), **others)
            if hasattr(made, "__aiter__"):
                return _collected(made)
            return list(made) if inspect.isgenerator(made) else made

        return call

    made = [
        named("bulk", ACTIONS, chunk_size=7),
        named("bulk", [LINES.decode()]),
        named("streaming_bulk", ACTIONS, chunk_size=5, raise_on_error=False),
        named("scan", index="idx", query={"query": {"term": {"ndd": "ndd"}}, "_source": ["ndd"]}),
        named("scan", index="idx", query={"query": {"match_all": {}}}, size=2, preserve_order=True),
        named("reindex", "idx", "target"),
    ]
    return made if pair.asynchronous else [*made, named("parallel_bulk", ACTIONS, thread_count=1, chunk_size=50)]


async def _collected(made: Any) -> list[Any]:
    return [one async for one in made]


def test_helpers_do_what_they_do_without(pair: Pair) -> None:
    """Bulk actions, NDJSON lines, scrolls."""
    for plain, wrapped in zip(helper_calls(pair, pair.plain), helper_calls(pair, pair.wrapped), strict=True):
        one, other = pair.outcome(plain), pair.outcome(wrapped)
        assert other.received == one.received
        assert other.returned == one.returned
        assert one.received


def document_class(pair: Pair) -> Any:
    """A class of documents of the client's own DSL, with fields of our names."""
    if pair.family == "elasticsearch":
        module: Any = pytest.importorskip("elasticsearch.dsl", reason="elasticsearch-py has it from release 8.18 on")
    else:
        module = importlib.import_module(
            "opensearchpy._async.helpers.document" if pair.asynchronous else "opensearchpy"
        )
    base = getattr(module, "AsyncDocument", None) if pair.asynchronous else module.Document

    class Article(base):  # type: ignore[misc, valid-type]
        class Index:
            name = "idx"

    return Article


def document_calls(article: Any, client: Any) -> list[Callable[[], Any]]:
    def made() -> Any:
        return article(meta={"id": "1"}, title="x", ndd={"sketch": [1], "recipe": "mine"}, ndd_keys=[2])

    return [
        lambda: made().save(using=client),
        lambda: made().update(using=client, ndd={"sketch": [3]}, price=0.1),
        lambda: made().update(using=client, script="ctx._source.ndd = null"),
        lambda: made().delete(using=client),
        lambda: article.get("1", using=client),
        lambda: article.mget(["1"], using=client, missing="skip"),
        lambda: article.exists("1", using=client),
        lambda: article.init(using=client),
    ]


def test_documents_of_the_dsl_are_written_and_read_as_without(pair: Pair) -> None:
    article = document_class(pair)
    for plain, wrapped in zip(document_calls(article, pair.plain), document_calls(article, pair.wrapped), strict=True):
        one, other = pair.outcome(plain), pair.outcome(wrapped)
        assert other == one
        assert one.received


def test_only_the_searches_own_key_is_taken_out(pair: Pair) -> None:
    """`"ndd": false` is for us: the engine gets the same search without it, and the caller's body keeps it."""
    body = {"query": {"match_all": {}}, "ndd": False}
    plain = pair.outcome(lambda: pair.plain.search(index="idx", body={"query": {"match_all": {}}}))
    assert pair.outcome(lambda: pair.wrapped.search(index="idx", body=body)) == plain
    assert body == {"query": {"match_all": {}}, "ndd": False}
