"""Labels that are likely wrong, by cleanlab on predictions for samples not trained on."""

import importlib.util
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from holter.lab.inapplicable import InapplicableError

Values = npt.NDArray[np.float64]


def suspected_labels(labels: Values, probabilities: Values) -> list[tuple[int, int, int, float]]:
    """Return place, label, more likely label and quality of suspected labels, the worst first."""
    if importlib.util.find_spec("cleanlab") is None:
        raise InapplicableError(
            "label quality needs cleanlab: install it with `pip install holter[labels]`"
        )
    issues: Any = import_module("cleanlab.filter")
    ranks: Any = import_module("cleanlab.rank")
    if probabilities.shape[1] == 1:  # of yes
        probabilities = np.hstack([1 - probabilities, probabilities])
    kept = np.flatnonzero(np.isfinite(labels) & np.isfinite(probabilities).all(1))
    given = labels[kept].astype(int)
    inside = (given >= 0) & (given < probabilities.shape[1])
    kept, given = kept[inside], given[inside]
    classes, numbers = np.unique(given, return_inverse=True)  # cleanlab wants each class to occur
    if len(classes) < 2:
        raise InapplicableError("the labels are of one class")
    shares = probabilities[kept][:, classes]
    shares = shares / np.maximum(shares.sum(1, keepdims=True), 1e-12)
    places = issues.find_label_issues(
        numbers, shares, return_indices_ranked_by="self_confidence", n_jobs=1
    )
    quality = ranks.get_label_quality_scores(numbers, shares)
    return [
        (int(kept[at]), int(given[at]), int(classes[shares[at].argmax()]), float(quality[at]))
        for at in places
    ]
