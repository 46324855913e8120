"""How soon `holter check` answers: `python bench/check.py [--steps 10000] [--times 5]`.

Writes a healthy run of 50 parameters x 7 signals and 30 step-level series, and starts the command
as a user does: a new process each time.
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import numpy as np

from holter.record import Writer
from holter.record.meta import ModelSummary, OptimizerSummary, ParameterSummary
from holter.record.writer import Row

PARAMETERS = tuple(f"blocks.{i // 2}.linear.{('weight', 'bias')[i % 2]}" for i in range(50))
GROUPS = tuple(f"group {i}" for i in range(4))
GROUP = ("lr", "beta1", "beta2", "weight_decay")  # 16 series; with the 14 below: 30
STEP = {
    "loss": ("",),
    "loss.logged": ("",),
    "grad.total_norm": ("",),
    "grad.carried_fraction": ("",),
    "weight.total_norm": ("",),
    "mode.training": ("model",),
    "mode.eval_fraction": ("model",),
    "backward.calls": ("",),
    "clip.norm": ("",),
    "clip.limit": ("",),
    "clip.coefficient": ("",),
    "data.batch_size": ("loader 0",),
    "time.data_wait": ("loader 0",),
    "watch.time": ("",),
}
FACTS = {"parameter.trainable": 1.0, "parameter.optimizer": 0.0, "parameter.in_model": 1.0}


def main() -> None:
    """Measure everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=5)
    args = parser.parse_args()
    load = os.getloadavg()
    with tempfile.TemporaryDirectory(prefix="holter-bench-") as folder:
        path = Path(folder) / "run"
        progress(f"writing a run of {args.steps:,} steps")
        began = time.perf_counter()
        write(path, args.steps)
        wrote = time.perf_counter() - began
        size = sum(each.stat().st_size for each in path.rglob("*.seg")) / 1e6
        check = ("-m", "holter", "check", str(path))
        commands = {
            "holter check RUN": check,
            "holter check RUN --format json": (*check, "--format", "json"),
            "holter --help": ("-m", "holter", "--help"),
            'python -c "import holter"': ("-c", "import holter"),
            'python -c "import numpy"': ("-c", "import numpy"),
            'python -c "pass"': ("-c", "pass"),
        }
        lines = [timed(what, command, args.times) for what, command in commands.items()]
    said = (
        f"`python bench/check.py`, {time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores (load"
        f" average {load[0]:.1f}), Python {platform.python_version()}, numpy {np.__version__};"
        f" a run of {args.steps:,} steps with {len(PARAMETERS)} parameters x {len(signals())}"
        f" signals and {len(GROUP) * len(GROUPS) + len(STEP)} step-level series ({size:.0f} MB,"
        f" written in {wrote:.1f} s), in the page cache; median of {args.times} processes."
    )
    print(textwrap.fill(said, 120, break_on_hyphens=False) + "\n")
    width = max(len(line[0]) for line in lines)
    print(f"| {'command':<{width}} | median | fastest | slowest | exit code | imports torch |")
    print(f"|{'-' * (width + 2)}|--:|--:|--:|--:|---|")
    for line in lines:
        print("| " + " | ".join((f"{line[0]:<{width}}", *line[1:])) + " |")


def signals() -> dict[str, float]:
    """Per-parameter signals, and about how large they are."""
    return {
        "grad.norm": 1e-2,
        "grad.absmax": 1e-3,
        "grad.nonfinite": 0.0,
        "grad.zero_fraction": 0.0,
        "weight.norm": 5.0,
        "update.ratio": 1e-3,
        "update.unchanged_fraction": 0.0,
    }


def write(path: Path, steps: int) -> None:
    """A run as a healthy training leaves it."""
    random = np.random.default_rng(0)
    writer = Writer(path, status="running")
    writer.update_meta(
        model=(ModelSummary("model", "Net", 50 * 65536, 50 * 65536, mode_dependent_modules=4),),
        optimizers=(OptimizerSummary("", "AdamW", len(GROUPS)),),
        parameters={name: ParameterSummary((256, 256), "float32") for name in PARAMETERS},
    )
    facts: list[Row] = [
        (name, PARAMETERS, np.full(len(PARAMETERS), value, np.float32))
        for name, value in FACTS.items()
    ]
    writer.write("facts", 0, facts)
    sizes = np.array(list(signals().values()), np.float32)[:, None]
    for step in range(steps):
        noise = random.lognormal(0.0, 0.1, (len(sizes), len(PARAMETERS))).astype(np.float32)
        values = sizes * noise
        per_parameter: list[Row] = [
            (name, PARAMETERS, values[place]) for place, name in enumerate(signals())
        ]
        writer.write("parameters", step, per_parameter)
        writer.write("steps", step, step_rows(step, float(noise[0, 0])))
    writer.update_meta(status="finished", steps=steps, duration=steps * 0.05)
    writer.close()


def step_rows(step: int, noise: float) -> list[Row]:
    """The step-level readings of a falling loss."""
    loss = 0.3 + 2.0 / (1.0 + step / 200) * noise
    known = {
        "loss": loss,
        "loss.logged": loss,
        "grad.total_norm": 0.5 * noise,
        "grad.carried_fraction": 0.0,
        "mode.eval_fraction": 0.0,
        "clip.norm": 0.5 * noise,
        "data.batch_size": 64.0,
        "time.data_wait": 1e-4 * noise,
        "watch.time": 1e-4 * noise,
        "lr": 1e-3,
        "beta1": 0.9,
        "beta2": 0.999,
        "weight_decay": 0.01,
    }
    owners = {**STEP, **dict.fromkeys(GROUP, GROUPS)}
    return [
        (name, held, np.full(len(held), known.get(name, 1.0), np.float32))
        for name, held in owners.items()
    ]


def timed(what: str, command: tuple[str, ...], times: int) -> tuple[str, ...]:
    """How long a new process takes, and whether it imports torch."""
    progress(what)
    took, code = [], 0
    for _ in range(times + 1):
        began = time.perf_counter()
        ended = subprocess.run([sys.executable, *command], capture_output=True, check=False)
        took.append((time.perf_counter() - began) * 1e3)
        code = ended.returncode
    del took[0]  # which may have compiled .pyc files
    traced = subprocess.run(
        [sys.executable, "-X", "importtime", *command], capture_output=True, check=False, text=True
    )
    modules = {line.rsplit("|", 1)[-1].strip() for line in traced.stderr.splitlines()}
    return (
        f"`{what}`",
        f"{statistics.median(took):.0f} ms",
        f"{min(took):.0f} ms",
        f"{max(took):.0f} ms",
        str(code),
        "**yes**" if "torch" in modules else "no",
    )


def progress(what: str) -> None:
    """Say on standard error what is being measured."""
    print(f"{what} ...", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
