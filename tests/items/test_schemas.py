"""Schemas are guessed, learnt, corrected by answers, written and read."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

import ndd_search as ndd
from ndd_search.errors import InvalidDocument, InvalidSettings
from ndd_search.items.fields import Field
from ndd_search.items.grades import Comparison
from ndd_search.items.record_columns import read_table
from tests import collections
from tests.items.cathedrals import PLACES
from tests.items.made import PEOPLE, Made, people, quality


@pytest.mark.once
def test_answers_about_many_pairs_keep_a_good_schema_good(made: Made) -> None:
    pairs = PEOPLE.candidates(made.records)
    some = range(0, len(pairs), len(pairs) // 2_000)
    answers = []
    for i in some:
        a, b = int(pairs.first[i]), int(pairs.second[i])
        answers.append((made.records[a], made.records[b], made.person[a] == made.person[b]))
    schema = ndd.items.Items.learn(made.records, PEOPLE).answered(answers)
    found = schema.probabilities((a, b) for a, b, _ in answers) >= schema.min_probability
    assert (found == [same for *_, same in answers]).mean() > 0.98
    assert quality(schema.groups(made.records), made)[2] > 0.95


@pytest.mark.once
def test_answers_to_few_questions_move_the_bar_of_a_poor_schema(
    made: Made, learnt: ndd.items.Items, tmp_path: Path
) -> None:
    person = {record["id"]: who for record, who in zip(made.records, made.person, strict=True)}
    few = ndd.items.Items.learn(made.records[:150], PEOPLE).answered([]).learnt
    assert few is not None
    assert "fewer than 100" in few.doubts[0]
    assert learnt.learnt is not None
    assert learnt.learnt.doubts == ()
    rare = replace(learnt.learnt, odds=replace(learnt.learnt.odds, prior=learnt.learnt.odds.prior / 1000))
    poor = ndd.items.Items(**learnt.fields, learnt=rare)  # type: ignore[arg-type]
    for schema, least in ((poor, 0.01), (learnt, -0.003)):
        before = quality(schema.groups(made.records), made)[2]
        questions = schema.questions(made.records)
        assert len({id(record) for one in questions for record in (one.first, one.second)}) == 2 * len(questions) == 20
        answers = [(one.first, one.second, person[one.first["id"]] == person[one.second["id"]]) for one in questions]
        answered = schema.answered(answers)
        assert answered.learnt == schema.learnt
        assert answered.answered([(b, a, same) for a, b, same in answers] * 2) is answered
        assert schema.answered(answers * 3) == answered
        again = answered.questions(made.records)
        asked = [{id(one.first), id(one.second)} for one in questions]
        assert len(again) == 10
        assert not [one for one in again if {id(one.first), id(one.second)} in asked]
        answered.write(path := tmp_path / "answered.toml")
        assert ndd.items.Items.read(path) == answered
        assert quality(answered.groups(made.records), made)[2] > before + least


@pytest.mark.parametrize(
    ("share", "sentence"),
    [
        (0.178, "for 100 pairs that count as one thing, 18 verdicts have a thin margin (odds below 9 to 1): "),
        (9.676, "for 100 pairs that count as one thing, 968 verdicts have a thin margin (odds below 9 to 1): "),
    ],
)
def test_a_doubt_counts_verdicts_of_a_thin_margin(learnt: ndd.items.Items, share: float, sentence: str) -> None:
    assert learnt.learnt is not None
    (doubt,) = replace(learnt.learnt, unsure=share).doubts
    assert doubt.startswith(sentence)


def test_a_schema_is_the_same_after_it_was_written_and_read(tmp_path: Path, learnt: ndd.items.Items) -> None:
    file = tmp_path / "people.toml"
    schema = ndd.items.Items(
        **{**learnt.fields, "site": ndd.items.Url(veto=True), "where": ndd.items.Place(source=("lat", "lon"))},  # type: ignore[arg-type]
        needs=[("surname", "born")],
    )
    apart = ndd.items.Items.learn([{"name": "Muller", "town": "Koln"}, {"name": "Schmidt", "town": "Bonn"}])
    for each in (learnt, schema, PLACES, apart):
        each.write(file)
        again = ndd.items.Items.read(file)
        assert (again, again.id, hash(again)) == (each, each.id, hash(each))
    assert learnt.id != PEOPLE.id
    with pytest.raises(ValueError, match=r"settings are read from \.toml files"):
        learnt.write(tmp_path / "people.json")


def test_a_schema_that_cannot_be_read_is_named_with_the_problem(tmp_path: Path, learnt: ndd.items.Items) -> None:
    file = tmp_path / "people.toml"
    for change, sentence in [
        (lambda content: content.update(version=2), "it has an unknown key 'version'"),
        (lambda content: content["fields"]["born"].update(kind="day"), "the kind of born is 'day'"),
        (
            lambda content: content["fields"]["born"].update(wieght=2),
            r"unknown option 'wieght' \(did you mean weight\?\): the options are source, weight, veto",
        ),
        (lambda content: content["fields"]["born"].update(weight=0), "weight must be above 0"),
        (lambda content: content["learnt"]["m"].update(born=[0.5]), "what was learnt does not fit its fields"),
        (lambda content: content["learnt"].pop("u"), "it lacks 'u'"),
        (
            lambda content: content["fields"].update(born="date"),
            r"fields is no list of tables, such as \[fields.name\]",
        ),
    ]:
        content = learnt.as_dict()
        change(content)  # type: ignore[no-untyped-call]
        file.write_text(tomli_w.dumps(content))
        with pytest.raises(InvalidSettings, match=sentence):
            ndd.items.Items.read(file)


def test_fields_of_another_kind_are_read_without_what_was_learnt(tmp_path: Path, learnt: ndd.items.Items) -> None:
    file = tmp_path / "people.toml"
    learnt.write(file)
    file.write_text(file.read_text().replace('kind = "date"', 'kind = "name"'))
    with pytest.raises(InvalidSettings, match="what was learnt does not fit its fields"):
        ndd.items.Items.read(file)
    again = ndd.items.Items.read(file, learnt=False)
    assert (again.fields["born"].kind, again.learnt) == ("name", None)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "items have no fields"),
        ({"name": "title"}, "name must be a field"),
        ({"name": ndd.items.Name(), "needs": [("name", "place")]}, "needs names 'place'; the fields are name"),
        ({"name": ndd.items.Name(), "needs": ["name"]}, "needs must list combinations"),
        ({"name": ndd.items.Name(), "needs": ndd.items.Name()}, "needs must list combinations"),
        ({"name": ndd.items.Name(), "min_probability": 1}, "min_probability must be above 0 and below 1"),
    ],
)
def test_a_wrong_schema_is_refused(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises((TypeError, ValueError), match=sentence):
        ndd.items.Items(**arguments)


def test_the_two_fields_of_a_place_in_one_text_are_refused() -> None:
    with pytest.raises(ValueError, match=r"two are named as source=\('lat', 'lon'\)"):
        ndd.items.Items(where=ndd.items.Place(source="lat, lon"))


def test_fields_are_guessed_from_their_values() -> None:
    rows = [
        {"opened": f"19{n}-01-02", "id": n, "title": f"Hotel {n}", "lat": 50 + n / 90, "lon": n / 9, "homepage": f"http://h{n}.ie",
         "phone": f"021 {n}", "stars": n % 5 + 0.5, "about": f"{n} " * 20, "email": f"h{n}@inns.ie",
             "country": "IE" if n % 2 else "FR", "same": 1}
        for n in range(10, 40)
    ]  # fmt: skip
    guessed = ndd.items.Items.guess(rows)
    kinds = {name: field.kind for name, field in guessed.fields.items()}
    assert {name: kind for name, (kind, _) in guessed.reasons.items() if kind != "-"} == kinds
    assert guessed.reasons["same"] == ("-", "it has no value, or one for all records")
    assert guessed.reasons["opened"][1] == "at least 90% of its values can be read as dates"
    assert guessed.reasons["id"][0] == "-"
    assert kinds == {
        "title": "name", "place": "place", "homepage": "url", "opened": "date", "phone": "exact", "stars": "number",
        "email": "exact", "about": "text", "country": "category",
    }  # fmt: skip
    with pytest.raises(InvalidDocument, match="none of their fields has values that can be compared"):
        ndd.items.Items.guess([{"id": 1, "a": 2}] * 2)
    with pytest.raises(InvalidDocument, match="how their values differ, which takes two records at least"):
        ndd.items.Items.learn([{"name": "Cork"}])


def test_random_codes_of_eight_digits_are_not_guessed_as_dates() -> None:
    random = np.random.default_rng(1)
    born = [f"{n % 28 + 1:02}{n % 12 + 1:02}19{n:02}" for n in range(90)]
    rows = [{"birth_ref": f"{random.integers(10**8):08}", "born": day} for day in born]
    kinds = {name: field.kind for name, field in ndd.items.Items.guess(rows).fields.items()}
    assert kinds == {"birth_ref": "name", "born": "date"}


def test_prices_of_a_csv_are_numbers_and_whole_numbers_may_be_codes() -> None:
    rows = [{"price": f"EUR {place}.50", "zip": f"{60000 + place}"} for place in range(40)]
    schema = ndd.items.Items.guess(rows)
    assert {name: field.kind for name, field in schema.fields.items()} == {"price": "number", "zip": "name"}
    assert "make it a Number() if near ones are alike" in schema.reasons["zip"][1]


@pytest.mark.parametrize(
    "written", ["EUR {}.50", "${}.00", "-{},5 cm", "1,299.{:02}", "1.299,{:02} €", "{}.5%", "{}.0"]
)
def test_a_fraction_with_a_unit_is_a_number(written: str) -> None:
    (field,) = ndd.items.Items.guess([{"a": written.format(place)} for place in range(40)]).fields.values()
    assert field.kind == "number"


@pytest.mark.parametrize("written", ["{}.5 Main Street", "Model {}.5 inch", "A{}.5", "1.{}.3"])
def test_a_fraction_in_a_name_or_a_version_is_no_number(written: str) -> None:
    (field,) = ndd.items.Items.guess([{"a": written.format(place)} for place in range(40)]).fields.values()
    assert field.kind == "name"


def test_days_are_dates_whatever_their_field_is_called() -> None:
    days = [f"{n:02}.05.2020" for n in range(1, 20)] + [f"2020-05-{n:02}T10:30:00Z" for n in range(1, 20)]
    rows = [{"launched": day, "street": f"{n + 1} Main Street 2020"} for n, day in enumerate(days)]
    kinds = {name: field.kind for name, field in ndd.items.Items.guess(rows).fields.items()}
    assert kinds == {"launched": "date", "street": "name"}


def test_a_source_is_read_as_groups_reads_it_and_paths_are_no_records(
    made: Made, learnt: ndd.items.Items, tmp_path: Path
) -> None:
    source = tmp_path / "people.jsonl"
    source.write_text("".join(json.dumps(record) + "\n" for record in made.records))
    assert ndd.items.Items.learn(source, PEOPLE) == learnt == ndd.items.Items.learn(iter(made.records), PEOPLE)
    assert ndd.items.Items.guess(str(source)).fields == ndd.items.Items.guess(made.records).fields
    assert learnt.questions(source) == learnt.questions(made.records)
    assert len(learnt.candidates(source)) == len(learnt.candidates(made.records))
    with pytest.raises(TypeError, match=r"got 'people\.csv'; name several files by one pattern"):
        ndd.items.Items.learn(["people.csv"])


def test_a_list_of_many_values_is_a_category_and_names_with_slips_are_not() -> None:
    rows = [
        {"country": f"country {n % 70}", "first": f"name {n % 70}" + "x" * (n if n % 20 == 0 else 0)}
        for n in range(1500)
    ]
    assert {name: field.kind for name, field in ndd.items.Items.guess(rows).fields.items()} == {
        "country": "category",
        "first": "name",
    }


def test_texts_that_one_sign_divides_are_lists() -> None:
    rows = [{"genres": "Drama|War" if n % 2 else "War", "tags": "a; b", "name": f"film {n}"} for n in range(20)]
    rows[0]["tags"] = "b"
    fields = ndd.items.Items.guess(rows).fields
    assert fields["genres"] == ndd.items.Category(separator="|")
    assert fields["tags"] == ndd.items.Category(separator=";")


def test_columns_with_the_names_of_arguments_are_guessed_under_another_name(tmp_path: Path) -> None:
    rows = [{"name": f"Ann {n}", "needs": f"food {n}", "self": n, "learnt": f"craft {n}"} for n in range(20)]
    schema = ndd.items.Items.learn(rows)
    assert {name: field.source for name, field in schema.fields.items()} == {
        "name": None, "needs_field": "needs", "self_field": "self", "learnt_field": "learnt"
    }  # fmt: skip
    schema.write(tmp_path / "schema.toml")
    assert ndd.items.Items.read(tmp_path / "schema.toml") == schema


def test_no_guessed_field_replaces_another_one() -> None:
    here = {"lat": 51.0, "lon": 0.1, "latitude": 52.0, "longitude": 0.2, "self_lat": 53.0, "self_lon": 0.3}
    rows = [
        {"needs": f"a{n}", "needs_field": f"b{n}", **{key: at + n / 9 for key, at in here.items()}} for n in range(20)
    ]
    assert {name: field.paths(name) for name, field in ndd.items.Items.guess(rows).fields.items()} == {
        "needs_field_field": ("needs",), "needs_field": ("needs_field",), "place": ("lat", "lon"),
        "place_place": ("latitude", "longitude"), "self_place": ("self_lat", "self_lon"),
    }  # fmt: skip


def test_an_unseen_value_is_as_rare_as_the_values_of_its_field() -> None:
    rows = [{"country": f"country {n % 20}", "town": f"town {n}"} for n in range(1000)]
    fields: dict[str, Field] = {"country": ndd.items.Category(), "town": ndd.items.Name()}
    common = read_table(fields, rows).rareness(fields)
    assert common["country"].rest > 0.01
    assert common["town"].rest < 0.002


def test_a_learnt_schema_can_be_pickled_and_keeps_no_records() -> None:
    rows = [{"id": n, "name": f"Hotel {n // 2}", "town": "Cork"} for n in range(60)]
    schema = ndd.items.Items.learn(rows, ndd.items.Items(name=ndd.items.Name(), town=ndd.items.Name()))
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert not any(isinstance(value, Comparison) for value in vars(schema).values())
    rows[7]["name"] = "Station"
    assert ("station",) in schema.groups(rows).table.columns["name"].values


def test_answers_are_about_pairs_of_records_and_not_of_ids(made: Made) -> None:
    first, second, *_ = made.records
    answers: tuple[Any, ...] = ("1", "2", True), (first, second), (first, second, "no")
    for answer in answers:
        with pytest.raises(TypeError, match="an answer is two records and True or False, got"):
            ndd.items.Items(name=ndd.items.Name()).answered([answer])
    with pytest.raises(TypeError, match="schema must be Items, got"):
        ndd.items.Items.learn(made.records[:50], {"name": ndd.items.Name()})  # type: ignore[arg-type]


def pair_quality(schema: ndd.items.Items, records: dict[str, Any], pairs: list[dict[str, Any]]) -> float:
    """F1 of labelled pairs."""
    known = [pair for pair in pairs if pair["a"] in records and pair["b"] in records and pair["label"] >= 0]
    found = schema.probabilities((records[pair["a"]], records[pair["b"]]) for pair in known) >= schema.min_probability
    same = np.array([pair["label"] == 1 for pair in known])
    return float(2 * (found & same).sum() / (found.sum() + same.sum()))


@pytest.mark.parametrize(("name", "least"), [("airports", 0.96), ("febrl", 0.998)])
def test_a_schema_that_is_guessed_and_learnt_without_labels_is_good(name: str, least: float) -> None:
    """Labelled pairs are judged, also those of airports in a country that was not learnt from."""
    records = {one["id"]: one["fields"] for one in collections.read(name)}
    others = records
    if name == "airports":
        home = {id for id, record in records.items() if record["country"] == "United States"}
        others = {id: record for id, record in records.items() if id in home}
        fields = ["region", "lat", "lon", "country", "elevation_ft", "name", "city"]
        records = {id: {name: record.get(name) for name in fields} for id, record in records.items() if id not in home}
    schema = ndd.items.Items.learn(records.values())
    assert pair_quality(schema, records, collections.read(name, "pairs")) >= least
    assert pair_quality(schema, others, collections.read(name, "pairs")) >= least


def test_evidence_is_used_with_the_counts_of_values_that_it_was_learnt_with() -> None:
    made = people(500, seed=8).records
    learnt = ndd.items.Items.learn(made[:300], PEOPLE)
    table = read_table(PEOPLE.fields, made)
    assert table.records >= 1_000
    assert learnt.comparison(table).common == learnt.common != table.rareness(PEOPLE.fields)
    assert PEOPLE.comparison(table).common == table.rareness(PEOPLE.fields)
