from math import sqrt

import numpy as np
import pytest

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.gradient_scale import LARGE_SCALE, exploded_later, large_at_start, rise
from holter.diagnosis.rules.exploding_gradients import exploding_gradients
from holter.record import Run
from holter.record.findings import Confidence, Normal
from holter.record.meta import Meta, ParameterSummary
from holter.record.signals import (
    GRAD_TOTAL_NORM,
    LOSS,
    TARGET_ENTROPY,
    UPDATE_RATIO,
    WEIGHT_TOTAL_NORM,
)
from layered import by_layer, falling, flat, layered, layers
from synthetic import found, said, series

SIZES = [10_000, 100_000_000, 70_000_000_000]  # parameters
RMS = 0.02  # of the weights, whatever the size


def model(parameters: int, norm: float, loss: np.ndarray, more: dict | None = None) -> Run:
    """A model of equal per-weight statistics: its weight norm grows with its size."""
    readings = {
        GRAD_TOTAL_NORM: {"": norm},
        WEIGHT_TOTAL_NORM: {"": RMS * sqrt(parameters)},
        **(more or {}),
    }
    return layered(
        loss, readings, Meta(parameters={"0.weight": ParameterSummary((parameters,), "float32")})
    )


@pytest.mark.parametrize("parameters", SIZES)
def test_the_scale_does_not_depend_on_the_number_of_parameters(parameters: int) -> None:
    scale = Facts(model(parameters, 4.7, flat(level=2.3))).gradient_scale
    assert scale is not None
    assert scale.over_loss == pytest.approx(4.7 * RMS / 2.3, rel=0.05)
    assert scale.over_baseline == scale.over_loss  # without a known baseline


@pytest.mark.parametrize("parameters", SIZES)
def test_an_ordinary_norm_is_never_an_explosion(parameters: int) -> None:
    for norm in (0.1, 4.7, 100.0):
        assert not large_at_start(Facts(model(parameters, norm, flat())))
        assert not found(exploding_gradients, model(parameters, norm, flat()))


@pytest.mark.parametrize("parameters", SIZES)
def test_an_explosion_is_found_at_every_size(parameters: int) -> None:
    (finding,) = found(exploding_gradients, model(parameters, 1e5, flat()))
    assert finding.confidence is Confidence.LIKELY
    assert finding.onset == 0
    (note,) = said(exploding_gradients, model(parameters, 1e5, falling()))
    assert isinstance(note, Normal)
    assert note.exception == "no-damage"


def test_the_limit() -> None:
    norm = LARGE_SCALE * 2.3 / RMS
    assert not large_at_start(Facts(model(10_000, 0.9 * norm, flat(level=2.3))))
    assert large_at_start(Facts(model(10_000, 1.1 * norm, flat(level=2.3))))


def test_a_known_baseline_is_the_unit() -> None:
    entropy = {TARGET_ENTROPY: {"cross_entropy": 0.5}}
    scale = Facts(model(10_000, 4.7, flat(level=50), entropy)).gradient_scale
    assert scale is not None
    assert scale.over_baseline == pytest.approx(100 * scale.over_loss, rel=0.05)


def test_a_loss_that_changes_its_sign_is_no_unit() -> None:
    assert Facts(model(10_000, 4.7, flat() - 2.3)).gradient_scale is None


@pytest.mark.parametrize(
    "more",
    [
        {GRAD_TOTAL_NORM: {"a": 1.0, "b": 1.0}},
        {GRAD_TOTAL_NORM: {"": np.nan}},
        {LOSS: {"": np.zeros(200)}},
    ],
)
def test_unknown(more: dict) -> None:
    assert Facts(model(10_000, 4.7, flat(), more)).gradient_scale is None


def test_unknown_without_shapes() -> None:
    readings = {GRAD_TOTAL_NORM: {"": 1.0}, WEIGHT_TOTAL_NORM: {"": 1.0}}
    assert Facts(layered(flat(), readings, {})).gradient_scale is None


@pytest.mark.parametrize(
    ("norm", "index"),
    [
        ([1.0] * 50 + [200.0] * 50, 50),
        ([1.0] * 50 + [np.inf] * 50, 50),
        ([1.0] * 50 + [50.0] * 50, None),
        ([1.0] * 50 + [200.0] * 40 + [1.0] * 10, None),
        ([np.nan] * 100, None),
        ([0.0] * 100, None),
    ],
)
def test_rise(norm: list[float], index: int | None) -> None:
    assert rise(series(norm)) == index


def test_exploded_later() -> None:
    norm = np.r_[np.ones(100), np.full(100, 1e4)]
    calm, wild = (
        layered(
            flat(), {GRAD_TOTAL_NORM: {"": norm}, UPDATE_RATIO: by_layer([update] * 2)}, layers(2)
        )
        for update in (1e-3, 0.5)
    )
    assert exploded_later(Facts(calm), max_update=0.03)
    assert not exploded_later(Facts(wild), max_update=0.03)
