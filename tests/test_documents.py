from types import SimpleNamespace
from typing import Any

import pytest

from ndd_search.documents import text_of, value_of

DOCUMENT = {
    "title": "A",
    "author": {"name": "B", "names": ["C", "D"]},
    "parts": [{"text": "E"}, {"text": "F"}, {}],
    "dotted.name": "G",
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
        (["title", "author"], "A\nB\nC\nD"),
        (["parts"], "E\nF"),
        (["members"], "1\n2\n3"),
        (["price", "sold"], "2.5\ntrue"),
        (["nothing"], None),
        (["absent", "title"], "A"),
        ([], None),
    ],
)
def test_the_text_of_fields_is_joined_in_their_order(paths: list[str], text: str | None) -> None:
    assert text_of(DOCUMENT, paths) == text
