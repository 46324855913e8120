"""How long the catalogue takes: `python -m bench.rules [--steps 10000] [--parameters 500]`.

Writes a run with every signal there is, as a healthy training of a transformer would leave it, and
applies all rules: to the whole of it, and to the run while it grows, as a live check does.
"""

import argparse
import os
import platform
import tempfile
import time
from pathlib import Path

import numpy as np

from holter import Run
from holter.diagnosis.engine import all_rules, check
from holter.record import Writer
from holter.record.format import Floats
from holter.record.signals import CATALOGUE, Per, Signal

LOSS_LIKE = {"loss", "loss.logged", "val.loss"}
ZERO = {
    "grad.nonfinite",
    "grad.zero_fraction",
    "grad.carried_fraction",
    "backward.repeated",
    "amp.skipped",
    "input.nonfinite",
    "hidden.nonfinite",
    "clip.scaled",
    "clip.late",
    "val.train_fraction",
    "val.graph_fraction",
    "target.broadcast",
    "target.input_match",
    "target.ignored_fraction",
    "output.probability_fraction",
    "output.log_probability_fraction",
    "loss.summed",
    "weight.twin_fraction",
    "update.unchanged_fraction",
    "mode.eval_fraction",
    "activation.dead_fraction",
    "adam.tiny_fraction",
    "activation.saturated_fraction",
    "parameter.optimizer",
}
ONE = {
    "parameter.trainable",
    "parameter.in_model",
    "mode.training",
    "backward.calls",
    "data.batches",
}
LEVELS = {
    "lr": 3e-4,
    "epsilon": 1e-8,
    "update.ratio": 1e-3,
    "clip.coefficient": 1.0,
    "clip.limit": 1e3,
    "amp.scale": 65536.0,
    "target.entropy": 2.3,
    "target.batch_entropy": 2.2,
    "target.classes": 10.0,
    "data.batch_size": 64.0,
    "output.units": 10.0,
    "normalisation.samples": 4096.0,
    "weight.row_coherence": 0.02,
    "parameter.fan_in": 512.0,
}


def main() -> None:
    """Write the run, check it, and print the dearest rules."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--parameters", type=int, default=500)
    parser.add_argument("--show", type=int, default=12, metavar="N", help="the N dearest rules")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="holter-bench-") as folder:
        path = Path(folder) / "run"
        stages = 5
        writer = Writer(path, status="running")
        rows = []
        for stage in range(stages):
            first, last = (args.steps * at // stages for at in (stage, stage + 1))
            write(writer, range(first, last), args.steps, args.parameters)
            began = time.perf_counter()
            checkup = check(Run.load(path))
            rows.append((last, time.perf_counter() - began, len(checkup.findings)))
        writer.close()
        size = sum(each.stat().st_size for each in path.rglob("*.seg")) / 1e6
        times = {}
        for name in all_rules():
            run = Run.load(path)
            began = time.perf_counter()
            check(run, select=[name])
            times[name] = time.perf_counter() - began
        began = time.perf_counter()
        check(Run.load(path))
        again = time.perf_counter() - began
    print(
        f"`python -m bench.rules`, {time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores (load"
        f" {os.getloadavg()[0]:.1f}), Python {platform.python_version()}, numpy {np.__version__}:"
        f" {args.steps:,} steps, {args.parameters} parameters, {len(CATALOGUE)} signals"
        f" ({size:.0f} MB), {len(times)} rules\n"
    )
    print("| run grown to | all rules | findings |\n|--:|--:|--:|")
    for steps, seconds, findings in rows:
        print(f"| {steps:,} | {seconds:.2f} s | {findings} |")
    print(f"\nOnce more: {again:.2f} s.\n\n| rule | alone |\n|---|--:|")
    for name in sorted(times, key=lambda each: -times[each])[: args.show]:
        print(f"| {name} | {times[name] * 1e3:.0f} ms |")


def write(writer: Writer, steps: range, total: int, parameters: int) -> None:
    """Append these steps with all signals: those of parameters and modules every second step."""
    rng = np.random.default_rng(steps.start)
    names = owners(parameters)
    streams: dict[str, list[Signal]] = {}
    for signal in CATALOGUE.values():
        if signal.bins == 1:
            streams.setdefault(signal.stream, []).append(signal)
    at = np.arange(steps.start, steps.stop)
    for stream, signals in streams.items():
        if stream == "facts":
            chosen = at[:1] if steps.start == 0 else at[:0]
        else:
            chosen = at if stream == "steps" else at[::2]
        if not len(chosen):
            continue
        layout = [(each.name, names[each.per]) for each in signals]
        columns = [values(each, chosen, total, len(names[each.per]), rng) for each in signals]
        matrix = np.concatenate(columns, axis=1)
        for start in range(0, len(chosen), 256):
            some = chosen[start : start + 256].tolist()
            block = matrix[start : start + 256]
            writer.write_many(stream, some, [float(step) for step in some], layout, block)


def owners(parameters: int) -> dict[Per, tuple[str, ...]]:
    """Owners of each kind, as a model of so many parameters has them."""
    layers = [f"blocks.{i // 2}.linear.{('weight', 'bias')[i % 2]}" for i in range(parameters)]
    return {
        Per.STEP: ("",),
        Per.OPTIMIZER: ("",),
        Per.GROUP: ("group 0", "group 1"),
        Per.MODEL: ("model",),
        Per.LOADER: ("loader 0",),
        Per.ARGUMENT: ("Net, argument 2",),
        Per.LOSS_FUNCTION: ("cross_entropy",),
        Per.PARAMETER: tuple(layers),
        Per.MODULE: tuple(f"blocks.{i}.act" for i in range(parameters // 2)),
    }


def values(
    signal: Signal, steps: "np.ndarray[tuple[int], np.dtype[np.int64]]", total: int, width: int,
    rng: np.random.Generator,
) -> Floats:  # fmt: skip
    """Readings as a healthy run has them."""
    shape = (len(steps), width)
    if signal.name in ZERO:
        return np.zeros(shape, np.float32)
    if signal.name in ONE:
        return np.ones(shape, np.float32)
    if signal.name in LEVELS:
        return np.full(shape, LEVELS[signal.name], np.float32)
    noise = np.exp(0.05 * rng.standard_normal(shape))
    if signal.name in LOSS_LIKE:
        return (noise * (0.5 + 1.8 * np.exp(-8 * steps[:, None] / total))).astype(np.float32)
    return noise.astype(np.float32)


if __name__ == "__main__":
    main()
