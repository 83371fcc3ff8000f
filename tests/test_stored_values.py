"""A value that is no text is sketched as it reads in the stored document, so that ingest and backfill agree."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from ndd_search.core.document_fields import text_of

AS_STORED: list[tuple[Any, Any]] = [
    (datetime.datetime(2024, 1, 2, 3, 4, 5), "2024-01-02T03:04:05"),
    (datetime.date(2024, 1, 2), "2024-01-02"),
    (Decimal("1.10"), 1.1),
    (np.float32(0.1), float(np.float32(0.1))),
    (np.bool_(True), True),
    (np.array([1, 2]), [1, 2]),
    (uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
]


@pytest.mark.parametrize(("given", "stored"), AS_STORED, ids=str)
def test_a_value_gives_the_text_of_what_is_stored(given: Any, stored: Any) -> None:
    assert text_of({"field": given}, ["field"]) == text_of({"field": stored}, ["field"])
