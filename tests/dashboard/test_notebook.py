"""Runs in a notebook: `holter.show`, and how runs and checkups represent themselves."""

import http.client
import math
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from shown_runs import write_run

import holter
from holter import Run, check

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_a_run_is_shown_as_its_report(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", [1.0, math.nan, math.nan])
    for given in (path, str(path), Run.load(path)):
        frame = holter.show(given, height=321)._repr_html_()
        assert frame.startswith('<iframe sandbox="allow-scripts" srcdoc="')
        assert "height:321px" in frame
        assert "<h1" in unescape(frame)
        assert frame.count("<") == 2  # everything inside is escaped


@pytest.mark.slow
def test_the_report_is_drawn_inside_a_notebook(browser: "Browser", tmp_path: Path) -> None:
    frame = holter.show(write_run(tmp_path / "run", [2.0, 1.0, 0.5]))._repr_html_()
    page = browser.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.set_content(f"<!doctype html><p>notebook</p>{frame}")
    inside = page.frame_locator("iframe")
    inside.locator("#losses canvas").first.wait_for()
    page.close()
    assert errors == []


def test_a_live_page_may_be_framed_by_this_machine_only(tmp_path: Path) -> None:
    shown = holter.show(write_run(tmp_path / "run", [1.0, 0.5]), live=True)
    try:
        address = urlsplit(shown.address)
        assert address.hostname == "127.0.0.1"
        assert address.path.startswith("/runs/")
        connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=30)
        connection.request("GET", address.path)
        answer = connection.getresponse()
        policy = answer.headers["Content-Security-Policy"]
        connection.close()
        assert answer.status == 200
        assert policy.endswith("frame-ancestors http://localhost:* http://127.0.0.1:*")
        assert shown.address in shown._repr_html_()
    finally:
        shown.close()


def test_a_run_in_memory_cannot_be_followed() -> None:
    with pytest.raises(ValueError, match="in memory"):
        holter.show(Run({}), live=True)


def test_representations_are_small_and_escaped(tmp_path: Path) -> None:
    command = ("<script>alert(1)</script>", "x" * 5_000)
    run = Run.load(write_run(tmp_path / "<b>bold", [1.0, math.nan], command=command))
    for shown in (run._repr_html_(), check(run)._repr_html_()):
        assert len(shown) < 5_000
        assert "<script" not in shown
        assert "<b>" not in shown
    assert "&lt;script&gt;" in run._repr_html_()
    assert "nonfinite-loss" in check(run)._repr_html_()
    assert "none" in check(Run({}), select=["flat-loss"])._repr_html_()
