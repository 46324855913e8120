import numpy as np
import pytest

from holter.diagnosis.rules.loss_accuracy_parting import loss_accuracy_parting
from holter.record import Event, Run
from holter.record.events import ClassCounts, PassMeasured, ReliabilityBin
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.signals import ACCURACY, LOSS
from synthetic import found, run_of, said
from validations import FUNCTION, validated

STEPS = 300
T = np.arange(STEPS)
FALLING = 10 * np.exp(-T / 100)
BATCH = 64


def run_with(
    loss: np.ndarray = FALLING, right: float | np.ndarray = 0.3, seed: int = 0, batch: int = BATCH
) -> Run:
    rng = np.random.default_rng(seed)
    accuracy = rng.binomial(batch, np.broadcast_to(right, len(loss))) / batch
    return run_of({LOSS: {"": loss}, ACCURACY: {"cross_entropy": accuracy}})


def test_fires_where_the_loss_falls_and_no_answer_changes() -> None:
    finding = next(
        each for seed in range(5) for each in found(loss_accuracy_parting, run_with(seed=seed))
    )
    assert finding.confidence is Confidence.HINT
    assert finding.evidence[0].signal is ACCURACY


@pytest.mark.parametrize(
    ("loss", "right"),
    [
        (FALLING, 0.3 + 0.3 * T / STEPS),  # answers get better
        (FALLING, 0.97),  # there is no more to be right about
        (2 - 0.5 * T / STEPS, 0.3),  # falls a little
        (np.where(T < 30, 10.0, 1.0), 0.3),  # only at first
        (np.full(STEPS, 2.0), 0.3),
    ],
)
def test_stays_silent(loss: np.ndarray, right: float | np.ndarray) -> None:
    for seed in range(10):
        assert found(loss_accuracy_parting, run_with(loss, right, seed)) == []


def test_says_what_it_lacks() -> None:
    one_sample = run_with(np.concatenate([FALLING[::5]]), 0.3, batch=1)
    assert found(loss_accuracy_parting, one_sample) == []
    for run in (
        run_with(FALLING[:50]),
        run_with(FALLING - 5),
        run_with(np.full(STEPS, np.nan)),
        run_of({LOSS: {"G": FALLING, "D": FALLING}, ACCURACY: {"cross_entropy": FALLING / 10}}),
    ):
        assert isinstance(said(loss_accuracy_parting, run)[-1], NotExamined)


def test_calibration_is_normal() -> None:
    t = np.arange(16)
    validation = 1 + 0.3 * np.clip(5 - t, 0, None) + 0.08 * np.clip(t - 5, 0, None)
    training = 2 * np.exp(-t / 4)
    accuracy = 0.5 + 0.01 * t
    run = validated(training, validation, val_accuracy=accuracy, accuracy=accuracy)
    note, verdict = said(loss_accuracy_parting, run)
    assert isinstance(note, Normal)
    assert "calibration" in note.summary
    assert isinstance(verdict, Clear)
    assert "temperature" not in note.summary
    for confidence, says in ((95.0, True), (72.0, False), (50.0, False)):
        bins = (ReliabilityBin(0, 0.0, 0),) * 14 + (ReliabilityBin(100, confidence, 70),)
        counts = ClassCounts(10, 10, 70, 10, 0.7, reliability=bins)
        measured = PassMeasured(FUNCTION, 100, classes=counts)
        run = validated(
            training,
            validation,
            val_accuracy=accuracy,
            accuracy=accuracy,
            events=[Event(319, 0.0, measured)],
        )
        note, *_ = said(loss_accuracy_parting, run)
        assert isinstance(note, Normal)
        assert ("temperature" in note.summary) is says
    worse = validated(training, validation, val_accuracy=0.7 - 0.01 * t, accuracy=accuracy)
    assert not [each for each in said(loss_accuracy_parting, worse) if isinstance(each, Normal)]
