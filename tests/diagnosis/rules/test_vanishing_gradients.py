import numpy as np
import pytest

from holter.diagnosis.rules.vanishing_gradients import vanishing_gradients
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined, Severity
from holter.record.meta import Meta, ParameterSummary
from holter.record.signals import ADAM_TINY_FRACTION, GRAD_NORM, LOSS, TARGET_ENTROPY, UPDATE_RATIO
from layered import STEPS, broken, by_layer, falling, flat, layered, layers
from synthetic import found, said

STEEP = np.geomspace(1e-8, 1e-2, 8).tolist()
LAGGING = {UPDATE_RATIO: by_layer(np.geomspace(1e-8, 1e-3, 8).tolist())}


def run(loss: np.ndarray, norms: list, more: dict | None = None) -> Run:
    return layered(loss, {GRAD_NORM: by_layer(norms), **(more or {})}, layers(len(norms)))


def test_first_layers_that_do_not_move() -> None:
    (finding,) = found(vanishing_gradients, run(flat(), STEEP, LAGGING))
    assert finding.confidence is Confidence.LIKELY
    assert "0.weight" in finding.summary
    assert [each.signal for each in finding.evidence] == [GRAD_NORM, UPDATE_RATIO, LOSS]


def test_under_the_epsilon_of_adam() -> None:
    tiny = {ADAM_TINY_FRACTION: by_layer([1.0, 0.9] + [0.0] * 6)}
    (finding,) = found(vanishing_gradients, run(flat(), STEEP, tiny))
    assert finding.confidence is Confidence.LIKELY


def test_scaled_up_again_by_adam_is_a_hint() -> None:
    (finding,) = found(
        vanishing_gradients, run(flat(), STEEP, {UPDATE_RATIO: by_layer([1e-3] * 8)})
    )
    assert finding.confidence is Confidence.HINT


@pytest.mark.parametrize(
    ("loss", "norms"),
    [
        (flat(), STEEP[::-1]),  # grows towards the input
        (flat(), np.geomspace(1e-5, 1e-2, 8).tolist()),
        (flat(), [1e-8] * 7 + [1e-2]),  # a head alone: zero-initialised branches
        (flat(), [1e-8] * 8),  # small everywhere
        (flat(), [0.0] * 7 + [1e-2]),  # dead, not vanishing
    ],
)
def test_silent(loss: np.ndarray, norms: list) -> None:
    (verdict,) = said(vanishing_gradients, run(loss, norms, LAGGING))
    assert isinstance(verdict, Clear)


def test_only_at_first() -> None:
    norms = [np.r_[np.full(80, low), np.full(STEPS - 80, 1e-2)] for low in STEEP]
    assert not found(vanishing_gradients, run(flat(), norms, LAGGING))


def test_size_does_not_matter() -> None:
    made = run(flat(), STEEP, LAGGING)
    # the first are tiny matrices: a small norm, but not per element
    shapes = {f"{n}.weight": ParameterSummary((2 * 4**n, 2), "float32") for n in range(8)}
    meta = Meta(parameters=shapes)
    assert not found(vanishing_gradients, type(made)(made.tables, (), meta), ratio=1e-6)


def test_too_few_layers_or_steps() -> None:
    for made in (run(flat(), STEEP[:3]), run(flat(5), STEEP)):
        (verdict,) = said(vanishing_gradients, made)
        assert isinstance(verdict, NotExamined)


def test_boundary_and_nan() -> None:
    assert found(vanishing_gradients, run(broken(), STEEP, LAGGING))
    assert not found(vanishing_gradients, run(flat(), STEEP, LAGGING), ratio=1e-7)
    norms = [np.r_[[np.nan], np.full(STEPS - 1, each)] for each in STEEP]
    assert found(vanishing_gradients, run(flat(), norms, LAGGING))


def test_no_damage() -> None:
    (note,) = said(vanishing_gradients, run(falling(), STEEP, LAGGING))
    assert isinstance(note, Normal)
    assert note.exception == "no-damage"


def test_competing_losses_make_a_hint() -> None:
    competing = {LOSS: {"a": flat(), "b": 2 * flat()}}
    (finding,) = found(vanishing_gradients, run(flat(), STEEP, LAGGING | competing))
    assert finding.confidence is Confidence.HINT
    assert finding.severity is Severity.WARNING


def test_a_loss_near_the_best_constant_prediction_makes_a_hint() -> None:
    more = LAGGING | {TARGET_ENTROPY: {"cross_entropy": 1.0}}
    (finding,) = found(vanishing_gradients, run(falling(end=0.95), STEEP, more))
    assert finding.confidence is Confidence.HINT
    assert not found(vanishing_gradients, run(falling(end=0.5), STEEP, more))
