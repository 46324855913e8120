"""What reading a step lightly costs on a CPU: `python -m bench.light_step`.

An MLP of a quarter of a millisecond a step, one thread. Chunks of steps are timed in processor
time of the thread, bare and watched by turns, and the lowest tenth is printed: what else the
machine does must not count. The last figure is what the recording itself says a step cost.

`--loop ordinary` is what most scripts do: a loader, clipping, a scheduler, `loss.item()`.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, TensorDataset

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
    parser.add_argument("--loop", choices=("plain", "ordinary"), default="plain")
    parser.add_argument("--no-black-box", action="store_true")
    parser.add_argument("--no-streaks", action="store_true", help="as if each step were different")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    training = Ordinary() if args.loop == "ordinary" else Plain()
    budget.ALLOWANCE = 0.0
    # All steps but the first few are light.
    Budget.depth = lambda _, step: Depth.LIGHT if step > 3 else Depth.FULL  # type: ignore[method-assign]
    Budget.next_deep = lambda _, step: step if args.no_streaks else 1 << 62  # type: ignore[method-assign]
    lowest(training)
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(TURNS):
            bare = lowest(training)
            path = Path(folder, str(turn))
            model, optimizer = training.model, training.optimizer
            with holter.watch(model, optimizer, path, quiet=True, black_box=not args.no_black_box):
                chunk(training)
                watched = lowest(training)
            print(
                f"bare {bare:.0f} µs, watched {watched:.0f} µs: +{watched - bare:.0f} µs a step;"
                f" recorded as {recorded(path):.0f} µs"
            )
    return 0


class Plain:
    """A training on one batch: nothing is heard of a step but its backward and its update."""

    def __init__(self) -> None:
        self.model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.x, self.y = torch.randn(32, 64), torch.randint(10, (32,))

    def step(self) -> None:
        """Train a step."""
        loss = nn.functional.cross_entropy(self.model(self.x), self.y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


class Ordinary:
    """A training as most scripts have it."""

    def __init__(self) -> None:
        self.model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.scheduler = CosineAnnealingLR(self.optimizer, 1 << 20)
        data = TensorDataset(torch.randn(8192, 64), torch.randint(10, (8192,)))
        self.loader = DataLoader(data, batch_size=32, shuffle=True)
        self.batches = self.endless()
        self.total = 0.0

    def endless(self) -> Iterator[list[Tensor]]:
        """Yield the batches of epoch after epoch."""
        while True:
            yield from self.loader

    def step(self) -> None:
        """Train a step."""
        x, y = next(self.batches)
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.scheduler.step()
        self.total += loss.item()


def recorded(path: Path) -> float:
    """Return the microseconds that holter says a step cost, of the lowest tenth of the chunks."""
    (series,) = holter.Run.load(path).tables["watch.time"].values()
    times = series.values[CHUNK : CHUNK * CHUNKS].reshape(-1, CHUNK).mean(1)
    return 1e6 * float(np.sort(times)[len(times) // 10])


def lowest(training: Plain | Ordinary) -> float:
    """Return the microseconds of a step, of the lowest tenth of the chunks."""
    return sorted(chunk(training) for _ in range(CHUNKS))[CHUNKS // 10]


def chunk(training: Plain | Ordinary) -> float:
    """Train some steps; return the microseconds of one."""
    began = time.thread_time()
    for _ in range(CHUNK):
        training.step()
    return (time.thread_time() - began) / CHUNK * 1e6


if __name__ == "__main__":
    sys.exit(main())
