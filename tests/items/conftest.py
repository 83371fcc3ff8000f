"""People of the past, and a schema that was learnt from them."""

from __future__ import annotations

import pytest

import ndd_search as ndd
from tests.items.made import PEOPLE, Made, people


@pytest.fixture(scope="session")
def made() -> Made:
    return people(700, seed=7)


@pytest.fixture(scope="session")
def learnt(made: Made) -> ndd.items.Items:
    return ndd.items.Items.learn(made.records, PEOPLE)
