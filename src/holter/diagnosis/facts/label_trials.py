"""Trainings with true labels compared with trainings with shuffled ones."""

import numpy as np

from holter.record import Run
from holter.record.format import Floats
from holter.record.signals import Signal
from holter.record.trials import TrialKind, TrialName

TELLS = 4.0  # standard errors by which true labels are learned better beyond doubt


class LabelTrials:
    """The losses with true labels against those of the shuffled twins."""

    def __init__(self, run: Run, signal: Signal) -> None:
        series = {TrialName.parse(name): each.values for name, each in run[signal].items()}
        true = series[TrialName(TrialKind.TRUE_LABELS)]
        twins = [v for name, v in series.items() if name.kind is TrialKind.SHUFFLED_LABELS]
        self.true = float(true.mean())
        self.shuffled = float(np.mean(twins))
        with np.errstate(invalid="ignore"):  # losses that are not finite make no score
            self.score = _score(np.mean(twins, axis=0) - true, np.mean(twins, axis=1))


def _score(gain: Floats, twins: Floats) -> float:
    """A mean gain in standard errors: of its readings, and of one training among several."""
    error = float(gain.std()) / np.sqrt(max(len(gain), 1))
    if len(twins) > 1:
        error = float(np.hypot(error, twins.std(ddof=1) * np.sqrt(1 + 1 / len(twins))))
    return float(gain.mean() / max(error, 1e-12))
