"""Simple models in numpy: ridge regression, nearest neighbours, naive Bayes, a table of tokens."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

PENALTIES = np.logspace(-4, 3, 8)  # times the number of rows
NEIGHBOURS = (1, 5, 15)


def ridge(train: Floats, targets: Floats, valid: Floats) -> Floats:
    """Return predictions of ridge regression; the penalty has the least leave-one-out error."""
    mean = targets.mean(axis=0)
    centre = train.mean(axis=0)
    own, aims = train - centre, targets - mean
    rows, columns = own.shape
    if columns <= rows:
        values, vectors = np.linalg.eigh(own.T @ own)
        kept = values > 1e-10 * max(values[-1], 1e-300)
        values, vectors = values[kept], vectors[:, kept]
        scores = own @ vectors  # left singular vectors times singular values
    else:
        values, left = np.linalg.eigh(own @ own.T)
        kept = values > 1e-10 * max(values[-1], 1e-300)
        values, left = values[kept], left[:, kept]
        scores = left * np.sqrt(values)
        vectors = own.T @ (left / np.sqrt(values))
    if not len(values):
        return np.broadcast_to(mean, (len(valid), len(mean))).copy()
    toward, squares = scores.T @ aims, scores**2
    errors = []
    for penalty in PENALTIES * rows:
        fitted = scores @ (toward / (values + penalty)[:, None])
        leverage = squares @ (1 / (values + penalty)) + 1 / rows
        left_out = (aims - fitted) / np.maximum(1 - leverage, 1e-6)[:, None]
        errors.append(float((left_out**2).sum()))
    best = float(PENALTIES[int(np.argmin(errors))]) * rows
    weights = vectors @ (toward / (values + best)[:, None])
    predicted: Floats = mean + (valid - centre) @ weights
    return predicted


def neighbours(train: Floats, targets: Floats, valid: Floats) -> Floats:
    """Return the mean target of the nearest rows; their number has the least error on others."""
    most = min(max(NEIGHBOURS), len(train) - 1)
    inside = _distances(train, train)
    np.fill_diagonal(inside, np.inf)
    near = _nearest(inside, most)
    candidates = [min(number, most) for number in NEIGHBOURS]
    errors = [
        float(((targets[near[:, :number]].mean(axis=1) - targets) ** 2).sum())
        for number in candidates
    ]
    number = candidates[int(np.argmin(errors))]
    predicted: Floats = targets[_nearest(_distances(valid, train), number)].mean(axis=1)
    return predicted


def _distances(rows: Floats, others: Floats) -> Floats:
    made: Floats = (rows**2).sum(axis=1)[:, None] - 2 * rows @ others.T + (others**2).sum(axis=1)
    return made


def _nearest(distances: Floats, number: int) -> Array:
    """Return the places of the nearest rows, the nearest first."""
    some = np.argpartition(distances, number - 1, axis=1)[:, :number]
    order = np.argsort(np.take_along_axis(distances, some, axis=1), axis=1, kind="stable")
    return np.take_along_axis(some, order, axis=1)


def naive_bayes(train: Floats, targets: Floats, valid: Floats) -> Floats:
    """Return log probabilities of each class by multinomial naive Bayes; targets are one-hot."""
    counts = targets.T @ train + 1.0
    likelihood = np.log(counts / counts.sum(axis=1, keepdims=True))
    prior = np.log((targets.sum(axis=0) + 1.0) / (len(targets) + targets.shape[1]))
    scores: Floats = valid @ likelihood.T + prior
    return scores


def token_table(train: Array, labels: Array, valid: Array, classes: int) -> Array:
    """Return for each position the class that its token has most often in training.

    A token that is not known, or is rare, gets the most frequent class of all. Labels below zero
    are no targets.
    """
    known = labels >= 0
    tokens, aims = train[known], labels[known]
    values, places = np.unique(tokens, return_inverse=True)
    table = np.zeros((len(values) + 1, classes))
    np.add.at(table, (places, aims), 1.0)
    whole = np.bincount(aims, minlength=classes).astype(np.float64)
    table += whole / whole.sum()
    found = np.minimum(np.searchsorted(values, valid), len(values) - 1)
    found = np.where(values[found] == valid, found, len(values))
    answers: Array = table.argmax(axis=1)[found]
    return answers
