import numpy as np
import pytest

from holter.diagnosis.rule import NO_DAMAGE
from holter.diagnosis.rules.constant_clipping import constant_clipping
from holter.record import Run
from holter.record.findings import Clear, Confidence, Finding, Normal, NotExamined
from holter.record.meta import Meta, OptimizerSummary
from holter.record.signals import (
    CLIP_COEFFICIENT,
    CLIP_LIMIT,
    CLIP_NORM,
    LOSS,
    LOSS_ROOT_SHARE,
    LR,
    TARGET_ENTROPY,
    UPDATE_RATIO,
)
from synthetic import found, run_of, said

STEPS = 200
RNG = np.random.default_rng(0)
NOISE = 1 + 0.05 * RNG.standard_normal(STEPS)
FLAT = 2.3 * np.linspace(1, 0.97, STEPS) * NOISE
FALLING = 2.3 * np.linspace(1, 0.3, STEPS) * NOISE


def clipped(
    *,
    norm: float = 10.0,
    limit: float = 0.01,
    loss: np.ndarray = FLAT,
    optimizer: str = "SGD",
    update: float | None = 1e-6,
    constant: float | None = None,
) -> Run:
    norms = norm * NOISE
    signals = {
        CLIP_NORM: {"": norms},
        CLIP_LIMIT: {"": [limit] * STEPS},
        CLIP_COEFFICIENT: {"": np.minimum(1, limit / norms)},
        LOSS: {"": loss},
        LR: {"group 0": [0.1] * STEPS},
    }
    if update is not None:
        signals[UPDATE_RATIO] = {"weight": [update] * STEPS}
    if constant is not None:
        signals[TARGET_ENTROPY] = {"cross_entropy": [constant] * STEPS}
        signals[LOSS_ROOT_SHARE] = {"": [1.0] * STEPS}
    return run_of(signals, meta=Meta(optimizers=(OptimizerSummary("", optimizer),)))


def test_a_limit_that_leaves_sgd_nothing() -> None:
    (finding,) = found(constant_clipping, clipped())
    assert finding.confidence is Confidence.LIKELY
    assert "0.001" in finding.summary
    assert finding.onset == 0


def test_a_loss_that_falls_from_far_above_the_best_constant_prediction_is_no_success() -> None:
    falls = 1.6 * np.linspace(1, 0.75, STEPS) * (1 + 0.01 * RNG.standard_normal(STEPS))
    assert not found(constant_clipping, clipped(loss=falls))
    assert found(constant_clipping, clipped(loss=falls, constant=0.76))


def test_without_updates_it_is_a_hint() -> None:
    (finding,) = found(constant_clipping, clipped(update=None))
    assert finding.confidence is Confidence.HINT


@pytest.mark.parametrize(
    "run",
    [
        clipped(optimizer="AdamW"),  # divides the coefficient out
        clipped(limit=1.0),  # 0.1 is left
    ],
)
def test_clipping_at_every_step_is_only_noted(run: Run) -> None:
    note, clear = said(constant_clipping, run)
    assert isinstance(note, Normal)
    assert "all of the last" in note.summary
    assert isinstance(clear, Clear)


@pytest.mark.parametrize(
    "run",
    [
        clipped(loss=FALLING),  # a recipe that works
        clipped(update=1e-2),  # with a learning rate made for it
    ],
)
def test_a_recipe_that_works_is_harmless(run: Run) -> None:
    (note,) = said(constant_clipping, run)
    assert isinstance(note, Normal)
    assert note.exception == NO_DAMAGE


def test_effective_learning_rate() -> None:
    note, _ = said(constant_clipping, clipped(limit=1.0, loss=FALLING))
    assert "0.01 instead of 0.1" in note.summary


def test_one_norm_far_above_the_limit_is_normal() -> None:
    norms = np.full(STEPS, 0.5)
    norms[120] = 11_140
    run = run_of(
        {
            CLIP_NORM: {"": norms},
            CLIP_LIMIT: {"": [1.0] * STEPS},
            CLIP_COEFFICIENT: {"": np.minimum(1, 1 / norms)},
        }
    )
    note, clear = said(constant_clipping, run)
    assert isinstance(note, Normal)
    assert "11,140" in note.summary
    assert "step 120" in note.summary
    assert isinstance(clear, Clear)


def test_norms_that_are_not_finite_are_left_out() -> None:
    run = clipped()
    factors = np.minimum(1, 0.01 / (10.0 * NOISE))
    factors[::7] = np.nan
    norms = 10.0 * NOISE
    norms[::7] = np.inf
    signals = {
        CLIP_NORM: {"": norms},
        CLIP_LIMIT: {"": [0.01] * STEPS},
        CLIP_COEFFICIENT: {"": factors},
        LOSS: {"": FLAT},
        UPDATE_RATIO: {"weight": [1e-6] * STEPS},
    }
    (verdict,) = said(constant_clipping, run_of(signals, meta=run.meta))
    assert isinstance(verdict, Finding)
    assert np.isfinite(float(verdict.fix.split("about ")[1].split(",")[0]))


def test_too_short() -> None:
    run = run_of(
        {CLIP_NORM: {"": [1.0]}, CLIP_LIMIT: {"": [1.0]}, CLIP_COEFFICIENT: {"": [1.0] * 49}}
    )
    (verdict,) = said(constant_clipping, run)
    assert isinstance(verdict, NotExamined)
