"""A dashboard over a folder of runs, and a browser to look at it."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from served import Serve, Served

from holter.dashboard.access import Access
from holter.dashboard.library import Library
from holter.dashboard.server import Server
from holter.dashboard.site import Dashboard

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Return a function that serves folders until the test ends."""
    running: list[Server] = []

    def start(*folders: Path, token: bool = False) -> Served:
        server = Server(Dashboard(Library(folders)), Access.for_host("127.0.0.1", token=token))
        server.start()
        running.append(server)
        return Served(server)

    yield start
    for server in running:
        server.stop()


@pytest.fixture(scope="session")
def browser() -> Iterator["Browser"]:
    if not CHROMIUM.is_file():
        pytest.skip(f"needs a browser at {CHROMIUM}")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
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
