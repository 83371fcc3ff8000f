"""Records of a collection are grouped and merged, without labels."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ndd_search as ndd
from ndd_search import native
from ndd_search.cli import main
from ndd_search.core.exact_numbers import json_with_written
from ndd_search.corpus.write_files import line_of
from ndd_search.errors import InvalidDocument
from ndd_search.items.candidate_pairs import Bounds
from ndd_search.items.compare_names import Names
from ndd_search.items.compare_values import Rareness
from ndd_search.items.correlation_clustering import _FINE, _contracted, _together
from ndd_search.items.merged_record import merge_group
from ndd_search.items.record_columns import read_table
from ndd_search.items.schema_report import write_report
from tests.items.cathedrals import ARMAGH, CORK, FINBARR, PLACES
from tests.items.made import PEOPLE, Made, people, quality


def test_neighbours_of_records_in_dense_chains_are_paired_without_holding_all_their_pairs() -> None:
    """Of 200 neighbours each of a thousand records has, of 300 records in all, most pairs come again and again."""
    records = np.concatenate([np.arange(at, at + 200) % 300 for at in range(1000)])
    tracemalloc.start()
    try:
        every = _together(300, np.repeat(np.arange(1000), 200), records, 100, np.arange(1, 300))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    near = {(a, b) for a in range(300) for b in range(a + 1, 300) if min(b - a, a + 300 - b) < 100}
    assert {*map(tuple, np.transpose(np.divmod(every, 300)).tolist())} == {one for one in near if one[0]}
    assert peak < 150e6  # bytes; 15 million pairs would be three times as much


def test_long_names_are_compared_without_holding_all_pairs_of_their_words() -> None:
    words = np.random.default_rng(1).integers(100, size=(2_000, 20))
    names = Names([tuple(f"word{word}" for word in name) for name in words.tolist()], {}, Rareness({}, 1.0))
    first, second = np.random.default_rng(2).integers(2_000, size=(2, 10_000))
    tracemalloc.start()
    try:
        names.compare(first, second)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 150e6  # bytes; all 4 million pairs of words would be 350 million


def test_people_with_nicknames_gaps_and_errors_are_found_without_labels(made: Made, learnt: ndd.items.Items) -> None:
    untaught = quality(PEOPLE.groups(made.records), made)
    taught = quality(learnt.groups(made.records), made)
    assert taught[2] > max(untaught[2], 0.95)
    assert taught[0] > 0.97
    unseen = people(700, seed=8)
    assert quality(learnt.groups(unseen.records), unseen)[2] > 0.95


def test_a_file_is_grouped_by_fields_and_merged(made: Made, learnt: ndd.items.Items, tmp_path: Path) -> None:
    source = tmp_path / "people.jsonl"
    source.write_text("".join(json.dumps(record) + "\n" for record in made.records[:200]))
    groups = learnt.groups(source)
    assert groups.leader.tolist() == learnt.groups(made.records[:200]).leader.tolist()
    assert groups.merged(tmp_path / "merged.jsonl") == len(groups) < len(groups.records) == 200
    connected = learnt.groups(source, method="connected")
    assert len(connected) <= len(groups)


def test_records_without_any_field_of_the_schema_are_no_groups() -> None:
    with pytest.raises(InvalidDocument, match="none of them has a value in name"):
        ndd.items.Items(name=ndd.items.Name()).groups([{"foo": 1}])
    assert len(ndd.items.Items(name=ndd.items.Name()).groups([{"foo": 1}, {"name": "Cork"}])) == 2
    with pytest.raises(InvalidDocument, match="1 record of list 2: none of them has a value in name"):
        ndd.items.Items(name=ndd.items.Name()).link([{"name": "Cork"}], [{"foo": 1}])


def test_a_name_that_no_schema_can_have_is_refused_before_records_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was refused when all was learnt, and answers to questions were lost."""
    assert main(["items", "learn", str(tmp_path / "none.csv"), "--out", str(tmp_path / "people.csv")]) == 2
    assert "people.csv: settings are read from .toml files" in capsys.readouterr().err


@pytest.mark.parametrize("method", ["correlation", "leaders"])
def test_a_vague_record_does_not_join_the_things_that_it_resembles(method: Any) -> None:
    schema = ndd.items.Items(name=ndd.items.Name(), town=ndd.items.Name(), born=ndd.items.Date())
    clear = [
        {"name": "Mary Byrne", "town": town, "born": born}
        for town, born in (("Cork", "1850-02-03"), ("Sligo", "1871-11-09"))
    ]
    vague = {"name": "Mary Byrne"}
    records = [clear[0], clear[0], vague, clear[1], clear[1]]
    assert schema.similarity(vague, clear[0]).is_match
    assert schema.similarity(vague, clear[1]).is_match
    assert len(schema.groups(records, method="connected")) == 1
    groups = schema.groups(records, method=method)
    assert groups.leader[0] == groups.leader[1] != groups.leader[3] == groups.leader[4]


def test_any_number_of_equal_records_is_one_thing_unless_they_say_too_little() -> None:
    schema = ndd.items.Items(name=ndd.items.Name(), town=ndd.items.Name())
    many = [{"name": "Grand Hotel", "town": town} for town in ("Cork", "Sligo")] * 300
    groups = schema.groups([*many, {"name": "Grand Hotel"}, {"name": "Grand Hotell", "town": "Cork"}, {}, {}])
    assert sorted(map(len, groups.members.values())) == [1, 1, 300, 302]
    assert len(groups.records) == 604
    assert len(ndd.items.Items(town=ndd.items.Category()).groups(many)) == 600


@pytest.mark.once
def test_candidates_grow_with_the_records_and_not_with_their_square() -> None:
    counts = []
    for size in (400, 1600):
        some = people(size, seed=3)
        found = PEOPLE.candidates(some.records)
        with pytest.MonkeyPatch.context() as patch:  # numpy finds the same pairs as the native core
            patch.setattr(native, "core", None)
            again = PEOPLE.candidates(some.records)
        assert (found.first.tolist(), found.second.tolist()) == (again.first.tolist(), again.second.tolist())
        together = {frozenset(pair) for pair in zip(found.first.tolist(), found.second.tolist(), strict=True)}
        of: dict[int, list[int]] = {}
        for place, person in enumerate(some.person):
            of.setdefault(person, []).append(place)
        pairs = [frozenset((a, b)) for every in of.values() for a in every for b in every if a < b]
        assert sum(pair in together for pair in pairs) / len(pairs) > 0.96
        counts.append(len(found) / len(some.records))
        assert len(PEOPLE.candidates(some.records, Bounds(most=5))) <= 5 * len(some.records)
    assert counts[1] < 1.5 * counts[0]


@pytest.mark.parametrize(("one", "other"), [("Langwlel", "Lngwell"), ("Aldridge", "Eldrigde"), ("Meyer", "Maier")])
def test_a_name_that_begins_in_another_way_is_a_candidate_by_its_consonants(one: str, other: str) -> None:
    records = [{"name": one}, {"name": other}, *({"name": name} for name in ("Ford", "Bailey", "Quinn"))]
    found = ndd.items.Items(name=ndd.items.Name()).candidates(records)
    assert (0, 1) in zip(found.first.tolist(), found.second.tolist(), strict=True)


@pytest.mark.parametrize(("needs", "expected"), [([], True), ([("name",), ("city",)], False)])
def test_a_name_meets_the_name_that_another_list_writes_into_another_field(needs: Any, expected: bool) -> None:
    """Unless `needs` says which fields have to meet. A record that writes it into both fields holds it once."""
    records: list[dict[str, Any]] = [{"name": "Aristotelis", "city": "Kastoria"}, {"name": "Kastoria National Airport"}]
    records += [{"name": f"{name} Airport", "city": name} for name in ("Sliac", "Sibiu", "Budapest")]
    schema = ndd.items.Items(name=ndd.items.Name(), city=ndd.items.Name(), needs=needs)
    found = schema.candidates(records, Bounds(holders=3))
    assert ((0, 1) in zip(found.first.tolist(), found.second.tolist(), strict=True)) is expected
    assert (found.first < found.second).all()


def test_records_that_are_nearly_equal_in_two_numbers_are_candidates() -> None:
    random = np.random.default_rng(1)
    numbers = np.column_stack((random.uniform(100, 360, 6_000), random.uniform(-90, 90, 6_000)))
    listed = np.concatenate((numbers, numbers + random.uniform(-0.001, 0.001, numbers.shape)))
    records = [{"right_ascension": first, "declination": second} for first, second in listed.tolist()]
    schema = ndd.items.Items(right_ascension=ndd.items.Number(), declination=ndd.items.Number())
    pairs = schema.candidates(records, Bounds())
    assert (pairs.second == pairs.first + 6_000).sum() > 0.99 * 6_000


def test_equal_names_of_common_words_are_candidates() -> None:
    subjects = ["applied", "clinical", "european", "general", "human", "inorganic", "marine", "nuclear"]
    sciences = ["chemistry", "genetics", "medicine", "physics", "zoology", "botany", "geology", "surgery"]
    names = [f"{subject} {science}" for subject in subjects for science in sciences]
    records = [{"name": name} for name in (*names, *(" ".join(reversed(name.split())) for name in names))]
    schema, found = ndd.items.Items(name=ndd.items.Name()), []
    for core in (native.core, None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(native, "core", core)
            pairs = schema.candidates(records, Bounds(holders=7))  # each word is in 16 of them
        found.append(set(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)))
    assert found[0] == found[1]
    assert {(place, place + len(names)) for place in range(len(names))} <= found[0]


def test_candidates_are_looked_for_by_the_fields_that_have_to_meet(made: Made, learnt: ndd.items.Items) -> None:
    needed = [("surname", "born"), ("first_name", "postcode")]
    schema = ndd.items.Items(**learnt.fields, needs=needed, learnt=learnt.learnt)  # type: ignore[arg-type]
    records = made.records[:700]
    found, without_needs = schema.candidates(records), learnt.candidates(records)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "core", None)
        again = schema.candidates(records)
    assert (found.first.tolist(), found.second.tolist()) == (again.first.tolist(), again.second.tolist())
    assert len(found) < 0.9 * len(without_needs)
    first, second = np.triu_indices(len(records), 1)
    graded = schema.graded(schema.comparison(read_table(schema.fields, records)), first, second)
    same = np.flatnonzero(schema.log_odds(graded) >= schema.bar)
    keys = set((found.first * len(records) + found.second).tolist())
    assert np.mean([key in keys for key in (first[same] * len(records) + second[same]).tolist()]) > 0.98


def test_a_merged_record_says_where_each_value_comes_from() -> None:
    groups = PLACES.groups([{"id": "a", **CORK, "stars": 4}, {"id": "b", **FINBARR}, {"id": "c", **ARMAGH}])
    first, second = groups.merged_records({"name": "longest"})
    assert first["name"] == FINBARR["name"]
    assert first["summary"] == CORK["summary"]
    assert first["ndd"]["from"] == {"name": "b", "summary": "a", "location": "b", "id": "a", "stars": "a"}
    conflicts = [{"value": CORK["name"], "records": ["a"]}, {"value": FINBARR["name"], "records": ["b"]}]
    assert first["ndd"]["conflicts"]["name"] == conflicts
    assert second["ndd"]["members"] == ["c"]
    with pytest.raises(ValueError, match=r"name: 'latest:born' is no rule \(did you mean newest\?\)"):
        next(groups.merged_records({"name": "latest:born"}))
    with pytest.raises(ValueError, match="name: 'best' is no rule"):
        list(groups.merged_records({"name": "best"}))


def test_addresses_and_codes_of_all_records_are_kept_with_their_records() -> None:
    fields = {"site": ndd.items.Url(), "phone": ndd.items.Exact(), "name": ndd.items.Name()}
    records = [
        {"name": "Fota House", "site": "http://www.fota.ie/", "phone": "021 496"},
        {"name": "Fota House", "site": "https://fota.ie", "phone": ["021-496", "021-777"]},
        {"name": "Fota", "site": "https://tourism.ie/fota"},
    ]
    merged = merge_group(fields, records, ["a", "b", "c"], {})
    assert merged["site"] == ["http://www.fota.ie/", "https://tourism.ie/fota"]
    assert merged["ndd"]["from"]["site"] == [
        {"value": "http://www.fota.ie/", "records": ["a", "b"]},
        {"value": "https://tourism.ie/fota", "records": ["c"]},
    ]
    assert merged["phone"] == ["021 496", "021-777"]
    assert list(merged["ndd"]["conflicts"]) == ["name"]
    assert merge_group(fields, records[:1] * 2, ["a", "b"], {})["site"] == "http://www.fota.ie/"


def test_merged_records_are_merged_again_without_losing_an_address() -> None:
    schema = ndd.items.Items(name=ndd.items.Name(), site=ndd.items.Url())
    name = "Saint Finbarr Cathedral Cork"
    records = [{"name": name, "site": f"http://{site}"} for site in ("a.ie/x", "a.ie/y", "c.ie")]
    (merged,) = schema.groups(records[:2]).merged_records()
    groups = schema.groups([merged, records[2]])
    (again,) = groups.merged_records()
    assert groups.bad == {}
    assert again["site"] == ["http://a.ie/x", "http://a.ie/y", "http://c.ie"]
    site = schema.similarity(merged, records[1]).fields[1]
    assert (site.name, site.similarity) == ("site", 1.0)


def test_a_union_holds_no_value_that_no_record_has_and_names_a_record_once() -> None:
    schema = {"phone": ndd.items.Exact(source=("home", "mobile"))}
    records = [{"home": "11111"}, {"home": "22222", "mobile": "33333"}]
    merged = merge_group(schema, records, ["a", "b"], {})
    assert (merged["home"], merged["mobile"]) == (["11111", "22222"], ["33333"])
    assert [one["value"] for one in merged["ndd"]["from"]["phone"]] == ["11111", "22222", "33333"]
    assert "mobile" not in merge_group(schema, [records[0], {"home": "4"}], ["a", "b"], {})
    merged = merge_group({"phone": ndd.items.Exact()}, [{"phone": ["b2", "B-2"]}, {"phone": "a1"}], ["a", "b"], {})
    assert [one["records"] for one in merged["ndd"]["from"]["phone"]] == [["a"], ["b"]]


def test_merged_records_do_not_depend_on_the_order_of_sets() -> None:
    code = (
        "from ndd_search.items import Category, Exact; from ndd_search.items.merged_record import merge_group;"
        "fields = {'phone': Exact(), 'tags': Category()};"
        "lists = [{'phone': x, 'tags': x} for x in (list('abcdefgh'), list('hgfedcba'), ['z'])];"
        "print(merge_group(fields, lists[:2], ['1', '2'], {}), merge_group(fields, lists[::-1], ['1', '2', '3'], {}))"
    )
    made = {
        subprocess.check_output([sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": str(seed)})
        for seed in range(4)
    }
    assert len(made) == 1


def test_a_union_holds_every_number_that_differs_in_any_digit() -> None:
    numbers = ["9007199254740992", "9007199254740993", "0.1", "0.10000000000000000001"]
    records = [{"n": json_with_written(number)} for number in numbers]
    merged = merge_group({}, [*records, {"n": Decimal("0.1")}], list("abcde"), {"n": "union"})
    assert [line_of(number) for number in merged["n"]] == numbers
    shown = {one["value"]: one["records"] for one in merged["ndd"]["conflicts"]["n"]}
    assert shown == dict(zip(numbers, [["a"], ["b"], ["c", "e"], ["d"]], strict=True))


def test_conflicts_show_dates_as_they_are_and_other_values_as_json() -> None:
    records = [{"day": date(2024, 1, 31), "open": True}, {"day": "31 January", "open": ["no"]}]
    conflicts = merge_group({}, records, ["a", "b"], {})["ndd"]["conflicts"]
    shown = {name: [one["value"] for one in values] for name, values in conflicts.items()}
    assert shown == {"day": ["2024-01-31", "31 January"], "open": ["true", '["no"]']}


def test_a_merged_record_keeps_what_is_beside_a_field_in_its_object(caplog: pytest.LogCaptureFixture) -> None:
    schema = ndd.items.Items(
        name=ndd.items.Name(source="author.name"), place=ndd.items.Place(source=("at.lat", "at.lon"))
    )
    record = {
        "id": 1,
        "author": {"name": "Ann", "born": {"year": 1900}},
        "at": {"lat": 1, "lon": 2, "height": 5},
        "c.d": 3,
    }
    (merged,) = schema.groups([record]).merged_records({"nmae": "first"})
    ndd.items.Items(name=ndd.items.Name(), nmae=ndd.items.Name()).groups([record | {"name": "Ann"}])
    assert "no record has a field nmae: check its name" in caplog.text
    del merged["ndd"]
    assert merged == {
        "author.name": "Ann", "author.born": {"year": 1900}, "at.lat": 1, "at.lon": 2, "at.height": 5, "id": 1, "c.d": 3
    }  # fmt: skip
    assert "the rule for nmae has no effect: no record has a field nmae" in caplog.text
    list(schema.groups([record]).merged_records({"name": "newest:yaer", "place": "newest:author.born.year"}))
    assert "the rule for name has no effect: no record has a field yaer" in caplog.text
    assert "author.born.year" not in caplog.text
    caplog.clear()
    schema.groups([])
    assert not caplog.text


def test_the_commands_learn_group_merge_and_compare(
    tmp_path: Path, made: Made, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, schema = tmp_path / "people.jsonl", str(tmp_path / "people.toml")
    records = made.records[:400]
    source.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert main(["items", "learn", str(source), "--out", schema, "--report", str(tmp_path / "r.html")]) == 0
    assert "learnt from" in capsys.readouterr().out
    assert "Pairs nearest to the bar" in (tmp_path / "r.html").read_text()
    for action, rows in (("groups", len(records)), ("merge", None)):
        out = tmp_path / f"{action}.jsonl"
        assert main(["items", action, str(source), "--schema", schema, "--out", str(out), "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert len(out.read_text().splitlines()) == (rows or facts["groups"])
    one, other = json.dumps(records[0]), json.dumps({"surname": "Nobody", "born": "1700"})
    assert main(["items", "compare", one, one, "--schema", schema]) == 0
    assert main(["items", "compare", one, other, "--schema", schema]) == 1
    assert "different things: probability" in capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.StringIO("y\nn\nskip\nq\n"))
    assert main(["items", "learn", str(source), "--out", schema, "--ask"]) == 0
    assert capsys.readouterr().out.count("One thing? y yes, n no") == 4
    edited = tmp_path / "edited.toml"
    edited.write_text(Path(schema).read_text().replace('kind = "date"', 'kind = "name"'))
    assert main(["items", "learn", str(source), "--schema", str(edited), "--out", str(edited)]) == 0
    assert ndd.items.Items.read(edited).fields["born"].kind == "name"
    labels = tmp_path / "labels.jsonl"
    labels.write_text(json.dumps({"a": records[0]["id"], "b": "nobody", "label": 1}))
    assert main(["items", "learn", str(source), "--out", schema, "--labels", str(labels)]) == 2
    assert "line 1 names the record 'nobody'" in capsys.readouterr().err


def test_a_report_counts_verdicts_of_a_thin_margin_which_may_be_more_than_pairs_of_one_thing(
    tmp_path: Path, made: Made
) -> None:
    strict = ndd.items.Items(**PEOPLE.fields, min_probability=1 - 1e-6)  # type: ignore[arg-type]
    groups = strict.groups(made.records)
    write_report(groups, tmp_path / "report.html")
    report = (tmp_path / "report.html").read_text()
    thin, compared = (
        int(re.search(f"{name}</td><td>([0-9,]+)</td>", report)[1].replace(",", ""))  # type: ignore[index]
        for name in (r"verdicts of a thin margin \(odds below 9 to 1\)[^<]*", "candidate pairs compared")
    )
    met = groups.candidates
    above = strict.log_odds(strict.graded(strict.comparison(groups.table), met.first, met.second)) - strict.bar
    every = int((np.abs(above) < np.log(9)).sum())
    assert groups.unsure == pytest.approx(every / (above >= 0).sum())
    assert compared == len(met)
    assert thin == pytest.approx(every, rel=0.3)  # a report looks at some candidates
    assert len(groups.pairs) < thin


def test_many_thin_margins_are_told_by_learning_or_by_grouping_and_not_by_both(
    made: Made, caplog: pytest.LogCaptureFixture
) -> None:
    vague = ndd.items.Items.learn(made.records, ndd.items.Items(born=ndd.items.Date(), surname=ndd.items.Name()))
    assert vague.learnt is not None
    assert "verdicts have a thin margin" in " ".join(vague.learnt.doubts)
    vague.groups(made.records)
    assert "thin margin" not in caplog.text
    sure = replace(vague.learnt, unsure=0.0)
    ndd.items.Items(**vague.fields, learnt=sure).groups(made.records)  # type: ignore[arg-type]
    assert "thin margin" in caplog.text


@pytest.mark.parametrize("given", [b'{"name": "caf\xe9"}', b'{"name": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"])
def test_a_file_with_a_record_that_cannot_be_read_is_named(
    tmp_path: Path, given: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.json").write_bytes(given)
    ndd.items.Items(name=ndd.items.Name()).write(tmp_path / "schema.toml")
    one, schema = str(tmp_path / "one.json"), str(tmp_path / "schema.toml")
    assert main(["items", "compare", one, '{"name": "Ann"}', "--schema", schema]) == 2
    assert f"{one}: it is not JSON" in capsys.readouterr().err


def test_a_field_that_a_merged_record_has_no_place_for_is_refused_and_not_lost() -> None:
    records = [{"id": "a", "name": "Ann Clark", "ndd": "kept by hand"}, {"id": "b", "name": "Tom Hill"}]
    with pytest.raises(InvalidDocument, match=r"record a: it has a field 'ndd'.*rename the field"):
        list(ndd.items.Items(name=ndd.items.Name()).groups(records, id="id").merged_records())


def test_merged_records_keep_all_digits_of_numbers(tmp_path: Path) -> None:
    source, schema, out = tmp_path / "places.jsonl", str(tmp_path / "places.toml"), tmp_path / "merged.jsonl"
    source.write_text('{"id": 1, "name": "St. Finbarr", "height": 3.14159265358979323846, "more": {"x": [1e400]}}\n')
    ndd.items.Items(name=ndd.items.Name(), height=ndd.items.Number()).write(schema)
    assert main(["items", "merge", str(source), "--schema", schema, "--out", str(out)]) == 0
    assert '"height": 3.14159265358979323846' in out.read_text()
    assert '"x": [1e400]' in out.read_text()


@pytest.mark.parametrize(("weight", "groups"), [(3.0, [[0, 1, 2]]), (2.9, [[0, 1], [2]])])
def test_two_records_that_were_never_compared_speak_against_one_group_by_three(
    weight: float, groups: list[list[int]]
) -> None:
    """So a chain holds together only as long as each link outweighs what is not known (log odds)."""
    steps = [int(odds * _FINE) for odds in (5.0, weight)]
    assert sorted(map(sorted, _contracted([0, 1], [1, 2], steps))) == groups


def two_lists(tmp_path: Path) -> tuple[Made, str, str]:
    """Write people as two files, the ids of which both count from 1. Of most people, each file has a record."""
    made = people(200, seed=9)
    lists: list[list[dict[str, Any]]] = [[], []]
    persons: list[list[int]] = [[], []]
    for record, person in zip(made.records, made.person, strict=True):
        of = int(person in persons[0])
        if person not in persons[of]:
            lists[of].append({**record, "id": str(len(lists[of]) + 1)})
            persons[of].append(person)
    kept = Made([*lists[0], *lists[1]], [*persons[0], *persons[1]])
    paths = [str(tmp_path / f"{name}.jsonl") for name in ("ours", "theirs")]
    for path, rows in zip(paths, lists, strict=True):
        Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return kept, paths[0], paths[1]


def test_ids_are_of_a_list_and_no_record_is_left_out_for_the_id_of_another_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made, ours, theirs = two_lists(tmp_path)
    schema = ndd.items.Items.learn(made.records, PEOPLE)
    groups = schema.groups(ours, theirs)
    assert len(groups.records) == len(made.records)
    rows = list(groups.rows())
    assert rows[0] == {"list": "ours", "record": "1", "group": "ours:1", "size": rows[0]["size"]}
    assert len({(row["list"], row["record"]) for row in rows}) == len(rows)
    members = [name for one in groups.merged_records() for name in one["ndd"]["members"]]
    assert sorted(members) == sorted(f"{row['list']}:{row['record']}" for row in rows)
    schema.write(tmp_path / "people.toml")
    assert main(["items", "groups", ours, theirs, "--schema", str(tmp_path / "people.toml")]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == rows


def test_a_link_is_between_two_lists_and_names_an_id_of_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, ours, theirs = two_lists(tmp_path)
    schema = ndd.items.Items.learn(made.records, PEOPLE)
    first = json.loads(Path(ours).read_text().splitlines()[0])
    with Path(ours).open("a", encoding="utf-8") as file:  # twice in one list, which is no link
        file.write(json.dumps({**first, "id": "again"}) + "\n")
    linked = schema.link(ours, theirs)
    assert not (linked.lists[linked.pairs.first] == linked.lists[linked.pairs.second]).any()
    links = list(linked.links())
    count = int((linked.lists == 0).sum()) - 1
    thing = {(0, row): made.person[row] for row in range(count)}
    thing |= {(1, row): made.person[count + row] for row in range(len(made.person) - count)}
    true = {(str(a + 1), str(b + 1)) for (x, a), p in thing.items() for (y, b), q in thing.items() if x < y and p == q}
    told = {(link["a"], link["b"]) for link in links} - {("again", link["b"]) for link in links}
    assert len(told & true) > 0.9 * max(len(told), len(true))
    assert all(0 <= link["probability"] <= 1 for link in links)
    schema.write(tmp_path / "people.toml")
    command = ["items", "link", ours, theirs, "--schema", str(tmp_path / "people.toml")]
    assert main([*command, "--out", str(tmp_path / "links.csv")]) == 0
    written = (tmp_path / "links.csv").read_text().splitlines()
    assert written[0] == "a,b,probability"
    assert len(written) == len(links) + 1
    capsys.readouterr()
    with Path(theirs).open(encoding="utf-8") as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert main([*command[:3], "-", *command[4:]]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == links
    assert main([*command[:3], *command[4:]]) == 2
    assert "link takes two lists, got 1" in capsys.readouterr().err
    with pytest.raises(ValueError, match="links are between two lists, got 1 list"):
        list(schema.groups(ours).links())


def test_the_order_of_records_changes_no_group() -> None:
    """Of equal evidence for several groups, what decides are the values of the records."""
    names = ("Acme Works", "Bolt Store", "Crane House", "Delta Mill")
    rows = [{"name": name, "code": code and f"{code} {name}"} for name in names for code in ("first", None, "second")]
    schema = ndd.items.Items(name=ndd.items.Name(), code=ndd.items.Exact(veto=True))
    found = []
    for seed in range(6):
        order = np.random.default_rng(seed).permutation(len(rows)).tolist()
        groups = schema.groups([rows[place] for place in order])
        found.append({frozenset(order[place] for place in members) for members in groups.members.values()})
    assert all(one == found[0] for one in found)
    assert len(found[0]) == 8  # each record without a code is in one of two groups
