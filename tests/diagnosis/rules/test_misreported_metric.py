"""misreported-metric: what is logged, beside what the predictions of the same step give."""

import numpy as np
import pytest

from holter.diagnosis.rules.misreported_metric import misreported_metric
from holter.record import Event, Run
from holter.record.evaluations import PRINTED
from holter.record.events import (
    ClassCount,
    ClassCounts,
    EvaluationSeen,
    NumberSums,
    Occurrence,
    PassMeasured,
    ScoreCounts,
    UnitCount,
)
from holter.record.findings import Clear, Confidence, Finding, Normal, NotExamined
from holter.record.signals import LOSS, METRIC_LOGGED, VAL_LOSS, VAL_LOSS_OF_BATCHES
from synthetic import run_of, said, series

STEPS = (9, 19, 29)
RIGHT = (50, 60, 70)


def run(
    name: str,
    logged: list[float],
    steps: tuple[int, ...] = STEPS,
    read: float = 1.0,
    *,
    from_training: bool = False,
) -> Run:
    """A run with three passes over 100 targets of two classes."""
    events = []
    for step, right in zip(STEPS, RIGHT, strict=True):
        each = (ClassCount(0, 80, 80, right - 10, 0.5), ClassCount(1, 20, 20, 10, 0.5))
        counts = ClassCounts(2, 2, right, 80, 0.6, each)
        what = PassMeasured(
            "cross_entropy on val_loader", 100, read, classes=counts, from_training=from_training
        )
        events.append(Event(step, 0.0, what))
    signals = {LOSS: {"": np.ones(30)}, METRIC_LOGGED: {name: series(logged, steps)}}
    return run_of(signals, events=events)


def numbers(name: str, logged: list[float]) -> Run:
    sums = NumberSums(1, 0.0, 4.0, 0.0, 0.008, 1e-4, 4.0, (0,) * 240, (9,) + (0,) * 239)
    events = [
        Event(step, 0.0, PassMeasured("mse_loss on val_loader", 9, numbers=sums)) for step in STEPS
    ]
    signals = {LOSS: {"": np.ones(30)}, METRIC_LOGGED: {name: series(logged, STEPS)}}
    return run_of(signals, events=events)


def labels(name: str, logged: list[float]) -> Run:
    """A run with passes over three labels that are yes or no each: F1 is 0.8 for all of them."""
    each = tuple(UnitCount(unit, 50, 50, 40) for unit in range(3))
    counts = ScoreCounts(3, each, (0,) * 256, (0,) * 256)
    events = [
        Event(step, 0.0, PassMeasured("binary_cross_entropy on val", 300, scores=counts))
        for step in STEPS
    ]
    signals = {LOSS: {"": np.ones(30)}, METRIC_LOGGED: {name: series(logged, STEPS)}}
    return run_of(signals, events=events)


TRUE = [0.5, 0.6, 0.7]


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (run("val_accuracy", TRUE), Clear),
        (run("val/acc", [50, 60, 70]), Clear),
        (run("val_acc", [0.504, 0.61, 0.705]), Normal),  # a mean over batches
        (run("val_acc", [0.25, 0.3, 0.35]), Finding),
        (run("val_acc", [0.9, 0.9, 0.9]), Finding),
        (run("val_error", [0.5, 0.4, 0.3]), Clear),
        (run("val_f1", [0.5, 0.5625, 0.625]), Clear),  # macro F1
        (run("val_f1", TRUE), Clear),  # micro F1 is the accuracy
        (run("val_f1", [0.1, 0.1, 0.1]), Finding),
        (run("accuracy", [0.9, 0.9, 0.9]), NotExamined),  # of which data?
        (run("train_accuracy", [0.9, 0.9, 0.9]), NotExamined),
        (run("val_perplexity", [9, 9, 9]), NotExamined),
        (run("val_acc", [0.9, 0.9, 0.9], steps=(1, 2, 3)), NotExamined),  # in other steps
        (run("val_acc", [0.9, 0.9, 0.9], read=0.3), NotExamined),  # not all targets were read
        (run("val_acc", [0.9, 0.9, 0.9], from_training=True), NotExamined),  # of another forward
        (run("val_acc", [np.nan] * 3), NotExamined),
        (labels("val_f1", [0.8, 0.8, 0.8]), Clear),
        (labels("val_f1", [0.7, 0.7, 0.7]), Normal),  # a mean over samples
        (labels("val_f1", [0.4, 0.4, 0.4]), Finding),  # one label of each sample
        (numbers("val_rmse", [0.01, 0.01, 0.01]), Clear),
        (numbers("val_rmse", [0.0095, 0.0095, 0.0095]), Normal),
        (numbers("val_rmse", [0.1, 0.1, 0.1]), Finding),
        (numbers("val_mae", [0.8, 0.8, 0.8]), Finding),  # no percentages of errors
    ],
)
def test_verdicts(made: Run, kind: type) -> None:
    (verdict,) = said(misreported_metric, made)
    assert isinstance(verdict, kind), verdict


def test_says_both_numbers() -> None:
    (finding,) = said(misreported_metric, run("val_acc", [0.5, 0.3, 0.35]))
    assert isinstance(finding, Finding)
    assert "logged as 0.35" in finding.summary
    assert "accuracy of 0.7" in finding.summary
    assert finding.onset == 19


def printed(values: list[float], *, data: str = "train_loader", name: str = "val_rmse") -> Run:
    """A run that prints a metric, with passes over some data whose RMSE is 0.1, 0.2, 0.3."""
    events: list[Event[Occurrence]] = [
        Event(0, 0.0, EvaluationSeen(data, "", False, data == "train_loader", "train.py:1"))
    ]
    for step, error in zip(STEPS, (0.1, 0.2, 0.3), strict=True):
        square = error**2
        sums = NumberSums(1, 0.0, 4.0, 0.0, 0.008, square, 4.0, (0,) * 240, (9,) + (0,) * 239)
        events.append(Event(step, 0.0, PassMeasured(f"mse_loss on {data}", 9, numbers=sums)))
    signals = {
        LOSS: {"": np.ones(30)},
        METRIC_LOGGED: {PRINTED + name: series(values, STEPS)},
        VAL_LOSS: {f"mse_loss on {data}": series([0.01, 0.04, 0.09], STEPS)},
        VAL_LOSS_OF_BATCHES: {f"mse_loss on {data}": series([0.05, 0.08, 0.2], STEPS)},
    }
    return run_of(signals, events=events)


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (printed([0.1, 0.2, 0.3]), Finding),  # of the training data
        (printed([0.1, 0.2, 0.3], data="val_loader"), Clear),
        (printed([0.4, 0.5, 0.6]), Clear),  # of something else: in other units, maybe
        (printed([0.05, 0.08, 0.2], data="val_loader", name="val_loss"), Finding),  # of batches
        (printed([0.01, 0.05, 0.14], data="val_loader", name="val_loss"), Finding),  # all so far
        (printed([0.01, 0.04, 0.09], data="val_loader", name="val_loss"), Clear),
        (printed([7.0, 8.0, 9.0], data="val_loader", name="val_loss"), Clear),
        (run(f"{PRINTED}val_acc", TRUE), Clear),
        (run(f"{PRINTED}val_acc", [0.0, 0.01, 0.0]), Finding),
        (run(f"{PRINTED}val_recall", [0.0, 0.01, 0.0]), NotExamined),
    ],
)
def test_what_a_script_prints(made: Run, kind: type) -> None:
    (verdict,) = said(misreported_metric, made)
    assert isinstance(verdict, kind), verdict


def test_a_small_difference_of_a_printed_metric_is_a_hint() -> None:
    (finding,) = said(misreported_metric, run(f"{PRINTED}val_acc", [0.42, 0.5, 0.61]))
    assert isinstance(finding, Finding)
    assert finding.confidence is Confidence.HINT


def test_a_loss_that_is_rounded_to_zero_is_no_other_mean() -> None:
    owner = "mse_loss on val_loader"
    signals = {
        LOSS: {"": np.ones(30)},
        METRIC_LOGGED: {f"{PRINTED}val_loss": series([0.0001, 0.0, 0.0], STEPS)},
        VAL_LOSS: {owner: series([9e-5, 3e-5, 1e-5], STEPS)},
        VAL_LOSS_OF_BATCHES: {owner: series([11e-5, 4e-5, 2e-5], STEPS)},
    }
    seen = Event(0, 0.0, EvaluationSeen("val_loader", "", False, False, "train.py:1"))
    run = run_of(signals, events=[seen])
    assert not [each for each in said(misreported_metric, run) if isinstance(each, Finding)]
