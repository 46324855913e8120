"""What it costs to watch samples stream by: `python -m bench.stream [--samples N]`.

Ten million small rows pass through the collector of the stream, as a `DataLoader` would deliver
them, once with its share of the budget and once without a limit. Time and memory are printed.
"""

import argparse
import resource
import sys
import time

import torch
from torch import Tensor

from holter.record.signals import STREAM_DISTINCT, STREAM_READ, STREAM_SAMPLES
from holter.watching.collectors.lane import Clock, Delivery, Lane
from holter.watching.collectors.moments import Depth
from holter.watching.collectors.stream import Stream

ROWS, FEATURES, STEP = 1000, 8, 0.0005  # of a batch; seconds of a step that trains on it


def main() -> int:
    """Stream, and print what it took."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=10_000_000, help="rows to stream")
    samples = parser.parse_args().samples
    torch.set_num_threads(1)
    for share in (0.01, None):
        print(streamed(samples, share))
    return 0


def streamed(samples: int, share: float | None) -> str:
    """Let samples stream by; return a line with the figures."""
    lane = Lane([Stream()], _fail, Clock())
    lane.share = share
    count, iteration = samples // ROWS, object()
    generator = torch.Generator().manual_seed(0)
    before, spent, waited = _memory(), 0.0, 0.0
    for _ in range(count):
        rows = torch.rand(ROWS, FEATURES, generator=generator)
        labels = torch.randint(10, (ROWS,), generator=generator)
        began = time.perf_counter()
        given = Delivery("loader 0", iteration, count, ROWS, (rows, labels))
        lane.tell(lane.at_batch, given)
        no_roots: tuple[Tensor, ...] = ()
        lane.tell(lane.at_backward, no_roots, True, Depth.LIGHT)
        lane.tell(lane.at_end, ())
        spent += time.perf_counter() - began
        if share is not None:  # a limit on the share of the time means nothing without a training
            time.sleep(STEP)
            waited += STEP
    values = {signal: value for (signal, _), value in zip(lane.row.layout, lane.row, strict=True)}
    limit = "without a limit" if share is None else f"with a budget of {100 * share:.0f} %"
    cost = f", {100 * spent / (spent + waited):.1f} % of the time" if waited else ""
    return (
        f"{values[STREAM_SAMPLES]:,.0f} samples {limit}: {spent:.1f} s"
        f" ({1e6 * spent / count:.0f} µs a batch of {ROWS}{cost}),"
        f" {_memory() - before:.0f} MB more; {values[STREAM_READ]:,.0f} read,"
        f" {values[STREAM_DISTINCT]:,.0f} different"
    )


def _memory() -> float:
    """Return the peak of the memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _fail(where: str, error: Exception) -> None:
    raise RuntimeError(where) from error


if __name__ == "__main__":
    sys.exit(main())
