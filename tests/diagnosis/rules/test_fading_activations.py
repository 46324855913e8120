import numpy as np
import pytest

from holter.diagnosis.rules.fading_activations import fading_activations
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined, Severity
from holter.record.signals import ACTIVATION_STD, LOSS, TARGET_ENTROPY, UPDATE_RATIO
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
