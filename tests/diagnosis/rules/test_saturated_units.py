import numpy as np
import pytest

from holter.diagnosis.rules.saturated_units import saturated_units
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined, Severity
from holter.record.signals import (
    ACTIVATION_MEAN,
    ACTIVATION_SATURATED_FRACTION,
    ACTIVATION_STD,
    GRAD_NORM,
    LOSS,
)
from layered import STEPS, by_layer, falling, flat, layered, layers
from synthetic import found, said

MODULES = ("0", "tanh", "1", "sigmoid", "2", "out")  # linear layers and what follows them


def run(loss: np.ndarray, shares: dict, more: dict | None = None) -> Run:
    readings = {
        ACTIVATION_STD: dict.fromkeys(MODULES, 1.0),
        ACTIVATION_SATURATED_FRACTION: shares,
        **(more or {}),
    }
    return layered(loss, readings, layers(3))


def test_saturated_from_the_first_step_and_a_bad_loss() -> None:
    (finding,) = found(saturated_units, run(flat(), {"tanh": 0.6, "sigmoid": 0.9}))
    assert finding.confidence is Confidence.LIKELY
    assert finding.evidence[0].owner == "sigmoid"
    assert "1 more" in finding.summary


def test_weak_gradients_before_it_are_shown() -> None:
    more = {GRAD_NORM: by_layer([1e-9, 1.0, 1.0])}
    (finding,) = found(saturated_units, run(flat(), {"tanh": 0.9}, more))
    assert finding.evidence[1].owner == "0.weight"


@pytest.mark.parametrize(
    ("loss", "shares"),
    [
        (flat(), {"tanh": 0.4}),
        (flat(), {"out": 1.0}),  # the answer itself
        (flat(), {"tanh": np.r_[np.full(50, 0.9), np.full(150, 0.1)]}),  # at first only
        (flat(), {"tanh": np.r_[np.full(100, 0.1), np.full(100, 0.9)]}),  # learned
    ],
)
def test_silent(loss: np.ndarray, shares: dict) -> None:
    (verdict,) = said(saturated_units, run(loss, shares))
    assert isinstance(verdict, Clear)


def test_a_softmax_inside_does_not_count() -> None:
    more = {ACTIVATION_MEAN: {"tanh": 0.1}}  # of ten classes, always
    assert not found(saturated_units, run(flat(), {"tanh": 0.9}, more))


def test_boundary_and_nan() -> None:
    share = np.full(STEPS, 0.5)
    share[7] = np.nan
    assert found(saturated_units, run(flat(), {"tanh": share}))
    assert not found(saturated_units, run(flat(), {"tanh": share}), share=0.6)


def test_too_short() -> None:
    (verdict,) = said(saturated_units, run(flat(4), {"tanh": 0.9}))
    assert isinstance(verdict, NotExamined)


def test_no_damage() -> None:
    (note,) = said(saturated_units, run(falling(), {"tanh": 0.8}))
    assert isinstance(note, Normal)
    assert note.exception == "no-damage"


def test_competing_losses_make_a_hint() -> None:
    competing = {LOSS: {"a": flat(), "b": 2 * flat()}}
    (finding,) = found(saturated_units, run(flat(), {"tanh": 0.8}, competing))
    assert finding.confidence is Confidence.HINT
    assert finding.severity is Severity.WARNING


def test_nearly_all_units_are_a_hint_even_if_the_loss_falls() -> None:
    (finding,) = found(saturated_units, run(falling(), {"tanh": 0.95}))
    assert finding.confidence is Confidence.HINT
