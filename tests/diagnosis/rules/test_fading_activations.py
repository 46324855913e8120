import numpy as np
import pytest

from holter.diagnosis.rules.fading_activations import fading_activations
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined, Severity
from holter.record.signals import (
    ACTIVATION_STD,
    GRAD_NORM,
    LOSS,
    TARGET_ENTROPY,
    UPDATE_RATIO,
    WEIGHT_NORM,
)
from layered import STEPS, broken, by_layer, falling, flat, layered, layers
from synthetic import found, said, series

STEEP = np.geomspace(1, 1e-6, 9).tolist()


def run(loss: np.ndarray, spreads: list, more: dict | None = None) -> Run:
    modules = {str(number): spread for number, spread in enumerate(spreads)}
    return layered(loss, {ACTIVATION_STD: modules, **(more or {})}, layers(len(spreads)))


@pytest.mark.parametrize("loss", [flat(), broken()])
def test_layer_by_layer_and_a_bad_loss(loss: np.ndarray) -> None:
    (finding,) = found(fading_activations, run(loss, STEEP))
    assert finding.confidence is Confidence.LIKELY
    assert finding.evidence[0].owner == "7"  # the head is left out


@pytest.mark.parametrize(
    ("loss", "spreads"),
    [
        (flat(), STEEP[::-1]),
        (flat(), [1.0] * 9),
        (flat(), [1.0] * 6 + [1e-6] * 3),  # one layer
        (flat(), [1.0] * 8 + [1e-6]),  # the head
        (flat(), [*STEEP[:4], 1.0, *STEEP[1:5]]),  # a normalisation on the way
    ],
)
def test_silent(loss: np.ndarray, spreads: list) -> None:
    (verdict,) = said(fading_activations, run(loss, spreads))
    assert isinstance(verdict, Clear)


def test_after_a_large_update_the_initialisation_is_gone() -> None:
    late = [series([each] * (STEPS - 1), range(1, STEPS)) for each in STEEP]
    update = {UPDATE_RATIO: by_layer([0.5] * 9)}
    (verdict,) = said(fading_activations, run(flat(), late, update))
    assert isinstance(verdict, NotExamined)
    small = {UPDATE_RATIO: by_layer([1e-3] * 9)}
    assert found(fading_activations, run(flat(), late, small))
    # a first loss that is enormous cannot come from an update
    entropy = {TARGET_ENTROPY: {"cross_entropy": np.full(STEPS, 1e-2)}}
    assert found(fading_activations, run(flat(), late, update | entropy))


def test_boundary_and_nan() -> None:
    assert not found(fading_activations, run(flat(), STEEP), ratio=1e-7)
    spreads = [*STEEP[:4], np.nan, *STEEP[5:]]
    assert found(fading_activations, run(flat(), spreads))


def test_too_few_layers() -> None:
    (verdict,) = said(fading_activations, run(flat(), STEEP[:5]))
    assert isinstance(verdict, NotExamined)


def test_no_damage() -> None:
    (note,) = said(fading_activations, run(falling(), STEEP))
    assert isinstance(note, Normal)
    assert note.exception == "no-damage"


def test_competing_losses_make_a_hint() -> None:
    competing = {LOSS: {"a": flat(), "b": 2 * flat()}}
    (finding,) = found(fading_activations, run(flat(), STEEP, competing))
    assert finding.confidence is Confidence.HINT
    assert finding.severity is Severity.WARNING


def started(
    loss: np.ndarray, *, size: float, gradient: float, count: int = 8, update: float = 1.0
) -> Run:
    """Layers of 32 x 32 that start at a size; activations were read after a large update."""
    norm = size * np.sqrt(32) * np.sqrt(1 + update**2)
    late = {str(number): series([1.0] * (STEPS - 1), range(1, STEPS)) for number in range(count)}
    signals = {
        ACTIVATION_STD: late,
        UPDATE_RATIO: by_layer([update] * count),
        WEIGHT_NORM: by_layer([norm] * count),
        GRAD_NORM: by_layer([gradient] * count),
    }
    return layered(loss, signals, layers(count))


def test_weights_far_too_small_for_their_fan_in_let_nothing_through() -> None:
    (finding,) = found(fading_activations, started(flat(), size=0.02, gradient=1e-6))
    assert finding.confidence is Confidence.LIKELY
    assert "initial weights of 8 layers are 0.02 times" in finding.summary
    assert {each.signal for each in finding.evidence} == {WEIGHT_NORM, GRAD_NORM, LOSS}


@pytest.mark.parametrize(
    ("size", "gradient", "count"),
    [
        (0.02, 1.0, 8),  # what follows makes up for it, as a frequency of 30 in SIREN
        (0.5, 1e-6, 8),  # a loss that hardly depends on a sound model
        (1e-4, 1e-6, 8),  # zero by design
        (0.02, 1e-6, 4),
    ],
)
def test_other_starts_are_not(size: float, gradient: float, count: int) -> None:
    (verdict,) = said(
        fading_activations, started(flat(), size=size, gradient=gradient, count=count)
    )
    assert isinstance(verdict, NotExamined)


def test_a_quiet_start_that_is_overcome_is_harmless() -> None:
    (note,) = said(fading_activations, started(falling(), size=0.02, gradient=1e-6))
    assert isinstance(note, Normal)
