"""What reading a step lightly costs on a CPU: `python -m bench.light_step`.

An MLP of a quarter of a millisecond a step, one thread. Chunks of steps are timed in processor
time of the thread, bare and watched by turns, and the lowest tenth is printed: what else the
machine does must not count. The last figure is what the recording itself says a step cost.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

import holter
from holter.watching import budget
from holter.watching.budget import Budget
from holter.watching.collectors.moments import Depth

CHUNK, CHUNKS, TURNS = 50, 60, 3


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--no-black-box", action="store_true")
    parser.add_argument("--no-streaks", action="store_true", help="as if each step were different")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    budget.ALLOWANCE = 0.0
    # All steps but the first few are light.
    Budget.depth = lambda _, step: Depth.LIGHT if step > 3 else Depth.FULL  # type: ignore[method-assign]
    Budget.next_deep = lambda _, step: step if args.no_streaks else 1 << 62  # type: ignore[method-assign]
    lowest(model, optimizer)
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(TURNS):
            bare = lowest(model, optimizer)
            path = Path(folder, str(turn))
            with holter.watch(model, optimizer, path, quiet=True, black_box=not args.no_black_box):
                chunk(model, optimizer)
                watched = lowest(model, optimizer)
            print(
                f"bare {bare:.0f} µs, watched {watched:.0f} µs: +{watched - bare:.0f} µs a step;"
                f" recorded as {recorded(path):.0f} µs"
            )
    return 0


def recorded(path: Path) -> float:
    """Return the microseconds that holter says a step cost, of the lowest tenth of the chunks."""
    (series,) = holter.Run.load(path).tables["watch.time"].values()
    times = series.values[CHUNK : CHUNK * CHUNKS].reshape(-1, CHUNK).mean(1)
    return 1e6 * float(np.sort(times)[len(times) // 10])


def lowest(model: nn.Module, optimizer: torch.optim.Optimizer) -> float:
    """Return the microseconds of a step, of the lowest tenth of the chunks."""
    return sorted(chunk(model, optimizer) for _ in range(CHUNKS))[CHUNKS // 10]


def chunk(model: nn.Module, optimizer: torch.optim.Optimizer) -> float:
    """Train some steps; return the microseconds of one."""
    x, y = torch.randn(32, 64), torch.randint(10, (32,))
    began = time.thread_time()
    for _ in range(CHUNK):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return (time.thread_time() - began) / CHUNK * 1e6


if __name__ == "__main__":
    sys.exit(main())
