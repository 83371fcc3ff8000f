"""The image of the proxy: what .dockerignore lets into it makes a wheel with the native core."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ndd_search import native
from tests.examples import ROOT


@pytest.mark.once
def test_what_the_image_is_built_from_makes_a_wheel_with_the_core(tmp_path: Path) -> None:
    if native.core is None:
        pytest.skip("there is no compiler")
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    for name in (line[1:] for line in lines if line.startswith("!")):
        source, target = ROOT / name, tmp_path / "source" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        else:
            shutil.copy(source, target)
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", ".", "./source"],
        cwd=tmp_path,
        check=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert [name for name in names if name.startswith("ndd_search/_native.")]
