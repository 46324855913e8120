import numpy as np
import pytest

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.outcome import Outcome, OutcomeState, verdict_of
from holter.record.signals import LOSS, LR, TARGET_ENTROPY
from layered import broken, falling, flat, rising
from synthetic import run_of


def outcome(loss: np.ndarray, entropy: float | None = None) -> Outcome:
    signals = {LOSS: {"": loss}}
    if entropy is not None:
        signals[TARGET_ENTROPY] = {"cross_entropy": np.full(len(loss), entropy)}
    facts = Facts(run_of(signals))
    assert facts.outcome == verdict_of(facts)
    return verdict_of(facts)


@pytest.mark.parametrize(
    ("loss", "state"),
    [
        (flat(), OutcomeState.LEARNED_NOTHING),
        (rising(), OutcomeState.DIVERGED),
        (np.r_[falling(), rising(50)], OutcomeState.DIVERGED),
        (np.r_[falling(), falling()[::-1], flat()], OutcomeState.DIVERGED),  # back to its start
        (broken(), OutcomeState.BROKE),
        (np.r_[falling(), [np.inf]], OutcomeState.BROKE),
    ],
)
def test_bad(loss: np.ndarray, state: OutcomeState) -> None:
    result = outcome(loss)
    assert result.state is state
    assert result.bad
    assert result.finite is (state is not OutcomeState.BROKE)


@pytest.mark.parametrize(
    "loss",
    [
        falling(),
        falling(steps=25),
        np.r_[falling(), [9.0], falling(50, start=0.2)],  # a spike that recovered
        np.r_[falling(100), np.full(100, 0.2)],
        0.5 * falling() * np.exp(np.random.default_rng(2).normal(size=200)),  # tiny batches
        -5 + falling(),  # a density
    ],
)
def test_good(loss: np.ndarray) -> None:
    result = outcome(loss)
    assert result.state is OutcomeState.LEARNED
    assert not result.bad


def test_a_jump_that_comes_back_to_the_start_is_bad() -> None:
    loss = np.r_[[1.6], 5000 * np.exp(-np.arange(100) / 5), np.full(200, 1.59)]
    result = outcome(loss)
    assert result.state is OutcomeState.LEARNED_NOTHING
    assert result.fall < 0.01


def test_no_better_than_the_best_constant_prediction() -> None:
    loss = flat(level=1.6)
    loss[:20] = np.linspace(3, 1.6, 20)
    result = outcome(loss, entropy=1.609)
    assert result.state is OutcomeState.LEARNED_NOTHING
    assert result.at_chance
    assert result.constant == pytest.approx(1.609, rel=1e-3)


def test_a_loss_that_explodes_has_diverged_beside_a_known_baseline() -> None:
    result = outcome(rising(), entropy=2.3)
    assert result.state is OutcomeState.DIVERGED
    assert result.at_chance


def test_says_the_numbers() -> None:
    result = outcome(falling(), entropy=2.302)
    assert "2.3" in result.says
    assert "0.2" in result.says
    assert "best constant prediction 2.3" in result.says
    assert result.evidence.signal is LOSS
    assert result.evidence.steps == (0, 199)


@pytest.mark.parametrize(
    ("signals", "because"),
    [
        ({LR: {"group": np.ones(50)}}, "no loss"),
        ({LOSS: {"generator": falling(), "discriminator": falling()}}, "compete"),
        ({LOSS: {"": falling() - 1}}, "sign"),
        ({LOSS: {"": falling(10)}}, "10 of the 20"),
        ({LOSS: {"": flat(50)}, LR: {"group": np.linspace(0, 1, 50)}}, "warming up"),
    ],
)
def test_cannot_tell(signals: dict, because: str) -> None:
    facts = Facts(run_of(signals))
    assert facts.outcome is None
    result = verdict_of(facts)
    assert result.state is OutcomeState.UNKNOWN
    assert not result.bad
    assert because in result.says


def test_learning_rates_in_words() -> None:
    assert Facts(run_of({LOSS: {"": [1.0]}})).learning_rate == ""
    assert Facts(run_of({LR: {"a": [0.1, 0.1]}})).learning_rate == "0.1"
    assert Facts(run_of({LR: {"a": [0.0, 0.1], "b": [1.0, 1.0]}})).learning_rate == "0.1 to 1"
