"""The gradient norms before clipping, and the limit that would cut one step in twenty."""

import numpy as np

from holter.record import Run
from holter.record.signals import CLIP_THRESHOLD_LIMIT, CLIP_THRESHOLD_NORM
from holter.reports._chart import Values
from holter.reports._lines import Line, hanging

_MOVED = 2  # times: the level of the first half over that of the second


def lines(run: Run, width: int) -> list[Line]:
    """What `clip-threshold` measured."""
    if CLIP_THRESHOLD_NORM not in run:
        return []
    found: list[Line] = [(("gradient norms before clipping", "bold"),)]
    for trial, series in run[CLIP_THRESHOLD_NORM].items():
        norms = series.values[np.isfinite(series.values)].astype(np.float64)
        if not len(norms):
            continue
        lead: Line = ((f"  {trial}  " if trial else "  ", "dim"),)
        for text in _told(run, trial, norms, len(series) - len(norms)):
            found += hanging(text, width=width, lead=lead)
    return found if len(found) > 1 else []


def _told(run: Run, trial: str, norms: Values, lost: int) -> list[str]:
    advised = float(np.percentile(norms, 95))
    told = [
        f"{len(norms)} steps: median {np.median(norms):.3g}, 95th percentile {advised:.3g}, largest"
        f" {norms.max():.3g}" + (f"; {lost} more are not finite" if lost else "")
    ]
    told.append(f"a limit of {advised:.2g} cuts one step in twenty" + _present(run, trial, norms))
    first, last = (float(np.median(half)) for half in np.array_split(norms, 2))
    if len(norms) >= 20 and not 1 / _MOVED < first / max(last, 1e-30) < _MOVED:
        told.append(
            f"norms are still moving: {first:.3g} in the first half, {last:.3g} in the second;"
            " measure again later"
        )
    return told


def _present(run: Run, trial: str, norms: Values) -> str:
    if CLIP_THRESHOLD_LIMIT not in run or trial not in run[CLIP_THRESHOLD_LIMIT]:
        return "; nothing is clipped now"
    limit = float(run[CLIP_THRESHOLD_LIMIT][trial].values[-1])
    return f"; the present one of {limit:.3g} cuts {float((norms > limit).mean()):.0%}"
