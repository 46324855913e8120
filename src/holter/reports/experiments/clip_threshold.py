"""Gradient norms before clipping, and the threshold that would clip one step in twenty."""

import numpy as np

from holter.diagnosis.facts.robust import Values
from holter.record import Run
from holter.record.signals import CLIP_THRESHOLD_LIMIT, CLIP_THRESHOLD_NORM
from holter.reports.experiments import Cell, ResultTable

_MOVED = 2  # times: median norm of the first half over that of the second


def results(run: Run) -> list[ResultTable]:
    """Return the distribution of the norms of each optimizer, with the advised threshold."""
    if CLIP_THRESHOLD_NORM not in run:
        return []
    rows: list[tuple[Cell, ...]] = []
    notes: list[str] = []
    for optimizer, series in run[CLIP_THRESHOLD_NORM].items():
        norms = series.values[np.isfinite(series.values)].astype(np.float64)
        if not len(norms):
            continue
        advised, limit = float(np.percentile(norms, 95)), _limit(run, optimizer)
        rows.append(
            (
                optimizer or "all",
                len(norms),
                float(np.median(norms)),
                advised,
                float(norms.max()),
                len(series) - len(norms),
                limit,
                None if limit is None else round(100 * float((norms > limit).mean())),
            )
        )
        notes += _notes(optimizer, norms, advised, limit)
    if not rows:
        return []
    columns = (
        *("optimizer", "steps", "median", "95th percentile", "largest", "not finite"),
        *("threshold now", "% clipped now"),
    )
    table = ResultTable(
        "clip-threshold", "gradient norms before clipping", columns, tuple(rows), tuple(notes)
    )
    return [table]


def _notes(optimizer: str, norms: Values, advised: float, limit: float | None) -> list[str]:
    owner = f"{optimizer}: " if optimizer else ""
    present = "; nothing is clipped now" if limit is None else ""
    notes = [f"{owner}a threshold of {advised:.2g} clips one step in twenty{present}"]
    first, last = (float(np.median(half)) for half in np.array_split(norms, 2))
    if len(norms) >= 20 and not 1 / _MOVED < first / max(last, 1e-30) < _MOVED:
        notes.append(
            f"{owner}norms are still changing: median {first:.3g} in the first half, {last:.3g} in"
            " the second; measure again later"
        )
    return notes


def _limit(run: Run, optimizer: str) -> float | None:
    if CLIP_THRESHOLD_LIMIT not in run or optimizer not in run[CLIP_THRESHOLD_LIMIT]:
        return None
    return float(run[CLIP_THRESHOLD_LIMIT][optimizer].values[-1])
