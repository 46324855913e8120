"""The curvature of the loss against the learning rate, and the loss along random directions."""

import numpy as np

from holter.record import Run, Series
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
from holter.reports._chart import chart
from holter.reports._lines import Line, hanging

_COLUMN = 23
_APART = 0.5  # share by which the losses of the two modes differ
_TOLD = (0.25, 0.5, 1.0)  # distances of which the rise is told


def lines(run: Run, width: int) -> list[Line]:
    """What `sharpness` measured."""
    if SHARPNESS_START not in run:
        return []
    steps = int(run[SHARPNESS_START][""].values[-1])
    found: list[Line] = [((f"curvature after {steps} training steps", "bold"),)]
    for label, text in (*_eigenvalues(run), *_descents(run)):
        lead = ((f"  {label:<{_COLUMN}}", "dim"),)
        found += hanging(text, width=width, lead=lead)
    return found + (_directions(run, width) if SHARPNESS_LOSS in run else [])


def _eigenvalues(run: Run) -> list[tuple[str, str]]:
    if SHARPNESS_EIGENVALUE not in run:
        return []
    told = []
    for trial, value in run[SHARPNESS_EIGENVALUE].items():
        text = f"largest eigenvalue {value.values[-1]:.4g}"
        off = float(run[SHARPNESS_RESIDUAL][trial].values[-1])
        text += f", exact to {off:.1%}" if np.isfinite(off) else ""
        if SHARPNESS_BOUND in run and trial in run[SHARPNESS_BOUND]:
            bound = float(run[SHARPNESS_BOUND][trial].values[-1])
            rate = float(run[SHARPNESS_RATE][""].values[-1])
            share = float(value.values[-1]) / bound
            text += (
                f"; {share:.2g} of the {bound:.4g} that steps bear at a learning rate of {rate:.3g}"
            )
        told.append((trial, text))
    return told


def _descents(run: Run) -> list[tuple[str, str]]:
    if SHARPNESS_DESCENT not in run:
        return []
    return [
        (f"learning rate {trial}", f"{len(loss) - 1} steps on the same batches: loss {_ends(loss)}")
        for trial, loss in run[SHARPNESS_DESCENT].items()
    ]


def _ends(loss: Series) -> str:
    return f"{loss.values[0]:.4g} to {loss.values[-1]:.4g}"


def _directions(run: Run, width: int) -> list[Line]:
    distances = run[SHARPNESS_DISTANCE]["line"].values.astype(np.float64)
    curves = np.array([each.values for each in run[SHARPNESS_LOSS].values()], np.float64)
    mean = curves.mean(0)
    title = f"loss along {len(curves)} random directions, in eval mode; 1 is the length of a filter"
    found = hanging(title, width=width, style="bold")
    found += chart(distances.tolist(), mean.tolist(), width=min(width, 72), height=6)
    home = float(np.interp(0.0, distances, mean))
    rises = []
    for far in _TOLD:
        if far <= distances.max() and np.isfinite(home) and home:
            there = float(np.interp([-far, far], distances, mean).mean())
            rises.append(f"{there:.3g} at {far:g} ({(there - home) / abs(home):+.0%})")
    told = [f"{home:.4g} at the weights; {', '.join(rises)}"] if rises else []
    for text in (*told, *_other_mode(run, home)):
        found += hanging(text, width=width, lead=((f"  {'loss':<{_COLUMN}}", "dim"),))
    return found


def _other_mode(run: Run, home: float) -> list[str]:
    """What to know where eval mode is far from the mode of the training."""
    if SHARPNESS_DESCENT not in run:
        return []
    trained = float(run[SHARPNESS_DESCENT]["as set"].values[0])
    if not abs(home - trained) > _APART * max(abs(home), abs(trained)):
        return []
    return [f"{trained:.4g} in the mode of the training: batch norm or dropout make a difference"]
