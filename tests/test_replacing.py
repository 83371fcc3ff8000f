"""Files that are replaced when their new content is whole."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ndd_search.atomic_file import replace_file, replacing

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_new_file_has_the_permissions_of_any_other_new_file(tmp_path: Path) -> None:
    replace_file(tmp_path / "new", "text")
    assert mode(tmp_path / "new") == 0o640


@pytest.mark.parametrize("given", [0o600, 0o664, 0o444])
def test_a_replaced_file_keeps_its_permissions(tmp_path: Path, given: int) -> None:
    path = tmp_path / "file"
    path.write_text("before")
    path.chmod(given)
    replace_file(path, "after")
    assert path.read_text() == "after"
    assert mode(path) == given


def test_nobody_else_reads_a_file_while_it_replaces_another(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("before")
    with replacing(path) as partial:
        partial.write_text("after")
        assert mode(partial) == 0o600


def test_an_error_leaves_the_old_content_and_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("before")

    def write(text: str) -> None:
        with replacing(path) as partial:
            partial.write_text(text)
            raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        write("half of what was to co")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("mode", "uid", "follows"), [(0o1777, 1, False), (0o1777, 0, True), (0o755, 1, True)])
def test_a_link_of_somebody_else_in_a_folder_for_all_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, uid: int, follows: bool
) -> None:
    """It may lead to a file that its maker cannot write himself."""
    (tmp_path / "mine").write_text("precious")
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(mode)
    (shared / "link").symlink_to(tmp_path / "mine")
    (shared / "file").write_text("before")
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + uid)
    replace_file(shared / "file", "after")
    if follows:
        replace_file(shared / "link", "after")
    else:
        with pytest.raises(PermissionError, match="another user made this link"):
            replace_file(shared / "link", "after")
    assert (tmp_path / "mine").read_text() == ("after" if follows else "precious")
