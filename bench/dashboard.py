"""The dashboard in a browser: how soon a step is shown, and the pictures of the documentation.

python -m bench.dashboard            # seconds from a written step to the page
python -m bench.dashboard --write    # also docs/pictures/{dashboard,run,gallery,gradients}.png
"""

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from holter.dashboard.access import Access
from holter.dashboard.library import Library
from holter.dashboard.server import Server
from holter.dashboard.site import Dashboard
from holter.record import Writer
from zoo.recording import recording
from zoo.specimens import Specimen

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
# The runs of the pictures: a name, and the case of a rule.
RUNS = (
    ("augmented", "overfitting/healthy"),
    ("wide", "overfitting/sick"),
    ("restarted", "parameters-outside-model/sick"),
    ("deep-sigmoid", "vanishing-gradients/sick"),
    ("own-bce", "nonfinite-loss/sick"),
    ("softmax-head", "doubled-softmax/sick"),
    ("two-shards", "loss-spike/sick"),
)


def main() -> None:
    """Measure, and write the pictures if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write docs/pictures")
    parser.add_argument("--steps", type=int, default=20, help="steps to time (default: 20)")
    args = parser.parse_args()
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        delays = _delays(browser, Path(folder) / "live", args.steps)
        print(
            f"from a written step to the page: median {statistics.median(delays):.2f} s,"
            f" longest {max(delays):.2f} s over {len(delays)} steps"
        )
        if args.write:
            _draw(browser, _runs(Path(folder) / "runs"))
        browser.close()


@contextmanager
def _serving(folder: Path) -> Iterator[Server]:
    server = Server(Dashboard(Library([folder])), Access.for_host("127.0.0.1"))
    server.start()
    yield server
    server.stop()


def _delays(browser: Browser, folder: Path, steps: int) -> list[float]:
    """Return the time from the writing of a step until the page of the run counts it."""
    writer = Writer(folder / "run", status="running")
    delays = []
    with _serving(folder) as server:
        page = browser.new_page()
        for step in range(30 + steps):
            loss = np.array([2.0 * 0.99**step], np.float32)
            writer.write("steps", step, [("loss", ("",), loss)])
            if step < 29:
                continue
            began = time.perf_counter()
            if step == 29:
                page.goto(f"{server.address('/runs/')}{Library([folder]).entries()[0].id}")
            while page.evaluate("document.documentElement.dataset.steps") != str(step + 1):
                time.sleep(0.01)
            if step > 29:
                delays.append(time.perf_counter() - began)
        page.close()
    writer.close()
    return delays


def _runs(folder: Path) -> Path:
    """Return a folder with a recorded run for each name, without the paths of this machine."""
    for name, case in RUNS:
        specimen = Specimen(case.replace("/", "-"), case, (), "a case")
        shutil.copytree(recording(specimen), folder / name)
        meta = folder / name / "meta.json"
        known = json.loads(meta.read_text())
        meta.write_text(
            json.dumps({**known, "command": ["train.py", "--run", name], "folder": "."})
        )
    return folder


def _draw(browser: Browser, folder: Path) -> None:
    PICTURES.mkdir(exist_ok=True)
    with _serving(folder) as server:
        ids = {entry.name: entry.id for entry in Library([folder]).entries()}
        network = "activation=sigmoid&depth=12"
        views = (
            ("dashboard", "/", "tbody tr:nth-child(7) td .tag", "light", 800),
            ("run", f"/runs/{ids['wide']}", "#losses canvas", "dark", 1100),
            ("gallery", "/playground", ".gallery .card:nth-child(8) canvas", "light", 1150),
            ("gradients", f"/playground/gradients?{network}", "[aria-busy=false]", "dark", 1150),
        )
        for name, path, ready, scheme, height in views:
            page = browser.new_page(
                viewport={"width": 1440, "height": height},
                color_scheme="dark" if scheme == "dark" else "light",
            )
            page.goto(f"{server.address('')}{path}")
            page.locator(ready).first.wait_for(timeout=90_000)
            page.wait_for_timeout(1500)
            shot = Image.open(BytesIO(page.screenshot()))
            shot.convert("RGB").quantize(255).save(PICTURES / f"{name}.png", optimize=True)
            page.close()


if __name__ == "__main__":
    main()
