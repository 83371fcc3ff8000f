"""A type checker rejects misspelt names and options in a user's program, and accepts correct ones."""

import dataclasses
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest

import ndd_search
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.matching.similar_pairs import Pairs
from ndd_search.core.options import CollapseOptions
from ndd_search.core.paging.stream import Stream
from ndd_search.core.presets import CollapseChanges
from ndd_search.errors import MissingExtra
from ndd_search.search.flow.client_settings import CLIENT, SearchChanges, WrapSettings

ROOT = Path(ndd_search.__file__).parents[1]

# Each line marked with an error code must be refused with it, and no other line may be.
PROGRAM = """
from typing import Any
import ndd_search as ndd
from elasticsearch import AsyncElasticsearch, Elasticsearch

hits: list[dict[str, Any]] = []
client = ndd.wrap(Elasticsearch("http://localhost"), window=50, cache=False, recipe="w3-k64-v4", mode="drop")
found = client.search(index="news", query={"match_all": {}})
later: AsyncElasticsearch = ndd.wrap(AsyncElasticsearch("http://localhost"), guards=["same:price"], time_budget=0.2)
page = ndd.collapse(hits, text="body", size=5, mode="drop", keep=["newest:date", len], min_similarity=0.8)
page = ndd.collapse(["a", "b"], options=ndd.CollapseOptions(window=50), mode="drop")
merged = ndd.merge([found.body], by="reciprocal_rank", guards=["numbers"])
merged = ndd.merge({"eu": [found.body], "us": found.body}, keep=("preferred:ndd.origin=eu",))
given: dict[str, Any] = {"window": 3}
ndd.collapse(hits, **given)
with ndd.options(enabled=True, mode="annotate", cache=False):
    pass
told = ndd.info(found)
examined: int = told.block["examined"]
low: int = told.unique["low"] if told.unique else 0
similar: list[float] = [copy.similarity for copy in ndd.copies(hits[0])]

told.block["examind"]  # typeddict-item
told.hiden  # attr-defined
ndd.copies(hits[0])[0].similarty  # attr-defined
ndd.colapse(hits)  # attr-defined
ndd.collapse(hits, windw=3)  # call-arg
ndd.collapse(hits, window="3")  # arg-type
ndd.collapse(hits, mode="dorp")  # arg-type
ndd.merge([found.body], windw=3)  # call-arg
ndd.wrap(client, windw=3)  # call-arg
ndd.wrap(client, cache=3)  # arg-type
with ndd.options(windw=3):  # call-arg
    pass
def search(index: ndd.Index) -> None:
    index.search("steel", window=3, guards=["same:language"])
    index.search("steel", windw=3)  # call-arg
"""


def test_a_type_checker_refuses_what_is_misspelt_and_takes_what_is_right(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="types are checked by mypy")
    pytest.importorskip("elasticsearch")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context", str(program)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    refused = {
        int(found[1]): found[2] for found in re.finditer(r"program\.py:(\d+): error: .*\[(\S+)\]$", done.stdout, re.M)
    }
    marked = {
        number: found[1]
        for number, line in enumerate(PROGRAM.splitlines(), 1)
        if (found := re.search(r"  # (\S+)$", line))
    }
    assert refused == marked, done.stdout + done.stderr


def test_what_a_type_checker_knows_of_options_is_what_there_is() -> None:
    """CollapseChanges and CollapseOptions hold the same names and types; a tuple may be given as any sequence."""
    options = {field.name: str(field.type) for field in dataclasses.fields(CollapseOptions)}
    options["preset"] = "str | Preset"
    options = {name: re.sub(r"tuple\[(\w+), \.\.\.\]", r"Sequence[\1]", type) for name, type in options.items()}
    assert options == {name: one.__forward_arg__ for name, one in CollapseChanges.__annotations__.items()}
    assert list(get_type_hints(CollapseChanges)) == list(options)
    assert set(get_type_hints(WrapSettings)) == {*CLIENT, "indexes"} | set(options)
    assert set(get_type_hints(SearchChanges)) == {"cache", "explain", "seen"} | set(options)


def test_values_that_hold_arrays_can_be_compared() -> None:
    """`==` of two values answers with a truth value; an array in a field would raise."""
    for info in pkgutil.walk_packages(ndd_search.__path__, "ndd_search."):
        if re.search(r"__main__|_native", info.name):
            continue
        try:
            module = importlib.import_module(info.name)
        except MissingExtra:
            continue
        for name, kind in inspect.getmembers(module, dataclasses.is_dataclass):
            compared = [str(field.type) for field in dataclasses.fields(kind) if field.compare]
            holds_arrays = any(
                re.search(r"NDArray|ArrayLike|Ranks|Shares|Sketch\b|Places|(?<!Frequency)Table", one)
                for one in compared
            )
            generated = kind.__dataclass_params__.eq  # type: ignore[union-attr]
            wrong = holds_arrays and generated and not name.startswith("_")
            assert not wrong, f"{info.name}.{name} compares arrays: eq=False, or an own __eq__"
    rows, shares = np.arange(3), np.ones(3)
    assert Stream() != Stream()
    assert Pairs(rows, rows, shares) != Pairs(rows, rows, shares)
    tables = [FrequencyTable(9, np.array([1, 5], np.int32), np.array([4.0, n]), "w3-k64-v4") for n in (5, 5, 6)]
    assert tables[0] == tables[1] != tables[2]
    assert len(set(tables)) == 2
