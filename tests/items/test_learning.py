"""What is learnt without labels is never ruinous: variants are one thing, families are not, doubts name the field."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest

import ndd_search as ndd
from ndd_search.items.fields import Field
from ndd_search.items.items import _fitted
from ndd_search.items.probability_model import default_odds, log_odds_of
from ndd_search.items.schema import Answer
from tests import collections
from tests.items.made import (
    PEOPLE,
    Made,
    counties,
    districts,
    families,
    forms,
    households,
    people,
    provinces,
    quality,
    shades,
    sites,
    swapped,
    twins,
)

pytestmark = pytest.mark.once

SITES = ndd.items.Items(
    name=ndd.items.Name(), address=ndd.items.Name(), zip=ndd.items.Category(), phone=ndd.items.Exact()
)


def labelled_set(name: str) -> Made:
    """Return a labelled collection; a record that is in no cluster is a thing of its own."""
    records = [{"id": one["id"], **one["fields"]} for one in collections.read(name)]
    clusters = collections.read(name, "clusters")
    thing = {id: place for place, cluster in enumerate(clusters) for id in cluster["members"]}
    return Made(records, [thing.get(record["id"], len(clusters) + place) for place, record in enumerate(records)])


@pytest.mark.parametrize(("copies", "sorts"), [(0.0, 2), (0.0, 4), (0.2, 3), (0.6, 4), (0.9, 2), (1.0, 3)])
def test_copies_and_variants_of_one_thing_are_found_whatever_their_share(copies: float, sorts: int) -> None:
    made = sites(400, copies, sorts)
    assert quality(ndd.items.Items.learn(made.records, SITES).groups(made.records), made)[2] > 0.99


@pytest.mark.parametrize("seed", range(2))
def test_a_family_with_one_name_and_address_is_not_one_person(seed: int) -> None:
    made = households(400, seed)
    assert quality(ndd.items.Items.learn(made.records).groups(made.records), made)[2] > 0.9


@pytest.mark.parametrize("seed", range(3))
def test_districts_of_a_town_are_not_one_thing_and_a_doubt_tells_that_learning_unites_them(seed: int) -> None:
    made = districts(100, seed, moved=1.0)
    schema = ndd.items.Items.learn(made.records)
    assert quality(schema.groups(made.records), made)[2] > 0.5  # 0.11 if all districts of a town are one thing
    assert schema.learnt is not None
    assert schema.learnt.odds == default_odds(schema.kinds)
    assert any(doubt.startswith("what is assumed about such fields is used") for doubt in schema.learnt.doubts)
    assert any("by another way of learning" in doubt for doubt in schema.learnt.doubts)


@pytest.mark.parametrize("seed", range(2))
def test_provinces_of_a_country_are_not_one_thing_because_random_records_share_no_country(seed: int) -> None:
    made = provinces(40, seed)
    assert quality(ndd.items.Items.learn(made.records).groups(made.records), made)[2] > 0.7  # 0.04 if they are


@pytest.mark.parametrize("copies", [0, 2])
def test_names_that_each_source_tells_apart_are_not_one_thing(copies: int) -> None:
    made = shades(120, copies)
    assert quality(ndd.items.Items.learn(made.records).groups(made.records), made)[2] > 0.99


@pytest.mark.parametrize("seed", [0, 3, 4, 7])
def test_a_half_of_the_applicants_is_learnt_from_as_all_are(seed: int) -> None:
    """Assumptions, or odds that are vague, say nothing against odds of random pairs: F1 was 0.08 to 0.37."""
    made = labelled_set("patstat")
    things = np.unique(made.person)
    chosen = set(np.random.default_rng(seed).permutation(things)[: len(things) // 2].tolist())
    both = [one for one in zip(made.records, made.person, strict=True) if one[1] in chosen]
    half = Made([record for record, _ in both], [person for _, person in both])
    assert quality(ndd.items.Items.learn(half.records).groups(half.records), half)[2] > 0.8


def test_readings_that_differ_are_told_once() -> None:
    learnt = ndd.items.Items.learn(households(400).records).learnt
    assert learnt is not None
    assert len([doubt for doubt in learnt.doubts if "how many verdicts are wrong is not known" in doubt]) == 1


def test_assumptions_that_are_used_are_told_whatever_else_was_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    made = people(200, seed=5)
    monkeypatch.setattr("ndd_search.items.items.learn_odds", lambda fields, *_: [default_odds(fields)])
    learnt = ndd.items.Items.learn(made.records, PEOPLE).learnt
    assert learnt is not None
    assert "what is assumed about such fields is used" in [doubt[:41] for doubt in learnt.notes]
    nothing = ndd.items.Items.learn(made.records[:1], PEOPLE).learnt
    assert nothing is not None
    assert not any("is used" in doubt for doubt in nothing.notes)


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
    assert quality(ndd.items.Items.learn(made.records, SITES).groups(made.records), made)[2] > 0.99


LABELLED = {
    "sites": partial(sites, 300, 0.2, 3),
    "people": partial(people, 300, seed=3),
    "households": partial(households, 150),
    "counties": partial(counties, 400, 2),
    "shades": partial(shades, 60),
    **{name: partial(labelled_set, name) for name in ("countries", "early_childhood", "patstat")},
}


@pytest.mark.parametrize("kind", LABELLED)
def test_answers_never_make_it_worse(kind: str) -> None:
    """Pairs that are asked about are hard ones: verdicts about them may be wrong, and those about all others right."""
    made, schema = LABELLED[kind](), {"sites": SITES, "people": PEOPLE}.get(kind)
    learnt = ndd.items.Items.learn(made.records, schema)
    before = quality(learnt.groups(made.records), made)[2]
    asked = [(one.first, one.second) for one in learnt.questions(made.records, 200)]
    met = learnt.candidates(made.records)
    drawn = np.random.default_rng(0).permutation(len(met))[:200]
    random = [(made.records[met.first[place]], made.records[met.second[place]]) for place in drawn]
    for pairs in (asked[:10], asked[:50], asked, random):
        told = learnt.answered([(a, b, _is_one(made, a, b)) for a, b in pairs])
        assert quality(told.groups(made.records), made)[2] > before - 0.005


def test_a_bar_moves_if_answers_clearly_ask_for_it_and_no_further() -> None:
    def bar(same: Sequence[int], odds: Sequence[float] = (-9, -1.5, -0.5, 0.5, 1.5, 9), first: float = 1.0) -> float:
        """first: as how many pairs as by each other answer are expected with the grades of the first one."""
        expected = [first, *[1.0] * (len(odds) - 1)]
        answers = [Answer(n, said > 0, odds[n], expected[n] / 100) for n, said in enumerate(same)]
        return log_odds_of(_fitted(0.0, answers))

    assert bar([0, 0, 0, 1, 1, 1]) == 0
    assert bar([0, 0, 1, 1, 1, 1]) == 0  # one answer alone is not enough
    assert bar([0, 1, 1, 1, 1, 1]) == pytest.approx(-1.5)
    assert bar([1, 1, 1, 1, 1, 1]) == pytest.approx(-1.5)  # whatever pairs far from the bar are
    assert bar([0, 0, 0, 0, 0, 1]) == pytest.approx(1.5)
    assert bar([0, 0, 0, 0, 0, 1], odds=[-9, -5, -4, 4, 5, 9]) == 0  # no margin is thin
    vague = [0.5, 1, 1.1, 1.2, 1.3, 1.4, 9]
    assert bar([1, 0, 0, 0, 0, 0, 1], vague) == pytest.approx(1.4)
    assert bar([1, 0, 0, 0, 0, 0, 1], vague, first=100) == 0
    few = [0, 0, 0, 0, 1, 0, 0]
    assert bar(few, [0.5] * 7) == 0  # by number, it is best to call no pair one thing


def test_a_code_with_typing_errors_is_named() -> None:
    made = people(700, seed=5)
    schema = ndd.items.Items(**{**PEOPLE.fields, "surname": ndd.items.Exact()})  # type: ignore[arg-type]
    learnt = ndd.items.Items.learn(made.records, schema).learnt
    assert learnt is not None
    assert any(doubt.startswith("surname differs by a few letters") for doubt in learnt.doubts)


@pytest.mark.parametrize("kind", [ndd.items.Exact(), ndd.items.Category(), ndd.items.Name()], ids=lambda of: of.kind)
def test_a_date_of_another_kind_is_named(kind: Field) -> None:
    whole = [record for record in people(200, seed=5).records if len(record.get("born", "")) == 10]
    learnt = ndd.items.Items.learn(whole, ndd.items.Items(**{**PEOPLE.fields, "born": kind})).learnt  # type: ignore[arg-type]
    assert learnt is not None
    assert any(doubt.startswith("born holds dates") and "make it a Date()" in doubt for doubt in learnt.doubts)


def test_a_name_as_a_text_is_named() -> None:
    schema = ndd.items.Items(**{**SITES.fields, "name": ndd.items.Text()})  # type: ignore[arg-type]
    learnt = ndd.items.Items.learn(sites(200, 0.2, 3).records, schema)
    assert learnt.learnt is not None
    assert any(doubt.startswith("name holds short values") for doubt in learnt.learnt.doubts)


def test_the_two_numbers_of_a_place_are_named() -> None:
    rows = [{"name": f"Hotel {n // 2}", "lat": 51 + n // 2 / 90, "lon": 0.1 + n // 2 / 9} for n in range(200)]
    schema = ndd.items.Items(name=ndd.items.Name(), lat=ndd.items.Number(), east=ndd.items.Number(source="lon"))
    learnt = ndd.items.Items.learn(rows, schema).learnt
    assert learnt is not None
    assert any(doubt.endswith("make them one field, Place(source=('lat', 'lon'))") for doubt in learnt.doubts)


def test_a_field_whose_values_cannot_be_read_is_named() -> None:
    records = [{"name": record["name"], "opened": "soon"} for record in sites(200, 0.2, 2).records]
    learnt = ndd.items.Items.learn(records, ndd.items.Items(name=ndd.items.Name(), opened=ndd.items.Date())).learnt
    assert learnt is not None
    assert any("values of opened cannot be read as its kind, date" in doubt for doubt in learnt.doubts)


def test_fields_that_tell_nothing_or_keep_records_of_one_thing_apart_are_named() -> None:
    made = people(500, seed=5)
    records = [{**record, "list": "A"} for record in made.records]
    for place, record in enumerate(records):
        record["area"] = record.get("postcode", "") if place % 3 == 0 else ""
    kinds = {**PEOPLE.fields, "postcode": ndd.items.Exact(veto=True)}
    more = {"list": ndd.items.Category(), "area": ndd.items.Name()}
    learnt = ndd.items.Items.learn(records, ndd.items.Items(**kinds, **more)).learnt  # type: ignore[arg-type]
    assert learnt is not None
    doubts = "; ".join(learnt.doubts)
    assert "list is equal in 100% of the compared pairs" in doubts
    assert "most records have no area:" in doubts
    assert re.search(r"postcode differs in \d\d% of the pairs that all other fields call one thing: its veto", doubts)
    usual = ndd.items.Items.learn(made.records, PEOPLE).learnt
    assert usual is not None
    assert not [doubt for doubt in usual.doubts if re.search("is equal in|have no|its veto", doubt)]


def test_exact_values_that_mostly_differ_are_told() -> None:
    random = np.random.default_rng(1)
    rows = []
    for place in range(600):
        name, height = f"hill{place % 150} lake{place} farm{place % 7}", random.uniform(100, 2_000)
        rows += [{"name": name, "height": round(height + error, 2)} for error in (0, random.uniform(1, 9))]
    exact, number = (
        ndd.items.Items.learn(rows, ndd.items.Items(name=ndd.items.Name(), height=kind)).learnt
        for kind in (ndd.items.Exact(), ndd.items.Number())
    )
    assert exact is not None
    assert number is not None
    assert re.search(r"height differs in \d+% of the pairs that .*: name another kind", "; ".join(exact.doubts))
    assert not any("height" in doubt for doubt in number.doubts)


def test_a_field_is_not_said_to_tell_nothing_if_all_compared_pairs_are_one_thing() -> None:
    rows = [{"code": f"{n % 200:06}"} for n in range(600)]
    learnt = ndd.items.Items.learn(rows, ndd.items.Items(code=ndd.items.Exact(veto=True))).learnt
    assert learnt is not None
    assert not any("is equal in" in doubt for doubt in learnt.doubts)


def test_chains_that_join_far_more_than_counts_as_one_thing_are_told(caplog: pytest.LogCaptureFixture) -> None:
    words = [f"{a}{b}" for a in "bcdfgklmnprst" for b in ("arrow", "enton", "illow", "umber", "ompas")]
    chain = [{"name": " ".join(words[at : at + 8])} for at in range(len(words) - 7)]
    apart = [{"name": f"Harbour {place} Inn"} for place in range(40)]
    schema = ndd.items.Items(name=ndd.items.Name(), min_probability=0.2)
    schema.groups([*chain, *apart])
    assert "chains join" not in caplog.text
    assert len(schema.groups([*chain, *apart], method="connected").members[0]) == len(chain)
    assert "chains join 1653 pairs of records" in caplog.text


def test_odds_that_call_nothing_one_thing_are_not_the_sharpest() -> None:
    random = np.random.default_rng(1)
    words = 1 / np.arange(1, 301)
    rows = []
    for text in random.choice(300, (500, 25), p=words / words.sum()):
        for _ in range(3):  # other words for three of ten
            told = np.where(random.random(25) < 0.3, random.choice(300, 25, p=words / words.sum()), text)
            rows.append({"text": " ".join(f"word{word}" for word in told)})
    learnt = ndd.items.Items.learn(rows, ndd.items.Items(text=ndd.items.Text()))
    leader = learnt.groups(rows).leader
    assert sum(leader[place] == leader[place - place % 3] for place in range(len(rows)) if place % 3) > 500


def _is_one(made: Made, a: object, b: object) -> bool:
    places = [made.records.index(one) for one in (a, b)]  # type: ignore[arg-type]
    return made.person[places[0]] == made.person[places[1]]


def test_persons_whose_fields_are_spread_over_lists_are_found_though_one_list_holds_them_twice() -> None:
    made = forms(1500)
    assert quality(ndd.items.Items.learn(made.records).groups(made.records), made)[2] > 0.99


def test_twins_are_kept_apart_by_a_veto_that_a_doubt_names() -> None:
    made = twins(500, 20)
    learnt = ndd.items.Items.learn(made.records)
    assert learnt.learnt is not None
    named = [doubt for doubt in learnt.learnt.doubts if "first=Name(veto=True)" in doubt]
    kept = ndd.items.Items(**{**learnt.fields, "first": ndd.items.Name(veto=True)})  # type: ignore[arg-type]
    found = ndd.items.Items.learn(made.records, kept).groups(made.records)
    assert quality(found, made)[0] == 1.0  # no pair of two persons
    assert named


@pytest.mark.parametrize(
    ("several", "again", "seed"), [(0.3, 0.1, 0), (0.3, 0.5, 0), (0.8, 0.5, 0), (0.05, 0.05, 3), (0.05, 0.05, 4)]
)
def test_persons_of_one_home_who_share_name_street_and_phone_are_not_one_person(
    several: float, again: float, seed: int
) -> None:
    made = families(700, several, again, seed)
    assert quality(ndd.items.Items.learn(made.records).groups(made.records), made)[2] > 0.85


def test_the_order_of_records_changes_nothing_that_is_learnt() -> None:
    made = people(700, seed=7)
    order = np.random.default_rng(5).permutation(len(made.records)).tolist()
    schemas = [ndd.items.Items.learn(records, PEOPLE) for records in (made.records, [made.records[i] for i in order])]
    assert schemas[0] == schemas[1]


def test_persons_with_the_same_placeholders_are_not_one_person() -> None:
    made = people(300, seed=3)
    empty = {"born": "1900-01-01", "phone": "000000000", "email": "noemail@mail.example"}
    names = [("Ann", "Smith"), ("Gus", "Marsh"), ("Ina", "Hart"), ("Leo", "Dunn"), ("Mia", "Brook")]
    unknown = [{"id": f"u{i}", "first": first, "last": last, **empty} for i, (first, last) in enumerate(names)]
    records = [{**one, "phone": f"0{914_237_113 + 7919 * i}"} for i, one in enumerate(made.records)] + unknown
    groups = ndd.items.Items.learn(records).groups(records)
    assert len(set(groups.leader[-5:].tolist())) == 5
    assert groups.bad["born"] >= 5
