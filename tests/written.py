"""What a version of the library writes, kept in tests/data/written, so that every later version is tested to read it.

    python -m tests.written         writes the file of this version, before its release; an older file is never changed

A file holds the sketches of texts by recipe, as they are stored in documents, a frequency table and the document that
stores it beside an index, tokens of cursors, and a cache entry.
"""

from __future__ import annotations

import gzip
import json
import sys
from base64 import b64encode
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import ndd_search as ndd
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.paging.cache_entries import sealed, stream_parts
from ndd_search.core.paging.stream import Stream
from ndd_search.core.sketching import sketch_many
from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.search.flow.choose_frequency_table import document
from ndd_search.search.flow.client_settings import settings_of
from ndd_search.search.flow.intercept_requests import Driver
from ndd_search.search.rest.read_request import Request
from tests.prove.engine import INDEX, Engine

FOLDER = Path(__file__).parent / "data" / "written"
UDHR = Path(__file__).parent / "data" / "udhr.jsonl.gz"
SEARCH: dict[str, Any] = {"query": {"match": {"body": "market"}}, "size": 3}
KEY, CURSOR_KEY = b"0123456789abcdef", "secret"
RECIPES = [
    "w3-k64-v4",
    "w1-k5-v4-seed18446744073709551615",
    "w7-k16-v4-broder-nourls",
    "c5-k64-v4",
    "c64-k2-v4-overlap",
    "l1-k64-v4-crc32",
    "s1-k8-v4",
    "w3-k16-v4-minhash",
    "w3-k6-v4-super",
    "c4-k10-v4-ngrams",
    "w1-k4-v4-simhash",
    "w1-k2-v4-profile",
]


def texts() -> list[str]:
    """Two articles in each of seventeen languages, and texts with marks, numbers, URLs and nothing."""
    with gzip.open(UDHR, "rt", encoding="utf-8") as lines:
        articles = [" ".join(json.loads(line)["articles"][:2]) for line in lines]
    return [
        *articles,
        "",
        "one",
        "x\u0301\u0323 ﬁ ½ ǰ",
        "see http://example.org/a?b=1 for 20.50 € and 3,000 more. Or not!",
    ]


def engine() -> Engine:
    """An engine with twelve texts, every third one a copy of the one before."""
    made = Engine("w3-k64-v4")
    for number in range(12):
        values = [1000 * (number - number % 3 // 2) + place for place in range(20)]
        made.write(
            {"id": f"d{number}", "values": values, "lack": "", "score": 20.0 - number, "price": 1, "time": number}
            | {"numbers": None, "text": f"text {number}"}
        )
    return made


def driver(key: str | None) -> Driver:
    """A client that has just started."""
    return Driver(settings_of(frequency_table=False, cursor_key=key, guards=["same:price"], window=6))


def page(engine: Engine, driver: Driver, cursor: Any) -> Any:
    """One page of a cursor."""
    body = {**SEARCH, "ndd": {"cursor": cursor}}
    return driver.handle(Request("POST", f"/{INDEX}/_search", {}, {}, body), engine.send).body


def table() -> FrequencyTable:
    """A frequency table."""
    return FrequencyTable(100.5, np.array([7, 2**31 - 1], np.int32), np.array([4.0, 100.5]), "w3-k64-v4")


def stream() -> Stream:
    """A stream of three hits, of which the second is a copy."""
    return Stream(
        hits=tuple({"_index": INDEX, "_id": id, "_source": {"text": "Ünï\u2028"}} for id in "abc"),
        sketches=tuple(np.array(values, np.int32) for values in ([1, 2], [1, 2**31 - 1], [])),
        lacking=("", "", "missing"),
        ranks=np.array([0, 1, 3]),
        leader=np.array([0, 0, 2]),
        similarity=np.array([1.0, 1 / 3, 1.0]),
        fetched=4,
        exhausted=True,
        total=3,
    )


def written() -> dict[str, Any]:
    """What this version writes."""
    sketches = {}
    for id in RECIPES:
        recipe = ndd.Recipe.of(id)
        sketches[id] = [SketchField().encode(one, recipe) for one in sketch_many(texts(), recipe)]
    pages = {key or "": page(engine(), driver(key), True)["ndd"]["cursor"] for key in (None, CURSOR_KEY)}
    entry = sealed(KEY, *stream_parts(stream()))
    assert entry is not None
    return {
        "sketches": sketches,
        "table": table().to_dict(),
        "stored table": document(f"/{INDEX}", SketchField(), table()),
        "cursors": pages,
        "entry": b64encode(entry).decode(),
    }


def main() -> int:
    file = FOLDER / f"{version('ndd-search')}.json"
    if file.exists():
        print(f"{file} exists and is not changed: later versions must read what it holds", file=sys.stderr)
        return 1
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(written(), separators=(",", ":")) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
