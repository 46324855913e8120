import numpy as np
import pytest

from holter.diagnosis.rules.missing_warmup import missing_warmup
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.meta import Meta, OptimizerSummary, ParameterSummary
from holter.record.signals import (
    GRAD_NORM,
    LOSS,
    LR,
    NORMALISATION_INPUT_RMS,
    TARGET_ENTROPY,
    UPDATE_RATIO,
)
from synthetic import found, run_of, said

STEPS = 150
AT = np.arange(STEPS)
RNG = np.random.default_rng(0)
NOISE = 0.02 * RNG.standard_normal(STEPS)
PARKED = 2.9 + 1.6 * 0.7**AT + NOISE
SHAKEN = np.where(AT < 10, 0.05, 1e-3)
LOST = np.where(AT < 10, 0.5, 1e-3)  # gradient norms of the lower layers


def run_with(
    loss: np.ndarray = PARKED,
    rate: np.ndarray | float = 1e-3,
    update: np.ndarray = SHAKEN,
    *,
    optimizer: str = "Adam",
    parameter: str = "layers.0.self_attn.in_proj_weight",
    entropy: float | None = 2.9,
    gradient: np.ndarray = LOST,
) -> Run:
    steps = len(loss)
    names = [parameter, *(f"layers.{number}.linear.weight" for number in range(5))]
    upper = np.ones(STEPS)
    gradients = [gradient, gradient, gradient, upper, upper, upper]
    signals = {
        LOSS: {"": loss},
        LR: {"group 0": np.broadcast_to(rate, STEPS)[:steps]},
        UPDATE_RATIO: {parameter: update[:steps]},
        GRAD_NORM: {name: norm[:steps] for name, norm in zip(names, gradients, strict=True)},
        NORMALISATION_INPUT_RMS: {"layers.0.norm1": [1.4] * steps},
    }
    if entropy is not None:
        signals[TARGET_ENTROPY] = {"cross_entropy": [entropy] * steps}
    meta = Meta(
        optimizers=(OptimizerSummary("", optimizer),),
        parameters={name: ParameterSummary((4, 4), "float32") for name in names},
    )
    return run_of(signals, meta=meta)


def test_parked_at_the_entropy_of_the_labels() -> None:
    (finding,) = found(missing_warmup, run_with())
    assert finding.confidence is Confidence.LIKELY
    assert "2.9" in finding.summary


def test_a_loss_that_rose() -> None:
    assert found(missing_warmup, run_with(loss=3 + AT / STEPS, entropy=None))


@pytest.mark.parametrize(
    "run",
    [
        run_with(rate=1e-3 * np.minimum(1, AT / 50)),  # there is a warm-up
        run_with(update=np.full(STEPS, 1e-3)),  # calm from the start
        run_with(update=np.full(STEPS, 0.05)),  # never calm: a rate that is too high
        run_with(rate=1e-3 * 0.97**AT, update=0.05 * 0.97**AT),  # calm because the rate decays
    ],
)
def test_clear(run: Run) -> None:
    (verdict,) = said(missing_warmup, run)
    assert isinstance(verdict, Clear)


@pytest.mark.parametrize(
    ("loss", "entropy"),
    [
        (4.5 * 0.98**AT, 2.9),
        (3.2 - 0.4 * AT / STEPS + NOISE, 2.9),  # falls through the level
        (3.0 + 1.0 * 0.9**AT, None),  # ends below its start
    ],
)
def test_harmless(loss: np.ndarray, entropy: float | None) -> None:
    (verdict,) = said(missing_warmup, run_with(loss=loss, entropy=entropy))
    assert isinstance(verdict, Normal)
    assert verdict.exception == "no-damage"


@pytest.mark.parametrize("gradient", [np.full(STEPS, 0.5), 0.5 * np.where(AT < 10, 1, 0.1)])
def test_labels_that_cannot_be_learned_leave_the_gradients(gradient: np.ndarray) -> None:
    (verdict,) = said(missing_warmup, run_with(gradient=gradient))
    assert isinstance(verdict, Clear)


def test_options() -> None:
    assert not found(missing_warmup, run_with(), max_gradient=1e-3)
    assert not found(missing_warmup, run_with(), large_update=0.1)
    assert not found(missing_warmup, run_with(), min_ratio=60.0)


@pytest.mark.parametrize(
    "run",
    [
        run_with(optimizer="SGD"),
        run_with(parameter="fc.weight"),
        run_with(loss=PARKED[:59]),
        run_with(loss=np.where(AT % 2, -1.0, 1.0)),
        run_with(loss=np.full(STEPS, np.nan)),
    ],
)
def test_not_examined(run: Run) -> None:
    (verdict,) = said(missing_warmup, run)
    assert isinstance(verdict, NotExamined)
