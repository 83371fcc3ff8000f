"""No argument from Python crashes the native core; a core that cannot be used is reported."""

import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndd_search import native
from ndd_search.items import Items, Name
from ndd_search.items.record_columns import read_table
from ndd_search.native import Core
from tests.native.both import both


@given(
    st.lists(
        st.one_of(
            st.lists(st.integers(-(2**31), 2**31 - 1), max_size=6).map(lambda row: np.array(row, np.int32)),
            st.lists(st.integers(0, 2**40), max_size=4).map(lambda row: np.array(sorted(row), np.int64)),
            st.binary(max_size=9),
            st.sampled_from([None, 1, "text", [1, 2], np.float32([1]), np.zeros((2, 2), np.int32), np.arange(9)[::2]]),  # type: ignore[arg-type]
        ),
        max_size=5,
    ),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
)
def test_what_is_no_page_is_left_to_numpy(page: list[object], k: int, floor: float) -> None:
    assert native.core
    regular = all(
        isinstance(row, np.ndarray) and row.dtype == np.int32 and row.ndim == 1 and (np.diff(row, prepend=-1) > 0).all()
        for row in page
    )
    rule = native.Rule(floor)
    found = native.core.leaders(page, None, k, rule, None, 0), native.core.pairs(page, None, k, rule, None)
    expected = regular and k >= 1 and 0 <= floor <= 1
    assert [one is not None for one in found] == [expected, expected]
    assert (native.core.rows(page, None, k) is not None) == (regular and k >= 1)
    for rule in (native.Rule(floor, margin=floor), native.Rule(0.27)):
        counted = native.core.counted(page, None, k, rule, floor, 16.0)
        assert counted is None or (regular and k >= 1 and 2 * len(counted[1]) == len(counted[2]))


@given(
    st.lists(st.integers(-(2**31), 2**31 - 1), max_size=12),
    st.lists(st.integers(-3, 14), max_size=5),
    st.integers(1, 5),
)
def test_offsets_out_of_range_are_refused(row: list[int], ends: list[int], k: int) -> None:
    assert native.core
    found = native.core.rows(np.array(row, np.int32), np.array(ends, np.int64), k)
    if found is not None:
        assert ends[0] == 0
        assert ends[-1] == len(row)
        assert ends == sorted(ends)


anything = st.one_of(st.none(), st.integers(), st.text(max_size=9), st.binary(max_size=99), st.floats())
plans = st.one_of(
    anything,
    st.lists(anything, max_size=5).map(tuple),
    st.tuples(st.booleans(), st.integers(-9, 99), st.integers(-9, 2**65), st.integers(-9, 5000)),
)


@given(
    st.one_of(anything, st.lists(st.one_of(anything, st.text("aé\u0301\u0323ß各", max_size=50)), max_size=4)),
    st.binary(max_size=5),
    plans,
    st.one_of(anything, st.integers(0, 2**32)),
)
def test_nothing_handed_over_harms_the_core(texts: Any, is_ascii: bytes, plan: Any, table: Any) -> None:
    """Not even a table that is random numbers."""
    assert native.core
    if isinstance(table, int):
        table = np.random.default_rng(abs(table)).integers(0, 2**32, 0x110000 + table % 99, np.uint32).tobytes()
    items = texts if isinstance(texts, list) else [texts]
    for text in items:
        native.core.sketch_text(text, plan, table)
    native.core.sketch_texts(items, is_ascii, plan, table)
    native.core.sketch_texts(items, bytes(len(items)), plan, table)
    mappings: list[Any] = [None, {}, {"": ""}, defaultdict(int), defaultdict(lambda: "x" * 9999), 5]
    for stems in mappings:
        for flags in (is_ascii, bytes(len(items))):
            with suppress(KeyError, TypeError):
                native.core.words_of(items, flags, plan, table, stems)
    if not isinstance(texts, list | str | bytes):
        with pytest.raises(TypeError):
            native.core.sketch_texts(texts, is_ascii, plan, table)


entries = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), max_size=60, unique=True)


@given(entries, st.lists(st.integers(0, 3), min_size=7, max_size=7), st.integers(1, 4))
def test_records_meet_at_their_tokens(pairs: list[tuple[int, int]], information: list[int], most: int) -> None:
    token, record = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    shared: dict[tuple[int, int], int] = {}
    for place, (one, first) in enumerate(pairs):
        for other, second in pairs[:place]:
            if one == other:
                ends = min(first, second), max(first, second)
                shared[ends] = shared.get(ends, 0) + information[one]
    best: set[tuple[int, int]] = set()
    for record_of in range(10):
        own = [(-weight, sum(ends) - record_of, ends) for ends, weight in shared.items() if record_of in ends]
        best |= {ends for *_, ends in sorted(own)[:most]}
    assert native.core is not None
    found = native.core.meetings(token, record, np.array(information), (10, most, 1, 2))
    assert found is not None
    assert {divmod(key, 10) for key in np.frombuffer(found, np.int64).tolist()} == best


int64s = st.one_of(
    st.lists(st.integers(-3, 12), max_size=20).map(lambda row: np.array(row, np.int64)),
    st.sampled_from([None, "text", np.zeros(3), np.zeros((2, 2), np.int64), np.full(3, 2**62)]),
)


@given(int64s, int64s, int64s, st.integers(-2, 50), st.integers(-2, 5))
def test_no_tokens_handed_over_harm_the_core(
    token: Any, record: Any, information: Any, records: int, most: int
) -> None:
    assert native.core is not None
    found = native.core.meetings(token, record, information, (records, most, 1, most))
    assert found is None or len(found) % 8 == 0
    for limits in ((2**31, most, 1, 1), (records, most, 2**62, 4)):
        assert native.core.meetings(token, record, information, limits) is None
    few = most if most > 0 else 1
    joined = native.core.super_tokens(token, record, information, np.ones(few**2, np.int64), (records, few, few, 3))
    assert joined is None or len(joined[0]) == len(joined[1])
    for kind, rows in ((1, (token,)), (2, (token, record, information)), (3, (token, record)), (4, (token, record))):
        for codes, floats in ((information, token), (np.array([0, 1, -1]), np.zeros(1, np.int64))):
            stage = (kind, rows, codes, np.array([1]), np.zeros(0, np.int64), np.zeros(3, np.int64), floats)
            left = native.core.screened(token, record, floats, (stage, stage), 1.0, most)
            assert left is None or len(left[0]) == 2 * len(left[1]) == 8 * len(left[2])


class Forgetful(str):
    """A key of a dict that empties it when another key is compared with it."""

    __slots__ = ("emptied",)
    emptied: dict[Any, Any]

    def __hash__(self) -> int:
        return hash("other")

    def __eq__(self, _: object) -> bool:
        self.emptied.clear()
        return False


def test_a_dict_that_loses_a_value_while_it_is_read_harms_nothing() -> None:
    """The recipe was read first, and was gone when the sketch had been looked up."""
    assert native.core is not None
    key = Forgetful("forgetful")
    key.emptied = {"recipe": ["".join(("w3", "-id"))], key: None}
    stored = native.core.stored_sketches([{"fields": key.emptied}], ("other", "recipe", "w3-id"), 4, (b"", b"", 0))
    assert stored is not None
    assert not key.emptied


class Fresh(Sequence[Any]):
    """A sequence whose items nobody else holds."""

    def __init__(self, make: Callable[[int], Any], length: int) -> None:
        self.make, self.length = make, length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, place: Any) -> Any:
        if place >= self.length:
            raise IndexError(place)
        return self.make(place)


def test_sequences_whose_items_nobody_holds_are_refused() -> None:
    assert native.core is not None
    core, names = native.core, Fresh(lambda place: f"name {place}" * 9, 4)
    values, offsets = np.arange(12, dtype=np.int32), np.array([0, 4, 8, 12])
    guards: Any = Fresh(lambda place: 1.0 if place == 2 else np.arange(3.0 if place else 3), 3)
    for call in (
        lambda: core.stored_sketches([{}], names, 4, (b"", b"", 0)),  # type: ignore[arg-type]
        lambda: core.stored_sketches([{}], ("a", "b", "c"), 4, names),  # type: ignore[arg-type]
        lambda: core.corpus_pairs(values, offsets, 4, native.Rule(0.5), None, guards, None, (9, 0, 0, 1)),
        lambda: core.corpus_check(values, offsets, 4, native.Rule(0.5), None, guards, np.zeros(2, np.int64)),
    ):
        with pytest.raises(TypeError):
            call()


int32s = st.one_of(st.lists(st.integers(-3, 200), max_size=9).map(lambda row: np.array(row, np.int32)), int64s)
whole = (
    np.array([97, 98, 98, 49], np.int32), np.array([0, 2, 3, 4]), np.array([0, 2, 1]), np.ones(3, np.int64),
    np.ones(3, np.int64), np.array([0, 1, 2, 0]), np.array([0, 2, 4]), np.array([97, 98, 98], np.int32),
    np.array([0, 2, 3]), np.array([0, 0]), np.array([1]),
)  # fmt: skip


@given(st.dictionaries(st.integers(0, len(whole) - 1), int32s, max_size=3))
def test_no_names_handed_over_harm_the_core(changed: dict[int, Any]) -> None:
    assert native.core is not None
    rows, ends = tuple(changed.get(place, row) for place, row in enumerate(whole)), (np.array([0, 1]), np.array([1, 0]))
    edges, zero, one = np.array([0.9]).view(np.int64), np.zeros(1, np.int64), np.array([0, 1])

    def left(kind: int, rows: tuple[object, ...]) -> bytes | None:
        stage = (kind, rows, one, edges, zero[:0], np.zeros(3, np.int64), zero)
        assert native.core is not None
        found = native.core.screened(*ends, zero, (stage,), 1.0, 1)
        return found and found[2]

    assert len(left(0, rows) or b"..") == 2
    assert len(left(0, whole) or b"") == 2
    assert left(0, whole[:-1]) is None
    assert left(5, whole) is None


@pytest.mark.parametrize("length", [60, 100, 140, 300])
@pytest.mark.parametrize("start", ["a", "b"])
def test_long_words_with_one_other_letter_are_alike(start: str, length: int) -> None:
    """The bits of letters, which rule out words that cannot be alike, bound at most 64 matching letters."""
    letters = np.random.default_rng(length).choice(list("abcdefghij"), length)
    word = "a" + "".join(letters)
    other, names = start + word[1:-1] + "z", Items(name=Name())
    with_core, plain = both(lambda: names.similarity({"name": word}, {"name": other}).similarity)
    assert with_core == plain > 0.8


def test_pairs_in_the_columns_of_a_table_are_compared_by_the_core() -> None:
    """Random pairs were not: to learn from titles took three times as long."""
    people = Items(name=Name())
    comparison = people.comparison(read_table(people.fields, [{"name": one} for one in ("Ann", "Anne", "Bob")]))
    ends = np.array([[0, 1], [1, 2], [0, 2]])
    stage = ("name", people.model.tables[0], people.model.stages[0][1])
    for first, second in (ends.T, np.ascontiguousarray(ends.T)):
        left, found = comparison.screened([stage], first, second, people.model.shares, np.inf)
        assert left.tolist() == [0, 1, 2]
        assert list(found) == ["name"]


def test_no_sequence_at_all_is_left_to_numpy(core: Core) -> None:
    for nothing in (None, 3, object()):
        assert core.rows(nothing, None, 4) is None
    with pytest.raises(TypeError):
        core.rows([], None)  # type: ignore[call-arg]


def test_a_core_of_another_version_is_left_alone_with_a_warning() -> None:
    code = (
        "import sys, types, warnings\n"
        "old = sys.modules['ndd_search._native'] = types.ModuleType('ndd_search._native')\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    import ndd_search as ndd\n"
        "    from ndd_search import native\n"
        "    ndd.sketch('one two three four')\n"
        "assert native.core is None\n"
        "assert 'has version 1' in str(caught[0].message), caught\n"
        "assert 'reinstall ndd_search' in str(caught[0].message), caught\n"
        "assert len(caught) == 1\n"
        "assert native.in_use() == f'numpy (the native core has version 1, not {native.VERSION})'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_is_in_use_is_told(core: Core) -> None:
    told, plain = both(native.in_use)
    assert told == "the native core"
    assert plain.startswith("numpy (")


def test_a_core_that_does_not_load_is_not_hidden(tmp_path: object) -> None:
    code = (
        "import sys, importlib.abc\n"
        "class Broken(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'ndd_search._native': raise ImportError('undefined symbol', name=name)\n"
        "sys.meta_path.insert(0, Broken())\n"
        "import ndd_search.native"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "undefined symbol" in done.stderr
