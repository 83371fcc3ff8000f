"""The examples of docs/integrations.md run, each in its framework, and are short."""

from pathlib import Path

import pytest

from tests.examples import BLOCK, ROOT, run

PAGE = ROOT / "docs" / "integrations.md"


@pytest.mark.parametrize(
    ("kind", "package"), [("langchain", "langchain_core"), ("llamaindex", "llama_index.core"), ("haystack", "haystack")]
)
def test_an_example_of_a_framework_runs(
    kind: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip(package, reason="run `make test-third-parties`")
    pytest.importorskip("tantivy", reason="run `make test-third-parties`")
    monkeypatch.chdir(tmp_path)
    assert run(PAGE, {"python", f"python {kind}"}) == 3
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 4, "two passages without a framework, two with it"
    assert "contained" in "".join(printed[2:])
    assert "similar" in "".join(printed[2:])


def test_an_example_is_shorter_than_ten_lines() -> None:
    blocks = [one["code"] for one in BLOCK.finditer(PAGE.read_text()) if one["kind"].startswith("python ")]
    assert len(blocks) == 3
    assert all(len(code.splitlines()) < 10 for code in blocks)
