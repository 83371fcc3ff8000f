"""Packing the sketches of an answer before it is parsed changes their form and nothing else."""

from __future__ import annotations

import json
import struct
from binascii import b2a_base64
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndd_search import native
from ndd_search.clients.packing import packing
from ndd_search.rest.packing import packed
from ndd_search.rest.request import Request

FIELD = "ndd.sketch"

pytestmark = pytest.mark.skipif(native.core is None, reason="only the native core packs")

LISTS = st.one_of(
    st.lists(st.integers(0, 2**31 - 1), max_size=70),
    st.lists(st.one_of(st.integers(-5, 2**33), st.floats(allow_nan=False), st.none(), st.text(max_size=3)), max_size=5),
)
NAMES = st.sampled_from([FIELD, "hits", "fields", "responses", "_source", 'a"ndd.sketch', "\\", "ndd.recipe"])
VALUES = st.recursive(
    st.one_of(LISTS, st.integers(), st.text(max_size=5), st.booleans()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)
HITS = st.fixed_dictionaries(
    {"_id": st.text(max_size=3)},
    optional={
        "fields": st.dictionaries(NAMES, st.one_of(LISTS, VALUES), max_size=3),
        "_source": VALUES,
        "inner_hits": VALUES,
    },
)
ANSWERS = st.fixed_dictionaries(
    {"took": st.integers(), "hits": st.fixed_dictionaries({"hits": st.lists(HITS, max_size=3)}, optional={"x": VALUES})}
)


def packed_list(values: Any) -> Any:
    """Return what replaces a list: the base64 of its integers, if that is shorter."""
    if not isinstance(values, list) or not values or len(values) > 1024:
        return values
    if any(type(one) is not int or not 0 <= one < 2**31 for one in values):
        return values
    digits = b2a_base64(struct.pack(f"<{len(values)}i", *values), newline=False).decode().rstrip("=")
    return [digits] if len(json.dumps([digits])) < len(json.dumps(values)) else values


def expected(answer: Any) -> Any:
    """Return an answer in which the values of the field are packed."""
    if "responses" in answer:
        return {**answer, "responses": [expected(one) for one in answer["responses"]]}
    hits = [
        {**hit, "fields": {**hit["fields"], FIELD: packed_list(hit["fields"][FIELD])}}
        if FIELD in hit.get("fields", {})
        else hit
        for hit in answer["hits"]["hits"]
    ]
    return {**answer, "hits": {**answer["hits"], "hits": hits}}


@given(ANSWERS, st.booleans(), st.booleans(), st.integers(0, 400))
def test_only_the_integers_of_the_field_of_hits_change(answer: Any, many: bool, ascii_only: bool, cut: int) -> None:
    whole = {"took": 3, "responses": [answer, answer]} if many else answer
    text = json.dumps(whole, ensure_ascii=ascii_only)
    for given_text in (text, text.encode()):
        found = packed(given_text, FIELD)
        assert type(found) is type(given_text)
        assert json.loads(found) == expected(whole)
        packed(given_text[:cut], FIELD)  # malformed: no error, and no read beyond its end


def test_a_sketch_is_packed() -> None:
    sketch = [2**31 - 1 - 7 * place for place in range(64, 0, -1)]
    answer = {"hits": {"hits": [{"_id": "1", "_source": {FIELD: sketch}, "fields": {FIELD: sketch, "a": sketch}}]}}
    for whole in (answer, {"responses": [answer, {"error": {}}, answer]}):
        found = json.loads(packed(json.dumps(whole), FIELD))
        for hit in [hit for one in found.get("responses", [found]) if "hits" in one for hit in one["hits"]["hits"]]:
            assert hit == {"_id": "1", "_source": {FIELD: sketch}, "fields": {FIELD: packed_list(sketch), "a": sketch}}
    assert packed(b"<html>", FIELD) == b"<html>"
    lone = json.dumps(answer, ensure_ascii=False).replace("_id", "\ud800")
    assert packed(lone, FIELD) == lone


class Parser:
    name = "of the client"

    def loads(self, text: str, kind: str = "") -> Any:
        return json.loads(text), kind


class Transport:
    def __init__(self, text: str) -> None:
        self.text, self.parser, self.calls = text, Parser(), 0

    def perform_request(self, *_: Any) -> Any:
        self.calls += 1
        return self.parser.name, self.parser.loads(self.text, "json")


class WithSlots(Transport):
    __slots__ = ("other",)


def test_a_transport_packs_only_what_a_request_allows() -> None:
    fields = {FIELD: [10**9 + place for place in range(64)]}
    as_it_is = {"hits": {"hits": [{"fields": fields}]}}
    transport, asked = Transport(json.dumps(as_it_is)), Request("POST", "/a/_search", {}, {}, {}, packs=FIELD)
    own = transport.perform_request
    assert packing(own, transport, asked, "parser")() == ("of the client", (expected(as_it_is), "json"))
    assert transport.calls == 1  # the state is the transport's own
    assert transport.parser.loads("1") == (1, "")
    unpacked = "of the client", (as_it_is, "json")
    assert packing(own, transport, Request("POST", "/a/_search", {}, {}, {}), "parser")() == unpacked
    replaced = partial(own)  # a wrapper that somebody put around the method
    assert packing(replaced, transport, asked, "parser") is replaced
    own_way = packing(own, transport, asked, "an attribute that it lacks")
    assert own_way is own
    slotted = WithSlots(json.dumps(as_it_is))
    assert packing(slotted.perform_request, slotted, asked, "parser")() == unpacked
