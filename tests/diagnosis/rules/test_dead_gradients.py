import numpy as np
import pytest

from holter.diagnosis.rules.dead_gradients import dead_gradients
from holter.record import Run
from holter.record.findings import Clear, Confidence, NotExamined
from holter.record.signals import AMP_SKIPPED, GRAD_NORM, PARAMETER_OPTIMIZER, PARAMETER_TRAINABLE
from layered import by_layer, falling, flat, layered, layers
from synthetic import found, said, series


def run(loss: np.ndarray, norms: list, more: dict | None = None) -> Run:
    return layered(loss, {GRAD_NORM: by_layer(norms), **(more or {})}, layers(len(norms)))


def test_zero_for_long_and_a_bad_loss() -> None:
    (finding,) = found(dead_gradients, run(flat(), [0.0, 0.0, 1.0]))
    assert finding.confidence is Confidence.LIKELY
    assert "2 of 3" in finding.summary
    assert "0.*, 1.*" in finding.summary


def test_a_loss_that_falls_makes_it_a_hint() -> None:
    (finding,) = found(dead_gradients, run(falling(), [0.0, 1.0]))
    assert finding.confidence is Confidence.HINT


@pytest.mark.parametrize(
    "norms",
    [
        [1.0, 1.0],
        [np.r_[np.zeros(90), np.ones(110)], 1.0],  # begins at zero behind another that does
        [np.r_[np.zeros(199), [1e-9]], 1.0],  # once
        [0.0, 0.0],  # all of them: another rule's
    ],
)
def test_silent(norms: list) -> None:
    (verdict,) = said(dead_gradients, run(flat(), norms))
    assert isinstance(verdict, Clear)


def test_a_reading_that_is_not_finite_is_no_zero() -> None:
    assert not found(dead_gradients, run(flat(), [np.nan, 1.0]))


def test_vectors_do_not_count() -> None:
    norms = {GRAD_NORM: by_layer([1.0, 1.0]) | by_layer([1.0, 0.0], "bias")}
    assert not found(dead_gradients, layered(flat(), norms, layers(2)))


def test_all_weights_may_be_dead_if_a_vector_is_not() -> None:
    norms = {GRAD_NORM: by_layer([0.0, 0.0]) | by_layer([0.0, 1.0], "bias")}
    assert found(dead_gradients, layered(flat(), norms, layers(2)))


def test_frozen_foreign_and_rarely_read_parameters_do_not_count() -> None:
    facts = {
        PARAMETER_OPTIMIZER: by_layer([0, -1, 0, 0]),
        PARAMETER_TRAINABLE: by_layer([0, 1, 1, 1]),
    }
    rarely = series([0.0] * 5, range(150, 155))
    assert not found(dead_gradients, run(flat(), [0.0, 0.0, 1.0, rarely], facts))


def test_skipped_steps_do_not_count() -> None:
    skipped = {AMP_SKIPPED: {"": np.r_[np.zeros(20), np.ones(180)]}}
    (verdict,) = said(dead_gradients, run(flat(), [0.0, 1.0], skipped))
    assert isinstance(verdict, NotExamined)


def test_boundary() -> None:
    assert found(dead_gradients, run(flat(40), [0.0, 1.0]))
    (verdict,) = said(dead_gradients, run(flat(38), [0.0, 1.0]))
    assert isinstance(verdict, NotExamined)
