"""Where the time of a step goes, by holter and by torch.profiler: `python -m bench.breakdown`.

Both measure the same steps of the same process, so that the cost of the profiler is in both. The
profiler's times are those of ranges around the phases; on a GPU, they end when the last kernel that
was launched in the phase has ended. A second table counts calls that wait for the GPU, in steps of
the bare loop and in steps of the watched one. Times are of light steps; calls that wait are of all
steps. Holter's times leave out what holter itself does, the profiler's ranges hold it: what was
spent in holter's calls within a range is subtracted from it on the host. The line `holter itself`
says how much that is in a whole step. On the GPU nothing is subtracted.
"""

import argparse
import bisect
import functools
import json
import platform
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile, record_function

import holter
from bench.other_tools import GPT, tokens, vectors
from holter.watching import budget
from holter.watching.collectors.lane import Clock

PHASES = ("forward", "backward", "optimizer")
WHOLE, OWN = "step, host", "holter itself, host"
SKIPPED = 8  # steps at the beginning of a profile, in which the profiler starts up
WAITS = (
    "cudaDeviceSynchronize",
    "cudaStreamSynchronize",
    "cudaEventSynchronize",
    "cudaMemcpy",
    "cuStreamSynchronize",
    "cuCtxSynchronize",
)


@dataclass(frozen=True)
class Loop:
    """A training, and how many steps it takes before it is measured."""

    model: Callable[[], nn.Module]
    batch: Callable[[], tuple[Tensor, Tensor]]
    warm: int


def wide(width: int) -> nn.Module:
    """Return an MLP whose kernels take much longer than their launches."""
    hidden = [layer for _ in range(6) for layer in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(*hidden, nn.Linear(width, 10))


def loops(device: str) -> dict[str, Loop]:
    """Return the loops; on a CPU small ones, to try the command."""
    width, rows = (4096, 16384) if device == "cuda" else (64, 64)
    return {
        "small transformer": Loop(lambda: GPT(4, 128, 4, 64, 1000), tokens(8, 64, 1000), 300),
        "MLP": Loop(lambda: wide(width), vectors(rows, width, classes=10), 100),
    }


@dataclass(slots=True)
class Training:
    """A loop under way; ranges of the profiler are around its phases."""

    loop: Loop
    device: str
    steps: int = 0
    clock: Clock = field(default_factory=Clock)  # of who watches it
    spent: list[tuple[float, ...]] = field(default_factory=list)  # by it after each phase so far
    model: nn.Module = field(init=False)
    optimizer: torch.optim.Optimizer = field(init=False)
    batches: list[tuple[Tensor, Tensor]] = field(init=False)

    def __post_init__(self) -> None:
        torch.manual_seed(0)
        with torch.device(self.device):
            self.model = self.loop.model()
            self.batches = [self.loop.batch() for _ in range(4)]
        fused = True if self.device == "cuda" else None
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=fused)

    def step(self) -> None:
        """Take one step."""
        clock = self.clock
        with record_function("forward"):
            x, y = self.batches[self.steps % len(self.batches)]
            self.optimizer.zero_grad()
            with torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda"):
                loss = functional.cross_entropy(self.model(x), y)
        forward = clock.spent
        with record_function("backward"):
            loss.backward()
        backward = clock.spent
        with record_function("optimizer"):
            self.optimizer.step()
        self.spent.append((forward, backward, clock.spent))
        self.steps += 1

    def run(self, steps: int) -> None:
        """Take several steps."""
        for _ in range(steps):
            self.step()


def spent_in(spent: Sequence[tuple[float, ...]], step: int, phase: str) -> float:
    """Return the seconds in holter's calls in a phase, or in a whole "step"."""
    if phase == "step":
        return spent[step][-1] - spent[step - 1][-1]
    place = PHASES.index(phase)
    return spent[step][place] - (spent[step][place - 1] if place else spent[step - 1][-1])


@dataclass(frozen=True, slots=True)
class Step:
    """The phases of one step by the clock of the host: begin and end in microseconds."""

    forward: tuple[float, float]
    backward: tuple[float, float]
    optimizer: tuple[float, float]


class Trace:
    """What torch.profiler wrote: times in microseconds, of host and GPU by one clock."""

    def __init__(self, events: Sequence[dict[str, Any]]) -> None:
        complete = [event for event in events if event.get("ph") == "X"]
        ranges: dict[str, list[tuple[float, float]]] = {phase: [] for phase in PHASES}
        for event in complete:
            if event.get("cat") == "user_annotation" and event["name"] in ranges:
                ranges[event["name"]].append((event["ts"], event["ts"] + event["dur"]))
        by_phase = [sorted(ranges[phase]) for phase in PHASES]
        self.steps = [Step(*row) for row in zip(*by_phase, strict=True)][SKIPPED:]
        self._runtime = [
            event for event in complete if event.get("cat") in ("cuda_runtime", "cuda_driver")
        ]
        launched = {_correlation(event): event["ts"] for event in self._runtime}
        kernels = sorted(
            (launched[number], event["ts"] + event["dur"])
            for event in complete
            if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
            and (number := _correlation(event)) in launched
        )
        self._launches = [launch for launch, _ in kernels]
        self._ends: list[float] = []  # until when the GPU is busy with what was launched so far
        for _, end in kernels:
            self._ends.append(max(end, self._ends[-1]) if self._ends else end)

    @property
    def has_gpu(self) -> bool:
        """Whether anything ran on a GPU."""
        return bool(self._ends)

    def reached(self, moment: float) -> float:
        """Return when the GPU has done all that was launched before a moment of the host."""
        count = bisect.bisect_left(self._launches, moment)
        return max(moment, self._ends[count - 1]) if count else moment

    def span(self, index: int, phase: str) -> tuple[float, float]:
        """Return begin and end of a phase, or of a whole "step", of any step but the first.

        A step and its forward pass begin when the update before them has ended.
        """
        step = self.steps[index]
        begin, end = step.optimizer if phase == "step" else getattr(step, phase)
        return (self.steps[index - 1].optimizer[1] if phase in ("step", "forward") else begin), end

    def host(self, index: int, phase: str) -> float:
        """Return the time of a phase on the host, in seconds."""
        begin, end = self.span(index, phase)
        return 1e-6 * (end - begin)

    def gpu(self, index: int, phase: str) -> float:
        """Return the time of a phase on the GPU, gaps included, in seconds."""
        begin, end = self.span(index, phase)
        return 1e-6 * (self.reached(end) - self.reached(begin))

    def waits(self) -> dict[str, float]:
        """Return calls in a step that wait for the GPU, by name."""
        first, last = self.steps[0].forward[0], self.steps[-1].optimizer[1]
        counts: dict[str, float] = {}
        for event in self._runtime:
            if event["name"] in WAITS and first <= event["ts"] < last:
                counts[event["name"]] = counts.get(event["name"], 0.0) + 1 / len(self.steps)
        return counts


def _correlation(event: dict[str, Any]) -> int | None:
    """Return the number that a launch and its kernel have in common."""
    number: int | None = event.get("args", {}).get("correlation")
    return number


def profiled(training: Training, steps: int, folder: Path) -> Trace:
    """Take steps under the profiler."""
    activities = [ProfilerActivity.CPU]
    if training.device == "cuda":
        activities.append(ProfilerActivity.CUDA)
    file = folder / "trace.json"
    with profile(activities=activities) as profiler:
        training.run(steps + SKIPPED)
        if training.device == "cuda":
            torch.cuda.synchronize()
    profiler.export_chrome_trace(str(file))
    return Trace(json.loads(file.read_text())["traceEvents"])


def warned(training: Training, steps: int) -> float:
    """Return warnings of torch in a step about operations that wait for the GPU."""
    if training.device != "cuda":
        return 0.0
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            training.run(steps)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return sum("synchroniz" in str(warning.message) for warning in caught) / steps


@dataclass(frozen=True, slots=True)
class Measured:
    """One loop: by part, what holter and the profiler measured; and calls that wait."""

    parts: dict[str, tuple[float, float]]  # seconds
    waits: dict[str, dict[str, float]]  # of the bare and of the watched loop, a step
    warnings: dict[str, float]


def measure(loop: Loop, device: str, steps: int) -> Measured:
    """Train bare and watched, each under the profiler."""
    waits, warns = {}, {}
    with tempfile.TemporaryDirectory(prefix="holter-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        bare = Training(loop, device)
        bare.run(loop.warm)
        waits["bare"], warns["bare"] = profiled(bare, steps, folder).waits(), warned(bare, steps)
        watched = Training(loop, device)
        watch = stack.enter_context(
            holter.watch(watched.model, watched.optimizer, folder / "run", quiet=True)
        )
        watched.clock = watch._loop.shield.clock  # noqa: SLF001
        watched.run(loop.warm)
        first = watched.steps + SKIPPED
        trace = profiled(watched, steps, folder)
        waits["holter"], warns["holter"] = trace.waits(), warned(watched, steps)
        stack.close()
        own = functools.partial(spent_in, watched.spent)
        parts = dict(compared(holter.Run.load(folder / "run"), trace, first, own))
    return Measured(parts, waits, warns)


DEEP = ("grad.norm", "weight.norm", "activation.std")  # not read in light steps


def compared(
    run: holter.Run, trace: Trace, first: int, own: Callable[[int, str], float]
) -> Iterator[tuple[str, tuple[float, float]]]:
    """Yield the parts of a step, by holter and by the profiler, whose first step is `first`.

    `own` returns the seconds in holter's calls in a phase of a step.
    """
    deep = {
        int(step)
        for name in DEEP
        for series in run.tables.get(name, {}).values()
        for step in series.steps
    }
    indices = range(1, len(trace.steps))
    light = [index for index in indices if not {first + index, first + index - 1} & deep]
    if not light:
        raise SystemExit("every step was read in depth: take more steps with --warm and --steps")
    steps = [first + index for index in light]

    def ours(name: str) -> float:
        series = run.tables[name][""]
        values = dict(zip(series.steps.tolist(), series.values.tolist(), strict=True))
        return statistics.median(values[step] for step in steps)

    def sampled(name: str) -> float:
        series = run.tables[name][""]
        profiled = (series.steps >= first) & (series.steps < first + len(trace.steps))
        return statistics.median(series.values[profiled].tolist())

    def on_host(phase: str) -> float:
        return statistics.median(
            trace.host(index, phase) - own(first + index, phase) for index in light
        )

    for phase in PHASES:
        yield f"{phase}, host", (ours(f"time.{phase}"), on_host(phase))
    yield WHOLE, (ours("time.step"), on_host("step"))
    yield OWN, (statistics.median(own(step, "step") for step in steps), 0.0)
    if trace.has_gpu:
        for phase in PHASES:
            theirs = statistics.median(trace.gpu(index, phase) for index in light)
            yield f"{phase}, GPU", (sampled(f"time.device_{phase}"), theirs)


def rows(name: str, measured: Measured) -> Iterator[str]:
    """Yield rows of the table of times."""
    step = measured.parts[WHOLE][1]
    for part, (ours, theirs) in measured.parts.items():
        begin = f"| {name} | {part} | {1e3 * ours:.3f} ms |"
        if part == OWN:
            yield f"{begin} | | {100 * ours / step:.1f} % |"
            continue
        yield (
            f"{begin} {1e3 * theirs:.3f} ms | {100 * (ours / theirs - 1):+.1f} % |"
            f" {100 * (ours - theirs) / step:+.1f} % |"
        )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.breakdown",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--steps", type=int, default=160, help="measured steps (default 160)")
    parser.add_argument("--warm", type=int, help="steps before them (default 300 and 100)")
    args = parser.parse_args()
    if args.device == "cuda" and not torch.cuda.is_available():
        print("There is no CUDA device; --device cpu tries the command on a CPU.")
        return 2
    budget.ALLOWANCE = 0.02  # else holter reads the first seconds whole
    began = time.perf_counter()
    results = {}
    for name, loop in loops(args.device).items():
        warm = loop.warm if args.warm is None else args.warm
        results[name] = measure(Loop(loop.model, loop.batch, warm), args.device, args.steps)
    where = torch.cuda.get_device_name() if args.device == "cuda" else "CPU"
    print(
        f"`python -m bench.breakdown {' '.join(sys.argv[1:])}`, {time.strftime('%Y-%m-%d')},"
        f" {where}, Python {platform.python_version()}, torch {torch.__version__}; medians of"
        f" {args.steps} steps; {time.perf_counter() - began:.0f} s.\n"
    )
    print("| loop | part | holter | torch.profiler | difference | of the step |")
    print("|---|---|--:|--:|--:|--:|")
    for name, measured in results.items():
        print(*rows(name, measured), sep="\n")
    if args.device == "cuda":
        print("\n| loop | calls in a step that wait for the GPU | bare | with holter |")
        print("|---|---|--:|--:|")
        for name, measured in results.items():
            print(*waiting(name, measured), sep="\n")
    return 0


def waiting(name: str, measured: Measured) -> Iterator[str]:
    """Yield rows of the table of calls that wait."""
    bare, watched = measured.waits["bare"], measured.waits["holter"]
    for call in sorted(bare | watched):
        yield f"| {name} | `{call}` | {bare.get(call, 0):.3g} | {watched.get(call, 0):.3g} |"
    warned = "warnings of `set_sync_debug_mode`"
    warns = measured.warnings
    yield f"| {name} | {warned} | {warns['bare']:.3g} | {warns['holter']:.3g} |"


if __name__ == "__main__":
    sys.exit(main())
