import numpy as np
import pytest

from holter.diagnosis.rules.huge_updates import huge_updates
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined, Severity
from holter.record.signals import (
    ACTIVATION_DEAD_FRACTION,
    ACTIVATION_SATURATED_FRACTION,
    ACTIVATION_STD,
    CLIP_COEFFICIENT,
    GRAD_TOTAL_NORM,
    LOSS,
    LR,
    TARGET_ENTROPY,
    UPDATE_RATIO,
    WEIGHT_DECAY,
    WEIGHT_NORM,
    WEIGHT_TOTAL_NORM,
)
from layered import STEPS, broken, by_layer, falling, flat, layered, layers, rising
from synthetic import found, said, series

ADAM = np.r_[1 / np.arange(1, 40), np.full(STEPS - 39, 1e-3)]  # weights grow as they are replaced


def run(loss: np.ndarray, ratios: list, more: dict | None = None) -> Run:
    readings = {UPDATE_RATIO: by_layer(ratios), **(more or {})}
    return layered(loss, readings, layers(len(ratios)))


@pytest.mark.parametrize("loss", [flat(), rising(), broken()])
@pytest.mark.parametrize("ratio", [0.5, ADAM])
def test_large_updates_and_a_bad_loss(loss: np.ndarray, ratio: object) -> None:
    made = layered(loss, {UPDATE_RATIO: by_layer([ratio] * 3), LR: {"group": 0.5}}, layers(3))
    (finding,) = found(huge_updates, made)
    assert finding.confidence is Confidence.LIKELY
    assert finding.onset == 0
    assert "0.5" in finding.fix
    assert "exploding-gradients" in finding.explains


def test_a_loss_that_fell_a_little_makes_a_hint() -> None:
    (finding,) = found(huge_updates, run(falling(end=2.0), [ADAM] * 3))
    assert finding.confidence is Confidence.HINT


def test_a_loss_near_the_best_constant_prediction_makes_a_hint() -> None:
    entropy = {TARGET_ENTROPY: {"cross_entropy": 2.0}}
    (finding,) = found(huge_updates, run(falling(end=1.3), [ADAM] * 3, entropy))
    assert finding.confidence is Confidence.HINT
    assert not found(huge_updates, run(falling(end=1.3), [ADAM] * 3, entropy), max_loss=0.9)


def fell_until(step: int, *, end: float) -> np.ndarray:
    return np.where(np.arange(STEPS) < step, falling(end=end), np.nan)


def test_a_loss_that_fell_until_it_was_lost_is_an_exception() -> None:
    (note,) = said(huge_updates, run(fell_until(150, end=0.2), [ADAM] * 3))
    assert isinstance(note, Normal)
    assert note.exception == "learned-until-nonfinite"


@pytest.mark.parametrize("loss", [fell_until(150, end=2.0), fell_until(5, end=0.2), flat()])
def test_the_exception_needs_a_loss_that_fell(loss: np.ndarray) -> None:
    (finding,) = found(huge_updates, run(loss, [ADAM] * 3))
    assert finding.confidence is Confidence.LIKELY


def test_lost_within_three_steps() -> None:
    loss = np.array([2.3, 1e6, np.nan, np.nan])
    made = layered(loss, {UPDATE_RATIO: by_layer([series([3.0, 1e5], [0, 1])] * 2)}, layers(2))
    (finding,) = found(huge_updates, made)
    assert finding.onset == 0


@pytest.mark.parametrize(
    ("loss", "ratios"),
    [
        (flat(), [1e-3] * 3),
        (flat(), [np.r_[np.full(4, 0.9), np.full(STEPS - 4, 1e-3)]] * 3),  # a few first steps
        (flat(), [0.5, 1e-3, 1e-3]),  # one layer
        (broken(), [1e-3] * 3),
    ],
)
def test_silent(loss: np.ndarray, ratios: list) -> None:
    (verdict,) = said(huge_updates, run(loss, ratios))
    assert isinstance(verdict, Clear)


def test_vectors_do_not_count() -> None:
    readings = {UPDATE_RATIO: by_layer([1e-3] * 2) | by_layer([5.0] * 2, "bias")}
    assert not found(huge_updates, layered(flat(), readings, layers(2)))


def test_weights_that_begin_at_zero_do_not_count() -> None:
    born = np.r_[[0.0, np.inf], 1 / np.arange(1, STEPS - 1)]
    assert not found(huge_updates, run(flat(), [born, 1e-3, born]))
    (verdict,) = said(huge_updates, run(flat(), [born, born]))
    assert isinstance(verdict, NotExamined)


def test_weights_that_begin_small_have_to_grow() -> None:
    small = {WEIGHT_NORM: by_layer([0.2] * 2)}  # 0.006 of an element, in place of 0.18
    (verdict,) = said(huge_updates, run(flat(), [0.3] * 2, small))
    assert isinstance(verdict, NotExamined)
    assert found(huge_updates, run(flat(), [0.3] * 2, {WEIGHT_NORM: by_layer([5.0] * 2)}))


def test_what_came_of_it_cannot_be_seen_in_a_few_losses() -> None:
    (verdict,) = said(huge_updates, run(flat(15), [0.3] * 2))
    assert isinstance(verdict, NotExamined)


def test_weight_decay_is_not_the_learning_rate() -> None:
    decay = {WEIGHT_DECAY: {"group": 20.0}, LR: {"group": 0.01}}
    (verdict,) = said(huge_updates, run(flat(), [0.2] * 2, decay))
    assert isinstance(verdict, Clear)
    assert found(huge_updates, run(flat(), [0.9] * 2, decay))


def test_boundary() -> None:
    assert found(huge_updates, run(flat(), [0.11] * 2))
    assert not found(huge_updates, run(flat(), [0.09] * 2))
    assert found(huge_updates, run(flat(), [0.09] * 2), limit=0.05)


def test_competing_losses_make_a_hint() -> None:
    losses = {"a": flat(), "b": 2 * flat()}
    made = layered(flat(), {LOSS: losses, UPDATE_RATIO: by_layer([0.5])}, layers(1))
    (finding,) = found(huge_updates, made)
    assert finding.confidence is Confidence.HINT
    assert finding.severity is Severity.WARNING


@pytest.mark.parametrize(("last", "finds"), [(flat(), True), (falling(), False)])
def test_of_layers_that_are_trained_one_after_another_the_last_counts(
    last: np.ndarray, finds: bool
) -> None:
    stages = {"a": series(falling()[:100]), "b": series(last[:100], range(100, 200))}
    made = layered(flat(), {LOSS: stages, UPDATE_RATIO: by_layer([0.5])}, layers(1))
    assert bool(found(huge_updates, made)) is finds


@pytest.mark.parametrize(
    "signals",
    [
        {ACTIVATION_DEAD_FRACTION: {"relu": series([0.0, 1.0, 1.0], [3, 50, 90])}},
        {
            ACTIVATION_STD: {"0": 1.0, "tanh": 1.0, "1": 1.0},
            ACTIVATION_SATURATED_FRACTION: {"tanh": np.r_[[0.0], np.full(STEPS - 1, 0.9)]},
        },
    ],
)
def test_lost_units_are_damage_whatever_the_loss_says(signals: dict) -> None:
    competing = {LOSS: {"a": flat(), "b": 2 * flat()}}
    for more in (signals, signals | competing):
        (finding,) = found(huge_updates, run(falling(), [ADAM] * 2, more))
        assert finding.confidence is Confidence.LIKELY
    assert not found(huge_updates, run(falling(), [1e-3] * 2, signals))


def test_too_short() -> None:
    (verdict,) = said(huge_updates, run(flat(8), [0.5] * 2))
    assert isinstance(verdict, NotExamined)


def test_gradients_that_were_too_large_at_birth_are_no_consequence() -> None:
    loud = {GRAD_TOTAL_NORM: {"": 1e5}, WEIGHT_TOTAL_NORM: {"": 10.0}}
    (finding,) = found(huge_updates, run(flat(), [0.5] * 2, loud))
    assert "exploding-gradients" not in finding.explains


def test_no_damage() -> None:
    (note,) = said(huge_updates, run(falling(), [ADAM] * 3))
    assert isinstance(note, Normal)
    assert note.exception == "no-damage"


REPLACED = np.full(STEPS, 1e-3)
REPLACED[[2, 4]] = 19.0, 6.0


def sgd(ratios: object, more: dict | None = None) -> Run:
    return run(flat(), [ratios] * 3, {LR: {"group": 20.0}, **(more or {})})


def test_some_first_updates_that_replace_the_weights() -> None:
    (finding,) = found(huge_updates, sgd(REPLACED))
    assert finding.confidence is Confidence.LIKELY
    assert finding.onset == 2
    assert "600 %" in finding.summary
    assert "clip_grad_norm_" in finding.fix
    clipped = sgd(REPLACED, {CLIP_COEFFICIENT: {"": 0.1}})
    assert "clip_grad_norm_" not in found(huge_updates, clipped)[0].fix


@pytest.mark.parametrize(
    "ratios",
    [
        np.where(np.arange(STEPS) == 2, 19.0, 1e-3),  # one update alone
        np.where(np.isin(np.arange(STEPS), (2, 4)), 0.9, 1e-3),
        np.where(np.isin(np.arange(STEPS), (100, 150)), 19.0, 1e-3),  # not in the first steps
    ],
)
def test_few_or_smaller_first_updates_are_clear(ratios: np.ndarray) -> None:
    (verdict,) = said(huge_updates, sgd(ratios))
    assert isinstance(verdict, Clear)


def test_first_updates_that_replace_the_weights_without_damage() -> None:
    (note,) = said(huge_updates, run(falling(), [REPLACED] * 3))
    assert isinstance(note, Normal)
    assert note.exception == "no-damage"


def test_saturated_units_are_no_damage_where_the_data_is_fitted() -> None:
    signals = {
        ACTIVATION_STD: {"0": 1.0, "tanh": 1.0, "1": 1.0},
        ACTIVATION_SATURATED_FRACTION: {"tanh": np.r_[[0.0], np.full(STEPS - 1, 0.9)]},
        TARGET_ENTROPY: {"cross_entropy": 2.0},
    }
    assert found(huge_updates, run(falling(end=0.5), [ADAM] * 2, signals))
    assert not found(huge_updates, run(falling(end=0.05), [ADAM] * 2, signals))
