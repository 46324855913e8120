import numpy as np
import pytest

from holter.diagnosis.causes import explained_by
from holter.diagnosis.rules.flat_loss import flat_loss
from holter.diagnosis.rules.loss_at_constant_predictor import loss_at_constant_predictor
from holter.record import Run
from holter.record.findings import Clear, Confidence, NotExamined
from holter.record.signals import (
    ACCURACY,
    BACKWARD_CALLS,
    LOSS,
    LOSS_ROOT_SHARE,
    LOSS_SUMMED,
    LR,
    OUTPUT_SPREAD,
    TARGET_CLASSES,
    TARGET_ENTROPY,
    TARGET_LARGEST_CLASS_FRACTION,
    TARGET_STD,
)
from synthetic import found, run_of, said

ENTROPY = float(np.log(10))
SEEDS = range(20)


def classifier(
    loss: np.ndarray,
    *,
    spread: float = 0.01,
    accuracy: float = 0.1,
    prior: float = 0.11,
    function: str = "cross_entropy",
    **more: object,
) -> Run:
    steps = len(loss)
    rng = np.random.default_rng(1)
    right = np.clip(accuracy + 0.03 * rng.normal(size=steps), 0, 1)
    signals = {
        LOSS: {"": loss},
        TARGET_ENTROPY: {function: np.full(steps, ENTROPY)},
        OUTPUT_SPREAD: {function: np.full(steps, spread)},
        ACCURACY: {function: right},
        TARGET_LARGEST_CLASS_FRACTION: {function: np.full(steps, prior)},
        TARGET_CLASSES: {function: np.full(steps, 10.0)},
    }
    return run_of({**signals, **more.get("signals", {})})


def stuck(seed: int = 0, steps: int = 200, noise: float = 0.03) -> np.ndarray:
    rng = np.random.default_rng(seed)
    start = np.exp(-np.arange(steps) / 4)
    return ENTROPY + start + noise * rng.normal(size=steps)


def test_fires_where_loss_spread_and_accuracy_agree() -> None:
    for seed in SEEDS:
        (finding,) = found(loss_at_constant_predictor, classifier(stuck(seed, steps=400)))
        assert finding.confidence is Confidence.LIKELY
        assert finding.onset < 80
        assert {each.signal for each in finding.evidence} >= {TARGET_ENTROPY, OUTPUT_SPREAD, LOSS}


def spreads(*parts: float, steps: int = 100) -> dict[str, dict]:
    at = np.linspace(0, steps, len(parts))
    values = np.interp(np.arange(steps), at, parts)
    return {"signals": {OUTPUT_SPREAD: {"cross_entropy": values}}}


def test_a_young_run_is_a_hint() -> None:
    (finding,) = found(loss_at_constant_predictor, classifier(stuck(steps=150)))
    assert finding.confidence is Confidence.HINT


def test_predictions_that_begin_to_differ_are_a_model_that_begins_to_learn() -> None:
    run = classifier(stuck(steps=100), **spreads(0.01, 0.01, 0.01, 0.05))
    (verdict,) = said(loss_at_constant_predictor, run)
    assert isinstance(verdict, Clear)


def test_leads_over_flat_loss() -> None:
    run = classifier(ENTROPY + 0.003 * np.random.default_rng(0).normal(size=200))
    (finding,), (flat,) = found(loss_at_constant_predictor, run), found(flat_loss, run)
    assert "flat-loss" in explained_by(finding.rule)
    first = finding.onset, finding.evidence[0].signal.phase
    assert first < (flat.onset, flat.evidence[0].signal.phase)


def test_fires_on_regression_at_the_variance() -> None:
    rng = np.random.default_rng(0)
    run = run_of(
        {
            LOSS: {"": 4 + 0.1 * rng.normal(size=250)},
            TARGET_STD: {"mse_loss": np.full(250, 2.0)},
            OUTPUT_SPREAD: {"mse_loss": np.full(250, 0.02)},
        }
    )
    (finding,) = found(loss_at_constant_predictor, run)
    assert finding.confidence is Confidence.LIKELY


def test_predictions_that_vary_at_chance_are_a_hint_only_among_like_classes() -> None:
    (finding,) = found(loss_at_constant_predictor, classifier(stuck(), spread=1.0))
    assert finding.confidence is Confidence.HINT
    rare = classifier(stuck(), spread=1.0, prior=0.97, accuracy=0.97)
    assert not found(loss_at_constant_predictor, rare)


@pytest.mark.parametrize(
    "signals",
    [
        {LOSS_SUMMED: {"cross_entropy": np.zeros(300)}},  # several means before a backward
        {LOSS_ROOT_SHARE: {"": np.geomspace(1, 5, 300)}},  # a further term
        {LOSS_ROOT_SHARE: {"": np.tile([-1.0, 2.0, -3.0], 100)}},
    ],
)
def test_a_loss_of_several_terms_has_no_constant_answer(signals: dict) -> None:
    (verdict,) = said(loss_at_constant_predictor, classifier(stuck(steps=300), signals=signals))
    assert isinstance(verdict, NotExamined)


def test_sees_through_accumulation() -> None:
    steps = np.ones(200)
    undivided = {LOSS_ROOT_SHARE: {"": steps}, BACKWARD_CALLS: {"": 4 * steps}}
    assert found(loss_at_constant_predictor, classifier(4 * stuck(), signals=undivided))
    divided = {LOSS_ROOT_SHARE: {"": steps / 4}, BACKWARD_CALLS: {"": 4 * steps}}
    assert found(loss_at_constant_predictor, classifier(stuck(), signals=divided))


@pytest.mark.parametrize(
    ("loss", "more"),
    [
        (stuck() * 0.9, {}),  # has learned
        (stuck() + 0.3, {}),
        (stuck(), {"accuracy": 0.3, "spread": 1.0}),  # right more often than chance
        (np.where(np.arange(300) < 270, ENTROPY, 1.9), {}),  # a plateau, and then the drop
        (np.linspace(2.34, 2.26, 300), {"spread": 1.0}),  # passes by
        (stuck() * 0.995, {"spread": 0.5, "prior": 0.9, "accuracy": 0.9}),  # a hard, rare event
    ],
)
def test_silent_on_runs_that_learn(loss: np.ndarray, more: dict[str, float]) -> None:
    (verdict,) = said(loss_at_constant_predictor, classifier(loss, **more))
    assert isinstance(verdict, Clear)
    assert verdict.because


@pytest.mark.parametrize(
    ("run", "because"),
    [
        (classifier(stuck(steps=40)), "40 of the 50"),
        (classifier(np.full(100, np.nan)), "0 of the 50"),
        (classifier(stuck(noise=1.5)), "too noisy"),
        (classifier(stuck(), signals={LOSS_SUMMED: {"cross_entropy": np.ones(200)}}), "sums"),
        (classifier(stuck(), signals={LR: {"group 0": np.linspace(0, 1, 200)}}), "warming up"),
        (classifier(stuck(), signals={OUTPUT_SPREAD: {"l1_loss": np.ones(200)}}), "single"),
        (classifier(stuck(), function="kl_div"), "unknown"),
        (classifier(stuck(), signals={LOSS: {"g": stuck(), "d": stuck()}}), "compete"),
    ],
)
def test_says_what_it_lacks(run: Run, because: str) -> None:
    (verdict,) = said(loss_at_constant_predictor, run)
    assert isinstance(verdict, NotExamined)
    assert because in verdict.because


def test_a_nan_and_a_wild_loss_do_not_blind_it() -> None:
    loss = stuck()
    loss[[50, 180]] = np.nan, 1e5
    assert found(loss_at_constant_predictor, classifier(loss))
