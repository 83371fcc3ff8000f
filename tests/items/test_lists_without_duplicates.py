"""Collections of lists that hold each thing once teach that near names in all of them are different things."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ndd_search as ndd
from ndd_search.items.candidate_pairs import Bounds, find_candidates
from ndd_search.items.items import _LEARNT
from ndd_search.items.lists_without_duplicates import known_pairs, lists_by_fields
from ndd_search.items.probability_model import default_odds, unsure
from ndd_search.items.record_columns import read_table
from tests.items.made import artists, counties, quality, titles, volumes

pytestmark = pytest.mark.once

FIELDS: dict[str, Any] = {"name": ndd.items.Name(), "state": ndd.items.Category()}


def known(records: Sequence[dict[str, Any]], pairs: Sequence[tuple[int, int]], *, alike: bool = False) -> list[int]:
    first, second = np.array(pairs, np.int64).T
    table = read_table(FIELDS, records)
    found = known_pairs(
        table,
        FIELDS,
        lists_by_fields(table, FIELDS),
        first,
        second,
        np.full(len(first), alike),
    )
    return found.said.tolist()  # type: ignore[no-any-return]


def lists(holders: Sequence[int]) -> list[dict[str, Any]]:
    """Records of names, each of which so many records hold."""
    return [{"name": f"name {place}"} for place, count in enumerate(holders) for _ in range(count)]


def test_names_that_all_lists_hold_tell_records_apart_and_together() -> None:
    records = lists([3] * 100 + [2] * 10 + [1] * 10)
    assert known(records, [(0, 1), (0, 3), (0, 300), (300, 302), (300, 301), (318, 319), (320, 329)]) == [
        1,
        -1,
        *[0] * 5,
    ]


def test_records_that_all_lists_hold_are_told_apart_where_names_are_shared() -> None:
    records = [{"name": f"shared {place}", "state": state} for place in range(80) for state in "ab" for _ in range(3)]
    records += [{"name": f"name {place}", "state": "c"} for place in range(60) for _ in range(3)]
    assert known(records, [(0, 1), (0, 3), (0, 6)]) == [1, -1, -1]


def test_names_that_half_of_the_lists_write_in_another_way_tell_nothing() -> None:
    records = lists([2] * 200)
    pairs = [(4 * place, 4 * place + 2) for place in range(100)]  # two spellings of a name
    assert known(records, pairs) == [-1] * 100
    assert known(records, pairs, alike=True) == [0] * 100
    assert known(records, [*pairs, *((4 * place, 4 * place + 6) for place in range(99))], alike=True) == [-1] * 199


@pytest.mark.parametrize(
    "holders",
    [
        [1] * 100,  # no duplicates
        [1] * 400 + [2] * 200 + [3] * 100 + [4] * 50 + [5] * 25,  # as many as chance makes
        [3] * 40,  # too few to tell
        [1] * 2_000 + [2] * 60,  # a small share
        [6] * 10 + [30] * 100,  # values of a field that names nothing
    ],
)
def test_other_collections_tell_nothing(holders: Sequence[int]) -> None:
    records = lists(holders)
    pairs = [(place, other) for place in range(0, len(records), 7) for other in range(place + 1, place + 4)]
    assert not any(known(records, [pair for pair in pairs if pair[1] < len(records)]))


def test_a_number_that_few_records_show_does_not_count() -> None:
    records = lists([2] * 1_000)
    for place, count in enumerate([3] * 55 + [1] * 200):
        for record in [record for record in records if "state" not in record][:count]:
            record["state"] = f"state {place}"
    assert known(records, [(0, 1), (0, 2)]) == [1, -1]  # the first three have one state, and three lists would have it


def test_records_without_names_are_not_known() -> None:
    records = [*lists([2] * 100), {"state": "a"}, {"state": "a"}]
    assert known(records, [(200, 201), (0, 200)]) == [0, 0]


def own_fields(both: int, within: int) -> list[dict[str, Any]]:
    """Records of two lists, of which one has states: names in both lists, names that are twice in one, and others."""
    names = [f"name {place}" for place in range(both)]
    states = [{"name": name, "state": "a"} for name in names + [f"state {place // 2}" for place in range(2 * within)]]
    rest = [{"name": name} for name in names + [f"other {place // 2}" for place in range(2 * within)]]
    return [{"name": "one", "state": "b"}, {"name": "two", "state": "b"}, {"name": "three"}, *states, *rest]


@pytest.mark.parametrize(
    ("both", "within", "expected"),
    [
        (400, 5, -1),
        (400, 90, 0),  # names are twice in one list, too
        (90, 1, -1),
        (30, 0, 0),  # chance lets expect too few names that are twice in one list
    ],
)
def test_records_that_have_the_fields_of_one_list_are_two_things(both: int, within: int, expected: int) -> None:
    assert known(own_fields(both, within), [(0, 1), (0, 2)]) == [expected, 0]


@pytest.mark.parametrize(("twice", "expected"), [(0, -1), (100, 0)])
def test_lists_that_lack_many_things_hold_each_once_and_one_with_several_forms_of_a_person_does_not(
    twice: int, expected: int
) -> None:
    """Two lists without states hold all or half of the names; a third one, with states, two thirds of them."""
    names = [f"name {place}" for place in range(300)]
    rest = [{"name": name} for name in [*names, *names[::2]]]
    states = [{"name": name, "state": "a"} for name in [*names[:200], *names[:twice]]]
    others = [{"name": "one", "state": "b"}, {"name": "two", "state": "b"}]
    assert known([*others, *states, *rest], [(0, 1)]) == [expected]


def test_a_pair_of_one_list_counts_once_and_one_of_two_names_for_many() -> None:
    records = own_fields(both=400, within=5)
    first, second = np.array([(0, 1), (3, 414), (3, 413), (0, 2)], np.int64).T
    table = read_table(FIELDS, records)
    found = known_pairs(table, FIELDS, lists_by_fields(table, FIELDS), first, second, np.zeros(4, np.bool_))
    assert found.said.tolist() == [-1, -1, 1, 0]
    assert found.counts.tolist() == [1, 1.5, 1, 1]


def test_that_two_records_are_in_one_list_is_evidence_for_groups(tmp_path: Path) -> None:
    learnt = ndd.items.Items.learn(own_fields(both=400, within=5), ndd.items.Items(**FIELDS)).learnt
    assert learnt is not None
    assert set(learnt.lists) == {("name",), ("name", "state")}
    odds = default_odds(list(FIELDS.values()))
    records = [{"name": "Ashford Mill", "state": "a"}, {"name": "Ashfordd Mill", "state": "a"}]
    other = {"name": "Ashford Mill"}
    own: tuple[str, ...] = ("name", "state")
    for lists, joined in (({}, [0, 0, 0]), ({own: -1.0}, [0, 0, 0]), ({own: -9.0}, [0, 1, 0])):
        schema = ndd.items.Items(**FIELDS, learnt=replace(learnt, odds=odds, common={}, lists=lists))
        schema.write(tmp_path / "schema.toml")
        for each in (schema, ndd.items.Items.read(tmp_path / "schema.toml")):
            assert each.groups([*records, other]).leader.tolist() == joined
            assert each.groups(records).leader.tolist() == joined[:2]


def test_questions_and_margins_count_the_evidence_that_two_records_are_in_one_list() -> None:
    records = own_fields(both=400, within=5)
    schema = ndd.items.Items.learn(records, ndd.items.Items(**FIELDS))
    met = schema.candidates(records, Bounds())
    table = read_table(FIELDS, records)
    graded = schema.graded(schema.comparison(table), met.first, met.second)
    of_lists = schema.of_lists(table, met.first, met.second)
    assert schema.learnt is not None
    assert schema.learnt.unsure == pytest.approx(unsure(schema.log_odds(graded) + of_lists - schema.bar))
    alike = Counter(zip(map(bytes, graded.grades), of_lists.tolist(), strict=True))
    for question in schema.questions(records):
        asked = read_table(FIELDS, [question.first, question.second])
        places = np.array([[0], [1]])
        grades = schema.graded(schema.comparison(asked), *places).grades
        assert question.pairs == alike[bytes(grades[0]), float(schema.of_lists(asked, *places)[0])]


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("seed", range(2))
def test_near_names_of_one_state_are_different_things_and_other_spellings_are_not(count: int, seed: int) -> None:
    made = counties(600, count, seed)
    assert quality(ndd.items.Items.learn(made.records).groups(made.records), made)[2] > 0.95


@pytest.mark.parametrize(("shared", "alone"), [(300, 300), (1_000, 1_000)])
def test_titles_of_two_lists_are_one_thing_where_they_are_equal_although_nothing_else_can_be_learnt(
    shared: int, alone: int
) -> None:
    made, schema = titles(shared, alone), ndd.items.Items(name=ndd.items.Name())
    learnt = ndd.items.Items.learn(made.records, schema)
    assert quality(learnt.groups(made.records), made)[2] > 0.99  # 0.0 by what is assumed


def test_few_things_in_both_lists_teach_that_what_many_have_in_common_is_no_sign_of_one() -> None:
    made = artists(6000, 700)
    assert (
        quality(ndd.items.Items.learn(made.records).groups(made.records), made)[2] > 0.95
    )  # 0.02 if each pair counts once


@pytest.mark.parametrize(("count", "shared"), [(6_000, 600), (3_000, 300)])
def test_volumes_of_one_series_are_different_things_where_lists_have_fields_of_their_own(
    count: int, shared: int
) -> None:
    made = volumes(count, shared)
    assert quality(ndd.items.Items.learn(made.records).groups(made.records), made)[2] > 0.95  # 0.1 without their fields


def test_the_share_of_things_that_is_learnt_is_that_among_pairs_of_two_lists() -> None:
    made = volumes(1_200, 400)
    schema = ndd.items.Items.learn(made.records)
    table = read_table(schema.fields, made.records)
    assert schema.learnt is not None
    assert len(schema.learnt.lists) == 2
    met = find_candidates(schema.comparison(table), _LEARNT, across=False)
    apart = met.where(schema.of_lists(table, met.first, met.second) == 0)
    person = np.array(made.person)
    assert len(apart) < 0.6 * len(met)
    assert schema.learnt.odds.prior > 0.7 * (person[apart.first] == person[apart.second]).mean()  # 0.31 among all pairs


def test_names_that_half_of_the_lists_write_in_another_way_are_one_thing() -> None:
    made = counties(600, 4)
    for place, record in enumerate(made.records):
        if place % 4 < 2:
            record["name"] = record["name"].removesuffix(" County")
    assert quality(ndd.items.Items.learn(made.records).groups(made.records), made)[2] > 0.8  # 0.5 if they are two
