"""Both arms of an experiment on real servers, and the log of their searches."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.evaluation.effect import measure_effect
from ndd_search.middleware.experiment import Experiment
from tests.wrapping.conftest import Connect, Library
from tests.wrapping.test_searches import MATCH

pytestmark = pytest.mark.one_kind_of_client

ARMS = {Experiment(unit=f"user-{number}").arm: {"unit": f"user-{number}"} for number in range(20)}


def names(answer: dict[str, Any]) -> list[dict[str, str]]:
    return [{"_index": hit["_index"], "_id": hit["_id"]} for hit in answer["hits"]["hits"]]


@pytest.mark.parametrize("settings", [{}, {"keep": ["newest:published"]}, {"strategy": "one_trip", "cache": False}])
def test_each_arm_gets_its_page_and_is_told_the_other(
    settings: dict[str, Any], library: Library, connect: Connect
) -> None:
    log = io.StringIO()
    caller = connect(window=60, facets=["languages"], observers=[ndd.SearchLog(log)], **settings)
    plain = connect(wrapped=False)
    changed = 0
    for start in (0, 10, 50):
        body: dict[str, Any] = {"query": MATCH, "size": 10, "from": start}
        body |= {"aggs": {"languages": {"terms": {"field": "language"}}}}
        collapsed = caller.search(index=library.news, body=body)
        own = plain.search(index=library.news, body=body, preference="ndd")
        pages = {
            arm: caller.search(index=library.news, body={**body, "ndd": {"experiment": unit}})
            for arm, unit in ARMS.items()
        }
        treatment, control = pages["treatment"], pages["control"]
        changed += names(treatment) != names(control)
        assert treatment["hits"]["hits"] == collapsed["hits"]["hits"]
        for hit in own["hits"]["hits"]:
            del hit["_source"]["ndd"]  # the sketch
        assert control["hits"]["hits"] == own["hits"]["hits"]
        assert control["hits"]["total"] == own["hits"]["total"]
        assert control["aggregations"] == own["aggregations"] != treatment["aggregations"]
        for arm, page, other in (("treatment", treatment, control), ("control", control, treatment)):
            told = page["ndd"]["experiment"]
            assert (told["arm"], told["instead"]) == (arm, names(other))
            assert told["changed"] == (names(treatment) != names(control)) == page["ndd"]["changed"]
            hidden = [one for one in names(control) if one not in names(treatment)]
            assert all(one in hidden for one in told["hidden"])
            if not start:
                assert told["hidden"] == hidden
        with ndd.options(experiment=ARMS["control"]):
            assert names(caller.search(index=library.news, body=body)) == names(control)
    effect = measure_effect(log.getvalue().splitlines())
    assert (effect.arms["treatment"].pages, effect.arms["control"].pages, effect.arms["all"].pages) == (3, 6, 3)
    assert effect.arms["treatment"].changed == changed
    assert set(json.loads(log.getvalue().splitlines()[0])) == {"time", "path", "ms", "pages"}
    with pytest.raises(TypeError, match="experiment"):
        caller.search(index=library.news, body={"query": MATCH, "ndd": {"experiment": {"user": "x"}}})
