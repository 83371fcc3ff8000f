"""The labelled collections that some tests and benchmarks run on; see their own README for sources and licences."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parents[1]


def read(name: str, file: str = "documents") -> list[dict[str, Any]]:
    """Return the lines of a file of a collection: documents, pairs, clusters, ... Skips the test if there is none.

    Collections are expected in the folder NDD_TEST_DATA, else in shared/data beside the clone.
    """
    folder = Path(os.environ.get("NDD_TEST_DATA") or HERE.parent / "shared" / "data")
    path = folder / name / f"{file}.jsonl.gz"
    if not path.exists():
        pytest.skip(f"needs the collection {name}: set NDD_TEST_DATA to the folder that holds it")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
