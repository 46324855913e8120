import numpy as np
import pytest

from holter.diagnosis.rules.heavy_tailed_weights import heavy_tailed_weights
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.signals import WEIGHT_ABSMAX, WEIGHT_NORM
from layered import STEPS, by_layer, falling, flat, layered, layers
from synthetic import found, said

GROWN = np.geomspace(0.3, 6, STEPS)  # over weights of 0.1: from 3 to 60


def run(loss: np.ndarray, largest: list, *, shape: tuple[int, int] = (100, 100)) -> Run:
    norms = [0.1 * np.sqrt(shape[0] * shape[1])] * len(largest)
    readings = {WEIGHT_ABSMAX: by_layer(largest), WEIGHT_NORM: by_layer(norms)}
    return layered(loss, readings, layers(len(largest), shape=shape))


def test_a_few_weights_grew_far_beyond_the_rest() -> None:
    (finding,) = found(heavy_tailed_weights, run(flat(), [0.3, GROWN]))
    assert finding.confidence is Confidence.HINT
    assert finding.evidence[0].owner == "1.weight"


@pytest.mark.parametrize(
    ("loss", "largest"),
    [
        (flat(), [0.3]),
        (flat(), [6.0]),  # so from the first step on
        (flat(), [np.r_[np.full(100, 0.3), [6.0], np.full(99, 0.3)]]),
    ],
)
def test_silent(loss: np.ndarray, largest: list) -> None:
    (verdict,) = said(heavy_tailed_weights, run(loss, largest))
    assert isinstance(verdict, Clear)


def test_boundary_and_nan() -> None:
    grown = GROWN.copy()
    grown[3] = np.nan
    assert found(heavy_tailed_weights, run(flat(), [grown]))
    assert not found(heavy_tailed_weights, run(flat(), [grown]), ratio=70.0)


def test_small_matrices_and_short_runs_are_not_examined() -> None:
    for made in (run(flat(), [GROWN], shape=(10, 10)), run(flat(8), [0.3])):
        (verdict,) = said(heavy_tailed_weights, made)
        assert isinstance(verdict, NotExamined)


def test_no_damage() -> None:
    (note,) = said(heavy_tailed_weights, run(falling(), [GROWN]))
    assert isinstance(note, Normal)
    assert note.exception == "no-damage"
