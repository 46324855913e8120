import numpy as np
import pytest

from holter.diagnosis.rules.loss_plateau import loss_plateau
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.signals import (
    ACCURACY,
    LOSS,
    LR,
    OUTPUT_SPREAD,
    TARGET_ENTROPY,
    TARGET_LARGEST_CLASS_FRACTION,
    UPDATE_RATIO,
)
from synthetic import found, run_of, said

ENTROPY = float(np.log(4))


def fell_to(level: float, *, steps: int = 400, noise: float = 0.02, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return level + 3 * np.exp(-np.arange(steps) / 10) + noise * rng.normal(size=steps)


def run_with(loss: np.ndarray, *, accuracy: float = 0.3, rate: np.ndarray | None = None) -> Run:
    steps = len(loss)
    each = np.ones(steps)
    return run_of(
        {
            LOSS: {"": loss},
            LR: {"group 0": 0.1 * each if rate is None else rate},
            TARGET_ENTROPY: {"cross_entropy": ENTROPY * each},
            OUTPUT_SPREAD: {"cross_entropy": each},
            ACCURACY: {"cross_entropy": accuracy * each},
            TARGET_LARGEST_CLASS_FRACTION: {"cross_entropy": 0.26 * each},
            UPDATE_RATIO: {"fc.weight": 0.01 * each},
        }
    )


def test_fires_on_a_level_at_which_little_was_learned() -> None:
    for seed in range(20):
        (finding,) = found(loss_plateau, run_with(fell_to(1.34, seed=seed)))
        assert finding.confidence is Confidence.HINT
        assert finding.onset < 200
        assert {evidence.signal for evidence in finding.evidence} == {
            LOSS,
            TARGET_ENTROPY,
            UPDATE_RATIO,
            LR,
        }


@pytest.mark.parametrize("level", [0.01, 0.5, 1.1])
def test_a_converged_run_is_normal(level: float) -> None:
    said_of = said(loss_plateau, run_with(fell_to(level, noise=0.005 * level), accuracy=0.7))
    assert [verdict.exception for verdict in said_of] == ["no-damage"]


def test_a_loss_of_unknown_scale_is_never_a_finding() -> None:
    said_of = said(loss_plateau, run_of({LOSS: {"": fell_to(1.34)}}))
    assert [type(verdict) for verdict in said_of] == [NotExamined]


@pytest.mark.parametrize(
    "run",
    [
        run_with(fell_to(1.34), accuracy=0.6),  # the accuracy says otherwise
        run_with(np.linspace(3, 1.3, 400)),
        run_with(1.35 + 3 * np.arange(1, 401) ** -0.5),  # slow, not still
        run_with(np.full(400, 1.38) + 0.01 * np.random.default_rng(0).normal(size=400)),  # flat
        run_with(fell_to(1.34, noise=0.3)),  # noise hides what happens
    ],
)
def test_silent(run: Run) -> None:
    said_of = said(loss_plateau, run)
    assert said_of
    assert all(isinstance(verdict, Clear | Normal) for verdict in said_of)


def test_a_decayed_learning_rate_is_no_excuse() -> None:
    assert found(loss_plateau, run_with(fell_to(1.34), rate=np.geomspace(0.1, 1e-4, 400)))


def test_a_drop_after_the_plateau_ends_it() -> None:
    loss = fell_to(1.34)
    loss[-60:] -= np.linspace(0, 0.6, 60)
    assert not found(loss_plateau, run_with(loss))


@pytest.mark.parametrize(
    ("loss", "because"),
    [
        (fell_to(1.3, steps=99), "99 of the 100"),
        (np.full(300, np.nan), "0 of the 100"),
        (np.sin(np.arange(300)), "sign"),
    ],
)
def test_says_what_it_lacks(loss: np.ndarray, because: str) -> None:
    (verdict,) = said(loss_plateau, run_with(loss))
    assert isinstance(verdict, NotExamined)
    assert because in verdict.because
