"""Cache entries are read back unchanged or not at all, even if their bytes were damaged."""

import json
import pickle
from collections import OrderedDict
from decimal import Decimal
from importlib.util import find_spec
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ndd_search as ndd
from ndd_search import native
from ndd_search.core.paging import cache_entries
from ndd_search.core.paging.cache_entries import sealed, unsealed
from ndd_search.search.rest.write_response import block_of

KEY = b"0123456789abcdef"


def read(entry: bytes | None) -> tuple[Any, bytes] | None:
    """The value and the arrays of an entry, as bytes."""
    assert entry is not None
    found = unsealed(KEY, entry)
    return found and (found[0], bytes(found[1]))


texts = st.text(st.characters(exclude_categories=()), max_size=20)  # lone surrogates, too
atoms = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(atoms, lambda parts: st.lists(parts, max_size=4) | st.dictionaries(texts, parts, max_size=4))


def types_of(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: types_of(part) for name, part in value.items()}
    return [types_of(part) for part in value] if isinstance(value, list) else type(value)


@pytest.fixture(params=["orjson", "json", "no native core"])
def writer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With orjson and without, with the native core and without, as installations are."""
    if request.param == "json":
        monkeypatch.setattr(cache_entries, "orjson", None)
    elif request.param == "no native core":
        monkeypatch.setattr(native, "core", None)
    elif find_spec("orjson") is None:
        pytest.skip("orjson is not installed")


def test_the_block_of_a_page_can_be_stored() -> None:
    page = ndd.collapse([{"_id": "1", "body": "a story"}, {"_id": "2", "body": "a story"}], text="body", size=1)
    assert read(sealed(KEY, block := block_of(page, dict)))[0] == block  # type: ignore[index]


@pytest.mark.usefixtures("writer")
def test_a_value_comes_back_with_the_types_of_its_parts() -> None:
    @given(values, st.binary())
    def check(value: Any, arrays: bytes) -> None:
        found = read(sealed(KEY, {"page": value}, arrays))
        assert found == ({"page": value}, arrays)
        assert types_of(found[0]) == types_of({"page": value})

    check()


def test_an_entry_written_with_orjson_is_read_without_and_the_other_way_round(monkeypatch: pytest.MonkeyPatch) -> None:
    if find_spec("orjson") is None:
        pytest.skip("orjson is not installed")
    value = {"long": 2**70, "text": "\ud800 é", "share": 0.1}
    with_it = [sealed(KEY, value), sealed(KEY, {"text": "é"})]
    monkeypatch.setattr(cache_entries, "orjson", None)
    without = [sealed(KEY, value), sealed(KEY, {"text": "é"})]
    assert [read(one) for one in with_it] == [(value, b""), ({"text": "é"}, b"")]
    monkeypatch.undo()
    assert [read(one) for one in without] == [(value, b""), ({"text": "é"}, b"")]


class Text(str):
    """Values that a client's own JSON reader might return."""


UNWRITABLE = [float("nan"), float("inf"), Decimal("0.1"), {1: 2}, {None: 1}, (1, 2), b"x", {1}, Text("x"), object()]


@pytest.mark.usefixtures("writer")
@pytest.mark.parametrize("part", [*UNWRITABLE, OrderedDict(a=1), {Text("x"): 1}])
def test_a_value_that_json_would_change_is_not_kept(part: Any) -> None:
    assert sealed(KEY, {"page": [part]}) is None
    assert sealed(KEY, [part, {"more": 1.5}]) is None


@pytest.mark.usefixtures("writer")
def test_a_value_nested_deeper_than_the_core_looks_is_kept() -> None:
    value: Any = 1.5
    for _ in range(150):
        value = [value]
    assert read(sealed(KEY, value)) == (value, b"")


@pytest.mark.usefixtures("writer")
def test_a_value_nested_too_deep_for_json_is_not_kept() -> None:
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    assert sealed(KEY, [value]) is None


@given(st.data())
def test_a_damaged_entry_is_none(data: st.DataObject) -> None:
    """Bytes changed, lost and added anywhere, and another key."""
    entry = sealed(KEY, {"page": data.draw(values)}, data.draw(st.binary()))
    assert entry is not None
    start = data.draw(st.integers(0, len(entry)))
    end = data.draw(st.integers(start, len(entry)))
    changed = entry[:start] + data.draw(st.binary(max_size=8)) + entry[end:]
    assert changed == entry or unsealed(KEY, changed) is None
    assert unsealed(KEY[::-1], entry) is None


@given(st.binary() | st.binary().map(lambda rest: b"ndd\x01" + crc32(rest, crc32(KEY)).to_bytes(4, "little") + rest))
def test_bytes_of_somebody_else_raise_nothing(foreign: bytes) -> None:
    """Even those that carry our magic and the right checksum."""
    unsealed(KEY, foreign)


def test_an_entry_of_another_version_is_none() -> None:
    entry = sealed(KEY, {"page": 1}) or b""
    assert read(entry) == ({"page": 1}, b"")
    assert unsealed(KEY, entry[:3] + bytes([entry[3] + 1]) + entry[4:]) is None


class Runs:
    """Code that a pickle runs when it is read."""

    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("somebody else's code ran",)


def test_a_pickle_in_the_cache_is_not_read(capsys: pytest.CaptureFixture[str]) -> None:
    for entry in (pickle.dumps(Runs()), json.dumps({"page": 1}).encode()):
        assert unsealed(KEY, entry) is None
    assert capsys.readouterr().out == ""
