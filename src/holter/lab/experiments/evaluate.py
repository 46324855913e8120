"""The model on its validation data: metrics, slices with the largest error, worst examples."""

import importlib.util
import math
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from holter.lab.experiments import experiment
from holter.lab.experiments._evaluation.folds import out_of_sample
from holter.lab.experiments._evaluation.labelling import suspected_labels
from holter.lab.experiments._evaluation.passing import (
    EvaluatedPass,
    Examined,
    Values,
    evaluate_pass,
)
from holter.lab.experiments._evaluation.slicing import Slicing, slicing_by
from holter.lab.experiments._samples.datasets import served
from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Setup
from holter.lab.state import State
from holter.lab.writing import Lab
from holter.record.events import (
    DataEvaluated,
    LabelsExamined,
    LabelSuspected,
    NotApplicable,
    SliceMeasured,
    WorstExample,
)
from holter.record.signals import EVALUATE_LOSS
from holter.watching.collectors.loss_calls import Family

_SLICES = 3  # features that are written unless one is asked for
_BEYOND_CHANCE = 3.0  # times what groups by chance explain
_FEWEST = 0.01  # share of the variance that is worth a table
_SUSPECTED = 100  # labels that are listed


@experiment(emits=(EVALUATE_LOSS,))
def evaluate(
    setup: Setup,
    lab: Lab,
    *,
    slice: str = "",  # noqa: A002  (the name on the command line)
    worst: int = 10,
    labels: bool = False,
    folds: int = 5,
    fold_seconds: float = 120.0,
    seconds: float = 120.0,
) -> None:
    """On which samples is the model wrong?

    Evaluates the model in eval mode on its validation batches (training batches if there are
    none), with the weights that the script has reached: metrics beside their baselines,
    calibration, the features whose groups of samples differ most in their loss, and the samples
    with the largest losses.

    `slice`: group samples by this only: `label`, `length`, `brightness`, or the number of an input
    column; by default those that explain most of the error.
    `worst`: number of samples with the largest losses to list.
    `labels`: also look for labels that are likely wrong, with cleanlab: of validation samples, and
    of training samples by models that are trained without them.
    `folds`: number of parts of the training samples for that; each is predicted by a new training
    on the others. 0: do not train.
    `fold_seconds`: time limit of these trainings.
    `seconds`: time limit.
    """
    data, batches = (
        ("validation", setup.valid) if setup.valid is not None else ("training", setup.train)
    )
    start = State(setup) if labels and folds else None
    for name, weights in setup.reached.items():
        setup.models[name].load_state_dict(weights, strict=False)
    passed = evaluate_pass(setup, batches, seconds=seconds)
    samples = passed.samples
    lab.write(EVALUATE_LOSS, passed.batch_losses, trial=data)
    area, precision = _ranking(passed)
    mean = float(np.mean(samples.losses))
    lab.event(
        DataEvaluated(
            data,
            len(samples),
            mean,
            passed.is_complete,
            passed.function,
            passed.counts,
            area,
            precision,
        )
    )
    indices = _indices(setup, data, len(samples))
    for slicing in _slicings(samples, slice):
        _write_slices(lab, passed, slicing)
    for place in np.argsort(-np.nan_to_num(samples.losses, nan=np.inf))[:worst].tolist():
        lab.event(
            WorstExample(
                indices[place],
                float(samples.losses[place]),
                _number(samples.labels[place]),
                _number(samples.answers[place]),
                _number(samples.confidences[place]),
            )
        )
    if labels:
        _validation_labels(lab, passed, data, indices)
        if start is not None:
            _training_labels(setup, lab, start, folds, fold_seconds)


def _ranking(passed: EvaluatedPass) -> tuple[float | None, float | None]:
    """Return area under the ROC curve and average precision of all scores, if they can be had."""
    samples = passed.samples
    if samples.probabilities is None or importlib.util.find_spec("sklearn") is None:
        return None, None
    metrics: Any = import_module("sklearn.metrics")
    labels, scores = samples.labels, samples.probabilities
    classes = np.unique(labels)
    if passed.family is Family.BINARY and set(classes.tolist()) == {0.0, 1.0}:
        score = scores[:, 0]
    elif scores.shape[1] == 2 and set(classes.tolist()) == {0.0, 1.0}:
        score = scores[:, 1]
    elif passed.family is Family.CLASSES and len(classes) == scores.shape[1] > 2:
        area = metrics.roc_auc_score(
            labels, scores / scores.sum(1, keepdims=True), multi_class="ovr"
        )
        return float(area), None
    else:
        return None, None
    if not np.isfinite(score).all():
        return None, None
    area = metrics.roc_auc_score(labels, score)
    return float(area), float(metrics.average_precision_score(labels, score))


def _slicings(samples: Examined, wanted: str) -> list[Slicing]:
    """Return the groups by the wanted feature, or by those that explain most of the error."""
    features = dict(samples.features)
    if np.isfinite(samples.labels).all():
        features["label"] = samples.labels
    if wanted:
        name = f"column {int(wanted)}" if wanted.isdecimal() else wanted
        if name not in features:
            known = ", ".join(features) or "none"
            raise InapplicableError(f"samples cannot be grouped by {name}; there is {known}")
        found = slicing_by(name, features[name], samples.losses)
        return [] if found is None else [found]
    slicings = [slicing_by(name, values, samples.losses) for name, values in features.items()]
    telling = [
        slicing
        for slicing in slicings
        if slicing is not None and slicing.explained > max(_BEYOND_CHANCE * slicing.noise, _FEWEST)
    ]
    return sorted(telling, key=lambda slicing: -slicing.gain)[:_SLICES]


def _write_slices(lab: Lab, passed: EvaluatedPass, slicing: Slicing) -> None:
    samples = passed.samples
    known = np.isfinite(samples.labels) & np.isfinite(samples.answers)
    is_class = passed.family in (Family.CLASSES, Family.BINARY) and bool(known.all())
    wrong = samples.labels != samples.answers
    groups = sorted(slicing.groups, key=lambda group: -samples.losses[group.chosen].mean())
    for group in groups:
        error = float(wrong[group.chosen].mean()) if is_class else None
        loss = float(samples.losses[group.chosen].mean())
        count = int(group.chosen.sum())
        lab.event(
            SliceMeasured(
                slicing.by, group.name, count, loss, error, slicing.explained, slicing.noise
            )
        )


def _validation_labels(
    lab: Lab, passed: EvaluatedPass, data: str, indices: range | list[int]
) -> None:
    samples = passed.samples
    try:
        if data == "training":
            raise InapplicableError("there are no validation samples to judge the labels of")
        if samples.probabilities is None or passed.family is Family.NUMBERS:
            raise InapplicableError("label quality needs one class for each sample")
        _write_labels(lab, data, indices, samples.labels, samples.probabilities)
    except InapplicableError as reason:
        lab.event(NotApplicable("evaluate --labels", str(reason), ()))


def _training_labels(setup: Setup, lab: Lab, start: State, folds: int, seconds: float) -> None:
    try:
        found = out_of_sample(setup, lab, start, folds=folds, seconds=seconds)
        _write_labels(lab, "training", found.indices, found.labels, found.probabilities)
    except InapplicableError as reason:
        lab.event(NotApplicable("evaluate --labels of training samples", str(reason), ()))


def _write_labels(
    lab: Lab, data: str, indices: Sequence[int], labels: Values, probabilities: Values
) -> None:
    found = suspected_labels(labels, probabilities)
    lab.event(LabelsExamined(data, len(labels), len(found)))
    for place, given, suggested, quality in found[:_SUSPECTED]:
        lab.event(LabelSuspected(indices[place], given, suggested, quality, data))


def _indices(setup: Setup, data: str, count: int) -> range | list[int]:
    """Return the places of the samples in their data set, where the loader serves them in order."""
    known = served(setup, "valid" if data == "validation" else "train")
    if known is None or not known.in_order:
        return range(count)
    return list(known.positions[:count])


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
