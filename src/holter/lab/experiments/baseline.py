"""Simple models on the training data beside the network, on held-out rows."""

import time
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from holter.lab.changes.modes import in_eval_mode
from holter.lab.experiments import experiment
from holter.lab.experiments._baselines import comparing, models
from holter.lab.experiments._baselines.features import Features, features_of
from holter.lab.experiments._baselines.rows import FEWEST, IGNORED, Rows, read_rows
from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Setup
from holter.lab.writing import Lab
from holter.record.signals import (
    BASELINE_BALANCED,
    BASELINE_CHANCE,
    BASELINE_LOSS,
    BASELINE_RANKING,
    BASELINE_ROWS,
    BASELINE_SCORE,
)

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

_COLUMNS = 400  # of the inputs
_CLASSES = 200
_NUMBERS = 64  # of a target
_NETWORK, _CONSTANT = "network", "constant"


@experiment(
    emits=(
        *(BASELINE_ROWS, BASELINE_SCORE, BASELINE_BALANCED, BASELINE_RANKING, BASELINE_CHANCE),
        BASELINE_LOSS,
    )
)
def baseline(setup: Setup, lab: Lab, *, rows: int = 2000, seconds: float = 4.0) -> None:
    """Is the network better than a linear model on the same data?

    Fits ridge regression, nearest neighbours and, for tokens, naive Bayes or a table of the most
    frequent class of each token to a sample of training rows, as the model is given them. Scores
    them and the network, in eval mode and with the weights that the script has reached, on the same
    held-out rows.

    `rows`: number of training rows to fit at most; half as many are held out.
    `seconds`: time limit.
    """
    if setup.valid is None:
        raise InapplicableError("there is no validation data to compare models on")
    if len(setup.phases) > 1:
        raise InapplicableError("the step optimises several losses alternately")
    for name, weights in setup.reached.items():
        setup.models[name].load_state_dict(weights, strict=False)
    until = time.thread_time() + seconds
    with in_eval_mode(setup.model):
        valid = read_rows(setup, setup.valid, rows=rows // 2, seconds=seconds / 4)
        train = read_rows(setup, setup.train, rows=rows, seconds=seconds / 3)
    train, valid = (_with_target(split) for split in (train, valid))
    train, valid = _some(train, rows), _some(valid, rows // 2)
    _require_enough(train, valid)
    _require(train, valid)
    train, valid = _without_targets(train, valid)
    valid = _apart(train, valid)
    _require_enough(train, valid)
    answers = _answers(train, valid, until)
    if not answers:
        raise InapplicableError("no simple model applies to these inputs and targets")
    lab.write(BASELINE_ROWS, [len(train)], trial="train")
    lab.write(BASELINE_ROWS, [len(valid)], trial="valid")
    lab.write(BASELINE_LOSS, [valid.loss], trial=_NETWORK)
    _write(lab, train, valid, answers)


def _some(rows: Rows, most: int) -> Rows:
    """Return at most so many rows, evenly chosen."""
    if len(rows) <= most:
        return rows
    return _chosen(rows, np.linspace(0, len(rows) - 1, most).astype(int))


def _chosen(rows: Rows, places: Array) -> Rows:
    return replace(
        rows,
        inputs={path: leaf[places] for path, leaf in rows.inputs.items()},
        targets=rows.targets[places],
        answers=rows.answers[places],
        scores=None if rows.scores is None else rows.scores[places],
    )


def _with_target(rows: Rows) -> Rows:
    """Leave out rows whose class the loss ignores."""
    if not rows.is_class or rows.targets.ndim > 1:
        return rows
    return _chosen(rows, np.flatnonzero(rows.targets != IGNORED))


def _require_enough(train: Rows, valid: Rows) -> None:
    for split, rows in (("training", train), ("held-out", valid)):
        if len(rows) < FEWEST:
            raise InapplicableError(f"{len(rows)} {split} rows of the {FEWEST} needed")


def _require(train: Rows, valid: Rows) -> None:
    if train.targets.ndim != valid.targets.ndim or train.is_class != valid.is_class:
        raise InapplicableError("targets have different forms in training and validation")
    if not train.is_class and (train.targets.ndim > 2 or train.targets.shape[1] > _NUMBERS):
        raise InapplicableError("targets are maps or sequences of numbers")
    if not train.is_class and train.targets.shape[1:] != valid.targets.shape[1:]:
        raise InapplicableError("targets have different sizes in training and validation")
    if not (np.isfinite(train.targets).all() and np.isfinite(valid.targets).all()):
        raise InapplicableError("targets are not finite")
    if not np.isfinite(valid.answers).all():
        raise InapplicableError("the network's predictions are not finite")
    if train.is_class and int(train.targets.max()) >= _CLASSES:
        raise InapplicableError(f"there are more than {_CLASSES} classes")


def _without_targets(train: Rows, valid: Rows) -> tuple[Rows, Rows]:
    """Leave out inputs that are the targets, as in a batch that is given to the model as a whole.

    A model that is to reproduce its input goes through a bottleneck, or without noise: what is
    simple for a linear model is not the task.
    """
    width = train.targets[0].size
    kept = {}
    for path, leaf in train.inputs.items():
        if width == 1:
            if not _is_target(leaf, train):
                kept[path] = leaf
            continue
        is_same = leaf[0].size == width and np.array_equal(
            leaf.reshape(len(leaf), -1), train.targets.reshape(len(leaf), -1)
        )
        if is_same or (leaf.dtype.kind == "f" and leaf[0].size == width):
            raise InapplicableError("targets have the size of an input: a reconstruction")
        kept[path] = leaf
    if not kept:
        raise InapplicableError("the model is given no inputs besides the targets")
    shared = {path: valid.inputs[path] for path in kept if path in valid.inputs}
    return replace(train, inputs=kept), replace(valid, inputs=shared)


def _is_target(leaf: Array, rows: Rows) -> bool:
    """Whether an input is the target, or the class in another form, as a one-hot vector."""
    targets = rows.targets.reshape(len(rows))
    if leaf[0].size == 1 and np.allclose(leaf.reshape(len(rows)), targets):
        return True
    if not rows.is_class:
        return False
    forms, classes = np.unique(targets, return_inverse=True)
    given = [row.tobytes() for row in np.ascontiguousarray(leaf)]
    pairs = set(zip(given, classes.tolist(), strict=True))
    return len(set(given)) == len(forms) == len(pairs) > 1


def _apart(train: Rows, valid: Rows) -> Rows:
    """Leave out held-out rows whose inputs are among the training rows."""
    known = set(_digests(train))
    return _chosen(
        valid, np.array([n for n, row in enumerate(_digests(valid)) if row not in known], int)
    )


def _digests(rows: Rows) -> list[bytes]:
    leaves = [np.ascontiguousarray(leaf) for _, leaf in sorted(rows.inputs.items())]
    return [b"".join(leaf[place].tobytes() for leaf in leaves) for place in range(len(rows))]


_Answers = dict[str, tuple[Array, Floats | None]]  # of each simple model, and scores of two classes


def _answers(train: Rows, valid: Rows, until: float) -> _Answers:
    """Return what simple models answer on the held-out rows."""
    if train.is_class and train.targets.ndim > 1:
        return _by_token(train, valid) or _by_label(train, valid, until)
    features = features_of(train.inputs, valid.inputs, columns=_COLUMNS)
    if features is None or not features.train.shape[1]:
        return {}
    if not train.is_class:
        made = _predictions(features, train.targets.astype(np.float64), until)
        return {name: (predicted, None) for name, predicted in made.items()}
    kinds = np.unique(train.targets)
    if len(kinds) < 2:
        return {}
    aims = (train.targets[:, None] == kinds).astype(np.float64)
    made = _predictions(features, aims, until)
    if features.counts is not None:
        made["naive Bayes"] = models.naive_bayes(features.counts[0], aims, features.counts[1])
    return {
        name: (
            kinds[scores.argmax(axis=1)],
            scores[:, 1] - scores[:, 0] if len(kinds) == 2 else None,
        )
        for name, scores in made.items()
    }


def _predictions(features: Features, targets: Floats, until: float) -> dict[str, Floats]:
    made = {"linear": models.ridge(features.train, targets, features.valid)}
    if time.thread_time() < until:
        made["neighbours"] = models.neighbours(features.train, targets, features.valid)
    return made


def _by_token(train: Rows, valid: Rows) -> _Answers:
    """Return the answers of a table, where each position has a token and a class."""
    for path, leaf in train.inputs.items():
        other = valid.inputs.get(path)
        is_token = leaf.dtype.kind in "iu" and leaf.shape == train.targets.shape
        if is_token and other is not None and other.shape == valid.targets.shape:
            classes = int(train.targets.max()) + 1
            answers = models.token_table(leaf, train.targets, other, classes)
            return {"token table": (answers, None)}
    return {}


def _by_label(train: Rows, valid: Rows, until: float) -> _Answers:
    """Return the answers to several questions of yes or no about each row."""
    targets = train.targets
    features = features_of(train.inputs, valid.inputs, columns=_COLUMNS)
    if targets.ndim != 2 or targets.shape[1] > _NUMBERS or targets.min() < 0 or features is None:
        return {}
    if targets.max() > 1 or valid.targets.shape[1:] != targets.shape[1:]:
        return {}
    made = _predictions(features, targets.astype(np.float64), until)
    return {name: ((scores > 0.5).astype(np.int64), None) for name, scores in made.items()}


def _write(lab: Lab, train: Rows, valid: Rows, answers: _Answers) -> None:
    errors = {name: _errors(valid, made) for name, (made, _) in answers.items()}
    own = _errors(valid, valid.answers)
    judged = np.isfinite(own)
    if judged.sum() < FEWEST:
        raise InapplicableError("held-out targets do not vary, or too few rows have one")
    lab.write(BASELINE_SCORE, [1 - own[judged].mean()], trial=_NETWORK)
    seen = _errors(train, train.answers)
    lab.write(BASELINE_SCORE, [float(1 - np.nanmean(seen))], trial=f"{_NETWORK}, training rows")
    lab.write(BASELINE_SCORE, [_constant(valid)], trial=_CONSTANT)
    for name, theirs in errors.items():
        lab.write(BASELINE_SCORE, [1 - theirs[judged].mean()], trial=name)
        chance = comparing.log_chance(own[judged], theirs[judged]) + np.log10(len(errors))
        lab.write(BASELINE_CHANCE, [min(chance, 0.0)], trial=name)
    if not valid.is_class:
        return
    made = {_NETWORK: (valid.answers, valid.scores), **answers}
    for name, (given, scores) in made.items():
        right = comparing.balanced_accuracy(given, valid.targets)
        lab.write(BASELINE_BALANCED, [right], trial=name)
        area = None
        if scores is not None and valid.scores is not None:
            area = comparing.ranking(scores, valid.targets)
        if area is not None:
            lab.write(BASELINE_RANKING, [area], trial=name)
    lab.write(
        BASELINE_BALANCED, [1 / len(np.unique(valid.targets[valid.targets >= 0]))], trial=_CONSTANT
    )


def _errors(rows: Rows, answers: Array) -> Floats:
    if rows.is_class:
        return comparing.class_errors(answers, rows.targets)
    return comparing.number_errors(answers, rows.targets, absolute=rows.is_absolute)


def _constant(rows: Rows) -> float:
    """Return the score of the best constant prediction for these rows."""
    if not rows.is_class:
        return 0.0
    if rows.targets.ndim == 2 and rows.targets.min() >= 0 and rows.targets.max() == 1:
        rates = rows.targets.mean(axis=0)  # of each label
        return float(np.maximum(rates, 1 - rates).mean())
    counted = rows.targets[rows.targets >= 0]
    return float(np.bincount(counted.astype(np.int64)).max() / len(counted))
