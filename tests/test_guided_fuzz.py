"""The inputs by which the coverage-guided fuzzer reaches all code of the core give the same results with numpy."""

from __future__ import annotations

import os

import pytest

from ndd_search import native
from tests.guided_fuzz import compare, kept

STEP = 1 if os.environ.get("NDD_TEST_EXAMPLES") == "large" else 5


@pytest.mark.skipif(native.core is None, reason="the native core is not built")
def test_inputs_that_the_fuzzer_has_found_give_the_same_results() -> None:
    inputs = kept()
    assert len(inputs) > 50
    for data in inputs[::STEP]:
        compare(data)
