"""The native core, without which these tests are skipped."""

import os

import pytest

from ndd_search import native
from ndd_search.native import Core


@pytest.fixture(scope="session", autouse=True)
def core() -> Core:
    if native.core is None:
        if os.environ.get("NDD_TEST_REQUIRE_NATIVE"):
            pytest.fail("the native core is not built: python -m pip install --editable . with a compiler at hand")
        pytest.skip("the native core is not built")
    return native.core
