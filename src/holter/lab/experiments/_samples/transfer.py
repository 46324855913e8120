"""Whether what a column says about the target in training holds in validation.

The mean target of each value of a column (or of each bin) is learned from training samples and
predicts the targets of others: of training samples that were left out, and of validation samples.
A column whose codes mean something else in validation, or that was computed from the labels of the
training samples themselves, predicts the former only.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holter.lab.experiments._samples.datasets import Split
from holter.lab.experiments._samples.keys import targets_of
from holter.lab.experiments._samples.parts import Floats

_FEWEST = 100  # samples of either split
_CATEGORIES = 64  # different values; more are put into bins
_BINS = 16
_CLASSES = 20  # more are numbers
_FOLDS = 5
_PRIOR = 5  # samples of the mean target that each value is given beforehand
_KNOWN = 0.5  # share of validation whose values occur in training

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Transfer:
    """Of each column: the share of the variance of the targets that it predicts."""

    train: Floats  # of training samples that were left out
    valid: Floats
    error: Floats  # standard error of the difference


def transfer(train: Split, valid: Split) -> Transfer | None:
    """Compare what each column predicts in both splits; None where samples have no columns."""
    known, asked = _fields(train), _fields(valid)
    own, aims = targets_of(train), targets_of(valid)
    if known is None or asked is None or own is None or aims is None:
        return None
    if known.shape[1] != asked.shape[1] or min(len(known), len(asked)) < _FEWEST:
        return None
    if not (train.arrives and valid.arrives):
        return None
    vectors = _vectors(own, aims, train, valid)
    if vectors is None:
        return None
    measured = [_column(known[:, n], asked[:, n], *vectors) for n in range(known.shape[1])]
    shares, others, errors = (np.array(each) for each in zip(*measured, strict=True))
    return Transfer(shares, others, errors)


def _fields(split: Split) -> Floats | None:
    rows = [sample.fields for sample in split.samples if sample.fields is not None]
    if len(rows) < len(split.samples) or len({len(row) for row in rows}) != 1:
        return None
    made = np.stack(rows)
    return made if made.shape[1] and np.isfinite(made).all() else None


def _vectors(own: Floats, aims: Floats, train: Split, valid: Split) -> tuple[Floats, Floats] | None:
    """Return the targets as vectors: of classes, one element for each."""
    kinds = np.unique(own)
    if len(kinds) < 2 or len(np.unique(aims)) < 2:
        return None
    samples = (*train.samples, *valid.samples)
    if all(sample.is_class for sample in samples) and len(kinds) <= _CLASSES:
        return (own[:, None] == kinds).astype(float), (aims[:, None] == kinds).astype(float)
    return own[:, None], aims[:, None]


def _column(known: Floats, asked: Floats, own: Floats, aims: Floats) -> tuple[float, float, float]:
    codes, others = _coded(known, asked)
    occurring = np.isin(others, codes)
    if len(np.unique(codes)) < 2 or occurring.mean() < _KNOWN or occurring.sum() < _FEWEST:
        return 0.0, 0.0, 0.0
    folds = np.random.default_rng(0).permutation(len(codes)) % _FOLDS
    predicted = np.empty_like(own)
    for fold in range(_FOLDS):
        rest = folds != fold
        predicted[~rest] = _means(codes[rest], own[rest], codes.max())[codes[~rest]]
    gains = _gains(predicted, own)
    table = _means(codes, own, codes.max())
    carried = _gains(table[others[occurring]], aims[occurring])
    error = np.sqrt(gains.var() / len(gains) + carried.var() / len(carried))
    return float(gains.mean()), float(carried.mean()), float(error)


def _coded(known: Floats, asked: Floats) -> tuple[Codes, Codes]:
    """Return numbers for the values of a column, or for bins; one beyond all for unknown values."""
    values = np.unique(known)
    if len(values) > _CATEGORIES:
        edges = np.unique(np.quantile(known, np.linspace(0, 1, _BINS + 1)[1:-1]))
        return (
            np.searchsorted(edges, known, side="right").astype(np.int64),
            np.searchsorted(edges, asked, side="right").astype(np.int64),
        )
    places = np.searchsorted(values, asked)
    exact = values[np.minimum(places, len(values) - 1)] == asked
    return (
        np.searchsorted(values, known).astype(np.int64),
        np.where(exact, places, len(values)).astype(np.int64),
    )


def _means(codes: Codes, aims: Floats, most: int) -> Floats:
    """Return the mean target of each code, drawn towards that of all where there are few."""
    overall = aims.mean(axis=0)
    counts = np.bincount(codes, minlength=most + 1)[:, None]
    sums = np.stack([np.bincount(codes, weights=aim, minlength=most + 1) for aim in aims.T], axis=1)
    means: Floats = (sums + _PRIOR * overall) / (counts + _PRIOR)
    return means


def _gains(predicted: Floats, aims: Floats) -> Floats:
    """Return by how much less than the mean each prediction errs, as a share of the variance.

    Predictions are moved to the mean of the targets: how frequent targets are may differ.
    """
    centred = aims - aims.mean(axis=0)
    moved = predicted - predicted.mean(axis=0)
    whole = (centred**2).sum(axis=1)
    gains: Floats = (whole - ((centred - moved) ** 2).sum(axis=1)) / max(whole.mean(), 1e-300)
    return gains
