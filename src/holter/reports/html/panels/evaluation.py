"""The last evaluation pass: metrics, confusion matrix, reliability of the confidences."""

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.measured import Measured
from holter.record.events import ClassCounts, PassMeasured, ReliabilityBin
from holter.reports._evaluation import pass_tables
from holter.reports.html._markup import joined
from holter.reports.html._tables import table
from holter.reports.html._view import Drawing, Panel, View

TITLE = "Evaluation"
_MOST_CLASSES = 24  # of a matrix
_DIAGONAL = [0.0, 1.0]


def panel(view: View) -> Panel | None:
    """Return the last counted pass over each data set."""
    passes = Facts(view.run).measured
    if not passes:
        return None
    drawings = [drawing for measured in passes for drawing in _drawings(measured)]
    tables = (table(found) for measured in passes for found in pass_tables(measured))
    return Panel(tuple(drawings), below=joined(*tables))


def _drawings(measured: Measured) -> list[Drawing]:
    what, data = measured.last, measured.data or "unnamed data"
    drawings = []
    if what.classes is not None and 1 < len(what.classes.each) <= _MOST_CLASSES:
        drawings.append(_matrix(what, what.classes, data))
    counted = what.classes or what.scores
    if counted is not None and counted.reliability:
        drawings.append(_reliability(counted.reliability, data))
    return drawings


def _matrix(what: PassMeasured, classes: ClassCounts, data: str) -> Drawing:
    labels = sorted(one.label for one in classes.each)
    place = {label: number for number, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)))
    for one in classes.each:
        counts[place[one.label], place[one.label]] = one.right
    for confusion in classes.confusions:
        if confusion.target in place and confusion.predicted in place:
            counts[place[confusion.target], place[confusion.predicted]] = confusion.times
    title = f"Confusions on {data}"
    names = [str(label) for label in labels]
    stored = int(counts.sum())
    note = f"{stored:,} of {what.targets:,} targets; the rarest confusions are not stored"
    return Drawing(
        "matrix",
        {
            "rows": names,
            "columns": names,
            "values": counts.ravel().tolist(),
            "rowLabel": "target",
            "columnLabel": "predicted",
            "label": title,
        },
        title,
        note if stored < what.targets else f"{what.targets:,} targets",
    )


def _reliability(bins: tuple[ReliabilityBin, ...], data: str) -> Drawing:
    held = [one for one in bins if one.predictions]
    title = f"Reliability on {data}"
    series = [
        {
            "name": "share of correct predictions",
            "steps": np.array([one.confidence / one.predictions for one in held]),
            "values": np.array([one.right / one.predictions for one in held]),
        },
        {"name": "well calibrated", "steps": _DIAGONAL, "values": _DIAGONAL, "dash": [6, 4]},
    ]
    return Drawing(
        "lines",
        {
            "series": series,
            "xLabel": "confidence",
            "unit": "share correct",
            "label": title,
            "points": True,
            "controls": False,
            "own": True,
        },
        title,
        "predictions grouped by their confidence; below the diagonal the model is overconfident",
    )
