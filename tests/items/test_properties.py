"""Promises for all records: comparisons are symmetric and monotone, near places meet, merges invent nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ndd_search import native
from ndd_search.errors import InvalidDocument
from ndd_search.items.compare_values import corner_tokens, kilometres
from ndd_search.items.fields import Category, Date, Exact, Field, Name, Number, Place, Text, Url
from ndd_search.items.grades import Comparison, grade_count
from ndd_search.items.items import Items
from ndd_search.items.learn_odds import Sample, learn_odds
from ndd_search.items.lists_without_duplicates import Known
from ndd_search.items.merged_record import merge_group
from ndd_search.items.probability_model import Learnt, Model, Odds
from ndd_search.items.record_columns import read_table

FIELDS: dict[str, Field] = {
    "name": Name(synonyms="english-abbreviations"),
    "about": Text(),
    "where": Place(),
    "price": Number(),
    "opened": Date(),
    "tags": Category(),
    "phone": Exact(),
    "site": Url(),
}
WORDS = ["st", "saint", "Saint", "Finbarr", "Finbar", "cathédral", "b", "12", "13", "", "n/a"]
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "name": st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join),
    "about": st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join),
    "where": st.tuples(st.floats(-95, 95), st.floats(-180, 180)).map(lambda place: f"{place[0]:.4f},{place[1]:.4f}"),
    "price": st.floats(-1e6, 1e6) | st.sampled_from(["EUR 12.50", "call us"]),
    "opened": st.dates().map(str)
    | st.sampled_from(["1863", "June 1863", "31.12.1863", "18631213", "18631312", "1863-88-12", "1836-12-13"]),
    "tags": st.lists(st.sampled_from(WORDS), max_size=3),
    "phone": st.sampled_from(["+353 21 4963387", "353214963387", "21 4963387", "35321496387", "353214963378"]),
    "site": st.sampled_from(["https://www.a.ie/x/", "a.ie/x", "a.ie/y", "b.ie"]),
}
records = st.fixed_dictionaries({}, optional=VALUES)


@st.composite
def schemas(draw: st.DrawFn) -> Items:
    """A schema of all fields with nothing learnt, or with odds that are as wild as a file may hold."""
    if draw(st.booleans()):
        return Items(**FIELDS)  # type: ignore[arg-type]
    random = np.random.default_rng(draw(st.integers(0, 2**32)))

    def tables() -> tuple[tuple[float, ...], ...]:
        return tuple(tuple(random.uniform(0.001, 0.999, grade_count(field)).tolist()) for field in FIELDS.values())

    odds = Odds(float(random.uniform(0.01, 0.99)), (0.3, 0.7), tables(), (tables(), tables()))
    return Items(**FIELDS, learnt=Learnt(odds, {}, 1, 1))  # type: ignore[arg-type]


@given(schemas(), records, records)
def test_similarity_is_symmetric_and_in_range(schema: Items, a: dict[str, Any], b: dict[str, Any]) -> None:
    one, other = schema.similarity(a, b), schema.similarity(b, a)
    assert abs(one.probability - other.probability) < 1e-9
    assert abs(one.similarity - other.similarity) < 1e-6
    assert 0 <= one.probability <= 1
    assert 0 <= one.similarity <= 1
    assert all(field.similarity is None or 0 <= field.similarity <= 1 for field in one.fields)


@given(schemas(), records)
def test_a_record_is_fully_similar_to_itself(schema: Items, record: dict[str, Any]) -> None:
    found = schema.similarity(record, dict(record))
    compared = [field.similarity for field in found.fields if field.similarity is not None]
    assert compared == [1.0] * len(compared)
    assert found.similarity == (1.0 if compared else 0.0)


@given(schemas(), records, records, st.sampled_from(sorted(FIELDS)), st.data())
def test_an_equal_field_never_lowers_and_a_different_one_never_raises(
    schema: Items, a: dict[str, Any], b: dict[str, Any], name: str, data: st.DataObject
) -> None:
    without = schema.similarity({**a, name: None}, {**b, name: None})
    value = data.draw(VALUES[name])
    equal = schema.similarity({**a, name: value}, {**b, name: value})
    assert equal.log_odds >= without.log_odds - 1e-9
    assert equal.similarity >= without.similarity - 1e-6 or not any(f.similarity is not None for f in equal.fields)
    different = schema.similarity({**a, name: value}, {**b, name: data.draw(VALUES[name])})
    (field,) = [field for field in different.fields if field.name == name]
    if field.similarity is not None and field.similarity <= 0.001:
        assert different.log_odds <= without.log_odds + 1e-9
        assert different.similarity <= max(without.similarity, 0.001) + 1e-6


@given(st.integers(0, 2**32))
def test_evidence_never_rises_as_the_similarity_falls(seed: int) -> None:
    """Values are equally common; the odds are as wild as a file may hold."""
    random = np.random.default_rng(seed)
    for field in FIELDS.values():
        m, u = random.uniform(0.001, 0.999, (2, grade_count(field)))
        odds = Odds(0.1, (1.0,), (tuple(m),), ((tuple(u),),))
        rarities = grade_count(field) // (len(field.edges) + 1)
        evidence = Model([field], odds).log_odds(np.arange(grade_count(field), dtype=np.int16)[:, None], vetoes=False)
        assert (np.diff(evidence.reshape(-1, rarities), axis=0) <= 1e-9).all()


@given(schemas(), st.lists(records, max_size=8), st.integers(0, 3), st.sampled_from([None, 0.2, 0.9]))
def test_a_page_holds_the_pairs_whose_similarity_reaches_the_bar(
    schema: Items, page: list[dict[str, Any]], old: int, bar: float | None
) -> None:
    """Pairs are dropped by a bound after some fields; none is dropped that all fields together accept."""
    found = schema.same_pairs(page, min(old, len(page)), bar)
    pairs = dict(zip(zip(found.first.tolist(), found.second.tolist(), strict=True), found.similarity, strict=True))
    for second in range(min(old, len(page)), len(page)):
        for first in range(second):
            compared = schema.similarity(page[first], page[second])
            probability = compared.probability
            if all(field.similarity is None for field in compared.fields):
                assert (first, second) not in pairs
                continue
            wanted = schema.min_probability if bar is None else bar
            if abs(probability - wanted) > 1e-9:
                assert ((first, second) in pairs) == (probability > wanted)
            if (first, second) in pairs:
                assert abs(pairs[first, second] - probability) < 1e-9


@pytest.mark.skipif(native.core is None, reason="there is no core to compare with")
@settings(max_examples=15)
@given(schemas(), st.lists(records, min_size=2, max_size=12))
def test_the_core_says_the_same_as_numpy(schema: Items, page: list[dict[str, Any]]) -> None:
    ways = []
    for core in (native.core, None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(native, "core", core)
            table = read_table(FIELDS, page)
            first, second = np.triu_indices(len(page), 1)
            graded = schema.graded(Comparison(FIELDS, table, {}), first, second)
            sample = Sample(graded, Known.nothing(len(first)), graded, len(first))
            odds = learn_odds(list(FIELDS.values()), sample)
            ways.append((graded, odds, schema.same_pairs(page), _leaders(schema, page)))
    (one, odds, pairs, leader), (other, others, again, leaders) = ways
    assert leader == leaders
    assert np.array_equal(one.similarity, other.similarity, equal_nan=True)
    assert np.array_equal(one.grades, other.grades)
    for mine, numpys in zip(odds, others, strict=True):
        assert np.allclose(np.concatenate(mine.m), np.concatenate(numpys.m))
    assert pairs.first.tolist() == again.first.tolist()
    assert pairs.second.tolist() == again.second.tolist()


def _leaders(schema: Items, page: list[dict[str, Any]]) -> list[int] | str:
    """Return the leaders of the groups, or what is said of records that have no value at all."""
    try:
        leaders: list[int] = schema.groups(page).leader.tolist()
        return leaders
    except InvalidDocument as error:
        return str(error)


latitudes = st.floats(-90, 90) | st.sampled_from([-90.0, 90.0, 89.999, -89.97, 0.0])
longitudes = st.floats(-180, 180) | st.sampled_from([-180.0, 180.0, 179.999, -179.999])


@given(latitudes, longitudes, st.floats(0, 1), st.floats(0, 2 * np.pi), st.sampled_from([0.05, 1.0, 30.0, 2500.0]))
def test_near_places_share_a_token_also_at_the_poles_and_the_date_line(
    latitude: float, longitude: float, share: float, bearing: float, km: float
) -> None:
    """The second place is `share * km` away from the first, in the direction of `bearing`."""
    angle, here = share * km * 0.999 / 6371.0088, np.radians(latitude)
    there = np.arcsin(np.clip(np.sin(here) * np.cos(angle) + np.cos(here) * np.sin(angle) * np.cos(bearing), -1, 1))
    turn = np.arctan2(np.sin(bearing) * np.sin(angle) * np.cos(here), np.cos(angle) - np.sin(here) * np.sin(there))
    other = (longitude + np.degrees(turn) + 180) % 360 - 180
    places = np.array([[latitude, longitude], [np.degrees(there), other]])
    assume(kilometres(places[:1], places[1:])[0] <= km)
    first, second = corner_tokens(places, km).tolist()
    assert set(first) & set(second)


rules = st.dictionaries(
    st.sampled_from([*sorted(FIELDS), "note"]),
    st.sampled_from(["frequent", "longest", "first", "central", "union", "newest:opened", "preferred:name=st,b"]),
)


@given(st.lists(records, min_size=1, max_size=5), rules)
def test_a_merged_record_holds_values_of_its_members_only(group: list[dict[str, Any]], chosen: dict[str, str]) -> None:
    group = [{**record, "note": place % 2} for place, record in enumerate(group)]
    ids = [f"r{place}" for place in range(len(group))]
    merged = merge_group(FIELDS, group, ids, chosen)
    assert merged == merge_group(FIELDS, group, ids, chosen)
    assert merged["ndd"]["members"] == ids
    for name, value in merged.items():
        if name == "ndd":
            continue
        held = [record[name] for record in group if name in record]
        members = [one for each in held for one in (each if isinstance(each, list) else [each])]
        origin = merged["ndd"]["from"][name]
        if isinstance(origin, list):
            assert chosen.get(name, "union" if name in ("phone", "site") else "") == "union"
            assert all(one in members for one in value)
            sources = {id for one in origin for id in one["records"]}
            assert sources <= {id for id, record in zip(ids, group, strict=True) if name in record}
            assert name not in ("phone", "site") or len(sources) == len(held)  # all of them can be read
        else:
            assert value in held
            assert group[ids.index(merged["ndd"]["from"][name])][name] == value
