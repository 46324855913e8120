"""The page in a real browser: opened from disk, used by pointer and keys, with odd runs."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from made import training, written

from holter import Run
from holter.record.meta import Environment, Meta, ModelSummary
from holter.record.signals import GRAD_NORM, LOSS, UPDATE_RATIO
from synthetic import run_of, series

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

HOSTILE = (
    "<script>document.title='broken'</script>",
    '"><img src=x onerror="document.title=1">',
    "../../../etc/passwd",
    "n" * 300,
    "tücke 漢字 \u202e\u0007 &amp; `code`",
)
NAN = float("nan")


def opened(page: "Page", folder: Path, run: Run) -> None:
    """Open the page of a run from disk; no other request may be made."""
    path = folder / "report.html"
    path.write_text(written(run), encoding="utf-8")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]", timeout=20_000)
    assert asked == [path.as_uri()]


def colours(canvas: "Locator") -> int:
    """How many colours a canvas shows: one if nothing is drawn."""
    canvas.scroll_into_view_if_needed()
    canvas.page.wait_for_timeout(80)
    return int(
        canvas.evaluate(
            """(canvas) => {
              const {width, height} = canvas;
              const {data} = canvas.getContext("2d").getImageData(0, 0, width, height);
              return new Set(new Uint32Array(data.buffer)).size;
            }"""
        )
    )


def lines(page: "Page", caption: str) -> "Locator":
    figure = page.locator(
        "figure", has=page.locator("figcaption", has_text=re.compile(f"^{caption}$"))
    )
    return figure.first


def test_every_chart_is_drawn_and_nothing_moves(page: "Page", tmp_path: Path) -> None:
    page.add_init_script(
        """window.shifted = 0;
        new PerformanceObserver((list) => {
          for (const entry of list.getEntries()) window.shifted += entry.value;
        }).observe({type: "layout-shift", buffered: true});"""
    )
    opened(page, tmp_path, training())
    canvases = page.locator("figure:visible .chart-canvas")
    assert canvases.count() >= 8
    assert all(colours(canvases.nth(n)) > 3 for n in range(canvases.count()))
    assert page.evaluate("window.shifted") < 0.05


def test_pointer_and_keys(page: "Page", tmp_path: Path) -> None:
    opened(page, tmp_path, training())
    figure = lines(page, "Loss")
    canvas, tip = figure.locator(".chart-canvas"), figure.locator(".chart-tooltip")
    box = canvas.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tip.wait_for(state="visible")
    assert re.match(r"step (9|10)\dtraining loss", tip.inner_text().replace("\n", ""))
    page.mouse.move(5, 5)
    tip.wait_for(state="hidden")

    canvas.focus()
    page.keyboard.press("End")
    tip.wait_for(state="visible")
    assert tip.inner_text().startswith("step 199")
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    assert tip.get_attribute("aria-live") == "polite"
    page.wait_for_timeout(60)
    assert tip.inner_text().startswith("step 196")

    log = figure.get_by_role("button", name="log")
    before = log.get_attribute("aria-pressed")
    page.keyboard.press("l")
    assert log.get_attribute("aria-pressed") != before

    plain = canvas.screenshot()
    page.keyboard.press("+")
    page.wait_for_timeout(60)
    zoomed = canvas.screenshot()
    assert zoomed != plain
    figure.locator("input[type=range]").fill("0.9")
    page.wait_for_timeout(60)
    assert canvas.screenshot() != zoomed


def test_zoom_by_drag_is_shared_and_reset(page: "Page", tmp_path: Path) -> None:
    opened(page, tmp_path, training())
    loss = lines(page, "Loss").locator(".chart-canvas")
    heat = lines(page, "Gradient norm per parameter").locator(".chart-canvas").first
    heat.scroll_into_view_if_needed()
    page.wait_for_timeout(80)
    whole = heat.screenshot()
    loss.scroll_into_view_if_needed()
    box = loss.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.3, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, middle, steps=3)
    page.mouse.up()
    page.mouse.move(5, 5)
    heat.scroll_into_view_if_needed()
    page.wait_for_timeout(100)
    assert heat.screenshot() != whole
    loss.scroll_into_view_if_needed()
    loss.dblclick()
    page.mouse.move(5, 5)
    heat.scroll_into_view_if_needed()
    page.wait_for_timeout(100)
    assert heat.screenshot() == whole


def test_rows_are_filtered_and_chosen(page: "Page", tmp_path: Path) -> None:
    names = tuple(f"blocks.{n}.{kind}" for n in range(6) for kind in ("weight", "bias"))
    opened(page, tmp_path, training(layers=names))
    figure = lines(page, "Gradient norm per parameter")
    legend = figure.locator(".chart-legend-entry")
    shown = legend.count()
    figure.get_by_role("searchbox").fill("5.bias")
    heat = figure.locator(".chart-canvas").first
    heat.scroll_into_view_if_needed()
    before = legend.all_inner_texts()
    box = heat.bounding_box()
    assert box is not None
    page.wait_for_timeout(80)
    heat.click(position={"x": box["width"] / 2, "y": box["height"] / 2})
    assert set(before) ^ set(legend.all_inner_texts()) == {"blocks.5.bias"}
    assert abs(legend.count() - shown) == 1
    heat.focus()
    page.keyboard.press("Enter")
    assert legend.all_inner_texts() == before


def test_light_and_dark(browser: "Browser", page: "Page", tmp_path: Path) -> None:
    opened(page, tmp_path, training())
    seen = set()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(80)
        seen.add((_background(page), lines(page, "Loss").locator(".chart-canvas").screenshot()))
    assert len({background for background, _ in seen}) == 2
    assert len({picture for _, picture in seen}) == 2
    dark = _background(page)
    page.get_by_role("button", name="Theme").click()
    assert _background(page) != dark


def _background(page: "Page") -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def test_a_phone_does_not_scroll_sideways(page: "Page", tmp_path: Path) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    opened(page, tmp_path, _hostile())
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def _hostile() -> Run:
    losses = [*np.linspace(2.3, 1.0, 60), *[NAN] * 40]
    meta = Meta(
        model=(ModelSummary(HOSTILE[0], HOSTILE[1]),),
        notes=HOSTILE,
        environment=Environment(command=HOSTILE, folder=HOSTILE[0]),
    )
    rows = dict.fromkeys(HOSTILE, losses)
    return run_of({LOSS: {HOSTILE[0]: losses}, GRAD_NORM: rows, UPDATE_RATIO: rows}, meta=meta)


def test_hostile_names_are_text(page: "Page", tmp_path: Path) -> None:
    opened(page, tmp_path, _hostile())
    assert page.title().endswith("· holter")
    assert page.locator("img").count() == 0
    assert page.locator("main script").count() == 0
    legend = page.locator(".chart-legend-entry").all_inner_texts()
    assert HOSTILE[0] in legend
    assert HOSTILE[1] in legend
    assert HOSTILE[2] in page.locator("#environment").inner_text()


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(run_of({}), id="empty"),
        pytest.param(run_of({LOSS: {"": [2.3]}, GRAD_NORM: {"a": [1.0]}}), id="one step"),
        pytest.param(run_of({LOSS: {"": [NAN] * 50}, GRAD_NORM: {"a": [NAN] * 50}}), id="NaN"),
        pytest.param(run_of({LOSS: {"": [float("inf"), float("-inf"), 0, -1, NAN]}}), id="odd"),
        pytest.param(run_of({LOSS: {"": series([1, 2], [10**12, 10**12 + 1])}}), id="late steps"),
    ],
)
def test_small_and_odd_runs(page: "Page", tmp_path: Path, run: Run) -> None:
    opened(page, tmp_path, run)
    assert page.locator("h1").inner_text()
    canvases = page.locator("figure:visible .chart-canvas")
    assert all(colours(canvases.nth(n)) > 3 for n in range(canvases.count()))


def test_a_large_run(page: "Page", tmp_path: Path) -> None:
    losses = 0.3 + 2 * np.exp(-np.arange(1_000_000) / 1e5)
    losses[654_321] = 40.0
    norms = np.exp(np.random.default_rng(0).normal(size=(5_000, 50)))
    rows = {
        f"model.layers.{n}.attention.query.weight": series(norms[n], np.arange(0, 10**6, 20_000))
        for n in range(5_000)
    }
    opened(page, tmp_path, run_of({LOSS: {"": losses}, GRAD_NORM: rows}))
    assert (tmp_path / "report.html").stat().st_size < 8e6
    assert "readings are drawn" in page.locator("#losses").inner_text()
    heat = lines(page, "Gradient norm per parameter").locator(".chart-canvas").first
    assert colours(heat) > 20
