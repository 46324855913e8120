"""Size and speed of the HTML report: `python -m bench.report [--steps 1000000] [--layers 500]`.

Makes a healthy run in memory, writes its report, opens it in chromium and measures how long each
interaction takes from the event to the frame that shows it.
"""

import argparse
import platform
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from holter import Run, check
from holter.record import Series
from holter.record.signals import (
    ACTIVATION_STD,
    CLIP_NORM,
    GRAD_NORM,
    GRAD_TOTAL_NORM,
    LOSS,
    LR,
    UPDATE_RATIO,
    VAL_LOSS,
    WEIGHT_NORM,
    Signal,
)
from holter.record.table import Chunk, Stamps, Table
from holter.reports.html import render

PER_STEP: tuple[Signal, ...] = (LOSS, GRAD_TOTAL_NORM, CLIP_NORM, LR)
PER_LAYER: tuple[Signal, ...] = (GRAD_NORM, UPDATE_RATIO, WEIGHT_NORM, ACTIVATION_STD)
MOST_RECORDS = 8_000  # as many as the streams of a run keep for 500 layers
TIMES = 20

# Each returns the milliseconds from the event to the frame that shows its effect.
ACTIONS = {
    "hover over the loss": "timed(() => move(loss, n))",
    "zoom in and out": "timed(() => key(loss, n % 2 ? 'Escape' : '+'))",
    "log or linear": "timed(() => key(loss, 'l'))",
    "smoothing": "timed(() => slide(n))",
    "hover over a heat map": "timed(() => move(heat, n))",
    "filter rows": "timed(() => filter(n))",
    "choose a row": "timed(() => choose(n))",
}
SCRIPT = """
  const wait = () => new Promise((done) => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = done;
    channel.port2.postMessage(0);
  }));
  window.timed = async (act) => {
    await wait();
    const began = performance.now();
    act();
    await wait();
    return performance.now() - began;
  };
  const figure = (title) => [...document.querySelectorAll("figure")]
    .find((one) => one.querySelector("figcaption")?.textContent === title);
  const [lossFigure, heatFigure] = [figure("Loss"), figure("Gradient norm per parameter")];
  window.loss = lossFigure.querySelector(".chart-canvas");
  window.heat = heatFigure.querySelector("canvas");
  const at = (canvas, n) => {
    const box = canvas.getBoundingClientRect();
    return {
      clientX: box.left + box.width * (0.3 + 0.02 * n), clientY: box.top + box.height / 2,
      bubbles: true,
    };
  };
  window.move = (canvas, n) => canvas.dispatchEvent(new PointerEvent("pointermove", at(canvas, n)));
  window.key = (canvas, name) => canvas.dispatchEvent(new KeyboardEvent("keydown", {key: name}));
  window.slide = (n) => {
    const slider = lossFigure.querySelector("input[type=range]");
    slider.value = String(0.5 + 0.02 * n);
    slider.dispatchEvent(new Event("input"));
  };
  window.filter = (n) => {
    const search = heatFigure.querySelector("input[type=search]");
    search.value = n % 2 ? "" : String(n);
    search.dispatchEvent(new Event("input"));
  };
  window.choose = (n) => heat.dispatchEvent(new MouseEvent("click", at(heat, n)));
"""


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--layers", type=int, default=500)
    parser.add_argument("--keep", type=Path, help="write the report to this file as well")
    args = parser.parse_args()
    run = made(args.steps, args.layers)
    checkup = check(run)
    began = time.perf_counter()
    page = render(run, checkup)
    print(f"{args.steps:,} steps, {args.layers:,} layers; {platform.machine()}, one run, medians")
    print(f"| {'write the report':24} | {time.perf_counter() - began:.2f} s |")
    print(f"| {'size of the file':24} | {len(page) / 1e6:.2f} MB |")
    with tempfile.TemporaryDirectory() as folder:
        path = args.keep or Path(folder) / "report.html"
        path.write_text(page, encoding="utf-8")
        for name, took in measured(path).items():
            print(f"| {name:24} | {took} |")


def made(steps: int, layers: int) -> Run:
    """Return a run as a long training leaves it."""
    random = np.random.default_rng(0)
    every = np.arange(steps)
    records = np.unique(np.linspace(0, steps - 1, min(steps, MOST_RECORDS)).astype(np.int64))
    noise = random.lognormal(0, 0.1, steps).astype(np.float32)
    loss = (0.3 + 2 * np.exp(-4 * every / steps)).astype(np.float32) * noise
    names = tuple(f"blocks.{n // 2}.linear.{('weight', 'bias')[n % 2]}" for n in range(layers))
    passes = every[:: max(steps // 100, 1)]
    signals: dict[Signal, dict[str, Series]] = {
        signal: {"": Series(every, loss if signal is LOSS else noise)} for signal in PER_STEP
    }
    signals[VAL_LOSS] = {"": Series(passes, loss[passes] * 1.1)}
    tables: dict[str, Table] = {}
    for signal in PER_LAYER:
        values = random.lognormal(-3, 0.3, (len(records), layers)).astype(np.float32)
        tables[signal.name] = Table([Chunk(Stamps(records), names, values)])
    return Run({**Run.of(signals).tables, **tables})


def measured(path: Path) -> dict[str, str]:
    """Return the time to open the page, and the median and longest time of each interaction."""
    from playwright.sync_api import sync_playwright

    flags = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=list(flags)
        )
        page = chromium.new_page(viewport={"width": 1360, "height": 900})
        began = time.perf_counter()
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]")
        table = {"open, until charts exist": f"{time.perf_counter() - began:.2f} s"}
        page.evaluate(SCRIPT)
        for name, action in ACTIONS.items():
            target = "loss" if "loss" in action else "heat"
            page.evaluate(f"{target}.scrollIntoView({{block: 'center'}})")
            page.wait_for_timeout(200)
            took = [page.evaluate(f"(n) => {action}", n) for n in range(TIMES)]
            table[name] = f"{statistics.median(took):.0f} ms, at most {max(took):.0f} ms"
        chromium.close()
    return table


if __name__ == "__main__":
    main()
