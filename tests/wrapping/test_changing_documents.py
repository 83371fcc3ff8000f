"""Pages of real engines whose documents are written, changed and deleted between the requests (see prove/changes).

`make prove ARGS=changes` runs as many histories as it is told, with proxies too.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.conftest import KIND
from tests.engines.find import Engine
from tests.prove import changes
from tests.prove.walks import SEED

pytestmark = pytest.mark.newest_servers

COUNT = 10


@pytest.fixture(scope="module")
def client(engine: Engine) -> Iterator[str]:
    """The kind of client; the indexes are there meanwhile."""
    with changes.changing(engine):
        yield KIND[engine.name]


def test_pages_are_those_of_the_documents_that_are_there_and_of_a_cursor_those_of_its_first_moment(
    engine: Engine, client: str
) -> None:
    """Whatever options are combined, with a cache, without one, and with one that two clients share."""
    for number in range(COUNT):
        case = changes.draw(random.Random(f"{SEED} {number}"), engine.name)
        if case["row"].get("given") != "url":
            case["row"]["client"] = client
        case["steps"] += [["reindex", 3, 4], ["update_by_query", 9, 2]] if engine.family == "opensearch" else []
        try:
            changes.check(case)
        except Exception as error:
            raise AssertionError(f"NDD_TEST_SEED={SEED}, history {number}: {case}") from error
