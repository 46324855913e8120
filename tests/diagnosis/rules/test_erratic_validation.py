import numpy as np
import pytest

from holter.diagnosis.rules.erratic_validation import erratic_validation
from holter.record.findings import Confidence, Normal, NotExamined
from synthetic import found, said
from validations import validated

PASSES = 20
T = np.arange(PASSES)
FALLING = 0.8 + np.exp(-T / 5)


def jumping(size: float, seed: int = 0, level: np.ndarray = FALLING) -> np.ndarray:
    return level * np.exp(size * np.random.default_rng(seed).normal(size=len(level)))


def test_fires_on_jumps_that_training_does_not_make() -> None:
    fired = [
        finding
        for seed in range(20)
        for finding in found(erratic_validation, validated(FALLING, jumping(0.8, seed), seed=seed))
    ]
    assert len(fired) >= 17
    assert {each.confidence for each in fired} == {Confidence.HINT}


@pytest.mark.parametrize("seed", range(40))
def test_ordinary_scatter_is_none(seed: int) -> None:
    assert found(erratic_validation, validated(FALLING, jumping(0.15, seed), seed=seed)) == []


@pytest.mark.parametrize(
    ("training", "validation"),
    [
        (FALLING, np.where(T == 9, 20.0, FALLING)),  # one bad pass
        (FALLING, np.where(T < 8, jumping(1.0), 0.6)),  # a restless beginning
        (jumping(0.8, 1), jumping(0.8, 2)),  # training jumps as well
        (2.3 * np.exp(-T / 2), jumping(0.5, level=2.3 * np.exp(-T / 2))),  # falls a lot meanwhile
    ],
)
def test_stays_silent(training: np.ndarray, validation: np.ndarray) -> None:
    assert found(erratic_validation, validated(training, validation)) == []


def test_jumps_of_a_loss_near_zero_do_no_damage() -> None:
    validation = np.concatenate([[2.3, 1.0], jumping(0.8, level=np.full(PASSES - 2, 1e-3))])
    (note,) = said(erratic_validation, validated(FALLING, validation))
    assert isinstance(note, Normal)
    assert note.exception == "no-damage"


def test_nan_and_short() -> None:
    validation = jumping(0.8)
    validation[5] = np.nan
    assert found(erratic_validation, validated(FALLING, validation))
    (verdict,) = said(erratic_validation, validated(FALLING[:7], validation[8:15]))
    assert isinstance(verdict, NotExamined)
    (verdict,) = said(erratic_validation, validated(FALLING, np.zeros(PASSES)))
    assert isinstance(verdict, NotExamined)
