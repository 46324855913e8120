import numpy as np
import pytest

from holter.diagnosis.facts import Facts
from holter.record.signals import LOSS, LR, TARGET_ENTROPY
from layered import broken, falling, flat, rising
from synthetic import run_of


@pytest.mark.parametrize("loss", [flat(), rising(), broken(), np.r_[falling(), rising(50)]])
def test_bad(loss: np.ndarray) -> None:
    result = Facts(run_of({LOSS: {"": loss}})).outcome
    assert result is not None
    assert result.bad


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
    result = Facts(run_of({LOSS: {"": loss}})).outcome
    assert result is not None
    assert not result.bad


def test_a_jump_that_comes_back_to_the_start_is_bad() -> None:
    loss = np.r_[[1.6], 5000 * np.exp(-np.arange(100) / 5), np.full(200, 1.59)]
    result = Facts(run_of({LOSS: {"": loss}})).outcome
    assert result is not None
    assert result.bad
    assert result.fall < 0.01


def test_no_better_than_a_constant_answer() -> None:
    loss = flat(level=1.6)
    loss[:20] = np.linspace(3, 1.6, 20)
    run = run_of({LOSS: {"": loss}, TARGET_ENTROPY: {"cross_entropy": np.full(200, 1.609)}})
    result = Facts(run).outcome
    assert result is not None
    assert result.at_chance


@pytest.mark.parametrize(
    "signals",
    [
        {LOSS: {"generator": falling(), "discriminator": falling()}},
        {LOSS: {"": falling() - 1}},  # changes its sign
        {LOSS: {"": falling(10)}},
        {LOSS: {"": flat(50)}, LR: {"group": np.linspace(0, 1, 50)}},  # still warming up
    ],
)
def test_cannot_tell(signals: dict) -> None:
    assert Facts(run_of(signals)).outcome is None


def test_learning_rates_in_words() -> None:
    assert Facts(run_of({LOSS: {"": [1.0]}})).learning_rate == ""
    assert Facts(run_of({LR: {"a": [0.1, 0.1]}})).learning_rate == "0.1"
    assert Facts(run_of({LR: {"a": [0.0, 0.1], "b": [1.0, 1.0]}})).learning_rate == "0.1 to 1"
