"""How fast a training could be: cached data, workers, batch sizes, operators."""

import numpy as np

from holter.diagnosis.wording import percent
from holter.record import Run
from holter.record.signals import (
    THROUGHPUT_BATCH_TIME,
    THROUGHPUT_COPY,
    THROUGHPUT_FLOPS,
    THROUGHPUT_LOADING,
    THROUGHPUT_OPERATOR_TIME,
    THROUGHPUT_READS,
    THROUGHPUT_STEP_TIME,
    THROUGHPUT_WAIT,
    Signal,
)
from holter.reports.experiments import Cell, ResultTable

_NAME = "throughput"
_MS = 1e3


def results(run: Run) -> list[ResultTable]:
    """Return the tables of what was measured."""
    if THROUGHPUT_STEP_TIME not in run:
        return []
    tables = (_steps(run), _workers(run), _sizes(run), _operators(run), _reads(run))
    return [table for table in tables if table is not None]


def _level(run: Run, signal: Signal, trial: str) -> float | None:
    """Return the median of the readings of a trial."""
    if signal not in run or trial not in run[signal]:
        return None
    values = run[signal][trial].values
    return float(np.median(values)) if len(values) else None


def _by_number(run: Run, signal: Signal) -> dict[int, float]:
    """Return the readings of trials that are named by numbers, in their order."""
    if signal not in run:
        return {}
    readings = {int(name): float(series.values[-1]) for name, series in run[signal].items()}
    return dict(sorted(readings.items()))


def _steps(run: Run) -> ResultTable:
    cached, loaded = (_level(run, THROUGHPUT_STEP_TIME, name) for name in ("cached", "loader"))
    rows: list[tuple[Cell, ...]] = []
    notes = []
    if loaded is not None:
        waited = _level(run, THROUGHPUT_WAIT, "loader") or 0.0
        rows.append(("with the loader", _MS * loaded, _MS * waited))
    if cached is not None:
        rows.append(("with one cached batch", _MS * cached, 0.0))
    if loaded is not None and cached:
        notes.append(
            f"without waiting for data, training would be {loaded / cached:.2g} times as fast"
            if loaded > 1.1 * cached
            else "the loader keeps up: training on a cached batch is not faster"
        )
    copy = _level(run, THROUGHPUT_COPY, "batch")
    if copy is not None and cached:
        notes.append(
            f"copying a batch to the GPU takes {_MS * copy:.3g} ms ({percent(copy / cached)} of a"
            " step), unless it is copied from pinned memory while the GPU computes"
        )
    return ResultTable(
        _NAME,
        "time of a training step",
        ("", "ms", "waiting, ms"),
        tuple(rows),
        (*notes, *_use(run, cached)),
    )


def _use(run: Run, step: float | None) -> list[str]:
    """Return how much of the GPU is used, or else the FLOP a second."""
    flops, peak = (_level(run, THROUGHPUT_FLOPS, name) for name in ("step", "peak"))
    if not flops or not step:
        return []
    rate = flops / step
    large = rate >= 1e12
    shown = f"{rate / 1e12:.3g} TFLOP/s" if large else f"{rate / 1e9:.3g} GFLOP/s"
    if peak is None:
        return [f"{shown} with a cached batch"]
    of_peak = f"MFU {percent(rate / peak)} of {peak / 1e12:.3g} TFLOP/s in half precision"
    return [f"{shown} with a cached batch: {of_peak}"]


def _workers(run: Run) -> ResultTable | None:
    loading = _by_number(run, THROUGHPUT_LOADING)
    cached = _level(run, THROUGHPUT_STEP_TIME, "cached")
    if not loading or cached is None:
        return None
    rows = tuple(
        (workers, _MS * batch, _MS * (batch + cached if workers == 0 else max(batch, cached)))
        for workers, batch in loading.items()
    )
    notes = ["a step waits for a batch only if the workers take longer than the step itself"]
    if len(loading) == 1:
        notes = ["batches are loaded so quickly that workers were not tried"]
    columns = ("workers", "loader alone, ms per batch", "predicted step, ms")
    return ResultTable(_NAME, "numbers of workers", columns, rows, tuple(notes))


def _sizes(run: Run) -> ResultTable | None:
    times = _by_number(run, THROUGHPUT_BATCH_TIME)
    if len(times) < 2:
        return None
    rows = tuple((samples, _MS * step, samples / step) for samples, step in times.items())
    columns = ("samples in a step", "ms", "samples per second")
    return ResultTable(_NAME, "batch sizes, on a cached batch", columns, rows)


def _operators(run: Run) -> ResultTable | None:
    if THROUGHPUT_OPERATOR_TIME not in run:
        return None
    rows = tuple(
        (name, _MS * float(series.values[-1]))
        for name, series in run[THROUGHPUT_OPERATOR_TIME].items()
    )
    return ResultTable(_NAME, "operators that take most time", ("operator", "ms per step"), rows)


def _reads(run: Run) -> ResultTable | None:
    if THROUGHPUT_READS not in run:
        return None
    rows = tuple((line, float(series.values[-1])) for line, series in run[THROUGHPUT_READS].items())
    notes = ("on a GPU the host waits at each of these calls",)
    columns = ("call", "calls per step")
    return ResultTable(_NAME, "tensors that the step reads on the host", columns, rows, notes)
