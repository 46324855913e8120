import numpy as np
import pytest

from holter.diagnosis.rules.underfitting import underfitting
from holter.record import Event, Run
from holter.record.events import ExperimentsChosen
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.signals import (
    ACCURACY,
    LOSS,
    LR,
    OUTPUT_SPREAD,
    TARGET_ENTROPY,
    TARGET_LARGEST_CLASS_FRACTION,
    VAL_LOSS,
)
from synthetic import found, run_of, said, series

ENTROPY = float(np.log(4))
T = np.arange(400)


def run_with(
    loss: np.ndarray,
    *,
    accuracy: float = 0.3,
    spread: float = 0.5,
    validation: float | None = None,
    rate: np.ndarray | None = None,
) -> Run:
    each = np.ones(len(loss))
    signals = {
        LOSS: {"": loss},
        LR: {"group 0": 0.1 * each if rate is None else rate},
        TARGET_ENTROPY: {"cross_entropy": ENTROPY * each},
        OUTPUT_SPREAD: {"cross_entropy": spread * each},
        ACCURACY: {"cross_entropy": accuracy * each},
        TARGET_LARGEST_CLASS_FRACTION: {"cross_entropy": 0.26 * each},
    }
    if validation is not None:
        at = np.arange(39, len(loss), 40)
        signals[VAL_LOSS] = {"cross_entropy": series(np.full(len(at), validation), at)}
    return run_of(signals)


def straight(rng: np.random.Generator) -> np.ndarray:
    return np.linspace(1.4, 1.1, 400) + 0.02 * rng.normal(size=400)


def level(rng: np.random.Generator, at: float = 1.34) -> np.ndarray:
    return at + 0.5 * np.exp(-T / 20) + 0.01 * rng.normal(size=400)


def test_a_run_that_ends_while_it_falls_fast() -> None:
    for seed in range(20):
        (finding,) = found(underfitting, run_with(straight(np.random.default_rng(seed))))
        assert finding.confidence is Confidence.HINT
        assert "longer" in finding.fix


def test_a_decayed_learning_rate_is_no_excuse() -> None:
    run = run_with(straight(np.random.default_rng(0)), rate=np.geomspace(0.1, 1e-4, 400))
    assert found(underfitting, run)


def test_first_steps_that_were_tried_are_no_training() -> None:
    run = run_with(straight(np.random.default_rng(0)))
    tried = run_of(
        {LOSS: run[LOSS], TARGET_ENTROPY: run[TARGET_ENTROPY]},
        events=[Event(0, 0.0, ExperimentsChosen())],
    )
    (verdict,) = said(underfitting, tried)
    assert isinstance(verdict, NotExamined)


def test_a_level_loss_with_validation_as_good() -> None:
    for seed in range(20):
        run = run_with(level(np.random.default_rng(seed)), validation=1.35)
        (finding,) = found(underfitting, run)
        assert finding.confidence is Confidence.HINT
        assert "capacity" in finding.fix
        assert VAL_LOSS in {evidence.signal for evidence in finding.evidence}


RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    "run",
    [
        run_with(straight(RNG), accuracy=0.8),
        run_with(2.4 * np.exp(-T / 80) + 0.02 * RNG.normal(size=400) + 0.1, accuracy=0.9),
        run_with(level(RNG, at=0.9), accuracy=0.6, validation=0.9),
        run_with(level(RNG), validation=2.0),  # overfits instead
        run_with(level(RNG), validation=1.35, spread=0.01),  # predicts the same for all inputs
    ],
)
def test_silent(run: Run) -> None:
    said_of = said(underfitting, run)
    assert said_of
    assert all(isinstance(verdict, Clear | Normal) for verdict in said_of)


def test_a_loss_that_still_falls_is_normal_where_much_was_learned() -> None:
    note, clear = said(underfitting, run_with(straight(RNG), accuracy=0.9))
    assert isinstance(note, Normal)
    assert isinstance(clear, Clear)


@pytest.mark.parametrize(
    ("run", "because"),
    [
        (run_with(np.ones(99)), "99 of the 100"),
        (run_with(np.full(300, np.nan)), "0 of the 100"),
        (run_with(level(RNG)), "no validation"),
        (run_of({LOSS: {"": level(RNG)}}), "no single loss function"),
        (run_of({LOSS: {"": np.sin(T)}}), "sign"),
    ],
)
def test_says_what_it_lacks(run: Run, because: str) -> None:
    (verdict,) = said(underfitting, run)
    assert isinstance(verdict, NotExamined)
    assert because in verdict.because
