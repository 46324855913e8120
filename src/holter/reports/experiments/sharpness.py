"""The curvature of the loss against the learning rate, and the loss along random directions."""

import numpy as np

from holter.record import Run
from holter.record.signals import (
    SHARPNESS_BOUND,
    SHARPNESS_DESCENT,
    SHARPNESS_DISTANCE,
    SHARPNESS_EIGENVALUE,
    SHARPNESS_LOSS,
    SHARPNESS_RATE,
    SHARPNESS_RESIDUAL,
    SHARPNESS_START,
)
from holter.reports.experiments import Cell, Chart, ResultTable

_NAME = "sharpness"
_APART = 0.5  # relative difference between the losses of the two modes that is worth a note
_DISTANCES = (0.25, 0.5, 1.0)  # at which the rise of the loss is listed


def results(run: Run) -> list[ResultTable]:
    """Return eigenvalues against their bound, short trainings, and the loss along directions."""
    if SHARPNESS_START not in run:
        return []
    steps = int(run[SHARPNESS_START][""].values[-1])
    title = f"curvature after {steps} training steps"
    columns = ("matrix", "largest eigenvalue", "error, %", "bound", "note")
    tables = [ResultTable(_NAME, title, columns, tuple(_eigenvalues(run)))]
    if SHARPNESS_DESCENT in run:
        rows = tuple(
            (trial, len(loss) - 1, float(loss.values[0]), float(loss.values[-1]))
            for trial, loss in run[SHARPNESS_DESCENT].items()
        )
        tables.append(
            ResultTable(
                _NAME,
                "steps on the same batches",
                ("learning rate", "steps", "first loss", "last loss"),
                rows,
            )
        )
    if SHARPNESS_LOSS in run:
        tables.append(_directions(run))
    return tables


def _eigenvalues(run: Run) -> list[tuple[Cell, ...]]:
    if SHARPNESS_EIGENVALUE not in run:
        return []
    rows: list[tuple[Cell, ...]] = []
    for matrix, series in run[SHARPNESS_EIGENVALUE].items():
        value = float(series.values[-1])
        error = float(run[SHARPNESS_RESIDUAL][matrix].values[-1])
        bound, note = None, None
        if SHARPNESS_BOUND in run and matrix in run[SHARPNESS_BOUND]:
            bound = float(run[SHARPNESS_BOUND][matrix].values[-1])
            rate = float(run[SHARPNESS_RATE][""].values[-1])
            note = f"{value / bound:.0%} of the stability bound at a learning rate of {rate:.3g}"
        rows.append((matrix, value, 100 * error if np.isfinite(error) else None, bound, note))
    return rows


def _directions(run: Run) -> ResultTable:
    distances = run[SHARPNESS_DISTANCE]["line"].values.astype(np.float64)
    losses = np.array([series.values for series in run[SHARPNESS_LOSS].values()], np.float64)
    mean = losses.mean(0)
    centre = float(np.interp(0.0, distances, mean))
    rows: list[tuple[Cell, ...]] = [(0.0, centre, None)]
    for distance in _DISTANCES:
        if distance <= distances.max() and np.isfinite(centre) and centre:
            loss = float(np.interp([-distance, distance], distances, mean).mean())
            rows.append((distance, loss, round(100 * (loss - centre) / abs(centre))))
    return ResultTable(
        _NAME,
        f"loss along {len(losses)} random directions, in eval mode",
        ("distance", "loss", "rise, %"),
        tuple(rows) if np.isfinite(centre) else (),
        ("a distance of 1 is the norm of each filter", *_other_mode(run, centre)),
        Chart(tuple(distances.tolist()), tuple(mean.tolist()), "distance", "loss"),
    )


def _other_mode(run: Run, centre: float) -> list[str]:
    """Return a note where the losses of eval mode and of the training are far apart."""
    if SHARPNESS_DESCENT not in run:
        return []
    trained = float(run[SHARPNESS_DESCENT]["as set"].values[0])
    if not abs(centre - trained) > _APART * max(abs(centre), abs(trained)):
        return []
    return [
        (
            f"the loss is {trained:.3g} in training mode and {centre:.3g} in eval mode:"
            " batch norm or dropout make the difference"
        )
    ]
