"""The dashboard and the playground in a real browser."""

import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from served import Serve, Served
from shown_runs import write_run

from holter.dashboard.access import Access
from holter.dashboard.library import Library
from holter.dashboard.server import Server
from holter.dashboard.site import Dashboard

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

HOSTILE = (
    "<script>document.title='broken'</script>".replace("/", "\u2215"),
    '"><img src=x onerror=alert(1)>',
    "..",
    "n" * 200,
    "tücke 漢字 \u202e\u0007 &amp; `code`",
)

TRAINING = """
import time, torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y = torch.randn(64, 8), torch.randint(4, (64,))
for step in range(2000):
    if step == 150:
        x[0, 0] = float("nan")
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(0.02)
"""


def steps_shown(page: "Page") -> int:
    return int(page.evaluate("document.documentElement.dataset.steps || 0"))


def pixels(figure: "Locator") -> bytes:
    return figure.locator("canvas").first.screenshot()


def changes(figure: "Locator", before: bytes) -> None:
    """Wait until the picture is another one."""
    for _ in range(100):
        figure.page.wait_for_timeout(100)
        if pixels(figure) != before:
            return
    raise AssertionError("the picture did not change")


def test_a_training_is_followed_while_it_runs(page: "Page", serve: Serve, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAINING)
    (tmp_path / "runs").mkdir()
    served = serve(tmp_path / "runs")
    page.goto(served.address("/"))
    page.get_by_text("There is no run in").wait_for()
    command = [
        sys.executable,
        "-m",
        "holter",
        "run",
        "--no-check",
        "--out",
        "runs/live",
        "train.py",
    ]
    with subprocess.Popen(command, cwd=tmp_path, env=os.environ) as training:
        try:
            page.get_by_role("link", name="live").click(timeout=60_000)
            page.locator("#losses canvas").first.wait_for(timeout=30_000)
            before, picture = steps_shown(page), pixels(page.locator("#losses figure").first)
            deadline = time.monotonic() + 20
            while steps_shown(page) <= before + 20:
                assert time.monotonic() < deadline
                page.wait_for_timeout(100)
            changes(page.locator("#losses figure").first, picture)
            page.locator("#run-name .tag", has_text="running").wait_for()
            alert = page.locator(".alert", has_text="nonfinite-loss")
            alert.wait_for(timeout=40_000)
            page.locator(".hero h1", has_text="Broke").wait_for(timeout=20_000)
            alert.get_by_role("link", name="nonfinite-loss").click()
            page.locator("h1", has_text="nonfinite-loss").wait_for()
        finally:
            training.terminate()


@pytest.fixture
def hostile(serve: Serve, tmp_path: Path) -> Served:
    for name in HOSTILE:
        if name != "..":
            write_run(tmp_path / name, [2.3] * 150, command=("train.py", name, "</script>"))
    write_run(tmp_path / "plain", [2.0 * 0.98**step for step in range(100)], command=HOSTILE)
    return serve(tmp_path)


def test_hostile_names_are_text(page: "Page", hostile: Served) -> None:
    page.goto(hostile.address("/"))
    page.locator("td .tag").nth(len(HOSTILE) - 1).wait_for()
    assert page.locator("tbody tr").count() == len(HOSTILE)
    shown = page.locator("tbody").inner_text()
    assert "<script>document.title" in shown
    assert "<img src=x" in shown
    assert page.locator("main img, main script").count() == 0
    for name in HOSTILE:
        if name == "..":
            continue
        page.goto(hostile.address(f"/runs/{hostile.id_of(name)}"))
        page.locator(".hero").wait_for()
        assert page.locator("main img, main script").count() == 0
        assert page.locator("#run-name").inner_text().startswith(name[:5])
        page.get_by_role("button", name="Next experiment").click()
        assert "holter doctor train.py" in page.locator("dialog").inner_text()
        assert "broken" not in page.title().split()
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 1280


@pytest.fixture
def three(serve: Serve, tmp_path: Path) -> Served:
    write_run(tmp_path / "good", [2.0 * 0.98**step for step in range(100)])
    write_run(tmp_path / "flat", [2.3] * 150)
    write_run(tmp_path / "broken", [2.0, 1.9, 1.8, math.nan, math.nan], status="failed")
    return serve(tmp_path)


def test_runs_are_filtered_and_compared(page: "Page", three: Served) -> None:
    page.goto(three.address("/"))
    page.locator("td .tag").nth(2).wait_for()
    page.locator("#filter").fill("nonfinite")
    assert page.locator("tbody tr:visible").count() == 1
    page.locator("#filter").fill("")
    compare = page.get_by_role("button", name="Compare", exact=True)
    assert compare.is_disabled()
    for name in ("good", "flat"):
        page.get_by_label(f"Compare {name}").check()
    page.get_by_role("button", name="Compare 2 runs").click()
    page.locator("main canvas").first.wait_for()
    legend = page.locator(".chart-legend").inner_text()
    assert "good" in legend
    assert "flat" in legend
    page.locator("td .tag", has_text="learned nothing").wait_for()


def test_the_page_of_a_run_leads_to_rules(page: "Page", three: Served) -> None:
    page.goto(three.address(f"/runs/{three.id_of('broken')}"))
    page.locator("#diagnosis .rule a").first.click()
    page.locator("h1", has_text="nonfinite-loss").wait_for()
    page.goto(three.address("/rules"))
    assert page.locator("table a").count() > 100


def test_pages_have_a_dark_theme(browser: "Browser", three: Served) -> None:
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    shade = "getComputedStyle(document.documentElement).backgroundColor"
    page.goto(three.address("/"))
    page.locator("td .tag").first.wait_for()
    dark = page.evaluate(shade)
    page.get_by_role("button", name="Theme").click()
    light = page.evaluate(shade)
    page.reload()
    assert page.evaluate(shade) == light
    context.close()
    assert sum(map(int, re.findall(r"\d+", dark)[:3])) < 150
    assert sum(map(int, re.findall(r"\d+", light)[:3])) > 600


def test_the_gallery_draws_every_shape(page: "Page", three: Served) -> None:
    page.goto(three.address("/playground"))
    page.locator(".gallery .card").nth(16).locator("canvas").first.wait_for()
    page.locator(".gallery a").first.click()
    page.locator("h1").wait_for()


def other_value(control: "Locator", key: str = "End") -> None:
    """Choose something else, as a user does: the last word, or what a key does to a slider."""
    if control.evaluate("element => element.tagName") == "SELECT":
        words = control.locator("option").all_inner_texts()
        now = control.input_value()
        control.select_option(next(word for word in reversed(words) if word != now))
    else:
        control.press(key)


def test_every_control_of_the_schedule_changes_its_picture(page: "Page", three: Served) -> None:
    page.goto(three.address("/playground/schedule"))
    figure = page.locator(".results .card").first
    figure.locator("canvas").first.wait_for()
    page.wait_for_timeout(300)
    for name in ("peak", "steps", "warmup", "floor", "kind"):
        before = pixels(figure)
        other_value(page.locator(f"#option-{name}"))
        changes(figure, before)
        assert f"{name}=" in page.url


@pytest.fixture(scope="module")
def playground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Return a dashboard without runs, whose worker process is started once."""
    library = Library([tmp_path_factory.mktemp("runs")])
    server = Server(Dashboard(library), Access.for_host("127.0.0.1"))
    server.start()
    yield Served(server)
    server.stop()


@pytest.mark.parametrize(
    ("part", "controls"),
    [
        ("gradients", ("activation", "init", "norm", "residual", "depth", "optimizer", "lr")),
        ("activations", ("bias",)),
        ("weights", ("decay",)),
    ],
)
def test_every_control_of_a_network_changes_its_picture(
    page: "Page", playground: Served, part: str, controls: tuple[str, ...]
) -> None:
    keys = {"depth": "PageUp", "bias": "Home"}
    page.goto(playground.address(f"/playground/{part}?depth=3&steps=20"))
    settled = page.locator('.results[aria-busy="false"]')
    settled.wait_for(timeout=90_000)
    figure = page.locator(".panels .card:visible").first
    for name in controls:
        page.wait_for_timeout(200)
        before = pixels(figure)
        with page.expect_response(re.compile("/api/playground/network"), timeout=60_000):
            other_value(page.locator(f"#option-{name}"), keys.get(name, "End"))
        settled.wait_for(timeout=60_000)
        changes(figure, before)


def test_the_range_test_is_drawn(page: "Page", playground: Served) -> None:
    page.goto(playground.address("/playground/rates?depth=1"))
    page.locator('.results[aria-busy="false"]').wait_for(timeout=90_000)
    page.locator(".results canvas").first.wait_for()
    assert "suggestion" in page.locator(".results").inner_text()


def test_the_tree_is_walked_to_a_rule(page: "Page", three: Served) -> None:
    page.goto(three.address("/playground/tree"))
    for reply in (
        "The training loss does not fall",
        "No, the loss stays where it is",
        "No, not at all",
    ):
        page.get_by_role("button", name=reply).click()
    page.get_by_role("button", name="The optimizer holds other parameters").click()
    page.get_by_role("link", name="parameters-outside-model").click()
    page.locator("h1", has_text="parameters-outside-model").wait_for()
    page.go_back()
    page.get_by_role("button", name="Start").click()
    page.get_by_text("What do you see?").wait_for()


def test_pages_fit_a_phone(browser: "Browser", three: Served) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 800})
    broken = f"/runs/{three.id_of('broken')}"
    for path in ("/", broken, "/rules", "/playground/schedule", "/playground/tree"):
        page.goto(three.address(path))
        page.locator("main > *").first.wait_for()
        page.wait_for_timeout(400)
        assert page.evaluate("document.documentElement.scrollWidth") <= 391, path
    page.close()
