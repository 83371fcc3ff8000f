"""Near-duplicates among the rows of pandas and polars: `make test-third-parties` installs both and runs this."""

from pathlib import Path
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.core.sketching import resemblance
from ndd_search.corpus.data_frames import mark_duplicates
from ndd_search.errors import InvalidDocument
from tests.examples import ROOT, run
from tests.test_collapse import NEWS

TEXTS = [NEWS[0], None, "The home side scored twice in the last ten minutes to reach the final.", f"UPDATE - {NEWS[0]}"]
TIMES = ["2024-01-01", None, None, "2024-02-01"]


@pytest.fixture(params=["pandas", "polars"])
def library(request: pytest.FixtureRequest) -> Any:
    return pytest.importorskip(request.param, reason="run `make test-third-parties`")


def columns_of(marks: Any) -> tuple[list[bool], list[Any]]:
    return [bool(one) for one in marks["duplicate"]], list(marks["leader"])


def test_the_examples_of_the_page_run(library: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(ROOT / "docs" / "corpus.md", {f"python {library.__name__}"}) == 1


def test_each_row_gets_its_leader_and_similarity(library: Any) -> None:
    rows = library.Series(TEXTS)
    marks = mark_duplicates(rows)
    assert type(marks) is library.DataFrame
    assert columns_of(marks) == ([False, False, False, True], [0, 1, 2, 0])
    expected = resemblance(ndd.sketch(NEWS[0]), ndd.sketch(f"UPDATE - {NEWS[0]}"), k=64)
    assert list(marks["similarity"]) == pytest.approx([1, 1, 1, expected])
    assert columns_of(mark_duplicates(rows, min_similarity="identical"))[0] == [False] * 4
    assert len(mark_duplicates(rows[:0])) == 0


def test_keep_chooses_the_leader_by_another_column(library: Any) -> None:
    frame = library.DataFrame({"body": TEXTS, "at": TIMES})
    assert columns_of(mark_duplicates(frame, "body"))[1] == [0, 1, 2, 0]
    assert columns_of(mark_duplicates(frame, ["at", "body"], keep=["newest:at"]))[1] == [3, 1, 2, 3]


def test_guards_and_presets_keep_rows_apart(library: Any) -> None:
    texts = [f"{NEWS[0]} {year}" for year in (2024, 2025)]
    frame = library.DataFrame({"text": texts, "site": ["a", "b"]})
    for settings, duplicates in (({}, 1), ({"preset": "products"}, 0), ({"guards": ["same:site"]}, 0)):
        assert mark_duplicates(frame, "text", **settings)["duplicate"].sum() == duplicates


def test_the_marks_have_the_index_of_the_rows() -> None:
    pandas = pytest.importorskip("pandas", reason="run `make test-third-parties`")
    for index in (
        pandas.Index(list("abcd")),
        pandas.date_range("2024-01-01", periods=4, tz="UTC"),
        pandas.MultiIndex.from_product([[1, 2], ["a", "b"]]),
    ):
        marks = mark_duplicates(pandas.Series(TEXTS, index=index, dtype="string"))
        assert marks.index.equals(index)
        assert list(marks["leader"]) == [index[0], index[1], index[2], index[0]]


def test_a_wrong_argument_is_named(library: Any) -> None:
    frame = library.DataFrame({"body": TEXTS})
    with pytest.raises(InvalidDocument, match="it has no column 'text'; its columns are body"):
        mark_duplicates(frame, "text")
    if library.__name__ == "pandas":
        twice = library.DataFrame([TEXTS[:2]], columns=["body", "body"])
        with pytest.raises(InvalidDocument, match="it has 2 columns 'body'"):
            mark_duplicates(twice, "body")
    with pytest.raises(TypeError, match="text names columns of a DataFrame"):
        mark_duplicates(frame)
    with pytest.raises(TypeError, match="text names columns of a DataFrame"):
        mark_duplicates(frame["body"], "body")


def test_a_list_is_no_column() -> None:
    with pytest.raises(TypeError, match="a Series or DataFrame of pandas or polars, got list"):
        mark_duplicates(TEXTS)


def test_labels_that_repeat_are_refused() -> None:
    """As those of two tables after pandas.concat: one label would name the leaders of two groups."""
    pandas = pytest.importorskip("pandas", reason="run `make test-third-parties`")
    both = pandas.concat([pandas.DataFrame({"body": ["one text", "another"]})] * 2)
    with pytest.raises(InvalidDocument, match=r"its index has the label 0 twice; call reset_index\(\) before"):
        mark_duplicates(both, "body")
    assert list(mark_duplicates(both.reset_index(), "body").leader) == [0, 1, 0, 1]
