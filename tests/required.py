"""What a test does where a program that it needs is missing."""

import os
from typing import NoReturn

import pytest

REQUIRED = "NDD_TEST_REQUIRE_ENGINES"  # names of servers and programs, separated by commas


def missing(name: str, reason: object) -> NoReturn:
    """Skip the test with a reason; fail it if NDD_TEST_REQUIRE_ENGINES names what is missing."""
    if name in os.environ.get(REQUIRED, "").split(","):
        pytest.fail(f"{name} is required by {REQUIRED}, but {reason}", pytrace=False)
    pytest.skip(f"{name} {reason}")
