"""The gradient noise scale, the cost of other batch sizes, and the largest batch that fits."""

import numpy as np

from holter.record import Run
from holter.record.signals import BATCH_LARGEST, BATCH_NOISE_SCALE, BATCH_SIZE
from holter.reports.experiments import Cell, ResultTable

_NAME = "batch-size"
_FACTORS = (0.25, 0.5, 1, 2, 4, 8)  # times the present batch size
_WIDE = 10  # upper end over lower end: too uncertain to compare batch sizes


def results(run: Run) -> list[ResultTable]:
    """Return the noise scale over the training, and what other batch sizes would cost."""
    if BATCH_NOISE_SCALE not in run or BATCH_SIZE not in run:
        return []
    batch = float(run[BATCH_SIZE][""].values[-1])
    table = run[BATCH_NOISE_SCALE]
    trials = (table[name].values.tolist() for name in ("estimate", "lower", "upper"))
    scales = list(zip(*trials, strict=True))
    measured = tuple(
        (int(step), *scale) for step, scale in zip(table["estimate"].steps, scales, strict=True)
    )
    value, low, high = scales[-1]
    certain = bool(np.isfinite(high)) and high <= _WIDE * low
    notes = [] if certain else [f"too uncertain to suggest a batch size; it is {batch:.0f} now"]
    noise = ResultTable(
        _NAME,
        "gradient noise scale, in samples",
        ("after step", "estimate", "lower", "upper"),
        measured,
        (*notes, *_largest(run)),
    )
    return [noise, _sizes(batch, value)] if certain else [noise]


def _sizes(batch: float, scale: float) -> ResultTable:
    """Steps and samples to the same loss, and learning rates, relative to the current size."""
    rows: list[tuple[Cell, ...]] = []
    for factor in _FACTORS:
        size = batch * factor
        if size < 1 or size != int(size):
            continue
        steps = (1 + scale / size) / (1 + scale / batch)
        rate = 1 / steps  # proportional while the batch is far below the noise scale
        rows.append((int(size), steps, steps * factor, rate, rate**0.5))
    return ResultTable(
        _NAME,
        "other batch sizes, relative to the current one",
        ("batch size", "steps", "samples", "lr (SGD)", "lr (Adam)"),
        tuple(rows),
        (f"the batch size is {batch:.0f} now; the factors apply to this stage of the training",),
    )


def _largest(run: Run) -> list[str]:
    if BATCH_LARGEST not in run:
        return []
    ((how, series),) = run[BATCH_LARGEST].items()
    size = f"{series.values[-1]:,.0f}"
    return [
        {
            "tried": f"largest batch that fits: {size}; twice as many samples ran out of memory",
            "estimated": f"largest batch that fits: about {size}, from the memory per sample",
            "at least": f"largest batch that fits: at least {size}",
        }[how]
    ]
