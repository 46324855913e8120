"""The metrics that a script prints or logs itself, as far as their names say what they are."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from types import MappingProxyType

import numpy as np

from holter.diagnosis.facts.robust import Values
from holter.record import Run
from holter.record.events import FigurePrinted
from holter.record.signals import METRIC_LOGGED

_PARTS = re.compile(r"[\s_/@.\-]+")
_PERCENT = (1.5, 100.0)  # between which the largest value of a share is one in per cent


class Meaning(Enum):
    """What a metric says: which values are good, and which a useless model has."""

    SHARE = "a share of what is right"
    ABOVE_ZERO = "0 for the best constant prediction"
    ABOVE_HALF = "0.5 for a random order"
    ERROR = "an error"
    REWARD = "what a policy earns"


_NAMES: Mapping[Meaning, frozenset[str]] = MappingProxyType(
    {
        Meaning.ABOVE_ZERO: frozenset(
            ("r2", "r²", "mcc", "matthews", "kappa", "corr", "correlation", "pearson", "spearman")
        ),
        Meaning.ABOVE_HALF: frozenset(("auc", "auroc", "rocauc", "cindex", "concordance")),
        Meaning.SHARE: frozenset(
            (
                *("acc", "accuracy", "correct", "success", "exact", "em", "top1", "top5"),
                *("recall", "precision", "f1", "iou", "miou", "dice", "jaccard", "pck"),
                *("ndcg", "map", "mrr", "hit", "hits", "bleu"),
            )
        ),
        Meaning.ERROR: frozenset(("error", "err", "wer", "cer", "rmse", "mae")),
        Meaning.REWARD: frozenset(("reward", "rewards", "return", "returns")),
    }
)


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric by the name under which the script shows it."""

    name: str
    meaning: Meaning
    steps: Values
    values: Values

    @property
    def last(self) -> float:
        """The median of the last third."""
        return float(np.median(self.values[-max(len(self.values) // 3, 1) :]))

    @property
    def gain(self) -> float:
        """How much better than the first value the best one is; of errors, as a share.

        Of rewards, which have no scale and vary, by how many standard deviations they rose.
        """
        if self.meaning is Meaning.ERROR:
            return float(1 - self.values.min() / self.values[0]) if self.values[0] > 0 else 0.0
        if self.meaning is Meaning.REWARD:
            count = max(len(self.values) // 3, 1)
            rise = float(self.values[-count:].mean() - self.values[:count].mean())
            return rise / max(float(self.values.std()), 1e-30) if rise else 0.0
        return float(self.values.max() - self.values[0])


def metrics_shown(run: Run) -> list[Metric]:
    """Return the metrics that a script prints, or passes to `log()`, under telling names."""
    shown = [(e.what.name, e.what.steps, e.what.values) for e in run.events_of(FigurePrinted)]
    if METRIC_LOGGED in run:
        logged = run[METRIC_LOGGED].items()
        shown += [(name, tuple(s.steps), tuple(s.values)) for name, s in logged]
    found = [_metric(name, np.array(steps, float), np.array(v, float)) for name, steps, v in shown]
    return [metric for metric in found if metric is not None]


def meaning_of(name: str) -> Meaning | None:
    """Return what a metric of that name means, or None if the name does not say."""
    parts = _PARTS.split(name.lower())
    if "loss" in parts:
        return None
    words = {*parts, *(first + second for first, second in pairwise(parts))}  # roc-auc, c-index
    return next((meaning for meaning, names in _NAMES.items() if words & names), None)


def _metric(name: str, steps: Values, values: Values) -> Metric | None:
    meaning = meaning_of(name)
    kept = np.isfinite(values)
    steps, values = steps[kept], values[kept]
    if meaning is None or not len(values):
        return None
    largest = float(values.max())
    if meaning in (Meaning.SHARE, Meaning.ABOVE_HALF):
        if _PERCENT[0] < largest <= _PERCENT[1]:
            values = values / 100
        elif largest > 1 or values.min() < 0:  # something else of that name
            return None
    elif meaning is Meaning.ABOVE_ZERO and largest > 1:
        return None
    return Metric(name, meaning, steps, values)
