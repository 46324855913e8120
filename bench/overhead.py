"""What watching costs a training, measured as a user would: `python -m bench.overhead`.

Whole trainings in processes of their own, bare and watched by turns, on the device that there is
(`--device cpu` for the CPU in any case). A table with the goals is printed as Markdown. The loops
are in `bench.loops`; `bench.other_tools` compares with other tools in one process.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

TURNS = 3
PARTS = ("host", "first", "everything", "gpu", "eager", "compiled")
Measured = dict[str, Any]  # as `bench.loops` prints it
SCRIPT = """
import torch
from torch import nn
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = nn.functional.cross_entropy(model(torch.randn(4, 8)), torch.tensor([0, 1, 0, 1]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@dataclass(frozen=True)
class Row:
    """A row of the table."""

    what: str
    measured: str
    goal: str


@dataclass(frozen=True)
class Comparison:
    """The same training bare and in some mode, by turns."""

    bare: list[Measured]
    watched: list[Measured]

    @property
    def bare_ms(self) -> float:
        """A bare step: the median over chunks of the median over turns."""
        return _typical(self.bare)

    @property
    def added_ms(self) -> float:
        """What a watched step takes more."""
        return _typical(self.watched) - self.bare_ms

    @property
    def percent(self) -> float:
        """The same, of a bare step."""
        return 100 * self.added_ms / self.bare_ms

    @property
    def processor_percent(self) -> float:
        """The same in processor time, which other work on the machine changes least."""
        bare, watched = (_typical(runs, "processor") for runs in (self.bare, self.watched))
        return 100 * (watched / bare - 1)

    @property
    def whole_percent(self) -> float:
        """What the whole training takes more, rare expensive steps included."""
        bare, watched = (
            statistics.median(sum(run["chunks"]) for run in runs)
            for runs in (self.bare, self.watched)
        )
        return 100 * (watched / bare - 1)

    @property
    def own_percent(self) -> float:
        """What the report says holter took, of a bare step."""
        return 100 * statistics.median(run["own"] for run in self.watched) / self.bare_ms

    def share(self, what: str) -> float:
        """Share of the steps at which something was read."""
        return statistics.median(run["shares"][what] for run in self.watched)

    @property
    def bytes_a_parameter(self) -> float:
        """Host memory that was held beyond that of the bare process, a parameter."""
        bare, watched = (
            statistics.median(run["held"] for run in runs) for runs in (self.bare, self.watched)
        )
        return (watched - bare) / self.watched[0]["parameters"]


def _typical(runs: list[Measured], what: str = "chunks") -> float:
    return statistics.median(statistics.median(run[what]) for run in runs)


def compare(loop: str, mode: str, turns: int, steps: int | None) -> Comparison:
    """Train bare and in a mode by turns."""
    runs: dict[str, list[Measured]] = {"bare": [], mode: []}
    for turn in range(turns):
        order = ("bare", mode) if turn % 2 == 0 else (mode, "bare")
        for name in order:
            progress(f"{loop}, {name}, turn {turn + 1} of {turns}")
            more = ("--steps", str(steps)) if steps else ()
            command = (sys.executable, "-m", "bench.loops", loop, name, *more)
            printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            runs[name].append(json.loads(printed.splitlines()[-1]))
    return Comparison(runs["bare"], runs[mode])


def overhead(what: str, made: Comparison, goal: float) -> Iterator[Row]:
    """Yield what a comparison shows of the cost, and whether the report agrees."""
    whole = f"{made.whole_percent:+.1f} % in all, {made.percent:+.1f} % of a typical step"
    yield Row(f"{what}, {made.bare_ms:.2f} ms a step", whole, f"≤ {goal:g} %")
    says = f"{made.own_percent:.1f} % (stopwatch {made.whole_percent:+.1f} %)"
    yield Row("… as the report says", says, "± 1 % of a step")


def density(made: Comparison) -> Iterator[Row]:
    """Yield how many steps were read."""
    yield Row("… steps with a loss", f"{made.share('losses'):.1%}", "all")
    for what in ("gradient norms", "weights", "updates", "activations"):
        goal = "all" if what == "gradient norms" else "≥ 5 %"
        yield Row(f"… steps with {what}", f"{made.share(what):.1%}", goal)


def on_cpu(turns: int, steps: int | None) -> Iterator[Row]:
    """Yield the rows of the CPU."""
    made = compare("mlp", "watched", turns, steps)
    yield from overhead("MLP after the free seconds", made, 3)
    yield Row("… in processor time", f"{made.processor_percent:+.1f} % of a typical step", "≤ 3 %")
    yield Row("… steps with a loss", f"{made.share('losses'):.1%}", "all")
    made = compare("transformer-cpu", "first", turns, steps)
    seconds = sum(made.bare[0]["chunks"]) / len(made.bare[0]["chunks"]) / 1e3
    length = f"{seconds * (steps or 2000):.0f} s from the first step"
    yield from overhead(f"small transformer, {length}", made, 5)
    yield start_and_end(turns)


def on_gpu(turns: int, steps: int | None, parts: Collection[str]) -> Iterator[Row]:
    """Yield the rows of a GPU."""
    if "host" in parts:
        made = compare("gpt-host", "watched", turns, steps)
        yield from overhead("GPT 124M, batch 8 x 1,024, bound by the host", made, 1)
        yield from density(made)
        yield Row("… host memory held", f"{made.bytes_a_parameter:.1f} bytes a parameter", "≤ 12")
    if "first" in parts:
        made = compare("gpt-host", "first", turns, 400)
        yield from overhead("GPT 124M, 400 steps from the first", made, 5)
    if "everything" in parts:
        made = compare("gpt-host", "everything", turns, 200)
        yield Row("budget=None, a step", f"+{made.added_ms:.1f} ms", "≤ 4 ms")
    if "gpu" in parts:
        made = compare("gpt-gpu", "watched", turns, steps)
        yield from overhead("GPT 124M, batch 32 x 1,024, bound by the GPU", made, 1)
    for loop in ("eager", "compiled"):
        if loop in parts:
            made = compare(f"small-{loop}", "watched", turns, steps)
            yield from overhead(f"4-layer transformer, {loop}", made, 2)
            yield Row("… steps with a loss", f"{made.share('losses'):.1%}", "all")


def start_and_end(turns: int) -> Row:
    """Return what `holter run` adds to a script that hardly trains."""
    seconds: dict[bool, list[float]] = {False: [], True: []}
    with tempfile.TemporaryDirectory(prefix="holter-bench-") as folder:
        script = Path(folder) / "train.py"
        script.write_text(SCRIPT)
        for turn in range(2 * turns + 1):
            for watched in (False, True):
                how = ("-m", "holter", "run") if watched else ()
                progress(f"python {' '.join((*how, script.name))}, turn {turn}")
                began = time.perf_counter()
                command = (sys.executable, *how, script.name)
                subprocess.run(command, cwd=folder, check=True, capture_output=True)
                if turn:  # the first fills caches
                    seconds[watched].append(time.perf_counter() - began)
    added = statistics.median(seconds[True]) - statistics.median(seconds[False])
    return Row("`holter run`, start and end of a script", f"+{added:.2f} s", "≤ 0.5 s")


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: what there is")
    parser.add_argument("--turns", type=int, default=TURNS, help="pairs of processes (default: 3)")
    parser.add_argument("--steps", type=int, help="of each training, for a quick look")
    parser.add_argument(
        "--parts", nargs="+", choices=PARTS, default=PARTS, help="of the table of a GPU (all)"
    )
    args = parser.parse_args()
    device = args.device or ("cuda" if torch.cuda.is_available() else "cpu")
    where = torch.cuda.get_device_name() if device == "cuda" else f"{os.cpu_count()} CPU cores"
    load = os.getloadavg()[0]
    if device == "cuda":
        rows = on_gpu(args.turns, args.steps, args.parts)
    else:
        rows = on_cpu(args.turns, args.steps)
    print(
        f"`python -m bench.overhead {' '.join(sys.argv[1:])}`, {time.strftime('%Y-%m-%d')}, {where}"
        f" (load average {load:.1f} before), Python {platform.python_version()},"
        f" torch {torch.__version__}, {args.turns} turns.\n"
    )
    print("| what | measured | goal |\n| --- | --- | --- |", flush=True)
    for row in rows:
        print(f"| {row.what} | {row.measured} | {row.goal} |", flush=True)
    return 0


def progress(what: str) -> None:
    """Say on standard error what is being measured."""
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
