"""The arms of an experiment, and the measured effect from logs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndd_search.evaluation.effect import measure_effect
from ndd_search.middleware.experiment import Experiment
from tests.command_line import run


@given(unit=st.text(), name=st.text(), share=st.floats(0, 1))
def test_a_unit_is_always_in_the_same_arm(unit: str, name: str, share: float) -> None:
    one, other = (Experiment.of({"unit": unit, "name": name, "share": share}) for _ in range(2))
    assert one.arm == other.arm
    assert Experiment(unit=unit, share=1.0).arm == "treatment"
    assert Experiment(unit=unit, share=0.0).arm == "control"
    if one.arm == "treatment":  # a larger share moves nobody back
        assert Experiment(unit=unit, name=name, share=min(1.0, share + 0.1)).arm == "treatment"


def test_units_are_divided_evenly_and_anew_for_each_experiment() -> None:
    units = [f"user-{number}" for number in range(4000)]
    arms = {name: [Experiment(unit=unit, share=0.3, name=name).arm == "treatment" for unit in units] for name in "ab"}
    for inside in arms.values():
        assert 0.25 < sum(inside) / len(units) < 0.35
    both = sum(one and other for one, other in zip(arms["a"], arms["b"], strict=True))
    assert 0.06 < both / len(units) < 0.12
    assert round(Experiment(unit="user-17").bucket, 6) == 0.250389  # the same in every version


@pytest.mark.parametrize("wrong", ["x", {}, {"unit": 3}, {"unit": "x", "shares": 1}, {"unit": "x", "share": 2}])
def test_what_is_wrong_with_an_experiment_is_told(wrong: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="experiment"):
        Experiment.of(wrong)


def block(arm: str, changed: bool, *hidden: str) -> dict[str, Any]:
    facts = {"arm": arm, "changed": changed, "hidden": [{"_index": "news", "_id": id} for id in hidden]}
    return {"examined": 20, "hidden": 5, "changed": changed, "degraded": None, "experiment": facts}


LINES: list[Any] = [
    {"search": "s3", "click": "early"},
    {"search": "s1", "ndd": block("treatment", True, "7")},
    {"search": "s2", "ndd": block("treatment", False)},
    {"search": "s3", "ndd": block("control", True, "8", "9")},
    {"search": "s4", "ndd": {"degraded": "refused"}},
    {"search": "s1", "click": "1"},
    {"search": "s1", "click": "7"},
    {"search": "s3", "click": "9"},
    {"search": "gone", "click": "9"},
    {"path": "/news/_search", "pages": [{"collapsed": True, "changed": True, "examined": 10, "hidden": 1}]},
    {"method": "GET", "path": "/news/_search", "kind": "page", "pages": [{"collapsed": False}]},
    {"method": "GET", "path": "/news/_doc/1", "kind": "passed"},
]


def test_pages_hidden_hits_and_clicks_are_counted_by_arm(tmp_path: Path) -> None:
    effect = measure_effect(map(json.dumps, LINES))
    treatment, control = effect.arms["treatment"], effect.arms["control"]
    assert (treatment.pages, treatment.changed, treatment.examined, treatment.hidden) == (2, 1, 40, 10)
    assert (treatment.logged, treatment.clicked, treatment.clicks, treatment.clicks_on_hidden) == (2, 1, 2, 1)
    assert (control.pages, control.clicked, control.clicks, control.clicks_on_hidden) == (1, 1, 2, 1)
    assert effect.arms["all"].changed == 1
    assert (effect.left_alone, effect.unknown_clicks, effect.other, effect.unreadable) == (2, 1, 1, 0)
    assert effect.difference is not None
    assert effect.difference[0] == pytest.approx(-0.5)
    plain, packed = tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz"
    plain.write_text("\n".join(map(json.dumps, LINES[:6])) + "\n")
    packed.write_bytes(gzip.compress("\n".join(map(json.dumps, LINES[6:])).encode()))
    shown = run("effect", str(plain), str(packed)).stdout
    assert (
        "treatment: 1 of 2 pages (50.0%) changed; 10 of 40 examined hits (25.0%) hidden; 0 of 2 pages (0.0%) degraded"
        in shown
    )
    assert "1 of 2 clicks (50.0%) on hits that collapsing hides" in shown
    assert "treatment less control: -50.0%" in shown
    as_json = json.loads(run("effect", str(plain), str(packed), "--json").stdout)
    assert as_json["arms"]["treatment"]["clicked"] == 1
    plain.write_text('{"search": "x"\n[]\n')
    assert measure_effect(['{"ndd": {"examined": 3, "experiment": "treatment"}}']).arms["all"].pages == 1
    assert "2 lines are no JSON objects" in run("effect", str(plain), code=3).stderr
    plain.write_text("{}\n")
    assert "no page in these logs was collapsed" in run("effect", str(plain), code=1).stdout
