"""One training in a process of its own, bare or watched: `python -m bench.loops LOOP MODE`.

`bench.overhead` starts it by turns. It prints one line of JSON: how long chunks of steps took, what
the report of the run says holter took, how often signals were read, and the memory that was held.
"""

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from bench.other_tools import GPT, mlp, tokens, vectors

CHUNKS = 40  # that the measured steps are divided into
LIGHT, DEEP = (
    "loss",
    {"gradient norms": "grad.norm", "weights": "weight.norm"}
    | {
        "updates": "update.ratio",
        "activations": "activation.std",
    },
)


@dataclass(frozen=True)
class Loop:
    """A training: its model and batches, how it is run, and how many steps are left unmeasured."""

    model: Callable[[], nn.Module]
    batch: Callable[[], tuple[Tensor, Tensor]]
    device: str
    steps: int
    warm: int
    autocast: bool = False
    compiled: bool = False
    clip: bool = False


def small() -> nn.Module:
    """Four transformer layers."""
    return GPT(4, 512, 8, 256, 8192)


def gpt() -> nn.Module:
    """The size of GPT-2."""
    return GPT(12, 768, 12, 1024, 50304)


LOOPS = {
    "mlp": Loop(mlp, vectors(64, 64, classes=10), "cpu", 24_000, 4_000),
    "transformer-cpu": Loop(
        lambda: GPT(2, 64, 2, 32, 100), tokens(8, 32, 100), "cpu", 2_000, 400, clip=True
    ),
    "gpt-host": Loop(
        gpt, tokens(8, 1024, 50304), "cuda", 1_200, 400, autocast=True, clip=True
    ),
    "gpt-gpu": Loop(gpt, tokens(32, 1024, 50304), "cuda", 500, 100, autocast=True, clip=True),
    "small-eager": Loop(small, tokens(64, 256, 8192), "cuda", 1_000, 300),
    "small-compiled": Loop(small, tokens(64, 256, 8192), "cuda", 1_000, 300, compiled=True),
}  # fmt: skip
MODES: dict[str, dict[str, Any]] = {
    "bare": {},
    "watched": {},  # once the allowance is used up
    "first": {},  # from the first step, with the allowance
    "no-black-box": {"black_box": False},
    "everything": {"budget": None},
}


def main() -> int:
    """Train and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("loop", choices=LOOPS)
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("--steps", type=int, help="in all; a fifth of them is not measured")
    args = parser.parse_args()
    loop = LOOPS[args.loop]
    steps, warm = (args.steps, args.steps // 5) if args.steps else (loop.steps, loop.warm)
    if args.mode == "first":
        warm = 0
    elif args.mode != "bare":
        from holter.watching import budget

        budget.ALLOWANCE = 0.02
    with tempfile.TemporaryDirectory(prefix="holter-bench-") as folder:
        print(json.dumps(train(loop, args.mode, steps, warm, Path(folder) / "run")))
    return 0


def train(loop: Loop, mode: str, steps: int, warm: int, path: Path) -> dict[str, Any]:
    """Train; return what was measured from step `warm` on."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    on_gpu = loop.device == "cuda"
    with torch.device(loop.device):
        model = loop.model()
        batches = [loop.batch() for _ in range(8)]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=on_gpu or None)
    forward: Any = torch.compile(model) if loop.compiled else model
    watch = None
    before = memory()
    if mode != "bare":
        import holter

        watch = holter.watch(model, optimizer, path, quiet=True, **MODES[mode])

    def step(number: int) -> None:
        x, y = batches[number % len(batches)]
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(loop.device, torch.bfloat16, enabled=loop.autocast):
            loss = functional.cross_entropy(forward(x), y)
        loss.backward()
        if loop.clip:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    for number in range(warm):
        step(number)
    size, chunks, processor = max((steps - warm) // CHUNKS, 1), [], []
    for first in range(warm, warm + CHUNKS * size, size):
        if on_gpu:
            torch.cuda.synchronize()
        began, busy = time.perf_counter(), time.process_time()
        for number in range(first, first + size):
            step(number)
        if on_gpu:
            torch.cuda.synchronize()
        chunks.append((time.perf_counter() - began) / size * 1e3)
        processor.append((time.process_time() - busy) / size * 1e3)
    measured: dict[str, Any] = {
        "chunks": chunks,
        "processor": processor,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "held": memory() - before,
    }
    if watch is not None:
        watch.close()
        measured |= recorded(path, warm)
    return measured


def recorded(path: Path, warm: int) -> dict[str, Any]:
    """Return what the run says: the cost of a step in ms, and the share of steps that were read."""
    from holter.record import Run

    run = Run.load(path)
    (times,) = run.tables["watch.time"].values()
    own = times.values[times.steps >= warm]
    shares = {}
    for what, name in {"losses": LIGHT, **DEEP}.items():
        series = next(iter(run.tables.get(name, {}).values()), None)
        read = 0 if series is None else int((series.steps >= warm).sum())
        shares[what] = read / max(run.steps - warm, 1)
    return {"own": 1e3 * float(own.mean()), "shares": shares, "notes": list(run.meta.notes)}


def memory() -> int:
    """Return the bytes that the process holds."""
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


if __name__ == "__main__":
    sys.exit(main())
