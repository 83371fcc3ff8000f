"""Bulks and documents drawn at random, written directly and through a proxy that adds sketches.

Both answers have the same status, and the same outcome for each document. The stored documents are the same but for the
sketches, and each text has its sketch, or the answer has a warning. NDD_TEST_LONG=1 draws many more, NDD_TEST_SEED=7
others.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

import ndd_search as ndd
from tests.engines.find import Engine as RealEngine
from tests.prove.walks import SEED
from tests.proxy.serving import Got, ask, serving

pytestmark = pytest.mark.newest_servers

COUNT = 2000 if os.environ.get("NDD_TEST_LONG") else 200
WORDS = ["ministers", "agreed", "on", "friday", "to", "cut", "emissions", "from", "steel", "works", "by", "a", "third"]
# What a document has beside its text, and how often.
MEMBERS = {
    '"n":1.50': 0.2,
    '"n":1e400': 0.1,
    f'"n":{"9" * 25}': 0.1,
    f'"n":{"9" * 5000}': 0.03,
    '"n":NaN': 0.05,
    '"a.b":-0,"a":{"b":2}': 0.1,
    '"":"\\ud800 \\u0000"': 0.05,
    '"é":"ü€\U0001f600"': 0.1,
    '"b\\u006fdy2":[]': 0.05,
    '"body":"twice"': 0.05,
    '"ndd":"mine"': 0.05,
    f'"deep":{"[" * 800}{"]" * 800}': 0.05,
}
TEXTS = ['"body":""', '"body":null', '"body":["a b c","d"]', '"body":7', '"b\\u006fdy":"escaped"', '"other":1']
ODD_DOCUMENTS = [
    "",
    " ",
    "{}",
    "[]",
    "1",
    "null",
    '{"body":"x"}}',
    '{"body":"x" ',
    '{"body":"a\tb"}',
    '{"body":"x"/**/}',
]
ODD_HEADERS = ['{"index":{}} // one', '{"index":{},"a":1}', '{"index":null}', "{}", '{"nosuch":{}}', '{"index":{}}x']
ODD_LINES = ["", "", " ", "\r", "/**/"]
UPDATES = [
    '{"doc":%s}',
    '{"doc":%s,"doc_as_upsert":true}',
    '{"upsert":%s,"script":"ctx._source.n=1"}',
    '{"doc":{"n":3}}',
]


class Draw:
    """Draws one write. `@` stands for the name of the index. ids: of documents that it may write."""

    def __init__(self, seed: str, number: int) -> None:
        self.rng = random.Random(f"{seed} {number}")
        self.ids = [f"{number}-{k}" for k in range(3)]
        single = self.rng.random() < 0.3
        kind = self.rng.choice(["_doc", "_create", "_update"])
        self.target = f"/@/{kind}/{self.rng.choice(self.ids)}" if single else self.rng.choice(["/@/_bulk", "/_bulk/"])
        made = (self.update() if kind == "_update" else self.document()) if single else self.bulk()
        self.body = made.encode()
        self.chunked = made.endswith("\n") and self.rng.random() < 0.3
        self.packing = self.rng.choice(["", "", "", "gzip"])

    def document(self) -> str:
        if self.rng.random() < 0.08:
            return self.rng.choice(ODD_DOCUMENTS)
        text = " ".join(self.rng.choices(WORDS, k=self.rng.choice([1, 5, 20])))
        members = [self.rng.choice(TEXTS) if self.rng.random() < 0.1 else f'"body":"{text}"']
        members += [member for member, share in MEMBERS.items() if self.rng.random() < share]
        self.rng.shuffle(members)
        space = self.rng.choice(["", "", " ", "\t"])
        return f"{{{space}{f'{space},'.join(members)}{space}}}{space}"

    def update(self) -> str:
        form = self.rng.choice(UPDATES)
        return form % self.document() if "%" in form else form

    def bulk(self) -> str:
        lines = []
        for _ in range(self.rng.choice([1, 2, 5])):
            kind = self.rng.choice(["index", "index", "create", "update", "delete"])
            header = {kind: {"_index": "@", "_id": self.rng.choice(self.ids)}}
            odd = self.rng.random() < 0.05
            lines.append(self.rng.choice(ODD_HEADERS) if odd else json.dumps(header))
            if kind != "delete":
                lines.append(self.update() if kind == "update" else self.document())
            if self.rng.random() < 0.1:
                lines.append(self.rng.choice(ODD_LINES))
        end = self.rng.choice(["\n", "\n", "\r\n"])
        return end.join([*lines, *[""] * (self.rng.random() < 0.95)])

    def send(self, url: str, index: str) -> Got:
        body = self.body.replace(b"@", index.encode())
        headers = {"content-type": "application/json"}
        if self.packing:
            headers["content-encoding"] = self.packing
            body = gzip.compress(body)
        return ask(url, "POST", self.target.replace("@", index), body, headers, self.chunked)


@pytest.fixture
def indexes(engine: RealEngine) -> Iterator[list[str]]:
    """Two indexes whose names have the same length."""
    names = [f"ndd-writes-{uuid.uuid4().hex[:12]}" for _ in range(2)]
    properties = {"body": {"type": "text"}, **ndd.indexing.mapping_properties()}
    with engine.client() as client:
        for name in names:
            client.indices.create(index=name, body={"mappings": {"dynamic": False, "properties": properties}})
        yield names
        client.indices.delete(index=",".join(names))


def outcome(got: Got) -> Any:
    """The status, and for each document of a bulk its status and type of error."""
    answer = json.loads(got.body)
    items = [one for item in answer.get("items", []) for one in item.values()]
    return got.status, [(one.get("result"), (one.get("error") or {}).get("type")) for one in items]


def stored(engine: RealEngine, index: str, ids: list[str]) -> dict[str, Any]:
    """The documents of an index by id."""
    body = json.dumps({"ids": ids}).encode()
    got = ask(engine.url, "POST", f"/{index}/_mget", body, {"content-type": "application/json"})
    return {one["_id"]: one["_source"] for one in json.loads(got.body)["docs"] if one.get("found")}


def test_what_is_written_through_the_proxy_is_what_is_written_directly(engine: RealEngine, indexes: list[str]) -> None:
    sketched = 0
    with serving(engine.url, indexes={indexes[1]: {"text": ["body"], "keys": 0}}) as served:
        for number in range(COUNT):
            draw = Draw(SEED, number)
            direct, passed = draw.send(engine.url, indexes[0]), draw.send(served.url, indexes[1])
            described = f"NDD_TEST_SEED={SEED} {number}: {draw.target} {draw.packing} {draw.body!r}"
            assert outcome(passed) == outcome(direct), described
            if b"/**/" in draw.body or b'"ndd"' in draw.body:
                continue  # engines return comments as they were stored, which is no JSON
            plain, ours = (stored(engine, index, draw.ids) for index in indexes)
            sketches = {id: one.pop("ndd", {}).get("sketch", []) for id, one in ours.items()}
            assert ours == plain, described
            for id, one in ours.items():
                if isinstance(one.get("body"), str) and not passed.header("warning"):
                    assert sketches[id] == ndd.sketch(one["body"]).tolist(), (id, described)
                    sketched += 1
    assert sketched > COUNT / 5
