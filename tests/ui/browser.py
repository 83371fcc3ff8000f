"""Chromium for the tests of the search page, and its picture in README.md.

python -m tests.ui.browser docs/search-page.png
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, ViewportSize, sync_playwright

from tests.engines.jars import Unavailable

PATH = "NDD_TEST_CHROMIUM"
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDE, PHONE = ViewportSize(width=1120, height=800), ViewportSize(width=360, height=720)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the Chromium of this machine, or the one that NDD_TEST_CHROMIUM names. Raises Unavailable."""
    path = os.environ.get(PATH) or next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        raise Unavailable(f"needs {' or '.join(_NAMES)}, or its path in {PATH}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])  # root has no sandbox
        try:
            yield browser
        finally:
            browser.close()


def take_picture(browser: Browser, address: str, path: Path) -> None:
    """Write the picture of README.md: a page of results, with one group opened."""
    page = browser.new_page(viewport=ViewportSize(width=1120, height=640), color_scheme="light")
    page.goto(f"{address}/?q=climate+summit")
    page.locator("summary").first.click()
    page.screenshot(path=path)
    page.close()


def _main() -> None:
    import ndd_search as ndd
    from ndd_search.serving.ui.application import SearchPage
    from ndd_search.serving.ui.search_folder import FolderSearcher
    from tests.ui.conftest import served
    from tests.ui.news import documents

    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        index = ndd.Index.open(Path(folder) / "news.idx", text=["title", "body"])
        index.add(documents())
        with served(SearchPage(FolderSearcher(index))) as address:
            take_picture(browser, address, Path(sys.argv[1]))


if __name__ == "__main__":
    _main()
