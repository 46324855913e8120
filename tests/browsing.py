"""A real browser for tests of pages: Debian's chromium, driven by playwright."""

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)


@pytest.fixture(scope="module")  # a session would leave its event loop running in other tests
def browser() -> Iterator["Browser"]:
    """Return a browser; it is the only one at a time."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs the browser chromium: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture
def page(browser: "Browser") -> Iterator["Page"]:
    """Return a page that fails its test if a script of ours fails or says anything."""
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    said: list[str] = []
    opened.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    opened.on("pageerror", lambda error: said.append(str(error)))
    yield opened
    opened.close()
    assert said == []
