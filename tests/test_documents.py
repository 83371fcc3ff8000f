from types import SimpleNamespace
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.core.document_fields import text_of, value_of
from ndd_search.errors import InvalidDocument
from ndd_search.indexing.with_sketches import sketch_fields

CLIMATE = "Ministers agreed on Friday to cut emissions from steel works by a third before the end of the decade."
DOCUMENT = {
    "title": "A",
    "author": {"name": "B", "names": ["C", "D"]},
    "parts": [{"text": "E"}, {"text": "F"}, {}],
    "dotted.name": "G",
    "author.of": {"the.map": {"name": "H"}},
    "twice.name": "I",
    "twice": [{"name": "J"}, {"name": "K"}],
    "price": 2.5,
    "sold": True,
    "nothing": None,
    "members": {"c": "3", "a": "1", "b": "2"},
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("title", "A"),
        ("author.name", "B"),
        ("author.names", ["C", "D"]),
        ("parts.text", ["E", "F"]),
        ("dotted.name", "G"),
        ("author.of.the.map.name", "H"),
        ("price", 2.5),
        ("nothing", None),
        ("title.more", None),
        ("absent", None),
        ("absent.more", None),
    ],
)
def test_a_field_is_found_by_its_path(path: str, value: Any) -> None:
    assert value_of(DOCUMENT, path) == value


def test_objects_are_read_like_mappings() -> None:
    assert value_of(SimpleNamespace(author=SimpleNamespace(name="B")), "author.name") == "B"


@pytest.mark.parametrize(
    ("paths", "text"),
    [
        (["title"], "A"),
        (["title", "author"], "A\nB\nC\nD\nH"),  # "author.of" is a part of it
        (["parts"], "E\nF"),
        (["members"], "1\n2\n3"),
        (["price", "sold"], "2.5\ntrue"),
        (["nothing"], None),
        (["absent", "title"], "A"),
        (["twice.name"], "I\nJ\nK"),
        (["twice"], "I\nJ\nK"),
        (["dotted"], "G"),
        (["author.of.the"], "H"),
        ([], None),
    ],
)
def test_the_text_of_fields_is_joined_in_their_order(paths: list[str], text: str | None) -> None:
    assert text_of(DOCUMENT, paths) == text


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"page.body": "O", "page": {"head": "T"}}, {"page": {"body": "O", "head": "T"}}),
        ({"page": {"z.b": "O", "z": {"a": "T"}}}, {"page": {"z": {"a": "T", "b": "O"}}}),
        ({"page.b": "X", "page": {"b": "Y", "a": "Z"}}, {"page": {"a": "Z", "b": ["X", "Y"]}}),
        ({"page.z.b": "X", "page.z": {"b": "Y"}, "page": {"z": {"b": "Z"}, "a": 1}}, None),
        ({"page.b": "X", "page": [{"b": "Y"}, {"c": "Z"}]}, {"page": [{"b": "X"}, {"b": "Y"}, {"c": "Z"}]}),
        ({"page.b": "X", "page": None}, {"page": {"b": "X"}}),
        ({"page": "T", "page.raw": "X"}, {"page": "T"}),
        ({"page.": "X", ".page": "Y", "page": {"a": "T"}, 3.5: "Z"}, {"page": {"a": "T"}}),
    ],
)
def test_keys_with_dots_are_read_in_the_order_of_the_objects_that_they_stand_for(written: Any, read: Any) -> None:
    """As an engine returns the document that builds it anew from its fields: else it would be sketched again."""
    expected = text_of(read, ["page"]) if read else "1\nX\nY\nZ"
    for document in (written, dict(reversed(written.items()))):
        assert text_of(document, ["page"]) == text_of(document, ["absent", "page"]) == expected


def nested(depth: int) -> Any:
    """A text within so many lists and objects."""
    value: Any = CLIMATE
    for level in range(depth):
        value = [value] if level % 2 else {"inner": value}
    return value


@pytest.mark.once
def test_the_text_of_a_deeply_nested_value_is_read() -> None:
    """JSON may be nested as deep as it likes: its text is found, and nothing runs out of stack."""
    for depth in (600, 100_000):
        assert text_of({"body": nested(depth)}, ["body"]) == CLIMATE
        assert ndd.collapse([{"body": nested(depth)}, {"body": CLIMATE}], text="body").info.hidden == 1
    assert sketch_fields({"body": nested(600)}, "body")["ndd"] == sketch_fields({"body": CLIMATE}, "body")["ndd"]


@pytest.mark.parametrize("entry", [lambda hit: ndd.collapse([hit], text="body"), lambda hit: text_of(hit, ["body"])])
def test_a_value_that_holds_itself_is_refused_with_a_sentence(entry: Any) -> None:
    cycle: dict[str, Any] = {"name": "a"}
    cycle["self"] = [cycle, {"again": cycle}]
    with pytest.raises(InvalidDocument, match="a value in it contains itself"):
        entry({"body": cycle})
    shared = {"text": "B"}  # twice in one document is no cycle
    assert text_of({"body": [shared, shared]}, ["body"]) == "B\nB"
