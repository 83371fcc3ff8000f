"""What is learnt without labels is never ruinous: variants are one thing, families are not, doubts name the field."""

from __future__ import annotations

import pytest

import ndd_search as ndd
from tests.items.made import PEOPLE, Made, households, people, quality, sites, swapped

SITES = ndd.items.Items(
    name=ndd.items.Name(), address=ndd.items.Name(), zip=ndd.items.Category(), phone=ndd.items.Exact()
)


@pytest.mark.parametrize("sorts", [2, 3, 4])
@pytest.mark.parametrize("copies", [0.0, 0.2, 0.6, 0.9, 1.0])
def test_copies_and_variants_of_one_thing_are_found_whatever_their_share(copies: float, sorts: int) -> None:
    made = sites(400, copies, sorts)
    assert quality(ndd.items.Items.learn(made.records, SITES).groups(made.records), made)[2] > 0.99


@pytest.mark.parametrize("seed", range(2))
def test_a_family_with_one_name_and_address_is_not_one_person(seed: int) -> None:
    made = households(400, seed)
    assert quality(ndd.items.Items.learn(made.records).groups(made.records), made)[2] > 0.9


@pytest.mark.parametrize("seed", range(3))
def test_swapped_names_are_variants_and_no_family(seed: int) -> None:
    made = swapped(200, seed)
    assert quality(ndd.items.Items.learn(made.records).groups(made.records), made)[2] > 0.95


def test_groups_of_a_hundred_records_are_found() -> None:
    made = sites(60, 1.0, 2)
    for number in range(97):
        for site in range(10):
            record = made.records[3 * site]
            made.records.append({**record, "name": f"{record['name']} unit {number}", "id": f"{number}-{site}"})
            made.person.append(site)
    assert quality(ndd.items.Items.learn(made.records, SITES).groups(made.records), made)[2] > 0.97


@pytest.mark.parametrize("kind", ["sites", "people"])
def test_labels_do_not_make_it_worse(kind: str) -> None:
    made, schema = (sites(300, 0.2, 3), SITES) if kind == "sites" else (people(300, seed=3), PEOPLE)
    learnt = ndd.items.Items.learn(made.records, schema)
    before = quality(learnt.groups(made.records), made)[2]
    for count in (10, 30):
        asked = learnt.questions(made.records, count)
        labels = [(one.first, one.second, _is_one(made, one.first, one.second)) for one in asked]
        after = ndd.items.Items.learn(made.records, schema, labels=labels)
        assert quality(after.groups(made.records), made)[2] > before - 0.01


def test_a_code_with_typing_errors_is_named() -> None:
    made = people(700, seed=5)
    schema = ndd.items.Items(**{**PEOPLE.fields, "surname": ndd.items.Exact()})  # type: ignore[arg-type]
    learnt = ndd.items.Items.learn(made.records, schema).learnt
    assert learnt is not None
    assert any(doubt.startswith("surname differs by a few letters") for doubt in learnt.doubts)


def test_a_field_whose_values_cannot_be_read_is_named() -> None:
    records = [{"name": record["name"], "opened": "soon"} for record in sites(200, 0.2, 2).records]
    learnt = ndd.items.Items.learn(records, ndd.items.Items(name=ndd.items.Name(), opened=ndd.items.Date())).learnt
    assert learnt is not None
    assert any("values of opened cannot be read as its kind, date" in doubt for doubt in learnt.doubts)


def _is_one(made: Made, a: object, b: object) -> bool:
    places = [made.records.index(one) for one in (a, b)]  # type: ignore[arg-type]
    return made.person[places[0]] == made.person[places[1]]
