"""The loss around the weights, along random directions and on a plane of two."""

import numpy as np

from holter.record.signals import SHARPNESS_DISTANCE, SHARPNESS_LOSS, SHARPNESS_PLANE
from holter.reports.html._view import Drawing, Panel, View

TITLE = "Loss around the weights"


def panel(view: View) -> Panel | None:
    """Return the loss over the distance from the weights."""
    run = view.run
    if SHARPNESS_LOSS not in run or SHARPNESS_DISTANCE not in run:
        return None
    distances = run[SHARPNESS_DISTANCE]
    drawings = []
    if "line" in distances:
        at = distances["line"].values
        series = [
            {"name": name, "steps": at, "values": loss.values}
            for name, loss in run[SHARPNESS_LOSS].items()
        ]
        title = "Loss along random directions"
        data = {
            "series": series,
            "xLabel": "distance in filter norms",
            "unit": "loss in eval mode",
            "label": title,
            "own": True,
        }
        drawings.append(Drawing("lines", data, title))
    if SHARPNESS_PLANE in run and "plane" in distances:
        at = distances["plane"].values
        title = "Loss on a plane of two directions"
        data = {
            "rows": [f"{place:.2g}" for place in at[::-1]],
            "steps": at,
            "end": float(at[-1] + (at[-1] - at[0]) / max(len(at) - 1, 1)),
            "values": np.flipud(run[SHARPNESS_PLANE][""].values.reshape(len(at), len(at))),
            "rowLabel": "second direction",
            "xLabel": "first direction",
            "unit": "loss",
            "label": title,
            "height": 320,
            "own": True,
        }
        drawings.append(Drawing("heat", data, title))
    return Panel(tuple(drawings)) if drawings else None
