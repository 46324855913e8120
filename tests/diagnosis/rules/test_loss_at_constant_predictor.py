import numpy as np
import pytest

from holter.diagnosis.causes import explained_by
from holter.diagnosis.rules.flat_loss import flat_loss
from holter.diagnosis.rules.loss_at_constant_predictor import loss_at_constant_predictor
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.signals import (
    ACCURACY,
    BACKWARD_CALLS,
    LABEL_FIT,
    LABEL_HELD_OUT,
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
        assert {evidence.signal for evidence in finding.evidence} >= {
            TARGET_ENTROPY,
            OUTPUT_SPREAD,
            LOSS,
        }


def spreads(*parts: float, steps: int = 100) -> dict[str, dict]:
    at = np.linspace(0, steps, len(parts))
    values = np.interp(np.arange(steps), at, parts)
    return {"signals": {OUTPUT_SPREAD: {"cross_entropy": values}}}


def test_a_young_run_is_a_hint() -> None:
    (finding,) = found(loss_at_constant_predictor, classifier(stuck(steps=150)))
    assert finding.confidence is Confidence.HINT


@pytest.mark.parametrize(
    ("parts", "applies"),
    [
        ((0.01, 0.01, 0.01, 0.05), True),
        ((0.05, 0.05, 0.05, 0.05), False),  # they do not grow
        ((1e-4, 1e-4, 1e-4, 5e-4), False),  # they grow and still vary by almost nothing
    ],
)
def test_predictions_that_differ_more_and_more_begin_to_learn(
    parts: tuple[float, ...], applies: bool
) -> None:
    (verdict,) = said(loss_at_constant_predictor, classifier(stuck(steps=100), **spreads(*parts)))
    assert isinstance(verdict, Normal) is applies
    if isinstance(verdict, Normal):
        assert verdict.exception == "begins-to-learn"


@pytest.mark.parametrize("spread", [0.01, 1.0])
def test_a_loss_that_ends_above_the_best_constant_prediction_is_found(spread: float) -> None:
    for seed in SEEDS:
        run = classifier(stuck(seed, steps=400) + 0.1, spread=spread)
        (finding,) = found(loss_at_constant_predictor, run)
        assert finding.confidence is (Confidence.LIKELY if spread < 0.1 else Confidence.HINT)
        assert "2.4" in finding.summary
        assert "2.3" in finding.summary


def test_a_transient_in_the_first_steps_is_no_learning() -> None:
    loss = stuck(steps=400)
    loss[:3] = 50.0, 0.5, 10.0
    (finding,) = found(loss_at_constant_predictor, classifier(loss))
    assert finding.confidence is Confidence.LIKELY


def test_a_squared_error_above_the_variance_is_found_though_predictions_vary() -> None:
    rng = np.random.default_rng(0)
    run = run_of(
        {
            LOSS: {"": 4.5 + 0.1 * rng.normal(size=250)},
            TARGET_STD: {"mse_loss": np.full(250, 2.0)},
            OUTPUT_SPREAD: {"mse_loss": np.full(250, 1.0)},
        }
    )
    (finding,) = found(loss_at_constant_predictor, run)
    assert finding.confidence is Confidence.HINT


def test_a_setup_that_learns_in_the_lab_is_evidence_and_no_excuse() -> None:
    rng = np.random.default_rng(0)
    trials = {
        name: level + 0.01 * rng.normal(size=20) for name, level in (("true", 1), ("shuffled 1", 2))
    }
    run = classifier(stuck(), signals={LABEL_FIT: trials, LABEL_HELD_OUT: trials})
    (finding,) = found(loss_at_constant_predictor, run)
    assert LABEL_HELD_OUT in {evidence.signal for evidence in finding.evidence}


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
def test_a_loss_of_several_terms_has_no_best_constant_prediction(signals: dict) -> None:
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
        (stuck() + 0.3, {"accuracy": 0.5}),  # too sure, but right more often than chance
        (5 * np.exp(-np.arange(300) / 300) + 1.5, {}),  # above, and still falling
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
        (classifier(stuck(), signals={LOSS: {"g": stuck(), "d": 2 * stuck()}}), "compete"),
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
