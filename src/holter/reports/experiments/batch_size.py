"""The gradient noise scale, what other batch sizes would need, and the largest that fits."""

import numpy as np

from holter.record import Run
from holter.record.signals import BATCH_LARGEST, BATCH_NOISE_SCALE, BATCH_SIZE
from holter.reports._lines import Line, hanging

_SIZES = (0.25, 0.5, 1, 2, 4, 8)  # times the present batch
_WIDE = 10  # upper end over lower: too uncertain for a table


def lines(run: Run, width: int) -> list[Line]:
    """What `batch-size` measured."""
    if BATCH_NOISE_SCALE not in run or BATCH_SIZE not in run:
        return []
    batch = float(run[BATCH_SIZE][""].values[-1])
    table = run[BATCH_NOISE_SCALE]
    found: list[Line] = [(("gradient noise scale, in samples", "bold"),)]
    trials = (table[each].values.tolist() for each in ("estimate", "lower", "upper"))
    scales = list(zip(*trials, strict=True))
    for step, (value, low, high) in zip(table["estimate"].steps, scales, strict=True):
        text = f"{value:.3g} ({low:.3g} to {high:.3g})" if np.isfinite(high) else f"over {low:.3g}"
        found += hanging(text, width=width, lead=((f"  after {f'{step} steps':<12}", "dim"),))
    value, low, high = scales[-1]
    if np.isfinite(high) and high <= _WIDE * low:
        found += _sizes(batch, value)
    else:
        text = f"too uncertain to advise a size; a batch has {batch:.0f}"
        found += hanging(text, width=width, lead=(("  ", ""),))
    return found + _largest(run, width)


def _sizes(batch: float, scale: float) -> list[Line]:
    """Steps and samples to the same loss, and learning rates, relative to the present batch."""
    head = f"  {'batch':>9}{'steps':>10}{'samples':>10}{'lr (SGD)':>11}{'lr (Adam)':>11}"
    rows: list[Line] = [((head, "dim"),)]
    for times in _SIZES:
        size = batch * times
        if size < 1 or size != int(size):
            continue
        steps = (1 + scale / size) / (1 + scale / batch)
        rate = 1 / steps  # in proportion while the batch is far below the noise scale
        cells = f"{size:>9.0f}{steps:>10.2f}{steps * times:>10.2f}{rate:>11.2f}{rate**0.5:>11.2f}"
        rows.append(
            ((f"  {cells}" + ("  now" if times == 1 else ""), "bold" if times == 1 else ""),)
        )
    rows.append((("  relative to the present batch, at this stage of the training", "dim"),))
    return rows


def _largest(run: Run, width: int) -> list[Line]:
    if BATCH_LARGEST not in run:
        return []
    ((how, series),) = run[BATCH_LARGEST].items()
    size = f"{series.values[-1]:,.0f}"
    text = {
        "tried": f"{size}: steps with twice as many ran out of memory",
        "estimated": f"about {size}, by the memory that each sample takes",
        "at least": f"at least {size}",
    }[how]
    return hanging(text, width=width, lead=(("  largest batch that fits  ", "dim"),))
