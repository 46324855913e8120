import numpy as np
import pytest

from holter.diagnosis.rule import NO_DAMAGE
from holter.diagnosis.rules.summed_loss import summed_loss
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.meta import Meta, OptimizerSummary
from holter.record.signals import LOSS_SUMMED, TARGET_COUNT, UPDATE_RATIO
from layered import STEPS, broken, falling, flat, layered, rising
from synthetic import found, run_of, said

SGD = Meta(optimizers=(OptimizerSummary("", "SGD"),))
ADAM = Meta(optimizers=(OptimizerSummary("", "Adam"),))


def given(
    loss: np.ndarray,
    *,
    summed: float = 1.0,
    update: float | np.ndarray = 0.02,
    meta: Meta | None = None,
) -> Run:
    readings = {
        LOSS_SUMMED: {"mse_loss": summed},
        TARGET_COUNT: {"mse_loss": 64.0},
        UPDATE_RATIO: {"0.weight": update},
    }
    return layered(loss, readings, meta or SGD)


@pytest.mark.parametrize("loss", [broken(), rising(), flat()])
def test_a_sum_with_a_rate_for_a_mean(loss: np.ndarray) -> None:
    (finding,) = found(summed_loss, given(loss))
    assert finding.confidence is Confidence.LIKELY
    assert "64 times" in finding.summary


def test_first_updates_are_far_too_large() -> None:
    leaping = np.where(np.arange(STEPS) < 3, 0.5, 0.02)
    (finding,) = found(summed_loss, given(falling(), update=leaping))
    assert "0.5" in finding.summary


def test_the_loss_rises_initially() -> None:
    loss = np.concatenate([[100.0], falling(STEPS - 1, start=400, end=20)])
    (finding,) = found(summed_loss, given(loss))
    assert "from 100 to 4" in finding.summary


def test_sums_over_a_varying_number_of_targets() -> None:
    count = np.where(np.arange(STEPS) % 3, 64, 200)
    readings = {LOSS_SUMMED: {"mse_loss": 1.0}, TARGET_COUNT: {"mse_loss": count}}
    assert not found(summed_loss, layered(falling() * count, readings, SGD))


@pytest.mark.parametrize(
    "run",
    [
        given(flat(), update=1e-4),  # small steps: another cause
        given(flat(), summed=0.0),
    ],
)
def test_silent(run: Run) -> None:
    (verdict,) = said(summed_loss, run)
    assert isinstance(verdict, Clear)


@pytest.mark.parametrize(
    ("run", "exception"),
    [(given(falling()), NO_DAMAGE), (given(flat(), meta=ADAM), "rescaling-optimizer")],
)
def test_harmless(run: Run, exception: str) -> None:
    (note,) = said(summed_loss, run)
    assert isinstance(note, Normal)
    assert note.exception == exception


def test_unknown_outcome() -> None:
    (verdict,) = said(summed_loss, given(np.array([1.0, -1.0] * 50)))
    assert isinstance(verdict, NotExamined)


def test_too_short() -> None:
    (verdict,) = said(summed_loss, run_of({LOSS_SUMMED: {"mse_loss": [1.0] * 4}}, meta=SGD))
    assert isinstance(verdict, NotExamined)
