"""The pages under docs: messages that troubleshooting quotes are real, and the reference has every public name.

`make docs` builds the site and checks its links; tests/test_readme.py runs its examples.
"""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import ndd_search as ndd
from tests.examples import ROOT

TROUBLESHOOTING = (ROOT / "docs" / "troubleshooting.md").read_text()
WORDS = "Ministers agreed on Friday to cut emissions"


def open_with_another_recipe() -> None:
    """Open an index that was made with the default recipe."""
    with ndd.Index.open("news.idx", text="body"):
        pass
    ndd.Index.open("news.idx", recipe="w5-k64-v4")


@pytest.mark.parametrize(
    "call",
    [
        lambda: ndd.collapse([{"title": WORDS}] * 3, text="body"),
        open_with_another_recipe,
        lambda: ndd.wrap(object()),
    ],
)
def test_a_message_that_troubleshooting_explains_is_the_one_that_is_raised(
    call: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tantivy", reason="the embedded index needs tantivy")
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, TypeError, ndd.errors.NDDError)) as raised:
        call()
    assert f"\n    {raised.value}\n" in TROUBLESHOOTING


def test_the_message_about_a_missing_extra_is_the_one_that_is_raised() -> None:
    code = "import sys; sys.modules['tantivy'] = None; import ndd_search; ndd_search.Index"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    message = done.stderr.splitlines()[-1].partition("MissingExtra: ")[2]
    assert f"\n    {message}\n" in TROUBLESHOOTING


def test_the_reference_has_every_public_name() -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text()
    documented = set(re.findall(r"^::: ndd_search\.(\w+)$", page, re.MULTILINE)) | {"NDDError"}
    assert set(ndd.__all__) <= documented
