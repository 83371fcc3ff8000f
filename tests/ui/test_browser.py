"""The search page in Chromium: its flows, hostile texts, keyboard, phone, dark mode, and accessibility by axe-core."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright", reason="the tests in a browser need playwright")
pytest.importorskip("axe_playwright_python", reason="the tests in a browser need axe-playwright-python")

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.conftest import missing, report
from tests.engines.jars import Unavailable
from tests.ui.browser import PHONE, WIDE, chromium, take_picture

pytestmark = pytest.mark.browser
PICTURES = Path("build/search-page")


@pytest.fixture(scope="module")  # while it is open, no other test of this thread could use asyncio
def browser(request: pytest.FixtureRequest) -> Iterator[Browser]:
    """Chromium. Without it the tests are skipped with a reason, or fail if NDD_TEST_REQUIRE_ENGINES names it."""
    said = request.config.stash[report]
    try:
        with chromium() as made:
            said["chromium"] = f"{made.version}, pictures in {PICTURES}"
            yield made
    except Unavailable as reason:
        said["chromium"] = f"not tested: {reason}"
        missing("chromium", reason)


class Watched:
    """A page, with what the browser complains about and what it loads."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.problems: list[str] = []
        self.loaded: set[str] = set()
        page.on("console", lambda message: self.problems.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("dialog", lambda dialog: self.problems.append(f"dialog {dialog.message}"))
        page.on("request", lambda request: self.loaded.add(re.sub(r"^(\w+://[^/]*).*", r"\1", request.url)))


def watched(browser: Browser, **settings: Any) -> Watched:
    return Watched(browser.new_page(**{"viewport": WIDE, **settings}))


def overflow(page: Page) -> int:
    """How many pixels the page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def test_a_visitor_searches_compares_and_tries_a_setting(browser: Browser, address: str) -> None:
    """With keyboard and mouse; every step is in the URL, so going back returns to it."""
    seen = watched(browser)
    page = seen.page
    page.goto(f"{address}/")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.type("climate")
    page.keyboard.press("Enter")
    expect(page.locator(".result")).to_have_count(5)
    page.locator("summary", has_text="and 3 near-duplicates").click()
    first = page.locator("details[open] .duplicates li")
    expect(first).to_have_count(3)
    expect(first.first).to_contain_text("% alike")
    first.first.get_by_role("link", name="Compare").click()
    expect(page.locator("article")).to_have_count(2)
    expect(page.locator("article").first.locator(".facts")).to_contain_text("id 00")
    assert [one.inner_text() for one in page.locator(".text mark").all()] == ["LISBON (Wire"]
    expect(page.locator(".verdict")).to_contain_text("They count as near-duplicates")
    page.get_by_role("link", name="Back to the results").click()
    expect(page).to_have_url(f"{address}/?q=climate")

    page.get_by_role("link", name="Engine order").click()
    expect(page.locator(".result")).to_have_count(10)
    assert page.locator(".repeated").count() > 0
    page.get_by_role("link", name="Next page").click()
    expect(page.locator(".result")).to_have_count(1)
    page.get_by_role("link", name="Deduplicated").click()

    expect(page.locator("output")).to_have_text("automatic")
    page.locator("input[type=range]").focus()
    page.keyboard.press("End")
    expect(page).to_have_url(f"{address}/?q=climate&min_similarity=1")
    expect(page.locator("input[type=range]")).to_be_focused()
    shown = page.locator(".result").count()
    assert shown > 5
    page.get_by_role("link", name="Back to automatic").click()
    page.get_by_role("link", name=re.compile("^Evening Post")).click()
    expect(page).to_have_url(f"{address}/?q=climate&source=Evening+Post")
    expect(page.locator(".result")).to_have_count(3)
    page.get_by_role("link", name=re.compile("^The Courier")).click()
    expect(page).to_have_url(f"{address}/?q=climate&source=Evening+Post&source=The+Courier")
    expect(page.locator(".result")).to_have_count(5)
    page.locator(".filters a", has_text="The Courier").click()
    expect(page.locator(".result")).to_have_count(3)
    page.locator(".filters a").click()
    expect(page.locator(".result")).to_have_count(5)
    page.go_back()
    expect(page.locator(".result")).to_have_count(3)
    assert (seen.problems, seen.loaded) == ([], {address})
    page.close()


def test_keys_are_enough(browser: Browser, address: str) -> None:
    seen = watched(browser)
    page = seen.page
    page.goto(f"{address}/?q=climate")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()
    page.locator("summary").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("details[open]")).to_have_count(1)
    assert (seen.problems, seen.loaded) == ([], {address})
    page.close()


def test_it_works_without_scripts(browser: Browser, address: str) -> None:
    page = watched(browser, java_script_enabled=False).page
    page.goto(f"{address}/")
    page.locator("#q").fill("climate")
    page.get_by_role("button", name="Search").click()
    expect(page.locator(".result")).to_have_count(5)
    page.get_by_role("button", name="Search with it").click()
    expect(page).to_have_url(f"{address}/?q=climate&min_similarity=0.5")
    page.get_by_role("link", name="Back to automatic").click()
    page.get_by_role("link", name="Engine order").click()
    page.get_by_role("link", name="Next page").click()
    expect(page.locator(".result")).to_have_count(1)
    page.get_by_role("link", name="Previous page").click()
    expect(page.locator(".result")).to_have_count(10)
    page.close()


def test_the_filters_of_a_phone_are_behind_a_button(browser: Browser, address: str) -> None:
    """The button is above the first result, which is on the first screen; the filters work without scripts."""
    page = browser.new_page(viewport=PHONE, java_script_enabled=False)
    page.goto(f"{address}/?q=climate")
    first, button = page.locator(".result").first.bounding_box(), page.get_by_role("button", name="Filters")
    place = button.bounding_box()
    assert first is not None
    assert place is not None
    assert place["y"] < first["y"] < PHONE["height"] / 2
    expect(page.locator("aside")).to_be_hidden()
    button.click()
    expect(page.locator("aside")).to_be_in_viewport()
    page.get_by_role("button", name="Close").click()
    expect(page.locator("aside")).to_be_hidden()
    button.press("Enter")
    expect(page.locator("aside")).to_be_in_viewport()
    page.keyboard.press("Escape")
    expect(page.locator("aside")).to_be_hidden()
    button.click()
    page.get_by_role("link", name=re.compile("^Evening Post")).click()
    expect(page).to_have_url(f"{address}/?q=climate&source=Evening+Post")
    expect(page.locator(".filters")).to_contain_text("Evening Post")
    page.close()


def test_texts_run_as_their_script_does(browser: Browser, address: str) -> None:
    """A result in Arabic or Hebrew stands right with all its parts, one in Latin left."""
    page = browser.new_page(viewport=WIDE)
    page.goto(f"{address}/?q=قمة")
    for part in (".result .title", ".result .passage", ".result .facts", "#q"):
        assert page.locator(part).first.evaluate("element => getComputedStyle(element).direction") == "rtl"
    page.locator(".result h2 a").click()
    assert page.locator("h1").evaluate("element => getComputedStyle(element).direction") == "rtl"
    page.goto(f"{address}/?q=climate")
    assert page.locator(".result .title").first.evaluate("element => getComputedStyle(element).direction") == "ltr"
    page.close()


def test_dates_are_written_as_the_reader_does(browser: Browser, address: str) -> None:
    for locale, day, month in (("de-DE", "3. Sept. 2026", "September 2026"), ("ja-JP", "2026年9月3日", "2026年9月")):
        page = browser.new_page(locale=locale, timezone_id="America/New_York")
        page.goto(f"{address}/?q=steel+furnace")
        expect(page.locator(".result .facts").first).to_contain_text(day)
        expect(page.locator(".facet").last).to_contain_text(month)
        page.close()


def test_hostile_texts_stay_texts(browser: Browser, address: str) -> None:
    """No script of a document runs, and no text is wider than the window of a phone."""
    seen = watched(browser, viewport=PHONE)
    page = seen.page
    page.goto(f"{address}/?q=hostile")
    expect(page.locator(".result")).to_have_count(5)
    for summary in page.locator("summary").all():
        summary.click()
    assert overflow(page) <= 0
    expect(page.locator(".result").filter(has_text="<script>")).to_have_count(1)
    addresses = [link.get_attribute("href") for link in page.locator(".compare, .result .title a").all()]
    for href in addresses:
        page.goto(f"{address}/{href}")
        assert overflow(page) <= 0
        assert page.locator("a[href^='javascript']").count() == 0
    page.goto(f"{address}/?q=%3Cscript%3Ealert(1)%3C/script%3E%22%27&source=%22%3E%3Cimg%20src=x%3E")
    expect(page.locator("#q")).to_have_value("<script>alert(1)</script>\"'")
    assert (seen.problems, seen.loaded) == ([], {address})
    page.close()


def test_axe_finds_nothing_at_any_width(browser: Browser, address: str) -> None:
    """Every kind of page at 360, 768 and 1,280 pixels, in light and dark; their pictures are in build/search-page."""
    axe, found = Axe(), {}
    page = browser.new_page(viewport=WIDE)
    page.goto(f"{address}/?q=climate")
    pair = page.locator(".compare").first.get_attribute("href")
    pages = {"start": "", "results": "?q=climate", "engine": "?q=climate&order=engine", "arabic": "?q=قمة"}
    pages |= {"filters": "?q=climate&min_similarity=1&source=Evening+Post&source=The+Courier&period=2026-09"}
    pages |= {"nothing": "?q=%2Bnone+%2Btitel:x&source=Evening+Post", "slip": "?q=%22climate"}
    pages |= {"hostile": "?q=hostile", "pair": str(pair), "document": "document?a=00", "failed": "?q=a&page=0"}
    PICTURES.mkdir(parents=True, exist_ok=True)
    for width, scheme in product((360, 768, 1280), ("light", "dark")):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.set_viewport_size({"width": width, "height": 800})
        checked = (width, scheme) in ((360, "dark"), (1280, "light"))
        for name in pages if checked else ("start", "results", "arabic", "filters", "nothing", "document"):
            page.goto(f"{address}/{pages[name]}")
            page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
            if name == "filters" and width < 960:
                page.get_by_role("button", name="Filters").click()
            assert overflow(page) <= 0
            page.screenshot(path=PICTURES / f"{name}-{width}-{scheme}.png", full_page=name != "filters")
            results = axe.run(page) if checked or name == "filters" else None
            if results is not None and results.violations_count:
                found[f"{name}, {scheme}, {width}"] = results.generate_report()
    assert not found, "\n".join(found.values())
    page.close()


def test_the_picture_of_the_readme(browser: Browser, address: str, tmp_path: Path) -> None:
    take_picture(browser, address, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
