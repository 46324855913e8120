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
_CLEARLY = 0.05  # change, as a share, that is more than noise
_VALUES = 3  # of a metric that show a course
_FAR = 0.1  # gain of a metric that luck does not explain
_MOSTLY = 0.6  # value of a metric that a model has which learned
_PERCENT = (1.5, 100.0)  # between which the largest value of a share is one in per cent


class Meaning(Enum):
    """What a metric says: which values are good, and which a useless model has."""

    SHARE = "a share of correct predictions"
    ABOVE_ZERO = "0 for the best constant prediction"
    ABOVE_HALF = "0.5 for a random order"
    ERROR = "an error"
    REWARD = "a reward"


_NAMES: Mapping[Meaning, frozenset[str]] = MappingProxyType(
    {
        Meaning.ABOVE_ZERO: frozenset(
            (
                *("r2", "r²", "skill", "mcc", "matthews", "kappa"),
                *("corr", "correlation", "pearson", "spearman"),
            )
        ),
        Meaning.ABOVE_HALF: frozenset(("auc", "auroc", "rocauc", "cindex", "concordance")),
        Meaning.SHARE: frozenset(
            (
                *("acc", "accuracy", "correct", "success", "exact", "em", "top1", "top5"),
                *("recall", "precision", "f1", "iou", "miou", "dice", "jaccard", "pck"),
                *("r1", "r5", "r10", "p1", "p5", "p10"),  # r@1
                *("ndcg", "map", "mrr", "hit", "hits", "hr", "bleu"),
            )
        ),
        Meaning.ERROR: frozenset(("error", "err", "wer", "cer", "rmse", "mae")),
        Meaning.REWARD: frozenset(
            (
                *("reward", "rewards", "rew", "return", "returns"),
                *("wins", "won", "winrate", "solved", "reached", "survived"),
            )
        ),
    }
)

# Words by which a script names what needs no model, or next to none.
_TRIVIAL = frozenset(
    (
        *("naive", "chance", "random", "majority", "persistence", "popularity", "constant"),
        *("guess", "guessing", "climatology", "unigram", "dummy", "last-value"),
    )
)
# ... and what says it in several: `logloss of the rate alone`, `same hour yesterday`.
_TRIVIAL_PHRASE = re.compile(
    r"\b(always|predict(ing|s)?|answer(ing|s)?|guess(ing|es)?)( the)?"
    r" (mean|median|average|zero|rate|prior)\b"
    r"|\b(mean|median|average|zero) (predictor|prediction|forecast|guess|answer|image|picture)\b"
    r"|\b(rate|prior|mean|median|average) (alone|only)\b"
    r"|\blast value\b|\bsame (hour|day|week|month|time) (yesterday|last|before|ago)\b"
)
_REFERENCES = frozenset(("solution", "value", "values", "optimum", "minimum", "posterior"))
_LOSSES = frozenset(
    (
        *("loss", "mse", "nll", "ce", "bce", "xent", "perplexity", "ppl", "logloss", "brier"),
        *("crps", "pinball", "wape", "smape", "mape", "mase", "bpc", "bpd", "deviance"),
    )
)
_HELD_OUT = frozenset(("val", "valid", "validation", "dev", "test", "eval", "heldout", "holdout"))


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
    def is_error(self) -> bool:
        """Whether lower is better."""
        return self.meaning is Meaning.ERROR

    @property
    def best(self) -> float:
        """The best value."""
        return float(self.values.min() if self.is_error else self.values.max())

    @property
    def is_held_out(self) -> bool:
        """Whether its name says that it is of held-out data."""
        return not _HELD_OUT.isdisjoint(_words(self.name))

    @property
    def improves(self) -> bool:
        """Whether the last third is clearly better than the third before it."""
        count = max(len(self.values) // 3, 1)
        before, after = self.values[-2 * count : -count], self.values[-count:]
        if not len(before):
            return False
        rise = float(np.median(after) - np.median(before)) * (-1 if self.is_error else 1)
        return rise > _CLEARLY * max(float(np.abs(before).max()), 1e-30)

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
    """Return the metrics that a script prints again and again, or passes to `log()`."""
    shown = [(e.what.name, e.what.steps, e.what.values) for e in run.events_of(FigurePrinted)
             if len(e.what.values) > 1]  # fmt: skip
    if METRIC_LOGGED in run:
        logged = run[METRIC_LOGGED].items()
        shown += [(name, tuple(s.steps), tuple(s.values)) for name, s in logged]
    found = [_metric(name, np.array(steps, float), np.array(v, float)) for name, steps, v in shown]
    return [metric for metric in found if metric is not None]


def learned_metric(run: Run) -> Metric | None:
    """Return the metric that shows best that the training learned, or None.

    It rose far and ends near its best, and what it counts is right more often than not.
    """
    risen = [
        metric
        for metric in metrics_shown(run)
        if metric.meaning in (Meaning.SHARE, Meaning.ABOVE_ZERO, Meaning.ABOVE_HALF)
        and len(metric.values) >= _VALUES
        and metric.gain >= _FAR
        and metric.last >= max(_MOSTLY, metric.best - _FAR / 2)
    ]
    return max(risen, key=lambda metric: metric.gain, default=None)


@dataclass(frozen=True, slots=True)
class Reference:
    """A metric beside the value that the script itself shows for a trivial prediction."""

    metric: Metric
    name: str  # of the trivial prediction, as it is shown
    level: float

    @property
    def is_unbeaten(self) -> bool:
        """Whether the metric was never better, and is not about to be."""
        if self.metric.improves:
            return False
        return (
            self.metric.best >= self.level
            if self.metric.is_error
            else (self.metric.best <= self.level)
        )


def references(run: Run) -> list[Reference]:
    """Return the metrics and losses that a script shows beside those of a trivial prediction.

    Either the name of the trivial prediction has that of the metric, or its value follows that of
    the metric on every line.
    """
    found, before = [], None
    events = [event.what for event in run.events_of(FigurePrinted)]
    metrics = [
        _compared(e.name, np.array(e.steps, float), np.array(e.values, float)) for e in events
    ]
    known = [metric for metric in metrics if metric is not None and not _is_trivial(metric.name)]
    for event, metric in zip(events, metrics, strict=True):
        if _is_trivial(event.name):
            level, words = float(np.median(event.values)), _names_in(event.name)
            if words:
                beside = [each for each in known if words & _names_in(each.name)]
            else:
                beside = [before] if before is not None and _same(before, event) else []
            if metric is not None:
                level = float(np.median(metric.values))
            found += [Reference(each, event.name, level) for each in beside]
        before = metric
    return found


def _same(metric: Metric, event: FigurePrinted) -> bool:
    return len(metric.steps) == len(event.steps) and bool((metric.steps == event.steps).all())


def _is_trivial(name: str) -> bool:
    is_phrase = _TRIVIAL_PHRASE.search(name.lower()) is not None
    return is_phrase or not _TRIVIAL.isdisjoint(_words(name))


def _words(name: str) -> set[str]:
    return set(_PARTS.split(name.lower()))


def _names_in(name: str) -> set[str]:
    """Return the words of a name that mean a metric or a loss."""
    return {word for word in _words(name)
            if word in _LOSSES or any(word in names for names in _NAMES.values())}  # fmt: skip


def is_worse_when_higher(name: str) -> bool | None:
    """Whether higher values of what has that name are worse, or None if the name does not say."""
    meaning = meaning_of(name)
    if meaning is not None:
        return meaning is Meaning.ERROR
    return True if not _LOSSES.isdisjoint(_words(name)) else None


def meaning_of(name: str) -> Meaning | None:
    """Return what a metric of that name means, or None if the name does not say."""
    parts = _PARTS.split(name.lower())
    if "loss" in parts:
        return None
    words = {*parts, *(first + second for first, second in pairwise(parts))}  # roc-auc, c-index
    if any(first == "exact" and second in _REFERENCES for first, second in pairwise(parts)):
        words.discard("exact")  # what is compared with, as in `against the exact solution`
    return next((meaning for meaning, names in _NAMES.items() if words & names), None)


def _compared(name: str, steps: Values, values: Values) -> Metric | None:
    """Return a metric, or a loss as an error: beside a trivial prediction it tells as much."""
    metric = _metric(name, steps, values)
    if metric is None and not _LOSSES.isdisjoint(_words(name)) and np.isfinite(values).all():
        return Metric(name, Meaning.ERROR, steps, values)
    return metric


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
