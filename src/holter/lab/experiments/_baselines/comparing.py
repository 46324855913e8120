"""Answers of two models to the same held-out rows: scores and paired tests."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]


def class_errors(answers: Array, targets: Array) -> Floats:
    """Return the share of wrong answers of each row; targets below zero do not count.

    NaN for a row without a target.
    """
    counted = (targets >= 0).reshape(len(targets), -1)
    wrong = (answers != targets).reshape(len(targets), -1) & counted
    number = counted.sum(axis=1)
    return np.where(number > 0, wrong.sum(axis=1) / np.maximum(number, 1), np.nan)


def number_errors(answers: Floats, targets: Floats, *, absolute: bool) -> Floats:
    """Return the error of each row, in units of what the best constant prediction leaves.

    Columns weigh as they do in a loss that is the mean over all of them: a network that has learned
    the large ones is not blamed for the small ones. NaN if targets do not vary.
    """
    apart = np.abs(answers - targets) if absolute else (answers - targets) ** 2
    centre = np.median(targets, axis=0) if absolute else targets.mean(axis=0)
    left = np.abs(targets - centre) if absolute else (targets - centre) ** 2
    size = np.abs(targets) if absolute else targets**2
    unit = left.sum(axis=1).mean()
    if unit <= 1e-12 * size.sum(axis=1).mean():  # but for rounding
        return np.full(len(targets), np.nan)
    errors: Floats = apart.sum(axis=1) / unit
    return errors


def log_chance(worse: Floats, better: Floats) -> float:
    """Return log10 of the chance that `worse` has so much larger errors on the same rows.

    One-sided. Where each answer is right or wrong it is McNemar's exact test, else the larger of a
    paired z test and a sign test: a few rows with large errors do not decide.
    """
    apart = worse - better
    sign = log_tail(int((apart > 0).sum()), int((apart < 0).sum()))
    is_binary = bool(np.isin(worse, (0.0, 1.0)).all() and np.isin(better, (0.0, 1.0)).all())
    if is_binary:
        return sign
    spread = float(apart.std(ddof=1)) if len(apart) > 1 else 0.0
    if spread == 0:
        return sign
    return max(sign, _log_normal_tail(float(apart.mean()) / spread * math.sqrt(len(apart))))


def log_tail(first: int, second: int) -> float:
    """Return log10 of the chance of at least `first` heads in `first + second` fair tosses."""
    count = first + second
    if not count:
        return 0.0
    terms = [
        math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1)
        for k in range(first, count + 1)
    ]
    top = max(terms)
    total = top + math.log(sum(math.exp(term - top) for term in terms)) - count * math.log(2)
    return min(total / math.log(10), 0.0)


def _log_normal_tail(z: float) -> float:
    if z < 30:
        return math.log10(0.5 * math.erfc(z / math.sqrt(2)))
    return (-z * z / 2 - math.log(z * math.sqrt(2 * math.pi))) / math.log(10)


def balanced_accuracy(answers: Array, targets: Array) -> float:
    """Return the mean recall of the classes among the targets."""
    counted = targets >= 0
    answers, targets = answers[counted], targets[counted]
    kinds = np.unique(targets)
    return float(np.mean([(answers[targets == kind] == kind).mean() for kind in kinds]))


def ranking(scores: Floats, targets: Array) -> float | None:
    """Return the area under the ROC curve of two classes; None if there is but one."""
    positive = targets == targets.max()
    count, others = int(positive.sum()), int((~positive).sum())
    if not count or not others:
        return None
    _, inverse, times = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(times) - (times - 1) / 2)[inverse]
    return float((ranks[positive].sum() - count * (count + 1) / 2) / (count * others))
