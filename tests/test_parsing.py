"""An answer parsed without its sketches gives the same hits and the same sketches as one that is parsed whole."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndd_search import native
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.stored_sketch import SketchField, StoredSketches
from ndd_search.search.clients.wrap import TransportKind
from ndd_search.search.rest.read_answer import Answer, CutSketches, parsed, without_fields
from ndd_search.search.rest.read_request import Request

RECIPE, FIELD = Recipe(k=8), SketchField()
STORED_SKETCHES = StoredSketches(FIELD, RECIPE)

pytestmark = pytest.mark.skipif(native.core is None, reason="only the native core cuts sketches out")

LARGE = st.integers(2**30, 2**31 - 1)  # two of them make a list that is long enough to be cut
SKETCHES = st.lists(st.one_of(st.integers(0, 30), LARGE, LARGE), max_size=8, unique=True).map(sorted)
NUMBERS = st.one_of(st.integers(-5, 2**33), st.floats(allow_nan=False))
ODD: st.SearchStrategy[Any] = st.one_of(
    st.lists(st.one_of(NUMBERS, st.none(), st.text(max_size=3)), max_size=10),
    st.sampled_from([None, {}, "ndd", ["AAA"], [""], RECIPE.id, 17]),
    st.sampled_from([["w3-k64-v4"], ["other"], ["stale"], [-1], -1, -2]),
)


def fields(sketch: list[int]) -> dict[str, Any]:
    """Return the doc values of a sketch."""
    return {FIELD.recipe: [RECIPE.id], **({FIELD.sketch: sketch} if sketch else {})}


STORED = st.builds(fields, SKETCHES)
NAMES = st.sampled_from([*FIELD.read, "hits", "fields", "responses", "_source", 'a"ndd.sketch', "\\", "ä"])
VALUES = st.recursive(
    st.one_of(st.integers(), st.text(max_size=5), st.booleans(), STORED),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)
FIELDS = st.one_of(
    STORED,
    st.tuples(st.dictionaries(st.sampled_from(["a", "b"]), VALUES), STORED, st.dictionaries(st.just("c"), VALUES)).map(
        lambda parts: parts[0] | parts[1] | parts[2]
    ),
    st.tuples(STORED, st.dictionaries(NAMES, ODD, max_size=2)).map(lambda parts: parts[0] | parts[1]),
)
HITS = st.fixed_dictionaries(
    {}, optional={"_id": st.text(max_size=3), "_source": VALUES, "fields": FIELDS, "inner_hits": VALUES}
)
ANSWERS = st.fixed_dictionaries(
    {"hits": st.fixed_dictionaries({"hits": st.lists(HITS, max_size=3)}, optional={"x": VALUES})},
    optional={"aggregations": VALUES, "took": st.integers()},
)
SEPARATORS = st.sampled_from([(",", ":"), (", ", ": "), ("\r\n,\t", " : ")])


def read(text: str | bytes) -> tuple[Any, CutSketches]:
    return parsed(text, json.loads, STORED_SKETCHES)


def responses_in(body: Any) -> list[Any]:
    responses: list[Any] = body.get("responses", [body])
    return responses


def plain(sketches: Any) -> list[Any]:
    return [one if isinstance(one, str) else one.tolist() for one in sketches]


def check(text: str | bytes) -> None:
    """Compare both ways to read a text, which may be no JSON, or no answer."""
    try:
        whole = json.loads(text)
    except ValueError:
        with pytest.raises(ValueError):  # noqa: PT011
            read(text)
        return
    body, cut = read(text)
    if not cut:
        assert body == whole
        return
    assert {**body, "responses": 0, "hits": 0} == {**whole, "responses": 0, "hits": 0}
    for own, other, sketches in zip(responses_in(body), responses_in(whole), cut, strict=True):
        if sketches is None:
            assert own == other
            continue
        hits = other["hits"]["hits"]
        assert plain(sketches) == plain(FIELD.decode(hits, RECIPE))
        found = own["hits"]["hits"]
        assert not any(FIELD.has_values(hit.get("fields")) for hit in found)
        shown = [without_fields(hit, FIELD.read) for hit in hits]
        assert {**own, "hits": {**own["hits"], "hits": [without_fields(hit, FIELD.read) for hit in found]}} == {
            **other,
            "hits": {**other["hits"], "hits": shown},
        }
        assert [list(without_fields(hit, FIELD.read)) for hit in found] == list(map(list, shown))


@given(st.lists(ANSWERS, min_size=1, max_size=2), st.booleans(), st.booleans(), SEPARATORS, st.data())
def test_hits_and_sketches_are_those_of_the_whole_answer(
    answers: list[Any], many: bool, ascii_only: bool, separators: tuple[str, str], data: st.DataObject
) -> None:
    whole = {"took": 3, "responses": answers} if many else answers[0]
    text = json.dumps(whole, ensure_ascii=ascii_only, separators=separators)
    check(text)
    check(text.encode())
    check(text[: data.draw(st.integers(0, len(text)))])
    at, length = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 3))
    between = st.sampled_from(["", *',"{}[]:\\0', '"hits":[],', '"fields":{},'])
    check(text[:at] + data.draw(between) + text[at + length :])
    name = data.draw(st.sampled_from(["hits", "fields", *FIELD.read]))
    check(text.replace(f'"{name}"', data.draw(st.sampled_from([f'"\\u{ord(name[0]):04x}{name[1:]}"', '"fields"']))))


def test_sketches_are_cut_out_with_the_fields_that_hold_nothing_else() -> None:
    stored = fields([1, 5, 2**31 - 1])
    hits = [
        {"_id": "1", "fields": stored, "sort": [1]},
        {"fields": {**stored, "a": [2]}, "_source": {"ndd": {"sketch": [1, 5]}, "body": '"ndd.sketch":[1]'}},
        {"_id": "3", "fields": {FIELD.sketch: [7], FIELD.recipe: [RECIPE.id]}},
        {"_id": "4"},
        {"fields": fields([])},
        {"fields": {**stored, FIELD.recipe: ["w5-k64-v4"]}},
        {"fields": {FIELD.recipe: ["stale"]}},
    ]
    answer = {"hits": {"hits": hits}}
    left = [
        {"_id": "1", "sort": [1]},
        {"fields": {"a": [2]}, "_source": {"ndd": {"sketch": [1, 5]}, "body": '"ndd.sketch":[1]'}},
        {"_id": "3"},
        {"_id": "4"},
        *({}, {}, {"fields": {FIELD.recipe: ["stale"]}}),
    ]
    sketches = [[1, 5, 2**31 - 1], [1, 5, 2**31 - 1], [7], "missing", "empty", "foreign", "foreign"]
    body, cut = read(json.dumps(answer))
    assert body == {"hits": {"hits": left}}
    assert list(map(plain, cut)) == [sketches]
    body, cut = read(json.dumps({"responses": [answer, {"error": {}}, answer]}).encode())
    assert body == {"responses": [{"hits": {"hits": left}}, {"error": {}}, {"hits": {"hits": left}}]}
    assert [None if one is None else plain(one) for one in cut] == [sketches, None, sketches]
    parts = Answer(body, cut=cut).apart(3)
    assert [plain(part.sketches(FIELD, RECIPE)) for part in (parts[0], parts[2])] == [sketches, sketches]


LONG = [1, 5, 2**31 - 1]


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"_source": {FIELD.sketch: LONG}},
        {"inner_hits": {"a": {"hits": {"hits": [{"fields": fields(LONG)}]}}}},
        {"fields": {**fields(LONG), "b": [{FIELD.sketch: LONG}]}},
        {"fields": fields(list(range(9)))},
        {"fields": {**fields(LONG), FIELD.sketch: [-1]}},
        {"_source": {"a": {FIELD.sketch: LONG}}, "fields": {**fields(LONG), FIELD.sketch: -1}},
    ],
)
def test_an_answer_stays_as_it_is_where_a_sketch_stands_elsewhere_or_is_none(elsewhere: Any) -> None:
    """In it, no number stands for a sketch: documents are returned as they are stored."""
    answer = {"hits": {"hits": [{"fields": fields(LONG)}, elsewhere]}}
    for whole in (answer, {"responses": [answer, answer]}):
        body, cut = read(json.dumps(whole))
        assert body == whole
        assert cut == ()


def test_an_answer_stays_as_it_is_where_the_parser_returns_other_hits() -> None:
    answer = {"hits": {"hits": [{"_id": "1"}, {"fields": fields(LONG)}]}}

    def without_last(text: str) -> Any:
        return {"hits": {"hits": json.loads(text)["hits"]["hits"][:-1]}}

    whole = json.dumps(answer)
    assert parsed(whole, without_last, STORED_SKETCHES) == (without_last(whole), ())
    assert parsed(whole, list, STORED_SKETCHES) == (list(whole), ())
    assert parsed(answer, dict, STORED_SKETCHES) == (answer, ())
    without = {"hits": {"hits": []}, "x": [{"fields": fields(LONG)}]}
    mixed = json.dumps({"responses": [answer, without]})

    def with_another(text: str) -> Any:
        found = json.loads(text)
        found["responses"][1]["hits"]["hits"].append({"_id": "3"})
        return found

    assert parsed(mixed, with_another, STORED_SKETCHES) == (with_another(mixed), ())


class Parser:
    name = "of the client"

    def loads(self, text: str, kind: str = "") -> Any:
        return {**json.loads(text), "kind": kind}


class Transport:
    def __init__(self, *texts: str) -> None:
        self.texts, self.parser, self.answers = texts, Parser(), list[Any]()

    def perform_request(self, returned: int = -1) -> Any:
        """Parse several answers, as after retries, and return one of them."""
        self.answers.append([self.parser.loads(text, self.parser.name) for text in self.texts][returned])
        return self.answers[-1]


class WithSlots(Transport):
    __slots__ = ("other",)


class Changing(Transport):
    def perform_request(self, returned: int = -1) -> Any:
        return super().perform_request(returned)


def test_a_transport_cuts_only_what_a_request_allows() -> None:
    answers = [{"hits": {"hits": [{"fields": fields([*LONG[:2], number])}]}} for number in (2**30 + 8, 2**30 + 9)]
    cutting = TransportKind("parser", (Transport.perform_request,)).cutting
    asked = Request("POST", "/a/_search", {}, {}, {}, cut=STORED_SKETCHES)
    texts = list(map(json.dumps, answers))
    transport = Transport(*texts)
    send, sketches_of = cutting(transport.perform_request, transport, asked)
    body = send()
    assert body == {"hits": {"hits": [{}]}, "kind": "of the client"}
    assert list(map(plain, sketches_of(body))) == [[[*LONG[:2], 2**30 + 9]]]
    assert sketches_of(send(0)) == ()
    assert len(transport.answers) == 2  # the state is the transport's own
    assert transport.parser.loads("{}") == {"kind": ""}
    whole = {**answers[1], "kind": "of the client"}
    for other, request in [
        (transport, Request("POST", "/a/_search", {}, {}, {})),
        (WithSlots(*texts), asked),
        (Changing(*texts), asked),
    ]:
        send, sketches_of = cutting(other.perform_request, other, request)
        assert send() == whole
        assert sketches_of(whole) == ()
    replaced = partial(transport.perform_request)  # a wrapper that somebody put around the method
    assert cutting(replaced, transport, asked)[0] is replaced
    lacking = TransportKind("lacking", (Transport.perform_request,)).cutting
    assert lacking(transport.perform_request, transport, asked)[0]() == whole
